"""Graphs whose vertices have names, and what a graph tells about its vertices."""

import copy
import datetime
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest

import socbfs

PAIRS = [("b", "a"), ("a", "c"), ("d", "d"), ("c", "e")]


def tables():
    """Makers of tables from a dictionary of lists, by their names."""
    return {"dict": (None, dict), "pandas": ("pandas", "DataFrame"), "polars": ("polars", "DataFrame"), "pyarrow": ("pyarrow", "table")}


def table(kind, columns):
    package, maker = tables()[kind]
    return maker(columns) if package is None else getattr(pytest.importorskip(package), maker)(columns)


def forms(pairs):
    """Edges between strings in the forms that `from_edges` takes without other packages."""
    array = np.array(pairs)
    return {
        "list": list(pairs), "tuple of pairs": tuple(pairs), "lists": [list(pair) for pair in pairs], "array": array, "in columns": np.asfortranarray(array),
        "objects": array.astype(object), "rows": list(array), "columns": (array[:, 0], array[:, 1].astype(object)),
    }


@pytest.mark.parametrize("directed", [False, True])
def test_labels_are_numbered_as_they_first_appear(directed):
    for form, edges in forms(PAIRS).items():
        graph = socbfs.Graph.from_edges(edges, directed=directed)
        assert graph.labels == ["b", "a", "c", "d", "e"], form
        assert {type(label) for label in graph.labels} == {str} or form == "rows", form
        assert (graph.vertices, graph.edges, graph.directed) == (5, 3, directed), form
        assert [graph.index(label) for label in "baced"] == [0, 1, 2, 4, 3]
        tree = graph.bfs("a", levels=True, sources=True)
        # Arrays are indexed by vertex numbers, and contain them.
        assert tree.levels.tolist() == ([-1, 0, 1, -1, 2] if directed else [1, 0, 1, -1, 2])
        assert tree.sources.tolist() == ([-1, 1, 1, -1, 1] if directed else [1, 1, 1, -1, 1])
        assert tree.root == "a" and tree.path("e") == ["a", "c", "e"] and tree.path("d") == [] and tree.path("a") == ["a"]


@pytest.mark.parametrize("kind", tables())
def test_columns_of_tables_are_labels(kind):
    sources, targets = (list(ends) for ends in zip(*PAIRS))
    strings = socbfs.Graph.from_pandas(table(kind, {"source": sources, "target": targets}))
    assert strings.labels == ["b", "a", "c", "d", "e"] and strings.bfs("b").path("e") == ["b", "a", "c", "e"]
    assert {type(label) for label in strings.labels} == {str}
    # Integers too.
    columns = table(kind, {"from": [10**12, 7, -5], "to": [7, 2**62, 10**12]})
    graph = socbfs.Graph.from_pandas(columns, "from", "to", True, threads=1, policy="tc")
    assert graph.labels == [10**12, 7, 2**62, -5] and {type(label) for label in graph.labels} == {int} and graph.directed
    assert graph.bfs(-5, levels=True).path(2**62) == [-5, 10**12, 7, 2**62] and 0 not in graph and np.int64(7) in graph
    mixed = socbfs.Graph.from_pandas(table(kind, {"source": [1, 2], "target": ["1", "2"]}))
    assert mixed.labels == [1, "1", 2, "2"]
    decimal = socbfs.Graph.from_pandas(table(kind, {"source": [0.5, 1.5], "target": [1.5, 2.5]}))
    assert decimal.labels == [0.5, 1.5, 2.5] and decimal.bfs(0.5).path(2.5) == [0.5, 1.5, 2.5]
    empty = socbfs.Graph.from_pandas(table(kind, {"source": [], "target": []}))
    assert empty.labels == [] and len(empty) == 0
    with pytest.raises(Exception, match="no such"):
        socbfs.Graph.from_pandas(columns, "no such", "to")


@pytest.mark.parametrize("kind", tables())
def test_a_missing_label_is_named_by_its_row(kind):
    for column in (["a", "b", None, None], [1, 2, None, 3], [0.5, 1.5, None, None]):
        whole = column[:2] * 2
        for names, place in (("source", "target"), "source"), (("target", "source"), "target"):
            with pytest.raises(ValueError, match=f"the {place} in row 2, counted from 0, is missing"):
                socbfs.Graph.from_pandas(table(kind, dict(zip(names, (column, whole)))))


