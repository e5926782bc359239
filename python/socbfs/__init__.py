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
from typing import TYPE_CHECKING, Callable, Dict, Hashable, Iterable, Iterator, List, Optional, Protocol, Sequence, Tuple, TypedDict, Union, cast

import numpy as np

from ._arguments import _PART, _clock, _parts, _Requested, _seconds, _table, _vertices, _waiting, _without_mask
from ._grid import Grid, GridTree
from ._labels import _Column, _columns, _edges, _Labels, _named, _number, _numbered
from ._socbfs import Core as _Core
from ._socbfs import InternalError, __version__
from ._socbfs import Sensors as _Sensors
from ._socbfs import breadth_first_order as _breadth_first_order
from ._socbfs import devices as _devices

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, DTypeLike
    from scipy.sparse import csr_matrix

__all__ = ["Graph", "Tree", "Trees", "Grid", "GridTree", "Bench", "Device", "Energy", "InternalError", "breadth_first_order", "connected_components", "devices", "__version__"]

#: Device, policy, board, threads, operating point.
_Settings = Tuple[Optional[str], Optional[str], Optional[str], int, Optional[str]]


def __dir__() -> List[str]:
    return __all__


class Device(TypedDict):
    """An OpenCL device."""

    name: str
    platform: str
    driver: str
    compute_units: int
    #: Why it can't be used, or None.
    unusable: Optional[str]


class CsrMatrix(Protocol):
    """What `Graph.from_scipy` needs of a matrix of SciPy, or of another one in the same form."""

    @property
    def shape(self) -> Tuple[int, ...]: ...
    @property
    def indptr(self) -> np.ndarray: ...
    @property
    def indices(self) -> np.ndarray: ...


class NetworkXGraph(Protocol):
    """What `Graph.from_networkx` needs of a graph of NetworkX."""

    def __iter__(self) -> Iterator[Hashable]: ...
    def edges(self) -> Iterable[Tuple[Hashable, ...]]: ...
    def is_directed(self) -> bool: ...


class Table(Protocol):
    """What `Graph.from_pandas` needs of a table."""

    def __getitem__(self, column: str) -> object: ...


#: The numbers of a level, as the compiled part gives them.
_LEVEL = np.dtype([(name, np.uint64) for name in (
    "level", "levels", "threads", "place", "gpu_permille", "direction", "frontier", "arcs", "unvisited", "unvisited_arcs", "found",
    "nanoseconds", "deciding", "converting", "handing_over",
)])
_DIRECTIONS = np.array(["top-down", "bottom-up"])
_PLACES = np.array(["cpu", "gpu", "both", "apart"])
#: The columns of `Tree.account`.
_ACCOUNT = np.dtype([
    ("level", np.int64), ("levels", np.int64), ("direction", _DIRECTIONS.dtype), ("place", _PLACES.dtype), ("gpu_share", np.float64),
    ("frontier", np.int64), ("arcs", np.int64), ("unvisited", np.int64), ("unvisited_arcs", np.int64), ("found", np.int64),
    ("nanoseconds", np.int64), ("deciding", np.int64), ("converting", np.int64), ("handing_over", np.int64), ("threads", np.int64),
])


def devices(*, timeout: Optional[float] = None) -> List[Device]:
    """The OpenCL devices of this machine. TimeoutError if their drivers do not list them within `timeout` seconds."""
    return _devices(_seconds(timeout))


