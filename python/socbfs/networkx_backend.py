"""The functions that NetworkX calls for `backend="socbfs"`. Their results depend on distances, not on the order of neighbours."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Dict, Hashable, Iterable, Iterator, List, Optional, Protocol, Set, Tuple, Union, cast

import numpy as np

from . import Graph, NetworkXGraph
from ._arguments import _clock, _waiting


class _Graph(NetworkXGraph, Protocol):
    def is_multigraph(self) -> bool: ...


class _Converted:
    """A graph of NetworkX, and the `Graph` that is searched in its place."""

    __networkx_backend__ = "socbfs"

    def __init__(self, graph: _Graph) -> None:
        self.original = graph

    @cached_property
    def searched(self) -> Graph:
        return Graph.from_networkx(self.original)

    @property
    def places(self) -> Dict[Hashable, int]:
        return cast(Dict[Hashable, int], self.searched._labels)

    @property
    def labels(self) -> List[object]:
        return cast(List[object], self.searched.labels)

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
        place = self.places[target]
        return int(self.searched.bfs(source, parents=False, levels=True, target=target).levels[place])

    def levels(self, source: object, depth: Optional[int] = None) -> np.ndarray:
        import networkx

        if not self.has(source):
            raise networkx.NodeNotFound(f"Source {source} is not in G")
        return self.searched.bfs(source, parents=False, levels=True, depth=depth).levels


_Given = Union[_Converted, _Graph]


def _depth(cutoff: Optional[float]) -> Optional[int]:
    # NetworkX takes any number and goes on as long as the level is below it, so a negative one and NaN are as 0.
    if cutoff is None or cutoff >= 2**32 - 1:
        return None
    return math.ceil(cutoff) if cutoff > 0 else 0


def _sorted(numbers: np.ndarray) -> np.ndarray:
    """The places of the numbers, the smallest first."""
    return _waiting(lambda: np.argsort(numbers, kind="stable"), _clock(None))


def _by_distance(levels: np.ndarray) -> np.ndarray:
    """The vertices that were reached, the nearest first."""
    reached = np.flatnonzero(levels >= 0)
    return reached[_sorted(levels[reached])]


def _converted(graph: _Given) -> _Converted:
    original = graph.original if isinstance(graph, _Converted) else graph
    # NetworkX keeps what it has converted, until the graph changes. That of a view it also keeps when the graph changes that is viewed.
    is_view = hasattr(original, "_graph")
    return graph if isinstance(graph, _Converted) and not is_view else _Converted(original)


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
        return _converted(graph)

    @staticmethod
    def convert_to_nx(result: object, **_: object) -> object:
        return result.original if isinstance(result, _Converted) else result

    @staticmethod
    def can_run(name: str, args: Tuple[object, ...], kwargs: Dict[str, object]) -> bool:
        # (Up to NetworkX 3.2 a text with the reason would count as True.)
        if name != "shortest_path_length":
            return True
        # By their places: graph, source, target, weight.
        given = {**dict(zip(("G", "source", "target", "weight"), args)), **kwargs}
        return given.get("weight") is None and given.get("source") is not None

    @staticmethod
    def single_source_shortest_path_length(G: _Given, source: object, cutoff: Optional[float] = None) -> Dict[object, int]:
        graph = _converted(G)
        levels = graph.levels(source, _depth(cutoff))
        order = _by_distance(levels)
        return {graph.labels[v]: level for v, level in zip(order.tolist(), levels[order].tolist())}

    @staticmethod
    def single_source_shortest_path(G: _Given, source: object, cutoff: Optional[float] = None) -> Dict[object, List[object]]:
        import networkx

        graph = _converted(G)
        if not graph.has(source):
            raise networkx.NodeNotFound(f"Source {source} not in G")
        tree = graph.searched.bfs(source, levels=True, depth=_depth(cutoff))
        order = _by_distance(tree.levels)
        paths: Dict[object, List[object]] = {source: [source]}
        for v, parent in zip(order.tolist()[1:], tree.parents[order].tolist()[1:]):
            paths[graph.labels[v]] = [*paths[graph.labels[parent]], graph.labels[v]]
        return paths

    @staticmethod
    def shortest_path_length(
        G: _Given, source: object = None, target: object = None, weight: object = None, method: str = "dijkstra"
    ) -> Union[int, Dict[object, int]]:
        import networkx

        if method not in ("dijkstra", "bellman-ford"):
            raise ValueError(f"method not supported: {method}")
        if target is None:
            return backend.single_source_shortest_path_length(G, source)
        graph = _converted(G)
        for what, node in (("Source", source), ("Target", target)):
            if not graph.has(node):
                raise networkx.NodeNotFound(f"{what} {node} is not in G")
        length = graph.distance(source, target)
        if length < 0:
            raise networkx.NetworkXNoPath(f"No path between {source} and {target}.")
        return length

    @staticmethod
    def descendants_at_distance(G: _Given, source: object, distance: int) -> Set[object]:
        import networkx

        graph = _converted(G)
        if not graph.has(source):
            raise networkx.NetworkXError(f"The node {source} is not in the graph.")
        if not 0 <= distance < 2**32 - 1:
            return set()
        return graph.named(graph.levels(source, int(distance)) == distance)

    @staticmethod
    def has_path(G: _Given, source: object, target: object) -> bool:
        import networkx

        graph = _converted(G)
        if not graph.has(target):
            raise networkx.NodeNotFound(f"Target {target} is not in G")
        if not graph.has(source):
            raise networkx.NodeNotFound(f"Source {source} is not in G")
        return graph.distance(source, target) >= 0

    @staticmethod
    def node_connected_component(G: _Given, n: object) -> Set[object]:
        graph = _of_kind(G, directed=False)
        return graph.named(graph.searched.bfs([n], parents=False, levels=True).levels >= 0)

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
        import networkx

        graph = _converted(G)
        if graph.has(sources):
            sources = [sources]
        given = list(dict.fromkeys(cast(Iterable[object], sources)))
        for source in given:
            if source not in graph.places:
                raise networkx.NetworkXError(f"The node {source} is not in the graph.")
        if not given:
            return iter(())
        levels = graph.searched.bfs(given, parents=False, levels=True).levels
        return _layers(graph.labels, levels, given)


def _layers(labels: List[object], nearest: np.ndarray, sources: List[object]) -> Iterator[List[object]]:
    yield sources
    level = 1
    while True:
        layer = np.flatnonzero(nearest == level).tolist()
        if not layer:
            return
        yield [labels[v] for v in layer]
        level += 1


def info() -> Dict[str, object]:
    """What NetworkX shows about the backend."""
    return {
        "backend_name": "socbfs",
        "project": "socbfs",
        "package": "socbfs",
        "short_summary": "Direction-optimising breadth-first search on CPU and GPU.",
        "functions": {
            "single_source_shortest_path_length": {"additional_docs": "Distances by socbfs; nodes of the same distance are in the order of the graph's nodes."},
            "descendants_at_distance": {},
            "has_path": {},
            "is_connected": {},
            "node_connected_component": {},
            "connected_components": {},
            "number_connected_components": {},
            "is_weakly_connected": {},
            "weakly_connected_components": {},
            "number_weakly_connected_components": {},
            "shortest_path_length": {"additional_docs": "Without weights, from a source."},
            "single_source_shortest_path": {"additional_docs": "Of several shortest paths, another one may be returned."},
            "bfs_layers": {"additional_docs": "The nodes of a layer are in the order of the graph's nodes."},
        },
    }