def test_missing_labels_of_all_kinds():
    dates = np.array(["2026-01-01", "NaT"], "datetime64[ns]")
    many = np.where(np.arange(200_000) < 100_000, np.arange(200_000.0), np.nan)
    for column, row in (([("a", 1), None], 1), ([float("nan"), "a"], 0), (dates, 1), (np.array([1, None]), 1), (many, 100_000), (np.array([1j, np.nan]), 1)):
        begin = time.monotonic()
        with pytest.raises(ValueError, match=f"source in row {row}, counted from 0, is missing"):
            socbfs.Graph.from_pandas({"source": column, "target": column})
        assert time.monotonic() - begin < 10, "each NaN is another key"
    for edges in ([("a", "b"), ("b", None)], [(None, "b"), ("b", "a")], np.array([["a", "b"], ["b", None]])):
        with pytest.raises(ValueError, match=r"in row [01], counted from 0, is missing: None"):
            socbfs.Graph.from_edges(edges)
    pandas = pytest.importorskip("pandas")
    for dtype in ("Int64", "string", "category", "datetime64[ns]"):
        column = pandas.Series(["2026", "2027", None] if dtype != "Int64" else [1, 2, None], dtype=dtype)
        with pytest.raises(ValueError, match="source in row 2, counted from 0, is missing"):
            socbfs.Graph.from_pandas({"source": column, "target": column})
        assert len(socbfs.Graph.from_pandas({"source": column[:2], "target": column[:2]}).labels) == 2


def test_anything_hashable_is_a_label():
    day = datetime.date(2026, 1, 1)
    labels = [("x", 1), frozenset("ab"), type(None), day, b"bytes", 2.5, 10**30, "text", ("nested", ("x", 1))]
    edges = list(zip(labels, labels[1:]))
    graph = socbfs.Graph.from_edges(edges)
    assert graph.labels == labels and graph.bfs(labels[0]).path(labels[-1]) == labels
    # A tuple that is a label is one root, another one is several.
    assert graph.bfs(("x", 1)).root == ("x", 1) and graph.bfs([("x", 1), "text"]).root == ("x", 1)
    assert graph.bfs(("text", day), levels=True).levels.tolist() == [3, 2, 1, 0, 1, 2, 1, 0, 1]
    huge = [(2**70, 2**80), (2**80, -(2**90))]
    assert socbfs.Graph.from_pandas(dict(zip(("source", "target"), zip(*huge)))).bfs(2**70).path(-(2**90)) == [2**70, 2**80, -(2**90)]
    words = np.array([[b"ab", b"cd"], [b"cd", b"e"]])
    assert socbfs.Graph.from_edges(words).bfs(b"ab").path(b"e") == [b"ab", b"cd", b"e"]
    dates = np.array([["2026-01-01", "2026-01-02"]], "datetime64[ns]")
    assert socbfs.Graph.from_edges(dates).bfs(dates[0, 0]).path(dates[0, 1]) == list(dates[0])
    # Integers of two types, which NumPy would make decimal numbers of.
    both = {"source": np.array([2**63 + 1, 2], np.uint64), "target": np.array([2, -1])}
    assert socbfs.Graph.from_pandas(both).labels == [2**63 + 1, 2, -1]


def test_integers_are_vertex_numbers_and_no_labels():
    array = np.array([[3, 1], [1, 5]])
    series = [array[:, 0], array[:, 1].astype(np.uint8)]
    for edges in (array, array.tolist(), array.astype(object), tuple(map(tuple, array.tolist())), tuple(series)):
        graph = socbfs.Graph.from_edges(edges)
        assert graph.labels is None and graph.vertices == 6 and graph.bfs(3).path(5) == [3, 1, 5]
        assert graph.index(np.int8(5)) == 5 and graph.bench([3]).roots == [3]
        for wrong in (-1, 6, 2**70):
            assert wrong not in graph
            for call in (graph.index, graph.degree, graph.neighbors):
                with pytest.raises(IndexError, match="6 vertices"):
                    call(wrong)
        assert "3" not in graph and 3.0 not in graph
    for numbers in ([[0.5, 1.0]], [[True, False]], np.array([[0.5, 1]]), np.array([[True, False]]), (np.ones(3), np.ones(3)), [(1, 2), ("a", "b")]):
        with pytest.raises(TypeError, match="vertices must be integers"):
            socbfs.Graph.from_edges(numbers)
    assert socbfs.Graph.from_edges([]).labels is None
    with pytest.raises(ValueError, match="vertices is for"):
        socbfs.Graph.from_edges(PAIRS, 7)