@dataclass(frozen=True, eq=False, repr=False)
class Tree(_Requested):
    """What one search found. Arrays have one entry for each vertex; AttributeError for one that was not requested."""

    #: The vertex searched from (its label, if the graph has labels). Of several sources it is the first; -1 (None) if there was none.
    root: Hashable
    #: The parent of each vertex (int32): a source for itself, -1 for a vertex that was not reached. Requested unless `parents=False`.
    parents: np.ndarray
    #: The distance of each vertex from the nearest source (int32), -1 for a vertex that was not reached. Requested by `levels=True`.
    levels: np.ndarray
    #: Number of levels, the largest distance plus 1; sources alone are one level.
    depth: int
    #: Time of the search in seconds, until the requested arrays are complete.
    seconds: float
    #: Why the search ended: "complete", "depth" or "target".
    end: str
    _core: _Core = field(repr=False, compare=False)
    #: Why the search continued on the CPU without its device, or None. (With the device "auto", a search whose device is lost goes on.)
    fallen_back: Optional[str] = None
    #: The source from which each vertex was reached (int32), one of the nearest, -1 for a vertex that was not reached. Requested by
    #: `sources=True`.
    sources: np.ndarray = field(default_factory=lambda: cast(np.ndarray, None))
    _levels: bytes = field(default=b"", repr=False, compare=False)
    _labels: Optional[_Labels] = field(default=None, repr=False, compare=False)

    @cached_property
    def account(self) -> np.ndarray:
        """What each level did: a structured array with an entry for each level, or for several small ones that ran in one step.

        `level`: the first level of the entry, 0 at the root; `levels`: how many it has. `direction`: "top-down" or "bottom-up". `place`: "cpu",
        "gpu", "both" (a level split between them), or "apart" (both search independently to the end). `gpu_share`: the planned share of the GPU,
        0 to 1. `frontier`, `arcs`: vertices of the frontier, and arcs that leave it. `unvisited`, `unvisited_arcs`: vertices not yet visited, and
        their arcs. `found`: vertices found. `nanoseconds`: time; `deciding`, `converting` (the frontier) and `handing_over` (memory) are parts of
        it. `threads`: CPU threads that took part.

        Vertices are those of the searched structure, which leaves some out: vertices without an edge, and most with a single one. `arcs` and
        `unvisited_arcs` may be estimates.

        >>> import numpy, socbfs
        >>> account = socbfs.Graph.from_edges(numpy.array([[0, 1], [1, 2], [2, 3], [3, 0]]), policy="tc").bfs(0).account
        >>> print(account["level"][0], account["direction"][0], account["place"][0], account["frontier"][0])
        0 top-down cpu 1
        """
        raw = np.frombuffer(self._levels, _LEVEL)
        account = np.empty(len(raw), _ACCOUNT)
        for name in _ACCOUNT.names or ():
            if name in ("direction", "place"):
                account[name] = (_DIRECTIONS if name == "direction" else _PLACES)[raw[name].astype(np.intp)]
            elif name == "gpu_share":
                account[name] = raw["gpu_permille"] / 1000
            else:
                account[name] = raw[name]
        return account

    def path(self, vertex: Hashable) -> List[Hashable]:
        """The vertices from the root, or from the nearest source, to this one along the tree, both included; empty if it was not reached.

        These are labels if the graph has labels. LookupError if there is no such vertex, ValueError if the search was not asked for parents.
        """
        if not hasattr(self, "parents"):
            raise ValueError("the search has no parents: use bfs(root, parents=True)")
        path = [_number(vertex, self._labels, len(self.parents))]
        if self.parents[path[0]] < 0:
            return []
        while self.parents[path[-1]] != path[-1]:
            if len(path) >= self.depth:
                raise RuntimeError(f"the parents of {vertex} do not lead to a root: they were changed, or a device's driver has a bug")
            path.append(int(self.parents[path[-1]]))
        return _named(path[::-1], self._labels)

    def plot(self, ax: Optional["Axes"] = None) -> "Axes":
        """Draws the time of each level, coloured by its direction and hatched where a GPU took part, and the frontier.

        Returns the axes of matplotlib: `ax`, or those of a new figure. ImportError without matplotlib.
        """
        try:
            from matplotlib import pyplot
            from matplotlib.patches import Patch
        except ImportError as problem:
            raise ImportError("Tree.plot draws with matplotlib, which is not installed: pip install matplotlib") from problem
        account = self.account
        if ax is None:
            ax = pyplot.figure(layout="constrained").add_subplot()
        colours = {"top-down": "#3a6ea5", "bottom-up": "#d98c2b"}
        marks = {"cpu": "", "gpu": "///", "both": "xx", "apart": ".."}
        # An entry of several levels is as wide as they are, and its area is their time.
        ax.bar(
            account["level"], account["nanoseconds"] / 1e3 / account["levels"], width=account["levels"], align="edge", edgecolor="white",
            linewidth=0.5 if len(account) < 100 else 0, color=[colours[direction] for direction in account["direction"]],
            hatch=[marks[place] for place in account["place"]],
        )
        ax.set(xlabel="level", ylabel="microseconds a level")
        ax.set_title(f"from {self.root}: {self.depth} levels in {1e3 * self.seconds:.3g} ms", parse_math=False)  # of a label with $
        beside = ax.twinx()
        ends = account["level"] + account["levels"]
        beside.stairs(account["frontier"], np.concatenate([account["level"][:1], ends]), baseline=None, color="black")
        ax.xaxis.get_major_locator().set_params(integer=True)
        beside.set(ylabel="vertices of the frontier (line)", yscale="log")
        seen = [Patch(facecolor=colour, label=direction) for direction, colour in colours.items() if direction in account["direction"]]
        seen += [Patch(facecolor="white", edgecolor="grey", hatch=mark, label=place) for place, mark in marks.items() if place in account["place"]]
        # Below the axes, where no line crosses it.
        ax.legend(handles=seen, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=len(seen), frameon=False)
        return ax

    @cached_property
    def _reached(self) -> Tuple[int, int]:
        found: np.ndarray = next(vars(self)[name] for name in self._requests if name in vars(self))
        return self._core.reached(found.view(np.uint32))

    def __getstate__(self) -> Dict[str, object]:
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


