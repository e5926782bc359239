"""socbfs beside SciPy, igraph and python-graphblas: one R-MAT graph, the same roots, in one process, in turn.

python side_by_side.py PART [SCALE] > PART.csv          what,round,root,ms: one row for each call

PART is one of calls (four vertices: what a call costs), search (against SciPy), graphblas (against SciPy and python-graphblas), igraph (against
igraph, whose graph takes long to build), build (from CSR arrays), many (64 roots). Medians go to standard error. Two threads where a library has threads. Every
round calls one library with all its roots, then the next. Results are compared, outside the time.
"""

import csv
import statistics
import sys
import time

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph

import socbfs

THREADS = 2
measured = []


def timed(what, turn, root, work, *arguments, times=1, **options):
    begin = time.perf_counter()
    for _ in range(times):
        result = work(*arguments, **options)
    measured.append((what, turn, root, (time.perf_counter() - begin) * 1e3 / times))
    return result


def rmat(scale, edge_factor=16, seed=20):
    """Edges as they are drawn (a, b, c of Graph500), and the symmetric matrix of ones that they make."""
    rng = np.random.default_rng(seed)
    edges = edge_factor << scale
    row, column = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    for bit in range(scale):
        draw = rng.random(edges)
        row |= (draw > 0.76).astype(np.int64) << bit
        column |= (((draw > 0.57) & (draw <= 0.76)) | (draw > 0.95)).astype(np.int64) << bit
    place = rng.permutation(1 << scale)
    drawn = scipy.sparse.csr_matrix((np.ones(edges), (place[row], place[column])), shape=(1 << scale, 1 << scale))
    drawn.data[:] = 1
    both = (drawn + drawn.T).tocsr()
    both.data[:] = 1
    return drawn, both


def of_graphblas(matrix):
    """LAGr_BreadthFirstSearch of LAGraph: parents, push and pull by its own rule (alpha 8, beta1 8, beta2 512)."""
    import graphblas
    from graphblas import Vector

    graphblas.ss.config["nthreads"] = THREADS
    vertices, arcs = matrix.shape[0], matrix.nnz
    ones = scipy.sparse.csr_matrix((np.ones(arcs, np.bool_), matrix.indices, matrix.indptr), shape=matrix.shape)
    graph, degrees = graphblas.io.from_scipy_sparse(ones), np.diff(matrix.indptr).astype(np.int64)
    any_secondi = graphblas.semiring.ss.any_secondi

    def search(root):
        parents, frontier = Vector(np.int64, vertices), Vector(np.int64, vertices)
        parents[root] = frontier[root] = root
        pushes, before, now, unexplored = True, 0, 1, arcs
        while now:
            if pushes and now > before:
                leaving = int(degrees[frontier.to_coo(values=False)[0]].sum())
                unexplored -= leaving
                pushes = leaving * 8 <= unexplored
            elif not pushes and now < before and now <= vertices // 512:
                pushes = True
            before = now
            frontier(~parents.S, replace=True) << any_secondi(frontier @ graph if pushes else graph @ frontier)
            now = frontier.nvals
            parents(frontier.S) << frontier
        return parents

    return search


def main():
    part, scale = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    if part == "calls":
        graph = socbfs.Graph.from_edges([[0, 1], [1, 2], [2, 3]], threads=THREADS)
        for turn in range(9):
            timed("bfs", turn, 0, graph.bfs, 0, times=5000)
            timed("bfs with levels", turn, 0, graph.bfs, 0, levels=True, times=5000)
            timed("bfs_many of 2 roots", turn, 0, graph.bfs_many, [0, 1], times=5000)
        return
    drawn, both = rmat(scale)
    roots = np.random.default_rng(7).choice(np.flatnonzero(np.diff(both.indptr)), 64, replace=False).tolist()
    if part == "build":
        for turn in range(5):
            timed("A + A.T", turn, "", lambda: drawn + drawn.T)
            timed("Graph.from_scipy(A)", turn, "", socbfs.Graph.from_scipy, drawn, threads=THREADS)
            timed("Graph.from_scipy(A + A.T)", turn, "", socbfs.Graph.from_scipy, both, threads=THREADS)
        return
    graph = socbfs.Graph.from_scipy(both, threads=THREADS)
    reached = [graph.bfs(root).reached for root in roots[:8]]
    if part in ("search", "graphblas"):
        graphblas = of_graphblas(both) if part == "graphblas" else None
        for turn in range(5):
            for root in roots[:8]:
                timed("socbfs", turn, root, lambda root: graph.bfs(root).parents, root)
            for root in roots[:8]:
                timed("socbfs, distances", turn, root, lambda root: graph.bfs(root, parents=False, levels=True).levels, root)
            for root in roots[:8]:
                timed("socbfs, both", turn, root, lambda root: graph.bfs(root, levels=True), root)
            for root, wanted in zip(roots[:8], reached):
                assert timed("scipy", turn, root, csgraph.breadth_first_order, both, root)[0].size == wanted
            for root, wanted in zip(roots[:8] if graphblas else [], reached):
                assert timed("python-graphblas", turn, root, graphblas, root).nvals == wanted
    elif part == "igraph":
        import igraph

        half = scipy.sparse.triu(both, format="coo")
        other = igraph.Graph(both.shape[0], np.stack([half.row, half.col], axis=1))
        for turn in range(2):
            for root in roots[:8]:
                timed("socbfs", turn, root, lambda root: graph.bfs(root).parents, root)
            for root, wanted in zip(roots[:2], reached):
                assert len(timed("igraph", turn, root, other.bfs, root)[0]) == wanted
    else:
        graph.bfs_many(roots, dtype=np.uint8)
        for turn in range(5):
            timed("64 times bfs", turn, "", lambda: [graph.bfs(root).seconds for root in roots])
            timed("64 times bfs, distances", turn, "", lambda: [graph.bfs(root, parents=False, levels=True).seconds for root in roots])
            wanted = np.stack([graph.bfs(root, levels=True).levels for root in roots]) if turn == 0 else None
            small = timed("bfs_many, uint8", turn, "", graph.bfs_many, roots, dtype=np.uint8)
            assert wanted is None or np.array_equal(wanted.astype(np.uint8), small.levels)
            del small
            large = timed("bfs_many, int32", turn, "", graph.bfs_many, roots)
            assert wanted is None or np.array_equal(wanted, large.levels)
            del large, wanted


if __name__ == "__main__":
    main()
    told = csv.writer(sys.stdout, lineterminator="\n")
    told.writerow(("what", "round", "root", "ms"))
    told.writerows((what, turn, root, f"{ms:.5g}") for what, turn, root, ms in measured)
    for what in dict.fromkeys(row[0] for row in measured):
        times = [row[3] for row in measured if row[0] == what]
        print(f"{what:28} median {statistics.median(times):.5g} least {min(times):.5g} ms", file=sys.stderr)
