"""Results against SciPy, NetworkX and igraph, and what callers may do wrong."""

import copy
import dataclasses
import gzip
import io
import itertools
import json
import logging
import lzma
import math
import os
import pathlib
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
import xml.etree.ElementTree

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from scipy.sparse import csgraph

import socbfs

# A process that a shell started in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
DATA = pathlib.Path(os.environ.get("SOCBFS_DATA", pathlib.Path(__file__).resolve().parents[2] / ".." / "shared" / "data"))


def random_matrix(vertices, entries, seed, dtype=np.int32):
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(0, vertices, entries) for _ in range(2))
    matrix = scipy.sparse.csr_matrix((np.ones(entries, np.float64), (rows, columns)), shape=(vertices, vertices))
    matrix.indptr, matrix.indices = matrix.indptr.astype(dtype), matrix.indices.astype(dtype)
    return matrix


def distances(matrix, root, directed):
    # Older versions of SciPy search matrices of int32 only.
    arrays = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    matrix = scipy.sparse.csr_matrix(arrays, shape=matrix.shape)
    found = csgraph.shortest_path(matrix, method="D", directed=directed, unweighted=True, indices=root)
    return np.where(np.isinf(found), -1, found).astype(np.int32)


def check_tree(matrix, directed, tree, wanted):
    assert tree.parents.dtype == np.int32 and tree.levels.dtype == np.int32
    np.testing.assert_array_equal(tree.levels, wanted)
    assert tree.parents[tree.root] == tree.root
    np.testing.assert_array_equal(tree.parents >= 0, wanted >= 0)
    children = np.flatnonzero((wanted >= 0) & (np.arange(wanted.size) != tree.root))
    above = tree.parents[children]
    np.testing.assert_array_equal(wanted[above] + 1, wanted[children])
    arcs = matrix.copy()
    arcs.data = np.ones_like(arcs.data)
    if not directed:
        arcs = arcs + arcs.T
    entries = arcs.tocoo()
    known = entries.row.astype(np.int64) * wanted.size + entries.col
    assert np.isin(above.astype(np.int64) * wanted.size + children, known).all()
    assert tree.reached == (wanted >= 0).sum() and tree.depth == wanted.max() + 1


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_trees_equal_scipy(directed, dtype):
    for vertices, entries, seed in [(1, 0, 1), (50, 30, 2), (1000, 3000, 3), (3000, 40000, 4)]:
        matrix = random_matrix(vertices, entries, seed, dtype)
        graph = socbfs.Graph.from_scipy(matrix, directed, threads=2)
        assert (graph.vertices, graph.directed) == (vertices, directed)
        roots = [0, vertices // 2, vertices - 1]
        many = graph.bfs_many(roots, parents=True)
        small = graph.bfs_many(np.array(roots), dtype=np.uint8)
        assert many.levels.shape == many.parents.shape == small.levels.shape == (3, vertices)
        for i, root in enumerate(roots):
            wanted = distances(matrix, root, directed)
            check_tree(matrix, directed, graph.bfs(root, levels=True), wanted)
            of_many = [np.ascontiguousarray(found[i]) for found in (many.parents, many.levels)]
            check_tree(matrix, directed, socbfs.Tree(root, *of_many, wanted.max() + 1, 0.0, "", graph._core), wanted)
            alone = graph.bfs(root, parents=False, levels=True)
            np.testing.assert_array_equal(alone.levels, wanted)
            assert not hasattr(alone, "parents") and (alone.reached, alone.edges) == (graph.bfs(root).reached, graph.bfs(root).edges)
            np.testing.assert_array_equal(np.where(small.levels[i] == 255, -1, small.levels[i].astype(np.int32)), wanted)


def test_values_are_never_looked_at():
    matrix = random_matrix(100, 300, 5)
    wanted = socbfs.Graph.from_scipy(matrix).bfs(3, levels=True).levels
    matrix.data[:] = np.nan
    np.testing.assert_array_equal(socbfs.Graph.from_scipy(matrix).bfs(3, levels=True).levels, wanted)
    matrix.data = np.zeros_like(matrix.data)
    np.testing.assert_array_equal(socbfs.Graph.from_scipy(matrix).bfs(3, levels=True).levels, wanted)


@pytest.mark.parametrize("directed", [False, True])
def test_the_drop_in_has_scipys_signature_and_order(directed):
    for seed in range(5):
        matrix = random_matrix(400, 600, seed)
        order, predecessors = socbfs.breadth_first_order(matrix, 7, directed=directed)
        wanted_order, wanted_predecessors = csgraph.breadth_first_order(matrix, 7, directed=directed)
        assert order.dtype == wanted_order.dtype and predecessors.dtype == wanted_predecessors.dtype
        np.testing.assert_array_equal(order, wanted_order)
        np.testing.assert_array_equal(predecessors, wanted_predecessors)
        only = socbfs.breadth_first_order(matrix.toarray(), 7, directed, return_predecessors=False)
        np.testing.assert_array_equal(only, order)


@pytest.mark.parametrize("directed", [False, True])
def test_the_drop_in_reads_dense_and_masked_matrices_as_scipy_does(directed):
    dense = np.zeros((60, 60))
    rng = np.random.default_rng(11)
    rows, columns = rng.integers(0, 60, (2, 240))
    # What SciPy takes for no edge in a dense matrix is mixed with what it takes for one.
    dense[rows, columns] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 1e-300], 240)
    forms = {
        "dense": dense,
        "integers": np.isfinite(dense).astype(np.int64) * (dense != 0),
        "booleans": dense == 1,
        "matrix": np.asmatrix(dense),
        "lists": dense.tolist(),
        # A masked array has an edge wherever it is not masked, whatever the value.
        "masked": np.ma.masked_array(dense, mask=rng.random((60, 60)) > 0.04),
        "masked 7": np.ma.masked_equal(np.where(dense == 0, 7, 1), 7),
        "nothing masked": np.ma.masked_array(dense, mask=np.zeros((60, 60), bool)),
        "all masked": np.ma.masked_all((60, 60)),
        # In a sparse matrix every stored entry is an edge.
        **{kind: scipy.sparse.coo_matrix((dense[rows, columns], (rows, columns)), (60, 60)).asformat(kind) for kind in ("coo", "csc", "csr", "lil", "bsr")},
        "blocks": scipy.sparse.coo_matrix((np.ones(240), (rows, columns)), (60, 60)).tobsr((3, 4)),
    }
    some = set()
    for form, matrix in forms.items():
        known = matrix
        if getattr(matrix, "format", None) == "bsr":
            known = matrix.tocsr()
            known.eliminate_zeros()  # those that fill its blocks, which old versions of SciPy take for edges
        for root in range(0, 60, 7):
            wanted, wanted_predecessors = csgraph.breadth_first_order(known, root, directed=directed)
            order, predecessors = socbfs.breadth_first_order(matrix, root, directed=directed)
            np.testing.assert_array_equal(order, wanted, form)
            np.testing.assert_array_equal(predecessors, wanted_predecessors, form)
            some.add(1 < order.size < 60)
    assert some == {False, True}
    # SciPy fails on this one.
    assert set(socbfs.breadth_first_order(np.ma.masked_array(dense), 0, directed, return_predecessors=False).tolist()) == set(range(60))
    for wrong in (np.ones((2, 3)), np.ones(3), np.ma.ones((2, 3)), scipy.sparse.coo_matrix((2, 3))):
        for search in (csgraph.breadth_first_order, socbfs.breadth_first_order):
            with pytest.raises(ValueError):
                search(wrong, 0)


