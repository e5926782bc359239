"""The functions that NetworkX calls for `backend="socbfs"`. Their results are those of NetworkX, the order of ties included."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from functools import cached_property
from itertools import islice
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Protocol, Set, Tuple, Union

import numpy as np

from . import Graph, NetworkXGraph
from ._arguments import _clock, _waiting
from ._socbfs import breadth_first_order


class _Graph(NetworkXGraph, Protocol):
    def is_multigraph(self) -> bool: ...
    def nbunch_iter(self, nbunch: object) -> Iterator[object]: ...
    def neighbors(self, node: object) -> Iterator[object]: ...
    def reverse(self, copy: bool) -> "_Graph": ...


class _Rows(NamedTuple):
    """Neighbours in the order of NetworkX, in the form of a matrix of SciPy."""

    indptr: np.ndarray
    indices: np.ndarray
    format: str = "csr"

    @property
    def shape(self) -> Tuple[int, int]:
        return len(self.indptr) - 1, len(self.indptr) - 1


class _Converted:
    """A graph of NetworkX, and what is searched in its place. NetworkX's own functions may have it for their graph (`_own`)."""

    __networkx_backend__ = "socbfs"

    def __init__(self, graph: _Graph, is_kept_view: bool = False) -> None:
        self.original, self.is_kept_view = graph, is_kept_view

    @cached_property
    def labels(self) -> List[object]:
        return list(self.original)

    @cached_property
    def places(self) -> Dict[object, int]:
        return {label: at for at, label in enumerate(self.labels)}

    @cached_property
    def rows(self) -> _Rows:
        ends, targets = [0], array("i")
        for label in self.labels:
            targets.extend([self.places[neighbour] for neighbour in self.original.neighbors(label)])
            ends.append(len(targets))
        return _Rows(np.array(ends, np.int64), np.array(targets, np.int32))

    @cached_property
    def searched(self) -> Graph:
        return Graph.from_scipy(self.rows, self.is_directed())

    @cached_property
    def reversed(self) -> "_Converted":
        return _Converted(self.original.reverse(copy=False))

    def reverse(self, copy: bool = False) -> "_Converted":
        return self.reversed

    def __iter__(self) -> Iterator[object]:
        return iter(self.labels)

    def visits(self, source: object, depth: Optional[int] = None) -> Tuple[np.ndarray, np.ndarray, List[int]]:
        return _visits(self.rows, self.places[source], depth)

    def layers(self, sources: List[object]) -> Iterator[List[object]]:
        """The layers beyond the sources. They are found from one more vertex, whose neighbours the sources are."""
        places = np.array([self.places[source] for source in sources], np.int32)
        rows = _Rows(np.append(self.rows.indptr, len(self.rows.indices) + len(places)), np.append(self.rows.indices, places))
        order, _, begins = _visits(rows, len(self.labels), None)
        for begin, end in zip(begins[2:], begins[3:]):
            yield [self.labels[v] for v in order[begin:end].tolist()]

    def eccentricities(self, nodes: Iterable[object]) -> Dict[object, int]:
        import networkx

        each, kind, found = iter(nodes), np.dtype(np.uint8), {}
        for batch in iter(lambda: list(islice(each, 256)), []):  # as many as one pass of `bfs_many` takes
            places = [self.places[node] for node in batch]
            try:
                levels = self.searched.bfs_many(places, dtype=kind).levels
            except ValueError:  # They are too far for it.
                kind = np.dtype(np.int32)
                levels = self.searched.bfs_many(places, dtype=kind).levels.view(np.uint32)
            furthest = levels.max(axis=1)
            if furthest.max() == np.iinfo(levels.dtype).max:
                what = "digraph is not strongly" if self.is_directed() else "graph is not"
                raise networkx.NetworkXError(f"Found infinite path length because the {what} connected")
            found.update(zip(batch, furthest.tolist()))
        return found

    def named(self, are_wanted: np.ndarray) -> Set[object]:
        """The nodes where the array is true."""
        return {self.labels[v] for v in np.flatnonzero(are_wanted).tolist()}

    def is_connected(self) -> bool:
        import networkx

        if self.searched.vertices == 0:
            raise networkx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
        return self.searched.connected_components()[0] == 1

    def components(self) -> List[Set[object]]:
        count, labels = self.searched.connected_components()
        ends = np.cumsum(np.bincount(labels, minlength=count))[:-1]
        return [{self.labels[v] for v in part.tolist()} for part in np.split(_sorted(labels), ends)] if count else []

    def is_directed(self) -> bool:
        return self.original.is_directed()

    def is_multigraph(self) -> bool:
        return self.original.is_multigraph()

    def has(self, node: object) -> bool:
        """Whether it is a node. What can't be hashed is none, as in NetworkX."""
        try:
            return node in self.places
        except TypeError:
            return False

    def distance(self, source: object, target: object) -> int:
        """The distance between two nodes; -1: there is no path."""
        if not (self.has(source) and self.has(target)):
            _own("bidirectional_shortest_path")(self.original, source, target)  # It raises its error.
        place = self.places[target]
        return int(self.searched.bfs(self.places[source], parents=False, levels=True, target=place).levels[place])

    def levels(self, source: object, depth: Optional[int] = None) -> np.ndarray:
        return self.searched.bfs(self.places[source], parents=False, levels=True, depth=depth).levels