@dataclass(frozen=True, eq=False, repr=False)
class Trees(_Requested):
    """What searches from many roots found. Row i of each array belongs to `roots[i]`."""

    _requests = {"parents": "parents=True"}

    #: Vertex numbers (int64), or a list of labels if the graph has labels.
    roots: Union[np.ndarray, List[Hashable]]
    #: Distances, of shape (roots, vertices), vertex by vertex in memory; -1 (255 for uint8) for a vertex that was not reached.
    levels: np.ndarray
    #: Parents in the same shape. Requested by `parents=True`; AttributeError otherwise.
    parents: np.ndarray


@dataclass(frozen=True)
class Bench:
    """What `Graph.bench` measured. `dataclasses.asdict` makes a dictionary of it."""

    roots: List[Hashable]
    #: Seconds of the search from each root.
    seconds: List[float]
    median_seconds: float
    #: The harmonic mean of the traversed edges per second; None if no search traversed an edge.
    teps: Optional[float]


class Graph:
    """A graph, ready to be searched. It is made by one of the methods `from_...`, and is immutable.

    All these methods take `threads` (0: one for each CPU), `device` ("cpu" unless given, "auto", "gpu" or a name, see `devices()`), `policy`
    (one that `socbfs bench --help` lists, but none with a file), `board` (a profile's name or file), `at` ("fastest", "efficient" or
    "product": an operating point of the profile, whose CPUs are used, and whose threads and device unless they are given; clocks are not
    set), and `timeout` (TimeoutError after this many seconds). All but `from_networkx` take `directed` (False: every edge goes both ways).

    Vertices have numbers from 0, and labels if the graph was made from names: then roots, sources and targets that are given to a search, and
    roots and paths of its results, are labels. Arrays have an entry for each vertex number and contain vertex numbers: vertex v has the label
    `graph.labels[v]`, and `graph.index(label)` is its number.

    Any number of threads may search a graph at once; searches release the interpreter's lock. A graph can be copied and pickled; it is built
    anew where it is unpickled.
    """

    __slots__ = ("_core", "_settings", "_last", "_labels", "_rows")

    _core: _Core
    _settings: _Settings
    #: The last search, without its arrays, for `_repr_html_`.
    _last: Optional[Tuple[str, int, float, Optional[str]]]
    _labels: Optional[_Labels]
    #: Offsets and targets, once `neighbors` has been called.
    _rows: Optional[Tuple[np.ndarray, np.ndarray]]

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("a Graph is made by Graph.from_scipy, from_edges, from_pandas, from_file or from_networkx")

    @classmethod
    def _made(cls, make: Callable[..., _Core], arguments: Tuple[object, ...], settings: _Settings, *left: Optional[float], labels: Optional[_Labels] = None) -> "Graph":
        made = cls.__new__(cls)
        made._core, made._settings, made._last, made._labels, made._rows = make(*arguments, settings, *left), settings, None, labels, None
        return made

    def __reduce__(self) -> Tuple[object, ...]:
        return _unpickled, (type(self), self._core.state(), self._settings, self._labels)

    @classmethod
    def from_scipy(cls, matrix: CsrMatrix, directed: bool = False, *, threads: int = 0, device: Optional[str] = None, policy: Optional[str] = None, board: Union[str, os.PathLike, None] = None, at: Optional[str] = None, timeout: Optional[float] = None) -> "Graph":
        """From a square sparse matrix in CSR form: an entry in row u and column v is an edge, even if its value is zero or NaN.

        `indptr` and `indices` are read in place. The values are ignored, and so are elements of `indices` beyond the last entry. The graph has
        sorted arrays of its own.
        """
        left = _clock(timeout)
        return cls._made(_Core.from_rows, (*_sparse_rows(matrix), directed), _settings(device, policy, board, threads, at), left())

    @classmethod
    def from_edges(cls, edges: "ArrayLike", vertices: Optional[int] = None, directed: bool = False, *, threads: int = 0, device: Optional[str] = None, policy: Optional[str] = None, board: Union[str, os.PathLike, None] = None, at: Optional[str] = None, timeout: Optional[float] = None) -> "Graph":
        """From an array of shape (edges, 2), a list of pairs, or a tuple of two arrays or Series of one dimension, the sources and the targets.

        Integers are vertex numbers. `vertices` is by default the largest of them plus 1. A uint32 array saves a copy.

        If the first edge has another end than a number (a string, a tuple, a date, ...), all ends are labels, as in `from_pandas`.
        """
        left = _clock(timeout)
        edges, columns = _edges(edges, left)
        if columns is not None:
            if vertices is not None:
                raise ValueError("vertices is for edges between vertex numbers: with labels, the vertices are those that the edges name")
            return cls._made_of_columns(columns, directed, _settings(device, policy, board, threads, at), left)
        pairs, high = _pairs(edges, left)
        if vertices is None:
            vertices = high + 1
        if not 0 <= vertices < 2**31:
            raise ValueError(f"a graph has from 0 to 2**31 - 1 vertices, not {vertices}")
        return cls._made(_Core.from_pairs, (pairs, vertices, directed), _settings(device, policy, board, threads, at), left())

    @classmethod
    def from_pandas(cls, df: Table, source: str = "source", target: str = "target", directed: bool = False, *, threads: int = 0, device: Optional[str] = None, policy: Optional[str] = None, board: Union[str, os.PathLike, None] = None, at: Optional[str] = None, timeout: Optional[float] = None) -> "Graph":
        """From two columns of a table: a DataFrame of pandas or polars, a Table of pyarrow, or a dictionary of columns.

        Entries are labels, integers too, and may be anything that can be hashed. Vertices are numbered as their labels first appear: the source
        and the target of the first row, then those of the second, and so on. ValueError for a missing one (None, NaN, NaT, pandas.NA, null).

        >>> import socbfs
        >>> graph = socbfs.Graph.from_pandas({"source": ["Oslo", "Bonn", "Bonn"], "target": ["Bonn", "Rome", "Oslo"]})
        >>> graph.labels, graph.bfs("Oslo").path("Rome")
        (['Oslo', 'Bonn', 'Rome'], ['Oslo', 'Bonn', 'Rome'])
        """
        left = _clock(timeout)
        return cls._made_of_columns(_columns((df[source], df[target]), left), directed, _settings(device, policy, board, threads, at), left)

    @classmethod
    def _made_of_columns(cls, columns: List[_Column], directed: bool, settings: _Settings, left: Callable[[], Optional[float]]) -> "Graph":
        pairs, labels = _numbered(columns, left)
        return cls._made(_Core.from_pairs, (pairs, len(labels.listed), directed), settings, left(), labels=labels)

    @classmethod
    def from_file(cls, path: Union[str, os.PathLike], directed: bool = False, *, format: Optional[str] = None, threads: int = 0, device: Optional[str] = None, policy: Optional[str] = None, board: Union[str, os.PathLike, None] = None, at: Optional[str] = None, timeout: Optional[float] = None) -> "Graph":
        """From a file, compressed or not. `format`: its name in docs/formats.md, if name and content of the file do not determine it."""
        return cls._made(_Core.from_file, (os.fspath(path), format, directed), _settings(device, policy, board, threads, at), _clock(timeout)())

    @classmethod
    def from_networkx(cls, graph: NetworkXGraph, *, threads: int = 0, device: Optional[str] = None, policy: Optional[str] = None, board: Union[str, os.PathLike, None] = None, at: Optional[str] = None, timeout: Optional[float] = None) -> "Graph":
        """From a graph of NetworkX, directed if that graph is directed. Its nodes, in its order, are the labels."""
        left = _clock(timeout)
        place: Dict[Hashable, int] = {}
        for label in graph:
            if len(place) % 1024 == 0:
                left()
            place[label] = len(place)

        def ends() -> Iterator[int]:
            for at, edge in enumerate(graph.edges()):
                if at % 1024 == 0:
                    left()
                yield place[edge[0]]
                yield place[edge[1]]

        pairs = np.fromiter(ends(), dtype=np.uint32).reshape(-1, 2)
        settings = _settings(device, policy, board, threads, at)
        return cls._made(_Core.from_pairs, (pairs, len(place), graph.is_directed()), settings, left(), labels=_Labels(place))

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

    @property
    def labels(self) -> Optional[List[Hashable]]:
        """The label of each vertex, if the graph was made by `from_pandas`, `from_networkx`, or `from_edges` of labels; otherwise None."""
        return None if self._labels is None else self._labels.listed

    def index(self, vertex: Hashable) -> int:
        """The number of the vertex with this label. In a graph without labels it is `vertex` itself. LookupError if there is no such vertex."""
        return _number(vertex, self._labels, self.vertices)

    def __len__(self) -> int:
        """The number of vertices."""
        return self.vertices

    def __contains__(self, vertex: object) -> bool:
        try:
            return self.index(cast(Hashable, vertex)) >= 0
        except (LookupError, TypeError):
            return False

    def degree(self, vertex: Hashable) -> int:
        """The number of edges of a vertex as listed: repeats count, self-loops do not. In a directed graph, of those that leave it."""
        at = self.index(vertex)
        return int(self._core.degrees(at, at + 1)[0])

    def neighbors(self, vertex: Hashable) -> List[Hashable]:
        """The neighbours of a vertex (in a directed graph, its successors), each once and without itself, in the order of their numbers.

        The first call copies all edges, which a graph keeps in another form: 8 bytes a vertex and 4 an arc (an undirected edge is two).
        """
        at = self.index(vertex)
        if self._rows is None:
            self._rows = self._core.state()[:2]
        offsets, targets = self._rows
        return _named(sorted(targets[offsets[at] : offsets[at + 1]].tolist()), self._labels)

    def to_scipy(self) -> "csr_matrix":
        """The adjacency matrix of vertex numbers in CSR form: True for an edge from row to column, and for an undirected one in both places.

        An edge is one entry, however often it was listed. There are no self-loops, which no search needs and the graph does not keep.
        ImportError without SciPy.
        """
        from scipy.sparse import csr_matrix

        offsets, targets = self._core.state()[:2]

        def matrix() -> "csr_matrix":
            made = csr_matrix((np.ones(len(targets), bool), targets, offsets), (self.vertices, self.vertices))
            made.sort_indices()
            return made

        return _waiting(matrix, _clock(None))

    def __repr__(self) -> str:
        vertices, edges, directed = self._core.counts
        return f"<socbfs.Graph of {vertices} vertices and {edges} {'arcs' if directed else 'edges'}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        vertices, edges, directed = self._core.counts
        order, devices = self._core.about()
        policy, last = self._settings[1], "none"
        if self._last is not None:
            where, depth, seconds, fallen_back = self._last
            last = f"{where}: {depth} level{'' if depth == 1 else 's'} in {1e3 * seconds:.3g} ms"
            last += f"; on the CPU alone: {fallen_back}" if fallen_back else ""
        rows = {
            "vertices": f"{vertices:,}",
            "arcs" if directed else "edges": f"{edges:,}",
            "order": {"degree": "by degree", "bfs": "breadth-first"}.get(order, "as given"),
            "device": " and ".join(["CPU", *devices]),
            **({} if policy is None else {"policy": policy}),
            "last search": last,
        }
        return _table("socbfs.Graph", rows)

    def bfs(self, root: Union[Hashable, Iterable[Hashable]], *, parents: bool = True, levels: bool = False, sources: bool = False, depth: Optional[int] = None, target: Optional[Hashable] = None, timeout: Optional[float] = None) -> Tree:
        """Searches from `root`, or from several sources at once: the distance of a vertex is that from the nearest.

        `parents`, `levels` and `sources`: which arrays to return. `depth`: the search ends at this distance from the root. `target`: the search ends with
        the level that reaches this vertex. `timeout`: TimeoutError after this many seconds. A tuple that is a label is one root.
        """
        if not (parents or levels or sources):
            raise ValueError("nothing to find: request parents, levels or sources")
        if depth is not None and not 0 <= depth < 2**32:
            raise ValueError(f"depth must be from 0 to {2**32 - 1}, not {depth}")
        left = _clock(timeout)
        labels = self._labels
        several = root.ndim > 0 if isinstance(root, np.ndarray) else isinstance(root, Iterable) and not isinstance(root, (str, bytes))
        if several and (labels is None or root not in self):
            given: Union[int, np.ndarray] = _vertices(root, self.vertices, left, labels)  # type: ignore[arg-type]
            first = next(iter(_named(given[:1].tolist(), labels)), -1 if labels is None else None)
            origin = f"from {len(given)} sources"
        else:
            given = root if labels is None else self.index(root)  # type: ignore[assignment, arg-type]
            first, origin = root if labels is None else labels.listed[given], f"from {root}"  # type: ignore[index]
        to: Optional[int] = target if labels is None or target is None else self.index(target)  # type: ignore[assignment]
        *arrays, deep, seconds, end, fallen_back, account = self._core.bfs(given, parents, levels, sources, depth, to, left())
        tree, found, nearest = (None if array is None else array.view(np.int32) for array in arrays)
        self._last = origin, deep, seconds, fallen_back
        return Tree(first, tree, found, deep, seconds, end, self._core, fallen_back, nearest, account, labels)

    def bfs_many(self, roots: Iterable[Hashable], *, parents: bool = False, dtype: "DTypeLike" = np.int32, timeout: Optional[float] = None) -> Trees:
        """Searches from many roots, up to 256 in a pass (on roads and grids one after another, on each thread).

        `dtype`: the type of the levels, int32, or uint8, which is faster (up to level 254). `timeout`: TimeoutError after this many seconds.
        """
        kind = np.dtype(dtype)
        if kind not in (np.dtype(np.int32), np.dtype(np.uint8)):
            raise TypeError(f"levels must be int32 or uint8, not {kind}")
        left = _clock(timeout)
        given = _vertices(roots, self.vertices, left, self._labels)
        found, tree = self._core.bfs_many(given, kind == np.uint8, parents, left())
        searched = given.astype(np.int64) if self._labels is None else _named(given, self._labels)
        return Trees(searched, found.view(kind).T, None if tree is None else tree.view(np.int32).T)

    def connected_components(self, *, timeout: Optional[float] = None) -> Tuple[int, np.ndarray]:
        """The number of connected components, and the number of each vertex's component (int32).

        Components are numbered from 0 in the order of their first vertices. Those of a directed graph are the weak ones: arcs count in both
        directions. `timeout`: TimeoutError after this many seconds.

        >>> import numpy, socbfs
        >>> socbfs.Graph.from_edges(numpy.array([[0, 3], [1, 2]])).connected_components()
        (2, array([0, 1, 1, 0], dtype=int32))
        """
        count, labels = self._core.components(_seconds(timeout))
        return count, labels.view(np.int32)

    def bench(self, roots: Union[int, Iterable[Hashable]] = 16, seed: int = 1, *, timeout: Optional[float] = None) -> Bench:
        """Searches from each of `roots`, and returns the seconds of each search, their median, and the harmonic mean of the TEPS.

        If `roots` is a number, that many vertices with an edge are drawn at random. TEPS are traversed edges per second. The trees are compared
        with the distances of `bfs_many`, which shares no step of the search with `bfs` except, on roads and grids, the loop over neighbours;
        RuntimeError if they differ. `timeout`: TimeoutError after this many seconds.
        """
        left = _clock(timeout)
        if isinstance(roots, (int, np.integer)):
            with_edges = (np.flatnonzero(self._core.degrees(part.start, part.stop)) + part.start for part in _parts(self.vertices, left))
            candidates = np.concatenate([np.empty(0, np.int64), *with_edges])
            if candidates.size == 0:
                raise ValueError("no vertex has an edge: there is nothing to measure")
            numbers = np.random.default_rng(seed).choice(candidates, min(roots, candidates.size), replace=False).tolist()
        else:
            numbers = [int(root) for root in _vertices(roots, self.vertices, left, self._labels)]
        listed = _named(numbers, self._labels)
        if not listed:
            raise ValueError("no roots: there is nothing to measure")
        self.bfs(listed[0], timeout=left())
        trees = [self.bfs(root, timeout=left()) for root in listed]
        for begin in range(0, len(listed), 16):
            wanted = self.bfs_many(listed[begin : begin + 16], timeout=left()).levels
            for tree, root, levels in zip(trees[begin : begin + 16], numbers[begin:], wanted):
                if not all(_agree(tree.parents, root, levels, part) for part in _parts(self.vertices, left)):
                    raise RuntimeError(f"the searches from {tree.root} differ: a bug in socbfs or in a device's driver, please report it")
        rates = [tree.edges / tree.seconds for tree in trees if tree.edges]
        seconds = [tree.seconds for tree in trees]
        return Bench(listed, seconds, statistics.median(seconds), statistics.harmonic_mean(rates) if rates else None)