@pytest.mark.parametrize("directed", [False, True])
def test_components_are_numbered_as_by_scipy(directed):
    for entries in (0, 100, 300, 500, 5000):
        matrix = random_matrix(400, entries, entries)
        wanted, wanted_labels = csgraph.connected_components(matrix, directed, "weak")
        count, labels = socbfs.Graph.from_scipy(matrix, directed).connected_components()
        assert count == wanted and labels.dtype == wanted_labels.dtype
        np.testing.assert_array_equal(labels, wanted_labels)
        for form in (matrix.tocoo(), matrix.toarray()):
            count, labels = socbfs.connected_components(form, directed)
            assert count == wanted == socbfs.connected_components(form, directed, return_labels=False)
            np.testing.assert_array_equal(labels, wanted_labels)
    # Without arcs, SciPy does not look at the kind of components.
    assert socbfs.connected_components(matrix, False, "strong")[0] == csgraph.connected_components(matrix, False, "strong")[0]
    for wrong in ("strong", "weaker"):
        with pytest.raises(ValueError, match="strong"):
            socbfs.connected_components(matrix, True, wrong)
    with pytest.raises(TimeoutError):
        socbfs.connected_components(matrix, timeout=0)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_matrix_with_spare_room_is_taken(dtype):
    tight = random_matrix(300, 900, 5, dtype)
    entries = tight.indptr[-1]
    # Arrays of SciPy may be longer than the last offset (`prune` cuts them). What lies beyond it is no entry, and may be anything.
    roomy = tight.copy()
    roomy.indices = np.append(tight.indices, np.array([299, -1, 2**31 - 1], dtype))
    roomy.data = np.ones(entries + 3)
    assert roomy.indices.size == entries + 3 and roomy.nnz == entries
    for directed in (False, True):
        given, wanted = (socbfs.Graph.from_scipy(matrix, directed) for matrix in (roomy, tight))
        assert given.edges == wanted.edges
        for root in (0, 299):
            np.testing.assert_array_equal(given.bfs(root, levels=True).levels, wanted.bfs(root, levels=True).levels)
    empty = scipy.sparse.csr_matrix((3, 3))
    empty.indices, empty.data = np.ones(2, dtype), np.ones(2)
    assert socbfs.Graph.from_scipy(empty).edges == 0
    # An offset before the last that lies in the spare room is an error.
    roomy.indptr[5] = entries + 1
    with pytest.raises(ValueError, match="offset"):
        socbfs.Graph.from_scipy(roomy)


@pytest.mark.parametrize("directed", [False, True])
def test_a_search_from_several_sources_finds_the_nearest(directed):
    edges = np.random.default_rng(5).integers(0, 300, (420, 2))
    graph = socbfs.Graph.from_edges(edges, 300, directed)
    for sources in ([7], [3, 5, 7], np.array([250, 4, 4], np.int64), range(0, 300, 9), {11, 12}, (v for v in (1, 2))):
        if not isinstance(sources, (list, np.ndarray, range, set)):
            sources = list(sources)
            tree = graph.bfs((v for v in sources), levels=True, sources=True)
        else:
            tree = graph.bfs(sources, levels=True, sources=True)
        roots = list(sources)
        rows = graph.bfs_many(roots).levels.astype(np.int64)
        rows[rows < 0] = 1000
        wanted = rows.min(axis=0)
        reached = wanted < 1000
        assert np.array_equal(tree.levels, np.where(reached, wanted, -1)) and np.array_equal(tree.parents >= 0, reached)
        assert np.array_equal(tree.sources >= 0, reached) and tree.root == roots[0] and tree.reached == reached.sum()
        column = {int(root): rows[i] for i, root in enumerate(roots)}
        assert all(column[int(tree.sources[v])][v] == wanted[v] for v in np.flatnonzero(reached))
        alone = graph.bfs(sources if not isinstance(sources, set) else roots, parents=False, sources=True)
        assert np.array_equal(alone.sources, tree.sources) and alone.reached == tree.reached
        near = graph.bfs(roots, parents=False, levels=True, depth=1).levels
        assert np.array_equal(near >= 0, wanted <= 1)
    nothing = graph.bfs([], levels=True)
    assert (nothing.reached, nothing.depth, nothing.root) == (0, 0, -1) and (nothing.levels == -1).all()
    for wrong in ([0, 300], [-1], [0.5]):
        with pytest.raises((ValueError, IndexError, TypeError)):
            graph.bfs(wrong)


def test_early_ends_and_timeouts():
    path = np.stack([np.arange(999), np.arange(1, 1000)], axis=1)
    graph = socbfs.Graph.from_edges(path)
    tree = graph.bfs(0, levels=True, depth=10)
    assert (tree.end, tree.reached, tree.depth, tree.levels.max()) == ("depth", 11, 11, 10)
    tree = graph.bfs(500, target=490)
    assert (tree.end, tree.reached, tree.parents[490]) == ("target", 21, 491)
    assert graph.bfs(0, depth=2000).end == "complete"
    with pytest.raises(TimeoutError):
        graph.bfs(0, timeout=0)
    assert graph.bfs(0, timeout=1e300).reached == 1000
    for wanted, name in ((graph.bfs(0), "levels"), (graph.bfs(0), "sources"), (graph.bfs(0, parents=False, levels=True), "parents"), (graph.bfs_many([0]), "parents")):
        for found in (wanted, copy.copy(wanted), pickle.loads(pickle.dumps(wanted))):
            with pytest.raises(AttributeError, match=f"not asked for {name}: request them with {name}=True"):
                getattr(found, name)
            assert f"{name}=" not in repr(found) and "_core" not in repr(found)
    with pytest.raises(AttributeError, match="'Tree' object has no attribute 'level'"):
        graph.bfs(0).level
    np.testing.assert_array_equal(graph.bfs(0, parents=False, levels=True).levels, np.arange(1000))
    with pytest.raises(ValueError, match="nothing to find"):
        graph.bfs(0, parents=False)
    with pytest.raises(ValueError, match="int32"):
        graph.bfs_many([0], dtype=np.uint8)


def test_messages_go_to_logging(tmp_path, caplog):
    file = tmp_path / "g.el"
    file.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n")
    for level, messages in ((logging.ERROR, 0), (logging.WARNING, 1)):
        with caplog.at_level(level, logger="socbfs"):
            caplog.clear()
            assert socbfs.Graph.from_file(file).vertices == 3
            assert len(caplog.records) == messages
    record = caplog.records[0]
    assert record.levelno == logging.WARNING and record.name.startswith("socbfs.") and "read as" in record.getMessage()


def test_a_trial_of_costs_waits_for_many_searches(caplog):
    graph = socbfs.Graph.from_edges([[0, 1]])

    def prepared(**keywords):
        """How many searches were prepared by a call; each tells its policy."""
        caplog.clear()
        graph.bfs(0, **keywords)
        return sum("policy in force" in record.getMessage() for record in caplog.records)

    with caplog.at_level(logging.INFO, logger="socbfs"):
        assert [prepared() for _ in range(48)] == [1] + 47 * [0]
        assert prepared(timeout=60) == 0, "a trial might take all of the time"
        assert [prepared() for _ in range(3)] == [1, 0, 0]


def test_messages_name_arguments_of_python(tmp_path):
    file = tmp_path / "graph.dat"
    file.write_text("2 1\n0 1\n")
    with pytest.raises(OSError, match=r"format=el .*format=metis") as raised:
        socbfs.Graph.from_file(file)
    assert "--" not in str(raised.value)
    assert socbfs.Graph.from_file(file, format="el").edges == 2
    with pytest.raises(ValueError, match="nonsense"):
        socbfs.Graph.from_file(file, format="nonsense")


