"""The backend of NetworkX against NetworkX itself: results, the order of ties and of dictionaries, and errors."""

import collections.abc
import math
import random
import warnings

import pytest

from socbfs import networkx_backend

networkx = pytest.importorskip("networkx", reason="SKIPPED: no NetworkX")

KINDS = (networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph)
LIMITS = (None, None, None, -1, 0, 1, 1.5, 2, 3, math.inf, math.nan)


@pytest.fixture(autouse=True)
def no_warnings():
    """Such as those that a function is deprecated, or that a converted graph is used again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def random_graph(numbers):
    """Small, so that many are tried: with self-loops, repeats and isolated nodes, connected or not; neighbours in any order."""
    vertices = 60 if numbers.random() < 0.01 else numbers.randint(0 if numbers.random() < 0.2 else 1, 12)
    nodes = numbers.sample([str(at) for at in range(99)] if numbers.random() < 0.5 else range(-50, 50), vertices)
    graph = numbers.choice(KINDS)()
    graph.add_nodes_from(nodes)
    arcs = int(vertices * numbers.choice((0, 0.5, 1, 1.5, 2, 4)))
    graph.add_edges_from([numbers.choices(nodes, k=2) for _ in range(arcs)])
    if numbers.random() < 0.5:
        networkx.add_path(graph, [*numbers.sample(nodes, vertices), *nodes[:1]][: vertices + numbers.randint(0, 1)])
    if numbers.random() < 0.1:
        graph = graph.subgraph(nodes[: vertices - 1])
    return graph.reverse(copy=False) if graph.is_directed() and numbers.random() < 0.2 else graph


def one(numbers, graph):
    """A node, seldom one that the graph has not."""
    return numbers.choice(list(graph)) if len(graph) and numbers.random() < 0.95 else "no such node"


def some(numbers, graph):
    return [one(numbers, graph) for _ in range(numbers.randint(0, 4))]


def search(numbers, graph):
    return {"source": one(numbers, graph), "depth_limit": numbers.choice(LIMITS)}


def directed_search(numbers, graph):
    return {**search(numbers, graph), "reverse": numbers.random() < 0.5}


def cut(numbers, graph):
    return {"cutoff": numbers.choice(LIMITS)}


def nothing(numbers, graph):
    return {}


FUNCTIONS = {
    "bfs_edges": directed_search,
    "bfs_tree": directed_search,
    "bfs_predecessors": search,
    "bfs_successors": search,
    "bfs_layers": lambda *given: {"sources": (one if given[0].random() < 0.5 else some)(*given)},
    "descendants_at_distance": lambda *given: {"source": one(*given), "distance": given[0].choice((-1, 0, 1, 1.5, 2, 3, "a"))},
    "has_path": lambda *given: {"source": one(*given), "target": one(*given)},
    "single_source_shortest_path": lambda *given: {"source": one(*given), **cut(*given)},
    "single_source_shortest_path_length": lambda *given: {"source": one(*given), **cut(*given)},
    "all_pairs_shortest_path": cut,
    "all_pairs_shortest_path_length": cut,
    "shortest_path": lambda *given: given[0].choice(({}, {"source": one(*given)}, {"target": one(*given)}, {"method": "none such"})),
    "shortest_path_length": lambda *given: {
        **{name: one(*given) for name in ("source", "target") if given[0].random() < 0.7},
        "method": given[0].choice(("dijkstra", "dijkstra", "bellman-ford", "none such")),
    },
    "eccentricity": lambda *given: given[0].choice(({}, {"v": one(*given)}, {"v": some(*given)})),
    "center": nothing,
    "diameter": nothing,
    "periphery": nothing,
    "radius": nothing,
}


def listed(result):
    """A result with its types, and with the order that `==` does not look at."""
    if isinstance(result, dict):
        return "dict", [(key, listed(value)) for key, value in result.items()]
    if isinstance(result, networkx.Graph):
        return type(result), list(result), list(result.edges())
    if isinstance(result, collections.abc.Iterator):
        return "iterator", [listed(each) for each in result]
    return type(result), [listed(each) for each in result] if isinstance(result, (list, tuple)) else result


def outcome(call):
    """What comes of it. An error that an iterator raises has None in place of the call's result."""
    result = "none"
    try:
        result = call()
        return listed(result)
    except Exception as problem:
        return result == "none", type(problem), str(problem)


