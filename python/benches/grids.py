"""Distances over grids: socbfs.Grid beside what else answers the question, in one process, in turn.

python grids.py > grids.csv          grid,what,round,ms: one row for each call; medians and ratios go to standard error

- queue: a queue over bytes in C++ (-O3), the usual code, compiled here
- csr: socbfs.Graph of the same cells, a graph that was built before (its building is a row of its own)
- scikit-image: graph.MCP, which finds least costs, with costs of 1
- scipy, opencv: transforms of distance, which know no walls: on open grids only, where the answer is the same
- networkx: on the small grid

Results are compared with the queue's, outside the time. Whatever is not installed is left out.
"""

import csv
import ctypes
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import socbfs

QUEUE = r"""
#include <cstdint>
#include <vector>
extern "C" void distances(const uint8_t *free, int rows, int columns, int from, uint16_t *found, uint32_t *queue) {
    const int ways[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    for (long i = 0; i < (long)rows * columns; i++) found[i] = 65535;
    long head = 0, tail = 0;
    found[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        const int cell = queue[head++], row = cell / columns, column = cell % columns;
        for (const auto &way : ways) {
            const int r = row + way[0], c = column + way[1];
            if (r < 0 || r >= rows || c < 0 || c >= columns) continue;
            const int next = r * columns + c;
            if (free[next] && found[next] == 65535) found[next] = found[cell] + 1, queue[tail++] = next;
        }
    }
}
"""


def compiled():
    """The queue, as a function of free cells and a source."""
    place = pathlib.Path(tempfile.mkdtemp())
    (place / "queue.cpp").write_text(QUEUE)
    subprocess.run(["g++", "-O3", "-march=native", "-shared", "-fPIC", "queue.cpp", "-o", "queue.so"], cwd=place, check=True)
    call = ctypes.CDLL(place / "queue.so").distances
    pointer = lambda array: array.ctypes.data_as(ctypes.c_void_p)

    def run(free, source, found, queue):
        call(pointer(free), *free.shape, source[0] * free.shape[1] + source[1], pointer(found), pointer(queue))
        return found

    return run


def graph(free):
    """The grid as a graph: a vertex for each cell."""
    number = np.arange(free.size, dtype=np.uint32).reshape(free.shape)
    right = free[:, :-1] & free[:, 1:]
    down = free[:-1] & free[1:]
    pairs = [np.stack([number[:, :-1][right], number[:, 1:][right]], 1), np.stack([number[:-1][down], number[1:][down]], 1)]
    return socbfs.Graph.from_edges(np.concatenate(pairs), free.size, threads=1)


def contenders(free, source):
    found, room = np.empty(free.shape, np.uint16), np.empty(free.size, np.uint32)
    queue, bytes_ = compiled(), free.view(np.uint8)
    yield "queue", lambda: queue(bytes_, source, found, room)
    for threads in (1, 2):
        grid = socbfs.Grid(free, threads=threads)
        yield f"grid, {threads} thread{'' if threads == 1 else 's'}", lambda grid=grid: grid.bfs(source).levels
    yield "grid, with its making", lambda: socbfs.Grid(free, threads=1).bfs(source).levels
    if free.size <= 1500 * 1500:
        made = graph(free)
        yield "csr", lambda: made.bfs(source[0] * free.shape[1] + source[1], parents=False, levels=True).levels.reshape(free.shape)
        yield "csr, with its making", lambda: graph(free).bfs(source[0] * free.shape[1] + source[1], parents=False, levels=True).levels.reshape(free.shape)
        try:
            from skimage.graph import MCP

            costs = np.where(free, 1.0, -1.0)
            yield "scikit-image", lambda: MCP(costs, fully_connected=False).find_costs([source])[0] - 1
        except ImportError:
            pass
    if free.all():
        is_source = np.ones(free.shape, np.uint8)
        is_source[source] = 0
        try:
            from scipy import ndimage

            yield "scipy", lambda: ndimage.distance_transform_cdt(is_source, metric="taxicab")
        except ImportError:
            pass
        try:
            import cv2

            cv2.setNumThreads(1)
            yield "opencv", lambda: cv2.distanceTransform(is_source, cv2.DIST_L1, 3)
        except ImportError:
            pass
    if free.size < 50_000:
        try:
            import networkx

            net = networkx.grid_2d_graph(*free.shape)
            net.remove_nodes_from(map(tuple, np.argwhere(~free).tolist()))

            def run():
                lengths = networkx.single_source_shortest_path_length(net, source)
                levels = np.full(free.shape, 65535)
                levels[tuple(np.array(list(lengths)).T)] = list(lengths.values())
                return levels

            yield "networkx", run
        except ImportError:
            pass


def main():
    rng = np.random.default_rng(1)
    rows = csv.writer(sys.stdout)
    rows.writerow(["grid", "what", "round", "ms"])
    for side, blocked, source in [(190, 0.05, (0, 0)), (1500, 0.05, (0, 0)), (1500, 0.3, (750, 750)), (4096, 0.0, (0, 0)), (4096, 0.0, (2048, 2048))]:
        free = rng.random((side, side)) >= blocked
        free[source] = True
        name = f"{side} x {side}, {100 * blocked:.0f} % blocked, from {source[0]},{source[1]}"
        runs, times = list(contenders(free, source)), {}
        wanted = runs[0][1]().astype(np.int64)
        for what, run in runs:
            levels = np.asarray(run(), np.float64)
            levels[~np.isfinite(levels) | (levels < 0)] = 65535
            assert np.array_equal(levels.astype(np.int64), wanted), (name, what)
        for turn in range(7 if side > 1000 else 101):
            for what, run in runs:
                if ("making" in what or what in ("scikit-image", "networkx")) and turn >= 5:
                    continue
                begin = time.perf_counter()
                run()
                times.setdefault(what, []).append(1e3 * (time.perf_counter() - begin))
                rows.writerow([name, what, turn, f"{times[what][-1]:.4f}"])
        best = statistics.median(times["grid, 1 thread"])
        for what, all_times in times.items():
            median = statistics.median(all_times)
            print(f"{name}: {what:22} {median:10.3f} ms, {median / best:8.2f}", file=sys.stderr)


main()