def _unpickled(kind: type, state: Tuple[object, ...], settings: _Settings, labels: Optional[_Labels]) -> Graph:
    return kind._made(_Core.from_state, state, settings, labels=labels)


def _agree(found: np.ndarray, root: int, levels: np.ndarray, part: slice) -> bool:
    """Whether these vertices have parents at the level above theirs, and only those that were reached."""
    parents, levels_here = found[part], levels[part]
    reached = levels_here >= 0
    above = levels[parents[reached]] + 1
    above[np.flatnonzero(reached) + part.start == root] = 0
    return np.array_equal(reached, parents >= 0) and np.array_equal(levels_here[reached], above)


def _pairs(edges: "ArrayLike", left: Callable[[], object]) -> Tuple[np.ndarray, int]:
    """The ends of edges as uint32, and the largest of them (-1: there is none). What needs no copy is not copied."""
    if not (isinstance(edges, (list, tuple)) and len(edges) > _PART):
        edges = np.asanyarray(edges)
        if edges.size == 0:
            edges = np.empty((0, 2), np.uint32)
        elif edges.ndim != 2 or edges.shape[1] != 2:
            raise ValueError(f"edges must be an array of shape (edges, 2), not {edges.shape}")
    is_ready = isinstance(edges, np.ndarray) and edges.dtype == np.uint32 and edges.flags.c_contiguous and edges.flags.aligned
    pairs = np.asarray(edges) if is_ready else np.empty((len(edges), 2), np.uint32)
    largest = -1
    for part in _parts(len(edges), left):
        given = _without_mask(np.asanyarray(edges[part]), "edges", "numpy.ma.compress_rows(edges)")
        if given.ndim != 2 or given.shape[1] != 2:
            raise ValueError(f"edges must be an array of shape (edges, 2), not (..., {given.shape[1:]})")
        # NumPy makes objects of integers beyond 64 bits.
        if given.dtype.kind not in "iu" and not (given.dtype.kind == "O" and all(isinstance(end, int) for end in given.flat)):
            raise TypeError(f"vertices must be integers, not {given.dtype}: use edges.astype(numpy.uint32), or Graph.from_pandas for labels")
        low, high = int(given.min()), int(given.max())
        if low < 0 or high >= 2**31 - 1:
            raise ValueError(f"vertices must be from 0 to 2**31 - 2, not {low if low < 0 else high}")
        largest = max(largest, high)
        if not is_ready:
            pairs[part] = given
    return pairs, largest