def test_edges_that_are_no_pairs():
    for edges in (["ab", "cd"], "ab", [("a", "b", "c")], [("a", "b"), "cd"], [("a", "b"), ("c",)], [("a", "b"), "c"], np.array(["a", "b"]), np.array([["a"] * 3])):
        with pytest.raises(ValueError, match="pair|shape"):
            socbfs.Graph.from_edges(edges)
    with pytest.raises(ValueError, match="same length, not 1 and 2"):
        socbfs.Graph.from_pandas({"source": ["a"], "target": ["b", "c"]})
    with pytest.raises(ValueError, match="one-dimensional"):
        socbfs.Graph.from_pandas({"source": np.array([["a"]]), "target": np.array([["a"]])})
    with pytest.raises(ValueError, match="masked"):
        socbfs.Graph.from_edges(np.ma.masked_array([["a", "b"]], mask=[[1, 0]]))
    with pytest.raises(TypeError, match="unhashable"):
        socbfs.Graph.from_edges([("a", ["b"])])


def test_unknown_labels_are_named():
    networkx = pytest.importorskip("networkx")
    for graph in (socbfs.Graph.from_edges(PAIRS), socbfs.Graph.from_networkx(networkx.Graph(PAIRS))):
        tree = graph.bfs("a")
        searches = (graph.bfs, lambda label: graph.bfs("a", target=label), lambda label: graph.bfs_many([label]), lambda label: graph.bench([label]))
        for call in (*searches, lambda label: graph.bfs(["a", label]), tree.path, graph.index, graph.degree, graph.neighbors):
            for label in ("nobody", 0, ("a", "nobody")):
                with pytest.raises(KeyError, match="0 is not a vertex" if label == 0 else r"'nobody'\)? is not a vertex"):
                    call(label)
        assert "nobody" not in graph and 0 not in graph and [] not in graph and "a" in graph
        for call in (graph.bfs_many, graph.bench):
            with pytest.raises(TypeError, match=r"as in \['a'\]"):
                call("a")


def test_searches_speak_labels():
    graph = socbfs.Graph.from_edges(PAIRS)
    roots = ["e", "b"]
    for given in (roots, tuple(roots), np.array(roots), np.array(roots, object), iter(roots), dict.fromkeys(roots)):
        trees = graph.bfs_many(given, parents=True)
        assert trees.roots == roots and trees.levels.tolist() == [[3, 2, 1, -1, 0], [0, 1, 2, -1, 3]]
    tree = graph.bfs(roots, levels=True, sources=True)
    assert tree.root == "e" and tree.path("c") == ["e", "c"] and tree.path("a") == ["b", "a"]
    assert [tree.sources[graph.index(label)] for label in "ac"] == [graph.index(label) for label in "be"]
    assert graph.bfs(np.array(roots)).root == "e" and graph.bfs([]).root is None
    near = graph.bfs("b", levels=True, target="c")
    assert near.end == "target" and near.path("c") == ["b", "a", "c"]
    assert "from b: 4 levels" in (graph.bfs("b"), graph)[1]._repr_html_() and "'b'" in repr(near)
    told = graph.bench(["e", "a"])
    assert told.roots == ["e", "a"] and len(told.seconds) == 2
    # A vertex without an edge is not drawn.
    assert sorted(graph.bench(16).roots) == ["a", "b", "c", "e"]
    assert graph.connected_components()[1].tolist() == [0, 0, 0, 1, 0]
    series = [getattr(pytest.importorskip(package), kind)(roots) for package, kind in (("pandas", "Series"), ("polars", "Series"), ("pyarrow", "array"))]
    for given in series:
        assert graph.bfs_many(given).roots == roots and graph.bfs(given).root == "e"
        edges = socbfs.Graph.from_edges((given, given[::-1] if isinstance(given, type(series[0])) else given))
        assert edges.labels == roots


def test_a_label_is_drawn_as_it_is():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    axes = socbfs.Graph.from_edges([("$\\x$", "b")]).bfs("$\\x$").plot()
    axes.figure.canvas.draw()
    assert "$\\x$" in axes.get_title()


def test_labels_are_copied_and_pickled():
    graph = socbfs.Graph.from_edges(PAIRS)
    tree = graph.bfs("b")
    for kept, found in [(copy.copy(graph), copy.copy(tree)), copy.deepcopy((graph, tree)), pickle.loads(pickle.dumps((graph, tree)))]:
        assert kept.labels == graph.labels and kept.bfs("b").path("e") == found.path("e") == ["b", "a", "c", "e"]
        with pytest.raises(KeyError, match="'x' is not a vertex"):
            found.path("x")
    few = pickle.loads(pickle.dumps(socbfs.Graph.from_pandas({"source": [10**12], "target": [5]})))
    assert few.labels == [10**12, 5] and few.bfs(5).path(10**12) == [5, 10**12]


