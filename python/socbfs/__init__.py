"""Direction-optimising breadth-first search on CPU and GPU.

>>> import numpy, socbfs
>>> graph = socbfs.Graph.from_edges(numpy.array([[0, 1], [1, 2], [2, 3]]))
>>> graph.bfs(0).parents
array([0, 0, 1, 2], dtype=int32)
"""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

import numpy as np

from ._socbfs import Core as _Core
from ._socbfs import Sensors as _Sensors
from ._socbfs import __version__, devices, queue_order

__all__ = ["Graph", "Tree", "Trees", "Energy", "breadth_first_order", "devices", "__version__"]


@dataclass(frozen=True, eq=False)
class Tree:
    """What one search found. Arrays have one entry for each vertex."""

    root: int
    #: The parent of each vertex (int32): the root for the root itself, -1 for a vertex that was not reached. None unless requested.
    parents: Optional[np.ndarray]
    #: The distance of each vertex from the root (int32), -1 for a vertex that was not reached. None unless requested.
    levels: Optional[np.ndarray]
    #: Number of levels of the tree, the largest distance plus 1; a root alone is one level.
    depth: int
    #: Time of the search in seconds, until the requested arrays are complete.
    seconds: float
    #: Why the search ended: "complete", "depth" or "target".
    end: str
    _core: _Core = field(repr=False, compare=False)
    #: Why the search continued on the CPU without its device, or None. (With the device "auto", a search whose device is lost goes on.)
    fallen_back: Optional[str] = None

    @cached_property
    def _reached(self) -> Tuple[int, int]:
        found = self.levels if self.parents is None else self.parents
        return self._core.reached(found.view(np.uint32))

    def __getstate__(self) -> Dict[str, Any]:
        # A copy, in this process or in another one, has the counts in place of the graph.
        return {**self.__dict__, "_reached": self._reached, "_core": None}

    @property
    def reached(self) -> int:
        """Number of vertices reached, the root included. Counted when this or `edges` is first read."""
        return self._reached[0]

    @property
    def edges(self) -> int:
        """Number of edges as Graph500 counts them: both ends reached, repeats counted, self-loops not.

        After an early end (`depth`, `target`) the edges that leave the tree count as well: half each, in a directed graph whole.
        """
        return self._reached[1]


@dataclass(frozen=True, eq=False)
class Trees:
    """What searches from many roots found. Row i of each array belongs to `roots[i]`."""

    roots: np.ndarray
    #: Distances, of shape (roots, vertices), vertex by vertex in memory; -1 (255 for uint8) for a vertex that was not reached.
    levels: np.ndarray
    #: Parents in the same shape, or None unless requested.
    parents: Optional[np.ndarray]


