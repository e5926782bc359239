"""Searches over grids: against a queue and SciPy, and what callers may do wrong."""

import array
import collections
import math
import signal
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest
from scipy import ndimage

import socbfs

signal.signal(signal.SIGINT, signal.default_int_handler)
TURN = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))


def queue_distances(free, sources, connectivity, cut_corners):
    found = np.full(free.shape, -1)
    waiting = collections.deque()
    for source in sources:
        found[source] = 0
        waiting.append(source)

    def is_free(row, column):
        return 0 <= row < free.shape[0] and 0 <= column < free.shape[1] and free[row, column]

    while waiting:
        row, column = waiting.popleft()
        for direction in range(0, 8, 2 if connectivity == 4 else 1):
            down, right = TURN[direction]
            if direction % 2 and not cut_corners and not (is_free(row + down, column) and is_free(row, column + right)):
                continue
            if is_free(row + down, column + right) and found[row + down, column + right] < 0:
                found[row + down, column + right] = found[row, column] + 1
                waiting.append((row + down, column + right))
    return found


@pytest.mark.parametrize("connectivity, cut_corners", [(4, True), (8, True), (8, False)])
@pytest.mark.parametrize("shape", [(1, 1), (1, 70), (33, 1), (40, 63), (17, 64), (50, 65)])
def test_arrays_are_those_of_a_queue(shape, connectivity, cut_corners):
    rng = np.random.default_rng(shape[0] * shape[1])
    for free in (np.ones(shape, bool), rng.random(shape) > 0.1, rng.random(shape) > 0.4):
        cells = np.argwhere(free)
        if not len(cells):
            continue
        sources = [tuple(cells[at]) for at in rng.integers(0, len(cells), 3)]
        tree = socbfs.Grid(free, connectivity=connectivity, cut_corners=cut_corners, threads=2).bfs(sources, steps=True, nearest=True)
        wanted = queue_distances(free, sources, connectivity, cut_corners)
        assert (tree.levels.dtype, tree.steps.dtype, tree.sources.dtype) == (np.uint16, np.uint8, np.uint32)
        np.testing.assert_array_equal(np.where(tree.levels == 65535, -1, tree.levels.astype(int)), wanted)
        assert (tree.reached, tree.depth, tree.end) == ((wanted >= 0).sum(), wanted.max() + 1, "complete")
        for cell in map(tuple, cells[:: max(1, len(cells) // 40)]):
            path = tree.path(cell)
            if wanted[cell] < 0:
                assert path == [] and tree.steps[cell] == 255 and tree.sources[cell] == 2**32 - 1
                continue
            assert len(path) == wanted[cell] + 1 and path[0] == cell and wanted[path[-1]] == 0
            assert np.unravel_index(int(tree.sources[cell]), shape) == path[-1]
            for at, after in zip(path, path[1:]):
                assert TURN[tree.steps[at]] == (after[0] - at[0], after[1] - at[1])


def test_changes_are_those_of_numpy():
    rng = np.random.default_rng(4)
    free = np.ones((37, 90), bool)
    grid = socbfs.Grid(free)
    for change in range(30):
        rows, columns = sorted(rng.integers(0, 38, 2)), sorted(rng.integers(0, 91, 2))
        value = bool(change % 3)
        free[slice(*rows), slice(*columns)] = value
        grid[slice(*rows), slice(*columns)] = value
        free[-1, 3], free[5, :] = value, True
        grid[-1, 3], grid[5, :] = value, np.True_
        np.testing.assert_array_equal(grid.free, free)
        wanted = queue_distances(free, [(5, 5)], 4, True)
        np.testing.assert_array_equal(grid.bfs((5, 5)).levels, np.where(wanted < 0, 65535, wanted))
    # The components of SciPy are what a search reaches.
    free = rng.random((37, 90)) > 0.45
    grid.assign(free.astype(np.int32))
    labels, _ = ndimage.label(free)
    cell = tuple(np.argwhere(free)[0])
    np.testing.assert_array_equal(grid.bfs(cell).levels < 65535, labels == labels[cell])


def test_a_long_path_has_distances_of_32_bits():
    free = np.ones((300, 500), bool)
    free[1::2] = False
    free[1::4, -1] = free[3::4, 0] = True
    tree = socbfs.Grid(free).bfs((0, 0), steps=True)
    assert tree.levels.dtype == np.uint32 and tree.depth > 65536 and tree.levels[1, 0] == 2**32 - 1
    assert len(tree.path((298, 499))) == tree.levels[298, 499] + 1


def test_sources_may_lie_anywhere_in_memory():
    rows = np.zeros(3, dtype=[("before", "u1"), ("cell", "<i8", (2,))])
    rows["cell"] = [(0, 3), (7, 1), (2, 2)]
    tree = socbfs.Grid(np.ones((9, 9), bool)).bfs(rows["cell"])
    assert sorted(map(tuple, np.argwhere(tree.levels == 0))) == [(0, 3), (2, 2), (7, 1)]


def test_searches_end_early():
    grid = socbfs.Grid(np.ones((60, 60), np.uint8))
    tree = grid.bfs(np.array([[0, 0]]), target=(3, 4))
    assert (tree.end, tree.depth, tree.levels[3, 4], tree.levels[5, 5], len(tree.path((3, 4)))) == ("target", 8, 7, 65535, 8)
    assert grid.bfs([(0, 0), (59, 59)], depth=2).reached == 12
    with pytest.raises(TimeoutError):
        grid.bfs((0, 0), timeout=0)
    large = socbfs.Grid(np.ones((3000, 3000), bool))
    begin = time.monotonic()
    threading.Timer(0.01, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        while time.monotonic() < begin + 60:
            large.bfs((0, 0))
    assert time.monotonic() < begin + 5


def test_threads_share_a_grid():
    grid = socbfs.Grid(np.ones((200, 300), bool), connectivity=8)
    wrong = []

    def search(column):
        for _ in range(20):
            if grid.bfs((0, column)).depth != max(200, max(column, 299 - column) + 1):
                wrong.append(column)

    threads = [threading.Thread(target=search, args=(column,)) for column in (0, 150, 299)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


@pytest.mark.parametrize(
    "call, problem, text",
    [
        (lambda grid: socbfs.Grid(np.ones(5, bool)), ValueError, "two-dimensional"),
        (lambda grid: socbfs.Grid(np.ones((2, 2))), TypeError, "booleans or integers"),
        (lambda grid: socbfs.Grid(np.ones((0, 4), bool)), ValueError, "at least one cell"),
        (lambda grid: socbfs.Grid(np.ones((2, 2), bool), connectivity=6), ValueError, "4 or 8"),
        (lambda grid: socbfs.Grid(np.ma.masked_equal([[0, 1]], 0)), ValueError, "masked"),
        (lambda grid: grid.assign(np.ones((4, 4), bool)), ValueError, "shape"),
        (lambda grid: grid.assign([[0, 0, 0], [0, 0], [0, 0, 0]]), (ValueError, TypeError), "inhomogeneous|not object"),
        (lambda grid: grid.bfs(np.ma.masked_equal([[0, 0], [2, 2]], 2)), ValueError, r"compress_rows\(sources\)"),
        (lambda grid: grid.bfs(5), ValueError, "shape"),
        (lambda grid: grid.bfs({(0, 0)}), TypeError, "integers"),
        (lambda grid: grid.bfs([]), ValueError, "at least one source"),
        (lambda grid: grid.bfs((0, 5)), IndexError, "outside"),
        (lambda grid: grid.bfs([(0, 0), (-1, 0)]), IndexError, r"\(-1, 0\) lies outside"),
        (lambda grid: socbfs.Grid(np.ones((2, 2), bool), threads=5000), ValueError, "4096"),
        (lambda grid: grid.bfs((1, 1)), ValueError, "blocked"),
        (lambda grid: grid.bfs((0.5, 1.0)), TypeError, "integers"),
        (lambda grid: grid.bfs([1, 2, 3]), ValueError, "shape"),
        (lambda grid: grid.bfs((0, 0), target=(9, 9)), IndexError, "outside"),
        (lambda grid: grid.cell(0, 0), ValueError, "Grid.from_ros"),
        (lambda grid: grid.point((0, 0)), ValueError, "Grid.from_ros"),
        (lambda grid: grid.inflate(-0.1), ValueError, "-0.1 is not a number from 0"),
        (lambda grid: grid.inflate(math.nan), ValueError, "nan is not a number from 0"),
        (lambda grid: socbfs.Grid.from_ros(ros_message(np.zeros((2, 2), int), resolution=0.0)), ValueError, "side of a cell"),
        (lambda grid: grid.bfs((0, 0), depth=-1), ValueError, "depth"),
        (lambda grid: grid.bfs((0, 0), timeout=-1), ValueError, "timeout"),
        (lambda grid: grid.__setitem__(3, True), TypeError, "row and column"),
        (lambda grid: grid.__setitem__((0, 7), True), IndexError, "outside"),
        (lambda grid: grid.__setitem__((slice(0, 3, 2), 1), True), ValueError, "step"),
        (lambda grid: grid.bfs((0, 0)).path((3, 0)), IndexError, "outside"),
    ],
)
def test_wrong_calls(call, problem, text):
    grid = socbfs.Grid([[True, True, True], [True, False, True], [True, True, True]])
    with pytest.raises(problem, match=text):
        call(grid)
    assert grid.bfs((0, 0)).reached == 8


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.uint64])
def test_cells_that_do_not_say_which_are_free_are_refused(dtype):
    grid = socbfs.Grid(np.ones((2, 3), dtype))
    assert grid.free.all()
    # 0 free, 100 occupied, -1 (or 255) unknown, as in ROS.
    unknown = 255 if np.dtype(dtype).kind == "u" else -1
    for strange in (unknown, 100, 2):
        cells = np.zeros((2, 3), dtype)
        cells[1, 2] = strange
        for given in (cells, cells.tolist(), np.asfortranarray(cells), np.ma.masked_array(cells)):
            for call in (socbfs.Grid, grid.assign):
                with pytest.raises(ValueError, match=rf"a cell is {strange}, neither 1 \(free\) nor 0 \(blocked\): use .*\(cells >= 0\) & \(cells < 20\)"):
                    call(given)
    # Bytes that NumPy takes for true.
    with pytest.raises(ValueError, match=r"cell \(1, 2\) .*is 2"):
        grid.assign(np.array([[1, 1, 1], [1, 1, 2]], np.uint8).view(bool))
    with pytest.raises(TypeError, match="cells < 20"):
        grid.assign(np.zeros((2, 3)))
    assert grid.free.all() and grid.bfs((0, 0)).reached == 6


def test_arrays_that_were_not_requested_say_so():
    tree = socbfs.Grid(np.ones((2, 3), bool)).bfs((0, 0))
    for name, request in (("steps", "steps=True"), ("sources", "nearest=True")):
        with pytest.raises(AttributeError, match=f"not asked for {name}.*{request}"):
            getattr(tree, name)
    assert repr(tree).startswith("GridTree(levels=array(") and "steps" not in repr(tree)


def test_a_search_sees_the_cells_as_they_are_when_it_begins():
    grid = socbfs.Grid(np.ones((2000, 2000), bool))
    trees = []
    thread = threading.Thread(target=lambda: trees.append(grid.bfs((0, 0))))
    thread.start()
    while thread.is_alive():
        grid[:, 1] = False
        grid[:, 1] = True
    thread.join()
    assert trees[0].reached in (2000, 4_000_000) and grid.bfs((0, 0)).reached == 4_000_000


def test_a_process_that_is_forked_beside_other_threads_searches_on():
    program = """
import os, sys, threading, time, numpy, socbfs
grid = socbfs.Grid(numpy.ones((300, 300), bool))
small = socbfs.Grid(numpy.ones((3, 3), bool))
graph = socbfs.Graph.from_edges([[0, 1], [1, 2]], threads=2)
graphs = [socbfs.Graph.from_edges([[0, 1], [1, 2]]) for _ in range(2)]
calls = [
    lambda: grid.bfs((0, 0)).reached == 90_000, lambda: small.bfs((0, 0)).reached == 9, lambda: graph.bfs(0).depth == 3,
    lambda: graph.bfs_many([0, 1]).levels.shape == (2, 3), lambda: graph.connected_components()[0] == 1,
]
stop = False
def work(call):
    while not stop:
        assert call()
def change():
    while not stop:
        grid[:, :] = True
threads = [threading.Thread(target=work, args=(call,)) for call in calls] + [threading.Thread(target=change)]
[thread.start() for thread in threads]
hangs = 0
for _ in range(60):
    time.sleep(.002)
    child = os.fork()
    if child == 0:
        try:
            well = all([call() for call in calls[1:]])
            try:
                well &= calls[0]()
            except RuntimeError as error:
                well &= "make a new Grid in the child" in str(error)
        finally:
            os._exit(0 if well else 1)
    end = time.time() + 60
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.time() < end:
        time.sleep(.001)
    if not ended[0]:
        os.kill(child, 9)
        os.waitpid(child, 0)
        hangs += 1
        break
    assert ended[1] == 0, ended
stop = True
[thread.join() for thread in threads]
sys.exit(hangs)
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=300, capture_output=True, text=True)
    assert done.returncode == 0, done


def ros_message(cells, resolution=0.5, corner=(-1.0, 2.0), yaw=0.0):
    """A nav_msgs/OccupancyGrid."""
    origin = types.SimpleNamespace(
        position=types.SimpleNamespace(x=corner[0], y=corner[1], z=0.0),
        orientation=types.SimpleNamespace(x=0.0, y=0.0, z=math.sin(yaw / 2), w=math.cos(yaw / 2)),
    )
    info = types.SimpleNamespace(resolution=resolution, width=cells.shape[1], height=cells.shape[0], origin=origin)
    return types.SimpleNamespace(info=info, data=array.array("b", cells.ravel().tolist()))


def test_messages_of_ros_are_searched_in_metres():
    cells = np.array([[0, 100, 0, 19], [0, 0, 0, 20], [0, 0, -1, 0]])
    grid = socbfs.Grid.from_ros(ros_message(cells))
    np.testing.assert_array_equal(grid.free, (cells >= 0) & (cells < 20))
    np.testing.assert_array_equal(socbfs.Grid.from_ros(ros_message(cells), unknown=True, occupied=50).free, cells < 50)
    # Row 0 is the lowest.
    assert grid.cell(-0.9, 2.1) == (0, 0) and grid.cell(0.9, 3.4) == (2, 3) and grid.point((2, 3)) == (0.75, 3.25)
    tree = grid.bfs(grid.cell(-0.9, 2.1), target=grid.cell(0.3, 2.4))
    assert tree.levels[0, 2] == 4 and [grid.point(cell) for cell in tree.path((0, 2))][-1] == (-0.75, 2.25)
    for point in [(-1.1, 2.1), (math.nan, 2.1), (1e300, 2.1)]:
        with pytest.raises(IndexError, match="outside"):
            grid.cell(*point)
    # Turned by a quarter about its corner, the first row leads upwards.
    turned = socbfs.Grid.from_ros(ros_message(cells, corner=(10, 0), yaw=math.pi / 2))
    assert turned.cell(9.9, 1.1) == (0, 2) and turned.point((0, 2)) == pytest.approx((9.75, 1.25))
    for cell in np.ndindex(cells.shape):
        assert turned.cell(*turned.point(cell)) == cell
    # Its corner belongs to the first cell, whatever is rounded.
    assert turned.cell(10, 0) == (0, 0) and turned.cell(9.5, 0) == (1, 0)


def test_inflated_grids_keep_their_distance():
    rng = np.random.default_rng(3)
    for rows, columns, radius in [(1, 1, 0), (9, 80, 1), (40, 33, 2), (25, 25, 7)]:
        free = rng.random((rows, columns)) > 0.02
        wanted = ~ndimage.binary_dilation(~free, np.ones((3, 3)), iterations=radius) if radius else free
        inflated = socbfs.Grid(free, connectivity=8, cut_corners=False).inflate(radius)
        np.testing.assert_array_equal(inflated.free, wanted)
        assert "8, around corners" in inflated._repr_html_()
    assert socbfs.Grid(np.ones((3, 4), bool)).inflate(9).free.all()
    free = np.ones((20, 20), np.int8)
    free[10, 10] = 0
    grid = socbfs.Grid.from_ros(ros_message(100 - 100 * free, resolution=0.1)).inflate(0.25)
    # As a message has it, in 32 bits: five cells of 0.04 m are 0.2 m.
    fine = socbfs.Grid.from_ros(ros_message(100 - 100 * free, resolution=float(np.float32(0.04)))).inflate(0.2)
    assert fine.free.sum() == 400 - 121
    assert not grid.free[7:14, 7:14].any() and grid.free.sum() == 400 - 49 and grid.point((0, 0)) == pytest.approx((-0.95, 2.05))


def test_grids_are_shown():
    free = np.ones((6, 8), bool)
    free[1:, 4] = False
    grid = socbfs.Grid(free)
    tree = grid.bfs((5, 0))
    assert "<caption>socbfs.Grid</caption>" in grid._repr_html_() and "6 x 8" in grid._repr_html_() and "43" in grid._repr_html_()
    assert "<caption>socbfs.GridTree</caption>" in tree._repr_html_() and "complete" in tree._repr_html_()
    pytest.importorskip("matplotlib").use("Agg")
    axes = tree.plot(cell=(5, 7))
    drawn = axes.images[0].get_array()
    assert drawn.mask.sum() == 5 and drawn[5, 0] == 0 and len(axes.lines[0].get_xdata()) == len(tree.path((5, 7)))
    assert grid.plot(axes) is axes and (axes.images[-1].get_array() == free).all()


@pytest.mark.parametrize("yaw", [0.0, math.pi / 2, 0.4])
def test_a_map_of_ros_is_drawn_as_the_robot_sees_it(yaw):
    pytest.importorskip("matplotlib").use("Agg")
    cells = np.array([[0, 100, 0, 0], [0, 0, 0, 100], [100, 0, 0, 0]])
    grid = socbfs.Grid.from_ros(ros_message(cells, yaw=yaw))
    axes = grid.plot()
    axes.figure.canvas.draw()
    shot = np.asarray(axes.figure.canvas.buffer_rgba())
    for cell in np.ndindex(cells.shape):
        x, y = axes.transData.transform(grid.point(cell)).round().astype(int)
        assert (shot[-1 - y, x, :3] == (0 if cells[cell] else 255)).all(), cell
    assert axes.get_ylim()[0] < axes.get_ylim()[1] and axes.get_xlabel() == "x in metres" and axes.get_aspect() == 1
    if yaw == 0:
        assert (axes.get_xlim(), axes.get_ylim()) == ((-1, 1), (2, 3.5))
    # The distances lie where the cells do, and so does the path.
    tree = grid.bfs((0, 0))
    both = tree.plot(axes, cell=(2, 3))
    points = np.array([grid.point(cell) for cell in tree.path((2, 3))])
    assert np.allclose(both.lines[0].get_xydata(), points) and np.allclose(*(image.get_transform().get_matrix() for image in both.images))
    assert np.allclose(grid.inflate(0).bfs((0, 0)).plot().images[0].get_extent(), both.images[0].get_extent())