def _settings(device: Optional[str], policy: Optional[str], board: Union[str, os.PathLike, None], threads: int, at: Optional[str]) -> _Settings:
    if not 0 <= threads < 2**32:
        raise ValueError(f"threads must be from 0 (one for every CPU) to 4096, not {threads}")
    return device, policy, None if board is None else os.fspath(board), threads, at


class Energy:
    """Measures the energy of a window of time, with the power sensors that fit this machine.

    `board` is the name or the file of a board profile, which says which rails add up (by default the one of the detected board). `timeout`:
    TimeoutError if the sensors do not open, or give no reading after a window, within this many seconds.

    >>> with socbfs.Energy() as energy:  # doctest: +SKIP
    ...     graph.bfs(0)
    >>> energy.joules, energy.seconds  # doctest: +SKIP

    OSError if there is no sensor that may be read; the message says what would help.
    """

    __slots__ = ("_sensors", "_timeout", "joules", "seconds", "problem")

    def __init__(self, board: Union[str, os.PathLike, None] = None, *, timeout: Optional[float] = None) -> None:
        self._timeout = _seconds(timeout)
        self._sensors = _Sensors(None if board is None else os.fspath(board), self._timeout)
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
        self._sensors.begin(self._timeout)
        return self

    def __exit__(self, *_: object) -> None:
        self.joules, self.seconds, self.problem = self._sensors.end(self._timeout)