@pytest.mark.parametrize("directed", [False, True])
def test_random_graphs_equal_networkx(directed):
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(7)
    unreached = 0
    for turn in range(150):
        names = [f"{n}{'*' * int(rng.integers(4))}" for n in rng.permutation(int(rng.integers(1, 30)))]
        ends = rng.choice(names, (int(rng.integers(1, 40)), 2))
        known = networkx.DiGraph() if directed else networkx.Graph()
        known.add_edges_from(ends.tolist())
        forms = [ends, ends.tolist(), (ends[:, 0], ends[:, 1]), None]
        if forms[turn % 4] is None:
            graph = socbfs.Graph.from_networkx(known, threads=1)
        else:
            graph = socbfs.Graph.from_edges(forms[turn % 4], directed=directed, threads=1)
        # NetworkX numbers its nodes in the same order.
        assert graph.labels == list(known)
        root = names[0] if names[0] in known else str(ends[0, 0])
        far = networkx.single_source_shortest_path_length(known, root)
        tree, many = graph.bfs(root, levels=True), graph.bfs_many([root])
        for at, label in enumerate(graph.labels):
            assert tree.levels[at] == many.levels[0, at] == far.get(label, -1)
            path = tree.path(label)
            unreached += not path
            assert len(path) == far.get(label, -1) + 1 and (not path or (path[0], path[-1]) == (root, label))
            assert all(known.has_edge(*step) for step in zip(path, path[1:]))
            assert set(graph.neighbors(label)) == set(known[label]) - {label}
    assert unreached > 100


@pytest.mark.parametrize("directed", [False, True])
def test_degrees_neighbours_and_matrices_equal_scipy(directed):
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(3)
    # The last one is large enough for vertices to be renumbered.
    for vertices, entries in ((0, 0), (1, 0), (1, 1), (9, 12), (40, 300), (30_000, 200_000)):
        # Repeats, self-loops, and vertices without an edge.
        edges = rng.integers(0, max(1, vertices), (entries, 2)) ** 2 // max(1, vertices)
        graph = socbfs.Graph.from_edges(edges, vertices, directed)
        wanted = sparse.coo_matrix((np.ones(entries, np.int64), edges.T), (vertices, vertices)).tocsr()
        wanted = wanted if directed else wanted + wanted.T
        wanted.setdiag(0)
        wanted.eliminate_zeros()
        assert len(graph) == vertices
        for v in range(min(vertices, 50)):
            assert graph.degree(v) == wanted[v].sum() and graph.neighbors(v) == sorted(wanted[v].indices.tolist())
        matrix = graph.to_scipy()
        assert isinstance(matrix, sparse.csr_matrix) and matrix.dtype == bool and matrix.data.all() and matrix.has_sorted_indices
        wanted.sort_indices()
        for name in ("indptr", "indices"):
            np.testing.assert_array_equal(getattr(matrix, name), getattr(wanted, name))
        again = socbfs.Graph.from_scipy(matrix, directed)
        assert (again.vertices, again.edges) == (vertices, matrix.nnz if directed else matrix.nnz // 2)
        assert (again.to_scipy() != matrix).nnz == 0
        for root in range(0, vertices, max(1, vertices // 5)):
            np.testing.assert_array_equal(again.bfs(root, levels=True).levels, graph.bfs(root, levels=True).levels)
        # What a caller writes into a matrix, or a list of neighbours, is its own.
        matrix.indices[:] = 0
        assert vertices == 0 or graph.neighbors(vertices - 1) == sorted(wanted[vertices - 1].indices.tolist())
    assert entries and graph.to_scipy().nnz == wanted.nnz


def test_vertices_of_named_graphs():
    graph = socbfs.Graph.from_edges([*PAIRS, ("a", "b")])
    assert [graph.degree(label) for label in "abcde"] == [3, 2, 2, 0, 1]
    assert graph.neighbors("a") == ["b", "c"] and graph.neighbors("d") == []
    graph = socbfs.Graph.from_edges([*PAIRS, ("a", "b")], directed=True)
    assert [graph.degree(label) for label in "abcde"] == [2, 1, 1, 0, 0] and graph.neighbors("e") == []


def test_the_module_shows_what_is_its_own():
    assert sorted(dir(socbfs)) == sorted(socbfs.__all__)
    # Neither SciPy nor a package of tables is loaded.
    code = "import socbfs, sys; assert not {'scipy', 'pandas', 'polars', 'pyarrow', 'networkx'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