class Graph:
    """A graph, ready to be searched. It is made by one of the methods `from_...`, and is immutable.

    All these methods take `threads` (0: one for each CPU), `device` ("cpu", "auto", "gpu" or a name, see `devices()`), `policy` (one that
    `socbfs bench --help` lists, but none with a file) and `board` (a profile's name or file). All but `from_networkx` take `directed`
    (False: every edge goes both ways). Any number of threads may search a graph at once; searches release the interpreter's lock.
    """

    __slots__ = ("_core", "labels")

    def __init__(self, core: _Core, labels: Optional[List[Any]] = None):
        if not isinstance(core, _Core):
            raise TypeError("a Graph is made by Graph.from_scipy, from_edges, from_file or from_networkx")
        self._core = core
        #: The node of NetworkX for each vertex, if the graph was made by `from_networkx`.
        self.labels = labels

    @classmethod
    def from_scipy(cls, matrix: Any, directed: bool = False, *, threads: int = 0, device: str = "cpu", policy: Optional[str] = None, board: Union[str, os.PathLike, None] = None) -> "Graph":
        """From a square sparse matrix in CSR form: an entry in row u and column v is an edge, even if its value is zero or NaN.

        `indptr` and `indices` are read in place. The values are ignored, and so are elements of `indices` beyond the last entry. The graph has
        sorted arrays of its own.
        """
        if getattr(matrix, "format", None) != "csr":
            cure = "matrix.tocsr()" if hasattr(matrix, "tocsr") else "scipy.sparse.csr_matrix(matrix), Graph.from_edges or from_networkx"
            raise TypeError(f"{type(matrix).__name__} is not in CSR form: use {cure}")
        shape = matrix.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"the matrix of a graph must be square, and this one is {' by '.join(map(str, shape))}")
        return cls(_Core.from_rows(matrix.indptr, matrix.indices, directed, _settings(device, policy, board, threads)))

    @classmethod
    def from_edges(cls, edges: Any, vertices: Optional[int] = None, directed: bool = False, *, threads: int = 0, device: str = "cpu", policy: Optional[str] = None, board: Union[str, os.PathLike, None] = None) -> "Graph":
        """From an array of integers of shape (edges, 2). `vertices` is by default the largest of them plus 1. A uint32 array saves a copy."""
        given = np.asarray(edges)
        if given.size == 0:
            given = given.reshape(0, 2)
        if given.ndim != 2 or given.shape[1] != 2:
            raise ValueError(f"edges must be an array of shape (edges, 2), not {given.shape}")
        if given.dtype.kind not in "iu" and given.size:
            raise TypeError(f"vertices must be integers, not {given.dtype}: use edges.astype(numpy.uint32)")
        low, high = (int(given.min()), int(given.max())) if given.size else (0, -1)
        if low < 0 or high >= 2**31 - 1:
            raise ValueError(f"vertices must be from 0 to 2**31 - 2, not {low if low < 0 else high}")
        if vertices is None:
            vertices = high + 1
        if not 0 <= vertices < 2**31:
            raise ValueError(f"a graph has from 0 to 2**31 - 1 vertices, not {vertices}")
        pairs = np.require(given, np.uint32, "CA")  # contiguous and aligned; it copies only what is not
        return cls(_Core.from_pairs(pairs, vertices, directed, _settings(device, policy, board, threads)))

    @classmethod
    def from_file(cls, path: Union[str, os.PathLike], directed: bool = False, *, threads: int = 0, device: str = "cpu", policy: Optional[str] = None, board: Union[str, os.PathLike, None] = None) -> "Graph":
        """From a file in any format that `socbfs convert --help` lists, compressed or not."""
        return cls(_Core.from_file(os.fspath(path), directed, _settings(device, policy, board, threads)))

    @classmethod
    def from_networkx(cls, graph: Any, *, threads: int = 0, device: str = "cpu", policy: Optional[str] = None, board: Union[str, os.PathLike, None] = None) -> "Graph":
        """From a graph of NetworkX, directed if that graph is directed. Vertex i is the i-th node of that graph, `labels[i]`."""
        labels = list(graph)
        place = {label: at for at, label in enumerate(labels)}
        pairs = np.fromiter((place[end] for edge in graph.edges() for end in edge[:2]), dtype=np.uint32).reshape(-1, 2)
        made = cls.from_edges(pairs, len(labels), graph.is_directed(), threads=threads, device=device, policy=policy, board=board)
        made.labels = labels
        return made

    @property
    def vertices(self) -> int:
        """The number of vertices."""
        return self._core.counts[0]

    @property
    def edges(self) -> int:
        """The number of edges as listed, without self-loops. If the list has both directions of every edge, each edge counts once."""
        return self._core.counts[1]

    @property
    def directed(self) -> bool:
        """Whether edges lead one way only."""
        return self._core.counts[2]

    def __repr__(self) -> str:
        vertices, edges, directed = self._core.counts
        return f"<socbfs.Graph of {vertices} vertices and {edges} {'arcs' if directed else 'edges'}>"

    def bfs(self, root: int, *, parents: bool = True, levels: bool = False, depth: Optional[int] = None, target: Optional[int] = None, timeout: Optional[float] = None) -> Tree:
        """Searches from `root`.

        `parents` and `levels`: which arrays to return. `depth`: the search ends at this distance from the root. `target`: the search ends with
        the level that reaches this vertex. `timeout`: TimeoutError after this many seconds.
        """
        if not (parents or levels):
            raise ValueError("nothing to find: request parents, levels or both")
        if depth is not None and not 0 <= depth < 2**32:
            raise ValueError(f"depth must be from 0 to {2**32 - 1}, not {depth}")
        tree, found, deep, seconds, end, fallen_back = self._core.bfs(root, parents, levels, depth, target, timeout)
        tree, found = (None if array is None else array.view(np.int32) for array in (tree, found))
        return Tree(root, tree, found, deep, seconds, end, self._core, fallen_back)

    def bfs_many(self, roots: Iterable[int], *, parents: bool = False, dtype: Any = np.int32) -> Trees:
        """Searches from many roots, 64 in a pass. `dtype`: the type of the levels, int32, or uint8, which is faster (up to level 254)."""
        kind = np.dtype(dtype)
        if kind not in (np.dtype(np.int32), np.dtype(np.uint8)):
            raise TypeError(f"levels must be int32 or uint8, not {kind}")
        given = _roots(roots)
        found, tree = self._core.bfs_many(given.tolist(), kind == np.uint8, parents)
        return Trees(given, found.view(kind).T, None if tree is None else tree.view(np.int32).T)

    def bench(self, roots: Union[int, Iterable[int]] = 16, seed: int = 1) -> Dict[str, Any]:
        """Searches from each of `roots`, and returns the seconds of each search, their median, and the harmonic mean of the TEPS.

        If `roots` is a number, that many vertices with an edge are drawn at random. TEPS are traversed edges per second. The trees are compared
        with the distances of `bfs_many`, which shares no step of the search with `bfs`; RuntimeError if they differ.
        """
        if isinstance(roots, (int, np.integer)):
            candidates = np.flatnonzero(self._core.degrees())
            if candidates.size == 0:
                raise ValueError("no vertex has an edge: there is nothing to measure")
            roots = np.random.default_rng(seed).choice(candidates, min(roots, candidates.size), replace=False)
        roots = _roots(roots).tolist()
        if not roots:
            raise ValueError("no roots: there is nothing to measure")
        self.bfs(roots[0])
        trees = [self.bfs(root) for root in roots]
        for begin in range(0, len(roots), 16):
            wanted = self.bfs_many(roots[begin : begin + 16]).levels
            for tree, levels in zip(trees[begin : begin + 16], wanted):
                reached = np.flatnonzero(levels >= 0)
                above = levels[tree.parents[reached]] + 1
                above[reached == tree.root] = 0
                if tree.reached != reached.size or not np.array_equal(levels[reached], above):
                    raise RuntimeError(f"the searches from {tree.root} differ: a bug in socbfs or in a device's driver, please report it")
        rates = [tree.edges / tree.seconds for tree in trees if tree.edges]
        seconds = [tree.seconds for tree in trees]
        return {
            "roots": roots,
            "seconds": seconds,
            "median_seconds": statistics.median(seconds),
            "teps": statistics.harmonic_mean(rates) if rates else None,
        }