def test_misuse(tmp_path):
    graph = socbfs.Graph.from_edges([[0, 1]], 3)
    assert repr(graph) == "<socbfs.Graph of 3 vertices and 1 edges>"
    for root in (-1, 3, 2**32, -(2**40)):
        with pytest.raises(IndexError, match="3 vertices"):
            graph.bfs(root)
        with pytest.raises(IndexError, match="3 vertices"):
            graph.bfs_many([0, root])
    with pytest.raises(IndexError, match="target 9"):
        graph.bfs(0, target=9)
    for root in (2**62, 2**63, 2**70, -(2**70), np.uint64(2**63)):
        for call in (graph.bfs, lambda root: graph.bfs_many([0, root]), lambda root: graph.bfs_many([root, -1]), lambda root: graph.bench([root])):
            with pytest.raises(IndexError, match="3 vertices"):
                call(root)
        with pytest.raises(IndexError, match="target"):
            graph.bfs(0, target=root)
        with pytest.raises(IndexError, match="2 vertices"):
            socbfs.breadth_first_order(np.ones((2, 2)), root)
        with pytest.raises((ValueError, TypeError), match=r"2\*\*31|float64"):
            socbfs.Graph.from_edges([[0, root]])
    with pytest.raises(IndexError, match="3 vertices"):
        graph.bfs_many(np.array([2**63]))
    rows = np.array([0, 1, 1, 2]), np.array([1, 0])
    for root in (3, -1, 2**32 - 1, 2**63):
        with pytest.raises(IndexError, match="3 vertices"):
            socbfs._socbfs.breadth_first_order(*rows, root, True, None)
    for directed in (False, True):
        for offsets, targets, fault in (([0, 2, 1, 2], [1, 0], "offset"), ([0, 1, 1, 2], [3, 0], "vertex 3"), ([0, 1, 1, 2], [-1, 0], "vertex")):
            with pytest.raises(ValueError, match=fault):
                socbfs._socbfs.breadth_first_order(np.array(offsets), np.array(targets), 0, directed, None)
    with pytest.raises(IndexError, match="0 vertices"):
        socbfs._socbfs.breadth_first_order(np.array([0]), rows[1][:0], 0, True, None)
    with pytest.raises(TypeError):
        graph.bfs(0.5)
    with pytest.raises(TypeError):
        graph.bfs_many([0.5])
    for timeout in (float("nan"), -1, -(10**400)):
        for call in (lambda **options: graph.bfs(0, **options), lambda **options: graph.bfs_many([0], **options), socbfs.devices, socbfs.Energy):
            with pytest.raises(ValueError, match="timeout"):
                call(timeout=timeout)
    assert graph.bfs(0, timeout=10**400).reached == 2
    for depth in (-1, 2**32):
        with pytest.raises(ValueError, match="depth must be from 0"):
            graph.bfs(0, depth=depth)
    for threads in (-1, 5000, 2**40):
        with pytest.raises(ValueError, match="4096"):
            socbfs.Graph.from_edges([[0, 1]], threads=threads)
    with pytest.raises(TypeError):
        graph.bfs_many([0], dtype=np.float64)
    for arguments in ((), ([[0, 1]],), (graph._core,)):
        with pytest.raises(TypeError, match="made by Graph.from_scipy"):
            socbfs.Graph(*arguments)
    with pytest.raises(TypeError, match="tocsr"):
        socbfs.Graph.from_scipy(random_matrix(5, 5, 1).tocoo())
    # A cure that these have.
    for other in (np.eye(3), [[0, 1], [1, 0]]):
        with pytest.raises(TypeError, match="use scipy.sparse.csr_matrix"):
            socbfs.Graph.from_scipy(other)
    with pytest.raises(ValueError, match="square"):
        socbfs.Graph.from_scipy(scipy.sparse.csr_matrix((2, 3)))
    with pytest.raises(ValueError, match="square"):
        socbfs.breadth_first_order(scipy.sparse.csr_matrix((2, 3)), 0)
    for edges in ([[0, -1]], [[0, 2**31]], [[0, 1, 2]], [0, 1]):
        with pytest.raises(ValueError):
            socbfs.Graph.from_edges(edges)
    with pytest.raises(ValueError, match="vertices"):
        socbfs.Graph.from_edges([[0, 5]], 3)
    with pytest.raises(ValueError):
        socbfs.Graph.from_edges([[0, 1]], -1)
    with pytest.raises(TypeError):
        socbfs.Graph.from_edges([[0.5, 1]])
    with pytest.raises(FileNotFoundError, match="nothing.mtx"):
        socbfs.Graph.from_file("/nowhere/nothing.mtx")
    with pytest.raises(IsADirectoryError, match="name a graph file in it"):
        socbfs.Graph.from_file(os.curdir)
    with pytest.raises(ValueError):
        socbfs.Graph.from_edges([[0, 1]], policy="no-such-policy")
    with pytest.raises(ValueError, match="efficient"):
        socbfs.Graph.from_edges([[0, 1]], at="slowest")
    with pytest.raises(Exception, match="no operating point"):
        socbfs.Graph.from_edges([[0, 1]], board="generic", at="efficient")
    board = tmp_path / "points.toml"
    board.write_text("schema = 1\n[board]\nname = 'points'\n[[operating_points]]\ngoal = 'efficient'\ncpus = '0'\n")
    assert socbfs.Graph.from_edges([[0, 1]], board=board, at="efficient").bfs(0).parents.tolist() == [0, 0]
    with pytest.raises(RuntimeError):
        socbfs.Graph.from_edges([[0, 1]], board="no-such-board")
    # Matrices that somebody has broken.
    matrix = random_matrix(10, 20, 1)
    matrix.indices[3] = 10
    with pytest.raises(ValueError, match="10 vertices"):
        socbfs.Graph.from_scipy(matrix)
    matrix.indices[3] = -1
    with pytest.raises(ValueError):
        socbfs.Graph.from_scipy(matrix)
    matrix.indptr[2] = 1000
    with pytest.raises(ValueError, match="offset"):
        socbfs.Graph.from_scipy(matrix)
    matrix.indptr = matrix.indptr.astype(np.float64)
    with pytest.raises(TypeError, match="indptr"):
        socbfs.Graph.from_scipy(matrix)
    matrix.indptr = np.arange(22, dtype=np.int32)[::2]
    with pytest.raises(ValueError, match="contiguous"):
        socbfs.Graph.from_scipy(matrix)
    assert socbfs.Graph.from_edges([]).vertices == 0


def test_a_mask_is_not_lost():
    matrix = random_matrix(10, 20, 1)
    edges = np.ma.masked_array([[0, 1], [1, 2], [2, 3]], mask=[[0, 0], [0, 1], [0, 0]])
    with pytest.raises(ValueError, match=r"numpy\.ma\.compress_rows\(edges\)"):
        socbfs.Graph.from_edges(edges)
    assert socbfs.Graph.from_edges(np.ma.compress_rows(edges)).edges == 2
    # Where nothing is masked nothing is lost.
    graph = socbfs.Graph.from_edges(np.ma.masked_array(edges.data, mask=np.zeros((3, 2), bool)))
    assert graph.edges == socbfs.Graph.from_edges(np.ma.masked_array(edges.data.astype(np.uint32))).edges == 3
    with pytest.raises(ValueError, match=r"roots\.compressed\(\)"):
        graph.bfs_many(np.ma.masked_array([0, 1], mask=[0, 1]))
    assert graph.bfs_many(np.ma.masked_array([0, 1])).levels.shape == (2, 4)
    for name in ("indptr", "indices"):
        broken = matrix.copy()
        setattr(broken, name, np.ma.masked_array(getattr(matrix, name), mask=np.arange(getattr(matrix, name).size) == 1))
        with pytest.raises(ValueError, match=name):
            socbfs.Graph.from_scipy(broken)