def breadth_first_order(
    csgraph: object, i_start: int, directed: bool = True, return_predecessors: bool = True, *, timeout: Optional[float] = None
) -> Union[np.ndarray, Tuple[np.ndarray, np.ndarray]]:
    """Replaces `scipy.sparse.csgraph.breadth_first_order`, with the same arguments and results, and a timeout.

    Edges are the same as in SciPy: every stored entry of a sparse matrix (in BSR form, that is not zero), every entry of a masked array that is
    not masked, and every entry of any other array except zero, NaN and infinity. Order and predecessors are those of SciPy, ties included.

    The rows are searched as they are, by one thread. To search from several vertices, use `Graph.from_scipy`, whose searches are faster.
    """
    left = _clock(timeout)
    order, predecessors = _breadth_first_order(*_rows_of_matrix(csgraph, directed, left), i_start, directed, left())
    return (order, predecessors) if return_predecessors else order


def connected_components(
    csgraph: object, directed: bool = True, connection: str = "weak", return_labels: bool = True, *, timeout: Optional[float] = None
) -> Union[int, Tuple[int, np.ndarray]]:
    """Replaces `scipy.sparse.csgraph.connected_components`, with the same arguments and results, and a timeout.

    Edges are those of `breadth_first_order`. Every call builds a graph: `Graph.from_scipy` and `Graph.connected_components` keep it.
    ValueError for the strong components of a directed graph (`connection="strong"`), which are found by other algorithms.
    """
    if connection.lower() not in ("weak", "strong"):
        raise ValueError("connection must be 'weak' or 'strong'")
    if directed and connection.lower() == "strong":
        raise ValueError("strong components are not found by socbfs: use scipy.sparse.csgraph.connected_components")
    left = _clock(timeout)
    # Arcs of a directed graph count in both directions, as those of any other.
    graph = Graph._made(_Core.from_rows, (*_rows_of_matrix(csgraph, False, left), False), _settings("cpu", None, None, 0, None), left())
    count, labels = graph.connected_components(timeout=left())
    return (count, labels) if return_labels else count