def compare(graph, name, arguments, converted=None):
    """Compares what comes of a call; True if it is an error."""
    function = getattr(networkx, name)
    found = outcome(lambda: function(graph if converted is None else converted, backend="socbfs", **arguments))
    wanted = outcome(lambda: function(graph, **arguments))
    assert found == wanted, (name, arguments, type(graph), list(graph), list(graph.edges()))
    return len(wanted) == 3 and isinstance(wanted[0], bool)


@pytest.fixture(scope="module")
def graphs():
    """Each with what it is converted to, which takes longer than a search of it."""
    made = [random_graph(random.Random(seed)) for seed in range(1000)]
    return [(graph, networkx_backend._converted(graph)) for graph in made]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_equal_those_of_networkx_on_random_graphs(name, graphs):
    numbers = random.Random(1)
    failures = sum(compare(graph, name, FUNCTIONS[name](numbers, graph), converted) for graph, converted in graphs)
    # Those that search from all nodes, and name none, have no error.
    assert failures == 0 if name.startswith("all_pairs") else 10 < failures < 800


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_equal_those_of_networkx_on_larger_graphs(name):
    numbers = random.Random(1)
    # Both have more vertices than a pass has roots, and one is deeper than a byte can tell. All its paths would take long.
    for graph in (networkx.gnp_random_graph(300, 0.05, seed=1), networkx.path_graph(30 if name.endswith("shortest_path") else 300)):
        converted = networkx_backend._converted(graph)
        for arguments in (FUNCTIONS[name](numbers, graph) for _ in range(2)):
            assert not compare(graph, name, {**arguments, **({"method": "dijkstra"} if "method" in arguments else {})}, converted)


def test_a_view_is_what_it_views_at_each_call():
    graph = networkx.path_graph(5, create_using=networkx.DiGraph)
    views = [graph.subgraph([0, 1, 2, 3]), graph.reverse(copy=False), networkx.restricted_view(graph, [4], []), graph.to_undirected(as_view=True)]
    for u, v in ((4, 0), (1, 3), (3, 0), (0, 2)):
        graph.add_edge(u, v)
        for view in (graph, *views):
            assert not compare(view, "bfs_edges", {"source": 3, "reverse": True})
            assert not compare(view, "shortest_path", {"target": 0})
            compare(view, "center", {})


def test_what_depends_on_other_things_than_distances_and_order_is_left_to_networkx():
    graph = networkx.cycle_graph(5)
    given = {"bfs_edges": {"source": 0}, "bfs_tree": {"source": 0}, "bfs_predecessors": {"source": 0}, "bfs_successors": {"source": 0}}
    left = [(name, {**arguments, "sort_neighbors": sorted}) for name, arguments in given.items()]
    left += [(name, {"weight": "weight"}) for name in ("shortest_path", "shortest_path_length", "eccentricity", "center", "diameter", "radius")]
    left += [(name, {"usebounds": True}) for name in ("center", "diameter", "periphery", "radius")]
    left += [(name, {"e": networkx.eccentricity(graph)}) for name in ("center", "diameter", "periphery", "radius")]
    left += [("shortest_path", {"source": 0, "target": 2}), ("eccentricity", {"sp": dict(networkx.all_pairs_shortest_path_length(graph))})]
    for name, arguments in left:
        getattr(networkx, name)(graph, **arguments)
        with pytest.raises(RuntimeError):  # NotImplementedError from 3.3 on
            getattr(networkx, name)(graph, backend="socbfs", **arguments)