def unaligned(values):
    """A copy whose elements are not aligned, as in a structure of a file."""
    room = np.zeros(values.nbytes + 1, np.uint8)
    array = room[1:].view(values.dtype).reshape(values.shape)
    array[...] = values
    assert array.flags.c_contiguous and not array.flags.aligned
    return array


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_arrays_that_are_not_aligned_are_taken_or_refused_with_a_cure(dtype):
    for kind in (dtype, np.uint32):
        path = unaligned(np.array([[0, 1], [1, 2]], kind))
        assert socbfs.Graph.from_edges(path).bfs(0).parents.tolist() == [0, 0, 1]
    matrix = random_matrix(100, 300, 5, dtype)
    wanted = socbfs.Graph.from_scipy(matrix).bfs(3, levels=True).levels
    for name in ("indptr", "indices"):
        setattr(matrix, name, unaligned(getattr(matrix, name)))
        with pytest.raises(ValueError, match=rf"{name} is not contiguous, or its elements are not aligned: use numpy\.require\({name}, "):
            socbfs.Graph.from_scipy(matrix)
        setattr(matrix, name, np.require(getattr(matrix, name), requirements="CA"))
    np.testing.assert_array_equal(socbfs.Graph.from_scipy(matrix).bfs(3, levels=True).levels, wanted)