_Given = Union[_Converted, _Graph]


def _own(name: str) -> Callable[..., object]:
    """NetworkX's own function. If its graph is a converted one, its searches are those of this backend."""
    import networkx

    return getattr(networkx, name).orig_func


def _over_converted(name: str) -> Callable[..., object]:
    return lambda G, *args, **kwargs: _own(name)(_converted(G), *args, **kwargs)


def _over_eccentricities(name: str) -> Callable[..., object]:
    def measure(G: _Given, e: None = None, usebounds: bool = False, weight: None = None) -> object:
        graph = _converted(G)
        return _own(name)(graph.original, e=backend.eccentricity(graph) if graph.labels else None)

    return measure


def _visits(rows: _Rows, root: int, depth: Optional[int]) -> Tuple[np.ndarray, np.ndarray, List[int]]:
    """What a search with a queue finds: the vertices in its order, the parents of all but the root, and where each level begins and the last ends."""
    order, predecessors = breadth_first_order(rows.indptr, rows.indices, root, True, None)
    parents, place = predecessors[order[1:]], np.empty_like(predecessors)
    place[order] = np.arange(len(order))
    above, begins = place[parents].tolist(), [0, 1]
    while begins[-1] < len(order) and (depth is None or len(begins) < depth + 2):
        begins.append(1 + bisect_left(above, begins[-1]))
    return order[: begins[-1]], parents[: begins[-1] - 1], begins


def _depth(cutoff: Optional[float]) -> Optional[int]:
    # NetworkX takes any number and goes on as long as the level is below it, so a negative one and NaN are as 0.
    if cutoff is None or cutoff >= 2**32 - 1:
        return None
    return math.ceil(cutoff) if cutoff > 0 else 0


def _sorted(numbers: np.ndarray) -> np.ndarray:
    """The places of the numbers, the smallest first."""
    return _waiting(lambda: np.argsort(numbers, kind="stable"), _clock(None))


def _converted(given: _Given) -> _Converted:
    """The graph as it is now."""
    if not isinstance(given, _Converted):
        return _Converted(given)
    return _Converted(given.original) if given.is_kept_view else given


def _of_kind(given: _Given, directed: bool) -> _Converted:
    """The graph, if it is directed or not as the function wants it. (NetworkX up to 3.2 does not look at that before it calls a backend.)"""
    import networkx

    graph = _converted(given)
    if graph.searched.directed != directed:
        raise networkx.NetworkXNotImplemented(f"not implemented for {'un' if directed else ''}directed type")
    return graph