def _sparse_rows(matrix: object) -> List[np.ndarray]:
    """The offsets and targets of a matrix in CSR form."""
    if getattr(matrix, "format", None) != "csr":
        cure = "matrix.tocsr()" if hasattr(matrix, "tocsr") else "scipy.sparse.csr_matrix(matrix), Graph.from_edges or from_networkx"
        raise TypeError(f"{type(matrix).__name__} is not in CSR form: use {cure}")
    shape = matrix.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"the matrix of a graph must be square, and this one is {' by '.join(map(str, shape))}")
    return [_without_mask(getattr(matrix, name), name, "an array without a mask") for name in ("indptr", "indices")]


def _rows_of_matrix(csgraph: object, directed: bool, left: Callable[[], object]) -> Sequence[np.ndarray]:
    """The offsets and targets of a sparse or dense matrix, with the edges that SciPy takes it to have."""
    if not hasattr(csgraph, "tocsr"):
        return _rows(csgraph, left)
    form = getattr(csgraph, "format", None)
    if form == "csc" and not directed:
        return _sparse_rows(csgraph.T)  # the same arrays

    def rows() -> List[np.ndarray]:
        matrix = csgraph.tocsr()
        if form == "bsr":
            matrix.eliminate_zeros()  # as SciPy: they fill its blocks
        return _sparse_rows(matrix)

    return _sparse_rows(csgraph) if form == "csr" else _waiting(rows, left)