def test_threads_search_one_graph_at_once():
    matrix = random_matrix(20000, 200000, 9)
    graph = socbfs.Graph.from_scipy(matrix, threads=1)
    wanted = {root: distances(matrix, root, False) for root in range(4)}
    wrong = []

    def search(root):
        for _ in range(10):
            if not np.array_equal(graph.bfs(root, levels=True).levels, wanted[root]):
                wrong.append(root)

    threads = [threading.Thread(target=search, args=(root,)) for root in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_file_that_changes_while_it_is_read_is_an_error_of_the_file(tmp_path):
    # A ring in the format of GAP, whose rows are read in place.
    path, vertices = tmp_path / "ring.sg", 100_000
    counts, offsets = np.array([2 * vertices, vertices], "<i8"), np.arange(0, 2 * vertices + 1, 2, dtype="<i8")
    neighbours = (np.arange(vertices)[:, np.newaxis] + [-1, 1]) % vertices
    path.write_bytes(b"\0" + counts.tobytes() + offsets.tobytes() + neighbours.astype("<i4").tobytes())
    assert socbfs.Graph.from_file(path).edges == vertices
    is_over = threading.Event()

    def touch():
        for now in itertools.count(1):
            if is_over.is_set():
                return
            os.utime(path, ns=(now, now))

    thread = threading.Thread(target=touch)
    thread.start()
    try:
        with pytest.raises(OSError, match="changed while it was read"):
            for _ in range(100):
                socbfs.Graph.from_file(path)
    finally:
        is_over.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_ends_well():
    program = """
import os, sys, numpy, scipy.sparse, socbfs
graph = socbfs.Graph.from_edges([[0, 1], [1, 2]], threads=2)
graph.bfs(0), graph.bfs_many([0, 2])
# With indices of 64 bits, in the parent and in the child.
matrix = scipy.sparse.csr_matrix(numpy.ones((3, 3)))
matrix.indptr, matrix.indices = matrix.indptr.astype(numpy.int64), matrix.indices.astype(numpy.int64)
assert socbfs.Graph.from_scipy(matrix, threads=2).vertices == 3
child = os.fork()
if child == 0:
    assert socbfs.Graph.from_scipy(matrix, threads=2).vertices == 3
    assert graph.bfs(0, levels=True).levels.tolist() == [0, 1, 2]
    del graph
    sys.exit(7)
sys.exit(os.waitpid(child, 0)[1] >> 8)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 7


FATAL = ["loaded-exits", "listed-aborts", "listed-hangs", "described-crashes", "opened-crashes", "built-aborts", "waited-hangs"]
WRONG = ["null-context", "null-kernel", "many-devices", "no-strings", "fewer-later"]


@pytest.mark.parametrize("case", FATAL + WRONG)
def test_drivers_that_misbehave_do_not_end_python(case, tmp_path):
    icds = [pathlib.Path(folder) / "pocl.icd" for folder in (os.environ.get("OCL_ICD_VENDORS"), "/etc/OpenCL/vendors") if folder]
    icd = next((icd for icd in icds if icd.exists()), None)
    source = pathlib.Path(__file__).parents[2] / "tests/implementations/misbehaves.c"
    library = tmp_path / "libmisbehaves.so"
    link = ["-Wl,--no-as-needed", "-l:libOpenCL.so.1", "-ldl"]
    if not icd or subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, *link]).returncode:
        pytest.skip("no PoCL, or no libOpenCL.so.1 to link to")
    program = """
import socbfs
try:
    print([device["unusable"] for device in socbfs.devices()])
except RuntimeError as error:
    print(error)
graph = socbfs.Graph.from_edges([[0, 1], [1, 2]], device="#1", policy="tg")
try:
    graph.bfs(0)
except RuntimeError as error:
    print("refused:", error)
print(socbfs.Graph.from_edges([[0, 1], [1, 2]]).bfs(0, levels=True).levels.tolist())
"""
    (tmp_path / "vendors").mkdir()
    shutil.copy(icd, tmp_path / "vendors")
    settings = {"OPENCL_DYLIB_PATH": str(library), "OCL_ICD_VENDORS": str(tmp_path / "vendors"), "SOCBFS_TEST_MISBEHAVE": case}
    settings |= {"SOCBFS_CACHE_DIR": "", "SOCBFS_DEVICE_TIMEOUT": "3" if case.endswith("hangs") else "30"}
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | settings, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "[0, 1, 2]" in done.stdout, done
    hangs = "a wait of 3 s: DEVICE_TIMEOUT" if case.startswith("waited") else "did not answer within 3 s"
    words = {"aborts": "SIGABRT", "exits": "exit code 7", "crashes": "SIGSEGV", "hangs": hangs}
    assert case in WRONG or ("refused:" in done.stdout and words[case.split("-")[1]] in done.stdout), done


def test_trees_are_compared_by_identity():
    graph = socbfs.Graph.from_edges([[0, 1], [1, 2]])
    one, other = graph.bfs(0), graph.bfs(0)
    assert one == one and one != other and len({one, other}) == 2


def test_results_outlive_their_graph():
    graph = socbfs.Graph.from_edges([[0, 1], [1, 2]])
    parents, levels = graph.bfs(0).parents, graph.bfs_many([0, 2]).levels
    del graph
    assert parents.tolist() == [0, 0, 1] and levels.tolist() == [[0, 1, 2], [2, 1, 0]]


def test_trees_can_be_copied_and_pickled():
    tree = socbfs.Graph.from_edges([[0, 1], [1, 2], [1, 1]], 5).bfs(0, levels=True)
    for other in (copy.copy(tree), copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        assert (other.root, other.depth, other.reached, other.edges, other.end) == (0, 3, 3, 2, "complete")
        assert other.parents.tolist() == tree.parents.tolist() and other.levels.tolist() == tree.levels.tolist()


@pytest.mark.parametrize("directed", [False, True])
def test_graphs_can_be_copied_and_pickled(directed):
    # Repeats, self-loops, a vertex without an edge, leaves, a pair.
    star = [[0, leaf] for leaf in range(1, 200)]
    for edges in ([], [[0, 1], [1, 0], [0, 1], [2, 2], [2, 3], [3, 4], [4, 2], [6, 7]], [*star, [0, 1], [200, 201]]):
        graph = socbfs.Graph.from_edges(np.array(edges, np.int64).reshape(-1, 2), 203, directed, threads=2, policy="alpha-beta")
        for other in (copy.copy(graph), copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
            assert (other.vertices, other.edges, other.directed, other._settings) == (203, graph.edges, directed, graph._settings)
            for root in (0, 1, 2, 3, 199, 202):
                given, found = (one.bfs(root, levels=True) for one in (graph, other))
                np.testing.assert_array_equal(found.levels, given.levels)
                assert (found.reached, found.edges, found.depth) == (given.reached, given.edges, given.depth)
    networkx = pytest.importorskip("networkx")
    named = pickle.loads(pickle.dumps(socbfs.Graph.from_networkx(networkx.path_graph("abc"))))
    assert named.labels == ["a", "b", "c"] and named.bfs("a", levels=True).levels.tolist() == [0, 1, 2]
    offsets, *rest = graph._core.state()
    for broken in ((offsets[:-1], *rest), (offsets, rest[0] + 500, *rest[1:]), (offsets, rest[0], rest[1][1:], *rest[2:])):
        with pytest.raises(ValueError):
            socbfs._socbfs.Core.from_state(*broken, graph._settings)


def long_path():
    """A path, which is searched level by level: each call with it lasts some seconds."""
    ends = np.arange(3_000_000, dtype=np.uint32)
    return socbfs.Graph.from_edges(np.stack([ends[:-1], ends[1:]], axis=1))


def late(call, after):
    """How long after Ctrl-C a call ends."""
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, interrupt)
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        call()
        timer.join()
    return time.monotonic() - sent[0]


def public_calls():
    """What users call: functions, and the methods and properties of classes, without those that `dataclass` has made."""
    for name in socbfs.__all__:
        thing = getattr(socbfs, name)
        if isinstance(thing, type):
            for member, what in vars(thing).items():
                call = next((getattr(what, part) for part in ("fget", "func", "__func__") if hasattr(what, part)), what)
                is_public = not member.startswith("_") or member.startswith("__")
                if is_public and getattr(call, "__code__", None) and call.__code__.co_filename.startswith(str(pathlib.Path(socbfs.__file__).parent)):
                    yield f"{name}.{member}"
        elif callable(thing):
            yield name


def test_work_without_the_interpreters_lock_goes_through_one_door():
    source = pathlib.Path(__file__).resolve().parents[1] / "src"
    assert [file.name for file in source.glob("*.rs") if "detach(" in file.read_text()] == ["call.rs"]
    for file in ("lib.rs", "grid.rs"):
        # The functions that Python calls: each does its work in `at_once` or `lasting`, or returns a part of what it has.
        for block in re.findall(r"#\[pymethods\]\nimpl.*?\n\}\n|#\[pyfunction\]\n.*?\n\}\n", (source / file).read_text(), re.DOTALL):
            for name, body in re.findall(r"\n *fn (\w+)(?:<'py>)?\(.*?\{\n(.*?)\n", block, re.DOTALL):
                assert "at_once(" in body or name in ("shape", "scope"), f"{file}: {name}"


def test_every_call_answers_ctrl_c_and_timeouts(tmp_path):
    pipe = tmp_path / "pipe.el"
    os.mkfifo(pipe)
    rng = np.random.default_rng(3)
    edges = rng.integers(0, 1 << 20, (6_000_000, 2), np.uint32)
    matrix = random_matrix(1 << 20, 6_000_000, 4)
    file = tmp_path / "graph.el"
    with open(file, "w") as out:
        for part in np.split(edges[:4_000_000], 40):
            out.write("\n".join(map("%d %d".__mod__, map(tuple, part.tolist()))) + "\n")
    graph, text = long_path(), pickle.dumps(long_path())
    cells, roots = np.ones((10_000, 10_000), bool), [0] * 20_000_000
    grid, narrow = socbfs.Grid(cells), socbfs.Grid(np.ones((2, 2), bool))
    threading.Thread(target=lambda: grid.bfs((0, 0)), daemon=True).start()
    walls = socbfs.Grid(np.arange(10_000) % 100 * cells > 0)
    at, turn = types.SimpleNamespace(x=0.0, y=0.0), types.SimpleNamespace(x=0.0, y=0.0, z=0.0, w=1.0)
    info = types.SimpleNamespace(width=10_000, height=10_000, resolution=0.05, origin=types.SimpleNamespace(position=at, orientation=turn))
    message = types.SimpleNamespace(info=info, data=np.zeros(100_000_000, np.int8))

    class Pairs:
        """A graph of NetworkX, as far as it is looked at."""

        __iter__ = lambda self: iter(range(1 << 20))
        edges = lambda self: zip(range(1 << 20), range(1 << 20))
        is_directed = lambda self: False

    def change():
        while True:
            grid[:, :] = True
            grid[0, 0] = True

    # By public names, and with others where one has several ways.
    calls = {
        "Graph.from_file of a pipe": lambda **options: socbfs.Graph.from_file(pipe, **options),
        "Graph.from_file": lambda **options: socbfs.Graph.from_file(file, **options),
        "Graph.from_edges": lambda **options: socbfs.Graph.from_edges(edges, **options),
        "Graph.from_edges of a list": lambda _pairs=edges.tolist(), **options: socbfs.Graph.from_edges(_pairs, **options),
        "Graph.from_edges of labels": lambda _pairs=edges[:1_000_000].astype(str).astype(object), **options: socbfs.Graph.from_edges(_pairs, **options),
        "Graph.from_pandas": lambda _ends=[ends + 10**12 for ends in edges.T.astype(np.int64)], **options: socbfs.Graph.from_pandas(_ends, 0, 1, **options),
        "Graph.from_scipy": lambda **options: socbfs.Graph.from_scipy(matrix, **options),
        "Graph.from_networkx": lambda **options: socbfs.Graph.from_networkx(Pairs(), **options),
        "Graph.bfs": lambda **options: graph.bfs(0, **options),
        "Graph.bfs of a list": lambda **options: graph.bfs(roots, **options),
        "Graph.bfs of an array": lambda _roots=np.zeros(60_000_000, np.int64), **options: graph.bfs(_roots, **options),
        "Graph.bfs_many": lambda **options: graph.bfs_many(range(8), **options),
        "Graph.bench": lambda **options: graph.bench(4, **options),
        "Graph.bench of a list": lambda **options: graph.bench(roots, **options),
        "Graph.connected_components": lambda **options: [graph.connected_components(**options) for _ in range(100)],
        "breadth_first_order": lambda _coo=matrix.tocoo(), **options: [socbfs.breadth_first_order(_coo, 0, False, **options) for _ in range(9)],
        "connected_components": lambda _coo=matrix.tocoo(), **options: socbfs.connected_components(_coo, **options),
        "Graph.neighbors": lambda: [copy.copy(graph).neighbors(0) for _ in range(10)],
        "Graph.to_scipy": lambda: [graph.to_scipy() for _ in range(100)],
        "Graph.__reduce__": lambda: pickle.loads(pickle.dumps(graph)),
        "unpickle": lambda: pickle.loads(text),
        "_socbfs.breadth_first_order": lambda: [socbfs._socbfs.breadth_first_order(matrix.indptr, matrix.indices, 0, False, None) for _ in range(20)],
        "Tree.reached": lambda: [graph.bfs(0, depth=3).reached for _ in range(100_000)],
        "Tree.edges": lambda: [graph.bfs(0, depth=3).edges for _ in range(100_000)],
        "Tree.__getstate__": lambda: [copy.copy(graph.bfs(0, depth=3)) for _ in range(100_000)],
        "Grid.__init__": lambda **options: [socbfs.Grid(cells, **options) for _ in range(20)],
        "Grid.__init__ of integers": lambda _cells=cells.astype(np.int64), **options: [socbfs.Grid(_cells, **options) for _ in range(20)],
        "Grid.__init__ of a list": lambda _cells=[[1] * 10_000] * 10_000, **options: socbfs.Grid(_cells, **options),
        "Grid.free": lambda: [grid.free for _ in range(20)],
        "Grid.assign": lambda: [grid.assign(cells) for _ in range(200)],
        "Grid.__setitem__": change,
        "Grid.bfs": lambda **options: grid.bfs((0, 0), **options),
        "Grid.bfs of a list": lambda _roots=[(0, 0)] * 20_000_000, **options: narrow.bfs(_roots, **options),
        "Grid.bfs of an array": lambda _roots=np.zeros((40_000_000, 2), np.int64), **options: narrow.bfs(_roots, **options),
        "Grid.from_ros": lambda **options: [socbfs.Grid.from_ros(message, **options) for _ in range(20)],
        "Grid.inflate": lambda **options: [walls.inflate(30, **options) for _ in range(20)],
    }
    # Those that do the same work however large the graph is, those in loops of Python, and those that other tests let wait for a driver.
    at_once = {
        "Graph.__init__", "Graph.__repr__", "Graph.vertices", "Graph.edges", "Graph.directed", "Graph.labels",
        "Graph.index", "Graph.__len__", "Graph.__contains__", "Graph.degree", "Tree.account", "Tree.path", "Tree.plot",
        "Grid.__repr__", "Grid.shape", "Grid.cell", "Grid.point", "Grid.plot", "GridTree.path", "GridTree.plot", "Energy.__init__", "Energy.__enter__", "Energy.__exit__", "Energy.scope", "devices",
    }
    untried = set(public_calls()) - at_once - set(calls)
    assert not untried, f"add these to `calls`, and see that call.rs or parts of the work answer Ctrl-C: {untried}"
    wrong = []
    for name, call in calls.items():
        begin = time.monotonic()
        if "options" in call.__code__.co_varnames:
            with pytest.raises(TimeoutError):
                call(timeout=0.1)
            took = time.monotonic() - begin - 0.1
            wrong += [f"{name}: the timeout was noticed {took:.2f} s late"] if took > 0.3 * SLOW else []
            with pytest.raises(TimeoutError):
                call(timeout=0)
        took = late(call, 0.2)
        wrong += [f"{name}: Ctrl-C was answered after {took:.2f} s"] if took > 0.3 * SLOW else []
    assert not wrong, "\n".join(wrong)
    # What was left behind does no harm.
    assert graph.bfs(0, depth=5).reached == 6 and socbfs.Graph.from_edges(edges[:1000]).edges == 1000


#: A machine that is used by others answers later.
SLOW = 1 + os.getloadavg()[0] / os.cpu_count()


def test_a_handler_that_raises_nothing_does_not_end_a_call(tmp_path):
    pipe = tmp_path / "pipe.el"
    os.mkfifo(pipe)
    arrived = []
    before = signal.signal(signal.SIGINT, lambda *_: arrived.append(1))

    def write():
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)
        with open(pipe, "w") as out:
            for line in ("0 1\n", "1 2\n"):
                out.write(line)
                out.flush()
                time.sleep(0.2)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert socbfs.Graph.from_file(pipe).edges == 2 and arrived == [1]
    finally:
        signal.signal(signal.SIGINT, before)
        writer.join()


@pytest.mark.parametrize("directed", [False, True])
def test_arrays_that_another_thread_changes_give_an_error_or_a_graph(directed):
    matrix = random_matrix(5000, 60_000, 7)
    matrix = matrix + matrix.T
    indices, indptr = matrix.indices.copy(), matrix.indptr.copy()
    rng, is_over = np.random.default_rng(8), threading.Event()

    def change():
        while not is_over.is_set():
            places = rng.integers(0, indices.size, 50)
            matrix.indices[places] = rng.integers(0, 5000, 50)
            matrix.indices[places] = indices[places]
            # The ends of two entries are exchanged: no degree changes.
            one, other = places[:2]
            matrix.indices[[one, other]] = matrix.indices[[other, one]]
            matrix.indptr[1 + places[2] % 4999] += 1
            matrix.indptr[:] = indptr
            matrix.indices[places] = indices[places]

    thread = threading.Thread(target=change)
    thread.start()
    built, refused = 0, 0
    try:
        for _ in range(60):
            try:
                graph = socbfs.Graph.from_scipy(matrix, directed, threads=2)
            except (ValueError, RuntimeError) as error:
                assert not isinstance(error, socbfs.InternalError), error
                refused += 1
                continue
            built += 1
            offsets, targets, *_ = graph._core.state()
            found = scipy.sparse.csr_matrix((np.ones(targets.size), targets, offsets), shape=(5000, 5000))
            assert (found.indices < 5000).all() and (directed or (found != found.T).nnz == 0)
    finally:
        is_over.set()
        thread.join()
    assert refused > 0, f"{built} of 60 were built: nothing changed meanwhile"


def test_a_panic_is_an_exception_of_ours():
    assert issubclass(socbfs.InternalError, RuntimeError)
    panic = getattr(socbfs._socbfs, "planted_panic", None)
    if panic is None:
        pytest.skip("SKIPPED: the package was built without its feature planted-panic")
    for lasts in (False, True):
        with pytest.raises(socbfs.InternalError, match="planted.*report"):
            panic(lasts)


def test_a_lack_of_memory_is_a_memory_error():
    # Each limit is between two large steps of its call, so that no small allocation fails.
    program = """
import resource, numpy, socbfs
ends = numpy.arange(1 << 22, dtype=numpy.uint32)
path = numpy.stack([ends[:-1], ends[1:]], axis=1)
graph = socbfs.Graph.from_edges(path[: 1 << 18], threads=2)
offsets = numpy.zeros((1 << 23) + 1, numpy.int64)
graph.bfs(0)
calls = {
    "the adjacency": (84, lambda: socbfs.Graph.from_edges(path, threads=2)),
    "the degrees": (1000, lambda: socbfs.Graph.from_edges(path[:9], 2**31 - 1, threads=2)),
    "the order": (40, lambda: socbfs._socbfs.breadth_first_order(offsets, offsets[:0], 0, True, None)),
    "many levels": (40, lambda: graph.bfs_many(range(64))),
}
for name, (room, call) in calls.items():
    used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize:")) << 10
    resource.setrlimit(resource.RLIMIT_AS, (used + (room << 20), resource.RLIM_INFINITY))
    try:
        call()
        print("there is enough memory for", name)
    except MemoryError as error:
        assert str(error), name
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""
    settings = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, env=settings)
    assert (done.returncode, done.stdout) == (0, ""), f"{done.stdout}{done.stderr[-2000:]}"


