"""The functions that NetworkX calls for `backend="socbfs"`. Their results depend on distances, not on the order of neighbours."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from . import Graph


class _Converted:
    """A graph of NetworkX, and the `Graph` that is searched in its place."""

    __networkx_backend__ = "socbfs"

    def __init__(self, graph: Any):
        self.original = graph

    @cached_property
    def searched(self) -> Graph:
        return Graph.from_networkx(self.original)

    @cached_property
    def places(self) -> dict:
        return {label: at for at, label in enumerate(self.searched.labels)}

    def is_directed(self) -> bool:
        return self.original.is_directed()

    def is_multigraph(self) -> bool:
        return self.original.is_multigraph()

    def has(self, node: Any) -> bool:
        """Whether it is a node. What can't be hashed is none, as in NetworkX."""
        try:
            return node in self.places
        except TypeError:
            return False

    def levels(self, source: Any, depth: Any = None) -> np.ndarray:
        import networkx

        if not self.has(source):
            raise networkx.NodeNotFound(f"Source {source} is not in G")
        return self.searched.bfs(self.places[source], parents=False, levels=True, depth=depth).levels


def _converted(graph: Any) -> _Converted:
    original = graph.original if isinstance(graph, _Converted) else graph
    # NetworkX keeps what it has converted, until the graph changes. That of a view it also keeps when the graph changes that is viewed.
    is_view = hasattr(original, "_graph")
    return graph if isinstance(graph, _Converted) and not is_view else _Converted(original)


class backend:
    """The functions, by their names in NetworkX."""

    @staticmethod
    def convert_from_nx(graph: Any, *_: Any, **__: Any) -> _Converted:
        return _converted(graph)

    @staticmethod
    def convert_to_nx(result: Any, **_: Any) -> Any:
        return result.original if isinstance(result, _Converted) else result

    @staticmethod
    def single_source_shortest_path_length(G: Any, source: Any, cutoff: Any = None) -> dict:
        graph = _converted(G)
        # NetworkX takes any number and goes on as long as the level is below it, so a negative one and NaN are as 0.
        if cutoff is None or cutoff >= 2**32 - 1:
            depth = None
        else:
            depth = math.ceil(cutoff) if cutoff > 0 else 0
        levels = graph.levels(source, depth)
        reached = np.flatnonzero(levels >= 0)
        order = reached[np.argsort(levels[reached], kind="stable")]
        labels = graph.searched.labels
        return {labels[v]: level for v, level in zip(order.tolist(), levels[order].tolist())}

    @staticmethod
    def descendants_at_distance(G: Any, source: Any, distance: int) -> set:
        import networkx

        graph = _converted(G)
        if not graph.has(source):
            raise networkx.NetworkXError(f"The node {source} is not in the graph.")
        if not 0 <= distance < 2**32 - 1:
            return set()
        return {graph.searched.labels[v] for v in np.flatnonzero(graph.levels(source, int(distance)) == distance).tolist()}

    @staticmethod
    def has_path(G: Any, source: Any, target: Any) -> bool:
        import networkx

        graph = _converted(G)
        if not graph.has(target):
            raise networkx.NodeNotFound(f"Target {target} is not in G")
        if not graph.has(source):
            raise networkx.NodeNotFound(f"Source {source} is not in G")
        place = graph.places[target]
        return bool(graph.searched.bfs(graph.places[source], parents=False, levels=True, target=place).levels[place] >= 0)

    @staticmethod
    def node_connected_component(G: Any, n: Any) -> set:
        graph = _converted(G)
        levels = graph.searched.bfs(graph.places[n], parents=False, levels=True).levels
        return {graph.searched.labels[v] for v in np.flatnonzero(levels >= 0).tolist()}

    @staticmethod
    def is_connected(G: Any) -> bool:
        import networkx

        searched = _converted(G).searched
        if searched.vertices == 0:
            raise networkx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
        return searched.bfs(0).reached == searched.vertices

    @staticmethod
    def bfs_layers(G: Any, sources: Any) -> Any:
        import networkx

        graph = _converted(G)
        if graph.has(sources):
            sources = [sources]
        sources = list(dict.fromkeys(sources))
        for source in sources:
            if source not in graph.places:
                raise networkx.NetworkXError(f"The node {source} is not in the graph.")
        if not sources:
            return iter(())
        roots = [graph.places[source] for source in sources]
        return _layers(graph.searched.labels, graph.searched.bfs(roots, parents=False, levels=True).levels, sources)


def _layers(labels: list, nearest: np.ndarray, sources: list) -> Any:
    yield sources
    level = 1
    while True:
        layer = np.flatnonzero(nearest == level).tolist()
        if not layer:
            return
        yield [labels[v] for v in layer]
        level += 1


def info() -> dict:
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
            "bfs_layers": {"additional_docs": "The nodes of a layer are in the order of the graph's nodes."},
        },
    }
