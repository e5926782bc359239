"""A robot's loop: the map changes in every tick, and the robot replans its way to the nearest of its docks.

python robot.py [TICKS_PER_SECOND]          without a number, as fast as it goes
"""

import statistics
import sys
import time

import numpy as np

import socbfs

DOCKS = [(5, 5), (180, 20)]
#: The way (rows, columns) of each step, clockwise from up.
WAY = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (0, 0))


def sensors():
    try:
        return socbfs.Energy()
    except OSError as problem:
        print(f"no energy: {problem}")
        return None


def main(ticks_per_second=None):
    rng = np.random.default_rng(7)
    free = rng.random((190, 190)) > 0.1
    robot = (100, 150)
    for cell in [robot, *DOCKS]:
        free[cell] = True
    # The robot does not squeeze between two blocked cells that touch at a corner.
    grid = socbfs.Grid(free, connectivity=8, cut_corners=False, threads=1)
    energy, replans = sensors(), []
    if energy:
        energy.__enter__()
    for tick in range(100):
        begin = time.perf_counter()
        # What the robot's eyes see: something moves through the map, but not over the robot or a dock.
        row = 20 + tick
        grid[row, 60:120] = tick % 3 == 0
        grid[robot], grid[DOCKS[0]], grid[DOCKS[1]] = True, True, True
        tree = grid.bfs(DOCKS, steps=True)
        step = int(tree.steps[robot])
        replans.append(time.perf_counter() - begin)
        if step == 255:
            print(f"tick {tick}: no dock can be reached from {robot}")
        elif step == 8:
            print(f"tick {tick}: docked at {robot}")
            break
        else:
            robot = (robot[0] + WAY[step][0], robot[1] + WAY[step][1])
        if ticks_per_second:
            time.sleep(max(0, begin + 1 / ticks_per_second - time.perf_counter()))
    print(f"{len(replans)} ticks, robot at {robot}; a replan of {tree.reached} cells takes {1e6 * statistics.median(replans):.0f} us")
    if energy:
        energy.__exit__()
        if energy.joules is None:
            print(f"no energy: {energy.problem}")
        else:
            print(f"{energy.joules / len(replans):.2e} J a tick at {energy.joules / energy.seconds:.2f} W")


main(*map(float, sys.argv[1:]))