def test_the_examples_of_the_documentation_run():
    # All pages; examples with prompts are run by doctest (tests/python).
    pages = [page for part in ("*.md", "docs/*.md", "*/README.md") for page in pathlib.Path(__file__).resolve().parents[2].glob(part)]
    blocks = [block for page in pages for block in re.findall(r"```(?:python|py)\n(.*?)```", page.read_text(), re.DOTALL)]
    examples = [block for block in blocks if not block.startswith(">>> ")]
    assert len(pages) > 20 and examples

    def most():
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

    for example in examples:
        done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, timeout=300, preexec_fn=most)
        assert done.returncode == 0 and done.stdout, done.stderr


def test_the_account_of_levels():
    matrix = random_matrix(3000, 30000, 5)
    graph = socbfs.Graph.from_scipy(matrix, threads=1, policy="rule:level == 2")
    tree = graph.bfs(0, levels=True)
    account = tree.account
    assert account.dtype.names[:6] == ("level", "levels", "direction", "place", "gpu_share", "frontier")
    assert account["level"][0] == 0 and account["frontier"][0] == 1
    assert np.array_equal(account["level"][1:], (account["level"] + account["levels"])[:-1])
    assert account["direction"][account["level"] == 2].tolist() == ["bottom-up"] and (account["direction"] == "top-down").sum() == len(account) - 1
    assert (account["place"] == "cpu").all() and (account["gpu_share"] == 0).all() and (account["threads"] == 1).all()
    # Most vertices are found by these levels; those that the layout leaves out have a single edge or none.
    assert tree.reached - 1 - account["found"].sum() in range(np.count_nonzero(np.diff(graph_rows(matrix)) <= 1) + 1)
    parts = account["deciding"] + account["converting"] + account["handing_over"]
    assert (parts <= account["nanoseconds"]).all() and 0 < account["nanoseconds"].sum() <= 1e9 * tree.seconds
    assert np.array_equal(pickle.loads(pickle.dumps(tree)).account, account)
    assert len(graph.bfs(0, depth=1).account) == 1 and socbfs.Graph.from_edges([[0, 0]]).bfs(0).account["found"].tolist() == [0]
    with pytest.raises(ValueError, match="column 15: unknown name") as refused:
        socbfs.Graph.from_scipy(matrix, policy="rule:level > 1 and fronter_edges > 5")
    assert str(refused.value).splitlines()[2] == " " * 16 + "^"