class backend:
    """The functions, by their names in NetworkX."""

    @staticmethod
    def convert_from_nx(graph: _Given, *_: object, **__: object) -> _Converted:
        # NetworkX keeps what it has converted, until the graph changes. That of a view it also keeps when the graph changes that is viewed.
        return graph if isinstance(graph, _Converted) else _Converted(graph, is_kept_view=hasattr(graph, "_graph"))

    @staticmethod
    def convert_to_nx(result: object, **_: object) -> object:
        return result.original if isinstance(result, _Converted) else result

    @staticmethod
    def can_run(name: str, args: Tuple[object, ...], kwargs: Dict[str, object]) -> bool:
        # (Up to NetworkX 3.2 a text with the reason would count as True.)
        given = {**dict(zip(_own(name).__code__.co_varnames, args)), **kwargs}
        if name == "shortest_path" and given.get("source") is not None and given.get("target") is not None:
            return False  # NetworkX searches from both, and may find another path.
        if name == "has_path" and (given.get("source") is None or given.get("target") is None):
            return False  # For NetworkX None stands for every node there.
        return not given.get("usebounds") and all(given.get(refused) is None for refused in ("weight", "sort_neighbors", "sp", "e"))

    @staticmethod
    def bfs_edges(
        G: _Given, source: object, reverse: bool = False, depth_limit: Optional[float] = None, sort_neighbors: None = None
    ) -> Iterator[Tuple[object, object]]:
        graph = _converted(G)
        if reverse and graph.is_directed():
            graph = graph.reversed
        graph.original.neighbors(source)  # It raises NetworkX's error if that is no node.
        order, parents, _ = graph.visits(source, _depth(depth_limit))
        name = graph.labels.__getitem__
        yield from zip(map(name, parents.tolist()), map(name, order[1:].tolist()))

    bfs_tree = staticmethod(_over_converted("bfs_tree"))
    bfs_predecessors = staticmethod(_over_converted("bfs_predecessors"))
    bfs_successors = staticmethod(_over_converted("bfs_successors"))

    @staticmethod
    def single_source_shortest_path_length(G: _Given, source: object, cutoff: Optional[float] = None) -> Dict[object, int]:
        import networkx

        graph = _converted(G)
        if not graph.has(source):
            raise networkx.NodeNotFound(f"Source {source} is not in G")
        order, _, begins = graph.visits(source, _depth(cutoff))
        levels = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
        return {graph.labels[v]: level for v, level in zip(order.tolist(), levels.tolist())}

    @staticmethod
    def single_source_shortest_path(G: _Given, source: object, cutoff: Optional[float] = None) -> Dict[object, List[object]]:
        import networkx

        graph = _converted(G)
        if not graph.has(source):
            raise networkx.NodeNotFound(f"Source {source} not in G")
        order, parents, _ = graph.visits(source, _depth(cutoff))
        paths: Dict[object, List[object]] = {source: [source]}
        for v, parent in zip(order[1:].tolist(), parents.tolist()):
            paths[graph.labels[v]] = [*paths[graph.labels[parent]], graph.labels[v]]
        return paths

    all_pairs_shortest_path = staticmethod(_over_converted("all_pairs_shortest_path"))
    all_pairs_shortest_path_length = staticmethod(_over_converted("all_pairs_shortest_path_length"))
    shortest_path = staticmethod(_over_converted("shortest_path"))

    @staticmethod
    def shortest_path_length(
        G: _Given, source: object = None, target: object = None, weight: None = None, method: str = "dijkstra"
    ) -> object:
        import networkx

        graph = _converted(G)
        if source is None or target is None or method not in ("dijkstra", "bellman-ford"):
            return _own("shortest_path_length")(graph, source, target, method=method)
        length = graph.distance(source, target)
        if length < 0:
            raise networkx.NetworkXNoPath(f"No path between {source} and {target}.")
        return length

    @staticmethod
    def eccentricity(G: _Given, v: object = None, sp: None = None, weight: None = None) -> object:
        graph = _converted(G)
        if not graph.labels:
            return _own("eccentricity")(graph.original, v)
        found = graph.eccentricities(graph.original.nbunch_iter(v))
        return found[v] if graph.has(v) else found

    center = staticmethod(_over_eccentricities("center"))
    diameter = staticmethod(_over_eccentricities("diameter"))
    periphery = staticmethod(_over_eccentricities("periphery"))
    radius = staticmethod(_over_eccentricities("radius"))

    @staticmethod
    def descendants_at_distance(G: _Given, source: object, distance: int) -> Set[object]:
        import networkx

        graph = _converted(G)
        if not graph.has(source):
            raise networkx.NetworkXError(f"The node {source} is not in the graph.")
        try:
            may_be = 0 <= distance < 2**32 - 1
        except TypeError:  # NetworkX only asks whether it equals the number of a layer
            may_be = False
        return graph.named(graph.levels(source, int(distance)) == distance) if may_be else set()

    @staticmethod
    def has_path(G: _Given, source: object, target: object) -> bool:
        return _converted(G).distance(source, target) >= 0

    @staticmethod
    def node_connected_component(G: _Given, n: object) -> Set[object]:
        graph = _of_kind(G, directed=False)
        return graph.named(graph.levels(n) >= 0)

    @staticmethod
    def is_connected(G: _Given) -> bool:
        return _of_kind(G, directed=False).is_connected()

    @staticmethod
    def is_weakly_connected(G: _Given) -> bool:
        return _of_kind(G, directed=True).is_connected()

    @staticmethod
    def number_connected_components(G: _Given) -> int:
        return _of_kind(G, directed=False).searched.connected_components()[0]

    @staticmethod
    def connected_components(G: _Given) -> Iterator[Set[object]]:
        return iter(_of_kind(G, directed=False).components())

    @staticmethod
    def number_weakly_connected_components(G: _Given) -> int:
        return _of_kind(G, directed=True).searched.connected_components()[0]

    @staticmethod
    def weakly_connected_components(G: _Given) -> Iterator[Set[object]]:
        return iter(_of_kind(G, directed=True).components())

    @staticmethod
    def bfs_layers(G: _Given, sources: object) -> Iterator[List[object]]:
        graph = _converted(G)
        for first in islice(_own("bfs_layers")(graph.original, sources), 1):
            yield first
            yield from graph.layers(first)


def info() -> Dict[str, object]:
    """What NetworkX shows about the backend."""
    functions: Dict[str, Dict[str, str]] = {name: {} for name in vars(backend) if not name.startswith(("_", "convert_", "can_"))}
    functions["shortest_path"] = {"additional_docs": "Without weights; not between two nodes: NetworkX searches from both, and may find another path."}
    for name in ("shortest_path_length", "eccentricity", "center", "diameter", "periphery", "radius"):
        functions[name] = {"additional_docs": "Without weights."}
    return {
        "backend_name": "socbfs",
        "project": "socbfs",
        "package": "socbfs",
        "short_summary": "Direction-optimising breadth-first search on CPU and GPU.",
        "functions": functions,
    }
