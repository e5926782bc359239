"""The installed package where there is only NumPy beside it, as on a board: results against a search in plain Python, and what callers may
do wrong, some of it with sizes that 32 bits do not hold. `tests/wheels` runs it on each processor."""

import collections
import os
import platform
import sys
import tempfile
import threading
import types

import numpy as np

import socbfs


def distances(vertices, edges, root):
    neighbours = collections.defaultdict(list)
    for u, v in edges.tolist():
        neighbours[u].append(v)
        neighbours[v].append(u)
    found, queue = np.full(vertices, -1, np.int32), collections.deque([root])
    found[root] = 0
    while queue:
        u = queue.popleft()
        for v in neighbours[u]:
            if found[v] < 0:
                found[v] = found[u] + 1
                queue.append(v)
    return found


def refused(kind, says, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        assert says in str(error), f"{error!r} does not say {says!r}"
        return
    raise AssertionError(f"{arguments} {options} was not refused")


rng = np.random.default_rng(1)
vertices = 3000
edges = rng.integers(0, vertices - 100, (6000, 2))
places = np.argsort(edges[:, 0], kind="stable")
starts = np.searchsorted(edges[places, 0], np.arange(vertices + 1))
graphs = [socbfs.Graph.from_edges(edges, vertices, threads=2)]
for kind in (np.int32, np.int64):
    # As a matrix of SciPy looks, which is not here.
    rows = types.SimpleNamespace(format="csr", shape=(vertices, vertices), indptr=starts.astype(kind), indices=edges[places, 1].astype(kind))
    graphs.append(socbfs.Graph.from_scipy(rows, threads=2))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "graph.el")
    np.savetxt(path, edges, "%d")
    graphs.append(socbfs.Graph.from_file(path))

roots = [0, 7, vertices - 101, vertices - 1]
wanted = {root: distances(vertices, edges, root) for root in roots}
for graph in graphs:
    for root in roots:
        if root >= graph.vertices:  # a file names no vertex that has no edge
            continue
        expected = wanted[root][: graph.vertices]
        tree = graph.bfs(root, levels=True)
        np.testing.assert_array_equal(tree.levels, expected)
        children = np.flatnonzero(expected > 0)
        np.testing.assert_array_equal(expected[tree.parents[children]] + 1, expected[children])
        assert tree.parents[root] == root and tree.reached == (expected >= 0).sum()
        np.testing.assert_array_equal(graph.bfs_many([root] * 70).levels[69], expected)
assert graphs[0].bench(4).teps > 0

wrong = []


def search(root):
    for _ in range(20):
        if not np.array_equal(graphs[0].bfs(root, levels=True).levels, wanted[root]):
            wrong.append(root)


threads = [threading.Thread(target=search, args=(root,)) for root in roots]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong

for root in (-1, vertices, 2**32, 2**32 + 1, -(2**40)):
    refused(IndexError, "3000 vertices", graphs[0].bfs, root)
    refused(IndexError, "3000 vertices", graphs[0].bfs_many, [0, root])
refused(ValueError, "2**31", socbfs.Graph.from_edges, np.array([[0, 2**32]]))
refused(ValueError, "2**31", socbfs.Graph.from_edges, [[0, 1]], 2**31)
refused(OSError, "nothing.mtx", socbfs.Graph.from_file, "/nowhere/nothing.mtx")
if sys.maxsize < 2**32:
    # More than the addresses of a 32-bit program hold.
    refused(MemoryError, "memory", socbfs.Graph.from_edges, [[0, 1]], 2**31 - 1)
else:
    # Levels of 2**47 bytes, more than a process can address.
    refused(MemoryError, "allocate", socbfs.Graph.from_edges([[0, 1]], 2**22).bfs_many, np.zeros(2**23, np.int64))
assert isinstance(socbfs.devices(), list)
print(f"socbfs {socbfs.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, {sys.maxsize.bit_length() + 1} bits: well")