def graph_rows(matrix):
    """The offsets of the rows of a matrix made symmetric."""
    both = (matrix + matrix.T).tocsr()
    both.setdiag(0)
    both.eliminate_zeros()
    return both.indptr


def test_the_path_to_a_vertex():
    graph = socbfs.Graph.from_edges([[0, 1], [1, 2], [2, 3], [0, 4], [5, 6]])
    tree = graph.bfs(0)
    assert tree.path(3) == [0, 1, 2, 3] and tree.path(np.int32(0)) == [0] and tree.path(5) == []
    assert {type(vertex) for vertex in tree.path(3)} == {int}
    for vertex in (-1, 7):
        with pytest.raises(IndexError, match="7 vertices"):
            tree.path(vertex)
    with pytest.raises(ValueError, match="parents=True"):
        graph.bfs(0, parents=False, levels=True).path(3)
    # A cycle of a driver with a bug ends.
    tree.parents[1] = 2
    tree.parents[2] = 1
    with pytest.raises(RuntimeError, match="do not lead to a root"):
        tree.path(3)


def test_plot_draws_with_matplotlib_or_says_that_it_is_missing(monkeypatch):
    tree = socbfs.Graph.from_scipy(random_matrix(2000, 20000, 1)).bfs(0)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "matplotlib", None)
        without.setitem(sys.modules, "matplotlib.pyplot", None)
        with pytest.raises(ImportError, match="pip install matplotlib"):
            tree.plot()
    matplotlib = pytest.importorskip("matplotlib", reason="SKIPPED: matplotlib is not installed")
    matplotlib.use("Agg")
    axes = tree.plot()
    assert len(axes.patches) == len(tree.account) and axes.get_xlabel() == "level"
    heights = [patch.get_height() * patch.get_width() * 1e3 for patch in axes.patches]
    assert np.allclose(heights, tree.account["nanoseconds"])
    assert [text.get_text() for text in axes.get_legend().get_texts()][-1] == "cpu"
    assert tree.plot(axes) is axes
    axes.figure.savefig(io.BytesIO())
    # A search of no levels, and one whose levels are all in one entry.
    for edges in ([[0, 1]], [[v, v + 1] for v in range(50)]):
        socbfs.Graph.from_edges(edges, threads=1).bfs(0).plot().figure.savefig(io.BytesIO())
    matplotlib.pyplot.close("all")


def test_a_notebook_shows_a_graph():
    graph = socbfs.Graph.from_edges([[0, 1], [1, 2]], policy="rule:level < 1 and level > 2")
    shown = graph._repr_html_()
    for wanted in (">vertices<", ">3<", ">edges<", ">2<", ">CPU<", "level &lt; 1 and level &gt; 2", ">none<"):
        assert wanted in shown, shown
    graph.bfs(2)
    assert "from 2: 3 levels in " in graph._repr_html_()
    xml.etree.ElementTree.fromstring(graph._repr_html_())


def test_public_types_are_told():
    package = pathlib.Path(socbfs.__file__).parent
    for file in ("__init__.py", "_socbfs.pyi"):
        assert not re.search(r"\bAny\b[\],)]|: Any\b|-> Any\b", (package / file).read_text()), file
    for known in (socbfs.Graph.bench, socbfs.devices, socbfs.Tree.path, socbfs.breadth_first_order):
        assert "return" in known.__annotations__


def test_bench_devices_and_energy():
    graph = socbfs.Graph.from_scipy(random_matrix(2000, 20000, 1), threads=1)
    told = graph.bench(20)
    assert isinstance(told, socbfs.Bench) and len(told.seconds) == len(told.roots) == 20 and told.teps > 0
    assert min(told.seconds) <= told.median_seconds <= max(told.seconds)
    for roots in (np.arange(3), np.arange(3, dtype=np.uint8), list(np.arange(3, dtype=np.int64)), iter(range(3)), range(3), (0, 1, 2)):
        told = graph.bench(roots)
        # Plain integers, as a report in JSON needs them.
        assert told.roots == [0, 1, 2] and {type(root) for root in told.roots} == {int} and len(told.seconds) == 3
        assert json.loads(json.dumps(dataclasses.asdict(told)))["seconds"] == told.seconds
    assert len(graph.bench(np.int64(4)).roots) == 4
    for roots in ([], np.empty(0, np.int64)):
        with pytest.raises(ValueError, match="no roots"):
            graph.bench(roots)
    with pytest.raises(TypeError, match="float64"):
        graph.bench([0.5])
    with pytest.raises(ValueError):
        socbfs.Graph.from_edges([[0, 0]]).bench()
    assert all({"name", "unusable"} <= set(device) for device in socbfs.devices())
    assert graph.bfs(0).fallen_back is None
    with pytest.raises(RuntimeError, match="no-such-board"):
        socbfs.Energy(board="no-such-board")
    try:
        energy = socbfs.Energy()
    except OSError as problem:
        assert str(problem)
    else:
        with energy:
            graph.bfs(0)
        assert (energy.joules is None) == (energy.problem is not None) and energy.scope