def _roots(roots: Iterable[int]) -> np.ndarray:
    given = np.asarray(roots if isinstance(roots, np.ndarray) else list(roots))
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"roots must be integers, not {given.dtype}")
    return given.ravel()


def _settings(device: str, policy: Optional[str], board: Union[str, os.PathLike, None], threads: int):
    if not 0 <= threads < 2**32:
        raise ValueError(f"threads must be from 0 (one for every CPU) to 4096, not {threads}")
    return device, policy, None if board is None else os.fspath(board), threads


class Energy:
    """Measures the energy of a window of time, with the power sensors that fit this machine.

    `board` is the name or the file of a board profile, which says which rails add up (by default the one of the detected board).

    >>> with socbfs.Energy() as energy:  # doctest: +SKIP
    ...     graph.bfs(0)
    >>> energy.joules, energy.seconds  # doctest: +SKIP

    OSError if there is no sensor that may be read; the message says what would help.
    """

    __slots__ = ("_sensors", "joules", "seconds", "problem")

    def __init__(self, board: Union[str, os.PathLike, None] = None) -> None:
        self._sensors = _Sensors(None if board is None else os.fspath(board))
        #: Joules of the last window; None (never 0) if it was not measured.
        self.joules: Optional[float] = None
        self.seconds: Optional[float] = None
        #: Why there are no joules.
        self.problem: Optional[str] = None

    @property
    def scope(self) -> str:
        """What is measured, in words."""
        return self._sensors.scope

    def __enter__(self) -> "Energy":
        self._sensors.begin()
        return self

    def __exit__(self, *_: Any) -> None:
        self.joules, self.seconds, self.problem = self._sensors.end()


def breadth_first_order(csgraph: Any, i_start: int, directed: bool = True, return_predecessors: bool = True):
    """Replaces `scipy.sparse.csgraph.breadth_first_order`, with the same arguments and results.

    Edges are the same as in SciPy: every stored entry of a sparse matrix, every entry of a masked array that is not masked, and every entry of
    any other array except zero, NaN and infinity.

    Several orders and several predecessors of a vertex may be valid, so the result may differ from SciPy's. Every call builds a graph: to search
    from several vertices, use `Graph.from_scipy` once.
    """
    matrix = csgraph
    if hasattr(csgraph, "tocsr"):
        matrix = csgraph.tocsr()
    else:
        from scipy.sparse.csgraph import csgraph_from_dense, csgraph_from_masked

        if np.ma.isMaskedArray(csgraph):
            # SciPy fails on an array in which nothing was ever masked.
            matrix = csgraph_from_masked(np.ma.masked_array(csgraph, mask=np.ma.getmaskarray(csgraph)))
        else:
            matrix = csgraph_from_dense(csgraph, null_value=0, nan_null=True, infinity_null=True)
    parents = Graph.from_scipy(matrix, directed).bfs(i_start).parents
    order, predecessors = queue_order(parents.view(np.uint32), i_start)
    return (order, predecessors) if return_predecessors else order