def _rows(matrix: object, left: Callable[[], object]) -> Tuple[np.ndarray, np.ndarray]:
    """A dense matrix as offsets and targets."""
    if not isinstance(matrix, (np.ndarray, list, tuple)):
        matrix = np.asanyarray(matrix)
    vertices = len(matrix) if np.ndim(matrix[:1]) == 2 else -1
    counts, targets = [np.zeros(1, np.int64)], [np.empty(0, np.int32)]
    for part in _parts(vertices, left, max(1, _PART // max(1, vertices))):
        rows = np.asanyarray(matrix[part])
        if rows.ndim != 2 or rows.shape[1] != vertices:
            vertices = -1
            break
        if np.ma.isMaskedArray(rows):
            is_edge = ~np.ma.getmaskarray(rows)
        else:
            values = np.asarray(rows, np.float64)
            is_edge = ~np.isclose(values, 0) & np.isfinite(values)  # as SciPy, which takes up to 1e-8 for zero
        counts.append(np.count_nonzero(is_edge, axis=1))
        targets.append(np.nonzero(is_edge)[1].astype(np.int32))
    if vertices < 0:
        raise ValueError("the matrix of a graph must be square")
    return _waiting(lambda: (np.cumsum(np.concatenate(counts)), np.concatenate(targets)), left)