def test_networkx_graphs_and_its_dispatch():
    networkx = pytest.importorskip("networkx")
    for graph in (networkx.karate_club_graph(), networkx.gnp_random_graph(60, 0.03, seed=2, directed=True), networkx.path_graph("abcdef")):
        source = list(graph)[0]
        ours = socbfs.Graph.from_networkx(graph)
        assert ours.labels == list(graph) and ours.directed == graph.is_directed()
        for cutoff in (None, -1, 0, 1.5, 2, 100, math.inf, math.nan):
            wanted = networkx.single_source_shortest_path_length(graph, source, cutoff)
            found = networkx.single_source_shortest_path_length(graph, source, cutoff, backend="socbfs")
            assert found == wanted and list(found.values()) == sorted(found.values())
        for distance in (0, 1, 2, 50):
            wanted = networkx.descendants_at_distance(graph, source, distance)
            assert networkx.descendants_at_distance(graph, source, distance, backend="socbfs") == wanted
        for sources in ([source], list(graph)[:3], source):
            wanted = [set(layer) for layer in networkx.bfs_layers(graph, sources)]
            assert [set(layer) for layer in networkx.bfs_layers(graph, sources, backend="socbfs")] == wanted
        for target in list(graph)[:9]:
            assert networkx.has_path(graph, source, target, backend="socbfs") == networkx.has_path(graph, source, target)
        if not graph.is_directed():
            assert networkx.is_connected(graph, backend="socbfs") == networkx.is_connected(graph)
            wanted = networkx.node_connected_component(graph, source)
            assert networkx.node_connected_component(graph, source, backend="socbfs") == wanted
        weak = "weakly_" if graph.is_directed() else ""
        for name in (f"{weak}connected_components", f"number_{weak}connected_components", f"is_{weak}connected"):
            wanted, found = (getattr(networkx, name)(graph, **backend) for backend in ({}, {"backend": "socbfs"}))
            assert list(found) == list(wanted) if "components" in name and "number" not in name else found == wanted
        for target in list(graph)[:9]:
            if networkx.has_path(graph, source, target):
                wanted = networkx.shortest_path_length(graph, source, target)
                assert networkx.shortest_path_length(graph, source, target, backend="socbfs") == wanted
            else:
                with pytest.raises(networkx.NetworkXNoPath):
                    networkx.shortest_path_length(graph, source, target, backend="socbfs")
        assert networkx.shortest_path_length(graph, source, backend="socbfs") == networkx.shortest_path_length(graph, source)
        for cutoff in (None, 0, 1.5):
            wanted = networkx.single_source_shortest_path(graph, source, cutoff)
            found = networkx.single_source_shortest_path(graph, source, cutoff, backend="socbfs")
            assert {node: len(path) for node, path in found.items()} == {node: len(path) for node, path in wanted.items()}
            for node, path in found.items():
                assert (path[0], path[-1]) == (source, node) and networkx.is_path(graph, path)
        for call in (networkx.single_source_shortest_path_length, networkx.bfs_layers):
            with pytest.raises((networkx.NodeNotFound, networkx.NetworkXError)):
                list(call(graph, "no such node", backend="socbfs"))
        # As with NetworkX, what can't be hashed is no node.
        with pytest.raises(networkx.NodeNotFound):
            networkx.single_source_shortest_path_length(graph, [source], backend="socbfs")
        with pytest.raises(networkx.NetworkXError):
            networkx.descendants_at_distance(graph, [source], 1, backend="socbfs")
    # Views, which NetworkX converts once, also if the graph changes that is viewed.
    graph = networkx.path_graph(5, create_using=networkx.DiGraph)
    views = [graph.subgraph([0, 1, 2, 3]), graph.reverse(copy=False), networkx.restricted_view(graph, [4], []), graph.to_undirected(as_view=True)]
    for change in (lambda: None, lambda: graph.remove_edge(1, 2), lambda: graph.add_edge(1, 3), lambda: graph.add_edge(3, 0)):
        change()
        for view in [graph, *views]:
            for source in view:
                wanted = dict(networkx.single_source_shortest_path_length(view, source))
                assert dict(networkx.single_source_shortest_path_length(view, source, backend="socbfs")) == wanted
    path = networkx.path_graph(300)
    wanted = [set(layer) for layer in networkx.bfs_layers(path, list(path)[:200:2])]
    assert [set(layer) for layer in networkx.bfs_layers(path, list(path)[:200:2], backend="socbfs")] == wanted


def test_networkx_own_tests_of_its_searches_pass_with_the_backend():
    pytest.importorskip("networkx", reason="SKIPPED: no NetworkX")
    modules = (
        "traversal.tests.test_bfs", "shortest_paths.tests.test_unweighted", "shortest_paths.tests.test_generic",
        "components.tests.test_connected", "components.tests.test_weakly_connected", "tests.test_distance_measures",
    )
    # Without one that converts hundreds of graphs again and again.
    left_out = ("-k", "not use_bounds_on_off")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "networkx_calls", *left_out, "--pyargs"]
    here = str(pathlib.Path(__file__).resolve().parent)
    settings = {**os.environ, "PYTHONPATH": here, "NETWORKX_TEST_BACKEND": "socbfs", "NETWORKX_FALLBACK_TO_NX": "True"}
    done = subprocess.run([*command, *(f"networkx.algorithms.{module}" for module in modules)], env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout).group(1)) >= 30 and "failed" not in done.stdout
    # They were not NetworkX' own functions.
    names = ("single_source_shortest_path_length", "descendants_at_distance", "bfs_layers", "connected_components", "shortest_path_length")
    names += ("single_source_shortest_path", "number_connected_components", "is_connected", "weakly_connected_components", "bfs_edges")
    names += ("bfs_tree", "bfs_successors", "shortest_path", "all_pairs_shortest_path", "all_pairs_shortest_path_length", "has_path")
    for name in (*names, "eccentricity", "center", "diameter", "periphery", "radius"):
        assert re.search(rf"'{name}': \d+", done.stdout), done.stdout


def edges_of(path):
    """The edges of a real graph, read without socbfs."""
    with (lzma if path.suffix == ".xz" else gzip).open(path) as file:
        if ".mtx" in path.name:
            matrix = scipy.io.mmread(file).tocoo()
            return np.stack([matrix.row, matrix.col], axis=1).astype(np.int64)
        lines = (line for line in file if not line.startswith((b"#", b"%")))
        numbers = np.array(b" ".join(lines).split(), dtype=np.int64)
    return numbers.reshape(-1, 2)


# Those in formats that SciPy or a line of Python can read; others are read by tests of the command.
SUFFIXES = (".mtx.xz", ".txt.xz", ".txt.gz")
# What takes long is left out without SOCBFS_TEST_ALL.
MOST_BYTES = 1 << 40 if "SOCBFS_TEST_ALL" in os.environ else 1 << 20
FILES = sorted(
    path
    for path in (DATA.glob("*") if DATA.is_dir() else [])
    if path.name.endswith(SUFFIXES) and not path.name.startswith("rodinia") and path.stat().st_size <= MOST_BYTES
)


@pytest.mark.skipif(not FILES, reason=f"SKIPPED: no folder of real graphs at {DATA} (SOCBFS_DATA)")
@pytest.mark.parametrize("path", FILES or [None], ids=lambda path: path and path.name)
def test_real_graphs_equal_scipy_igraph_and_networkx(path):
    igraph = pytest.importorskip("igraph", reason="SKIPPED: no igraph")
    networkx = pytest.importorskip("networkx", reason="SKIPPED: no NetworkX")
    edges = edges_of(path)
    vertices = int(edges.max()) + 1
    matrix = scipy.sparse.csr_matrix((np.ones(len(edges), np.int8), edges.T), shape=(vertices, vertices))
    for directed in (False, True):
        graph = socbfs.Graph.from_edges(edges, vertices, directed, threads=2)
        rows = socbfs.Graph.from_scipy(matrix, directed, threads=2)
        root = int(edges[len(edges) // 2, 0])
        wanted = np.array(igraph.Graph(vertices, edges.tolist(), directed=directed).distances(root, mode="out")[0])
        wanted = np.where(np.isinf(wanted), -1, wanted).astype(np.int32)
        np.testing.assert_array_equal(distances(matrix, root, directed), wanted)
        other = networkx.Graph if not directed else networkx.DiGraph
        far = networkx.single_source_shortest_path_length(other(edges.tolist()), root)
        assert all(wanted[v] == level for v, level in far.items()) and len(far) == (wanted >= 0).sum()
        check_tree(matrix, directed, graph.bfs(root, levels=True), wanted)
        check_tree(matrix, directed, rows.bfs(root, levels=True), wanted)
        np.testing.assert_array_equal(graph.bfs_many([root]).levels[0], wanted)
