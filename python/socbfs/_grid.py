"""Searches over grids of free and blocked cells."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Tuple, Union

import numpy as np

from ._arguments import _PART, _clock, _parts, _Requested, _table, _waiting, _without_mask
from ._socbfs import GridCore as _GridCore

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

_Range = Union[int, slice]
#: Metres of a cell, the corner of cell (0, 0) in metres, and the angle of the rows. None: the grid does not lie anywhere.
_Frame = Tuple[float, float, float, float]
#: The direction (rows, columns) of each step.
_TURN = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))

_CURE = "use what is true where a cell is free, such as (cells >= 0) & (cells < 20) of an occupancy grid of ROS (0 free, 100 occupied, -1 unknown)"


@dataclass(frozen=True, eq=False, repr=False)
class GridTree(_Requested):
    """What one search over a grid found. Arrays have the shape of the grid; AttributeError for one that was not requested."""

    _requests = {"steps": "steps=True", "sources": "nearest=True"}

    #: The distance of each cell from the nearest source, in steps: uint16, or uint32 if one does not fit, and in most later searches of that
    #: grid; the type's largest number for a cell that was not reached.
    levels: np.ndarray
    #: The direction of the next step from each cell to the nearest source (uint8): 0 up, 1 up and right, and so on clockwise to 7; 8 at a
    #: source, 255 where not reached. Requested by `steps=True`.
    steps: np.ndarray
    #: The nearest source of each cell, one of the nearest (uint32): row * columns + column, as `numpy.unravel_index` takes it; 2**32 - 1
    #: where not reached. Requested by `nearest=True`.
    sources: np.ndarray
    #: Number of cells reached, the sources included.
    reached: int
    #: Number of levels, the largest distance plus 1; sources alone are one level.
    depth: int
    #: Time of the search in seconds, until the distances are complete; without the time of the other arrays, and of copies.
    seconds: float
    #: Why the search ended: "complete", "depth" or "target".
    end: str
    _diagonal: Tuple[bool, bool] = field(default=(False, False), repr=False)
    _frame: Optional[_Frame] = field(default=None, repr=False)

    def path(self, cell: Tuple[int, int]) -> List[Tuple[int, int]]:
        """The cells from `cell` (row, column) to the nearest source, both included; empty if it was not reached."""
        at = _cell(cell, self.levels.shape)
        missing = np.iinfo(self.levels.dtype).max
        level = self.levels.item(*at)
        if level == missing:
            return []
        rows, columns = self.levels.shape
        diagonal, cuts = self._diagonal
        straight_first = (2, 6, 0, 4, 1, 3, 5, 7) if diagonal else (2, 6, 0, 4)
        look = self.levels.item

        def reached(direction: int) -> Optional[int]:
            row, column = at[0] + _TURN[direction % 8][0], at[1] + _TURN[direction % 8][1]
            return look(row, column) if 0 <= row < rows and 0 <= column < columns else missing

        path = [at]
        while level > 0:
            for direction in straight_first:
                if reached(direction) != level - 1:
                    continue
                if direction % 2 == 0 or cuts or (reached(direction - 1) != missing and reached(direction + 1) != missing):
                    break
            else:
                raise ValueError("the distances do not lead to a source: they were changed")
            at, level = (at[0] + _TURN[direction][0], at[1] + _TURN[direction][1]), level - 1
            path.append(at)
        return path

    def plot(self, ax: Optional["Axes"] = None, *, cell: Optional[Tuple[int, int]] = None) -> "Axes":
        """Draws the distances with matplotlib, as `Grid.plot` draws the cells, and the path from `cell` to its nearest source.

        Returns the axes: `ax`, or those of a new figure. ImportError without matplotlib.
        """
        far = np.iinfo(self.levels.dtype).max
        ax = _drawn(np.ma.masked_equal(self.levels, far), f"{self.reached:,} cells, {self.depth:,} levels", ax, self._frame)
        if cell is not None:
            rows, columns = np.array(self.path(cell)).reshape(-1, 2).T
            x, y = (columns, rows) if self._frame is None else _metres(self._frame, rows + 0.5, columns + 0.5)
            ax.plot(x, y, color="#e1232d")
        return ax

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return _table("socbfs.GridTree", {
            "cells": " x ".join(map(str, self.levels.shape)), "reached": f"{self.reached:,}", "levels": f"{self.depth:,}", "end": self.end,
            "time": f"{1e3 * self.seconds:.3g} ms",
        })


class Grid:
    """A grid of free and blocked cells, and searches over it without a graph.

    `free`: a two-dimensional array, True (or 1) where a cell is free, and False (or 0) where it is blocked; it is copied into bits. What has
    other values is converted first: `(cells >= 0) & (cells < 20)` of an occupancy grid of ROS. `connectivity`: 4, or 8 for diagonal steps
    too; with `cut_corners=False` these need both cells beside them to be free. `threads`: 0 for one on each CPU. Cells can be changed between
    two searches, by indices or ranges of rows and columns, or all at once (`assign`). Threads may share a grid: a search sees the cells as they are when it begins.

    >>> import numpy, socbfs
    >>> free = numpy.ones((5, 7), bool)
    >>> free[1:, 3] = False
    >>> grid = socbfs.Grid(free)
    >>> tree = grid.bfs((4, 0))
    >>> int(tree.levels[4, 6])
    14
    >>> grid[3, 3] = True
    >>> len(grid.bfs((4, 0)).path((4, 6)))
    9
    """

    __slots__ = ("_core", "_diagonal", "_threads", "_frame")

    _frame: Optional[_Frame]

    def __init__(self, free: "ArrayLike", *, connectivity: int = 4, cut_corners: bool = True, threads: int = 0, timeout: Optional[float] = None) -> None:
        if connectivity not in (4, 8):
            raise ValueError(f"connectivity must be 4 or 8, not {connectivity}")
        if not 0 <= threads <= 4096:
            raise ValueError(f"threads must be from 0 (one for every CPU) to 4096, not {threads}")
        self._diagonal, self._threads, self._frame = (connectivity == 8, cut_corners), threads, None
        left = _clock(timeout)
        self._core = _GridCore(_cells(free, left), connectivity, cut_corners, threads, left())

    @classmethod
    def from_ros(cls, message: object, *, occupied: int = 20, unknown: bool = False, connectivity: int = 4, cut_corners: bool = True, threads: int = 0, timeout: Optional[float] = None) -> "Grid":
        """From a `nav_msgs/OccupancyGrid`: `cell` and `point` lead from metres to cells and back.

        Free are the cells that are occupied by less than `occupied` per cent, and with `unknown=True` those of which nothing is known. Row 0 is
        the first of the message, which lies at the bottom of a map; in the image of a map row 0 is at the top.
        """
        info, left = message.info, _clock(timeout)  # type: ignore[attr-defined]
        if not 0 < info.resolution < math.inf:
            raise ValueError(f"the resolution of the message is {info.resolution}: it must be the side of a cell in metres")

        def cells() -> np.ndarray:
            data = np.asarray(message.data, np.int8).reshape(info.height, info.width)  # type: ignore[attr-defined]
            return (data >= 0) & (data < occupied) | (data < 0) & unknown

        grid = cls(_waiting(cells, left), connectivity=connectivity, cut_corners=cut_corners, threads=threads, timeout=left())
        corner, turn = info.origin.position, info.origin.orientation
        yaw = math.atan2(2 * (turn.w * turn.z + turn.x * turn.y), 1 - 2 * (turn.y**2 + turn.z**2))
        grid._frame = info.resolution, corner.x, corner.y, yaw
        return grid

    def _placed(self) -> _Frame:
        if self._frame is None:
            raise ValueError("the grid does not lie anywhere in metres: make it by Grid.from_ros")
        return self._frame

    def cell(self, x: float, y: float) -> Tuple[int, int]:
        """The cell (row, column) in which a point in metres lies. ValueError unless the grid was made by `from_ros`; IndexError outside."""
        size, left, low, yaw = self._placed()
        along = math.cos(yaw) * (x - left) + math.sin(yaw) * (y - low)
        across = math.cos(yaw) * (y - low) - math.sin(yaw) * (x - left)
        # A point that is on a border but for its rounding is on it.
        row, column = across / size + 1e-9, along / size + 1e-9
        if not (0 <= row < self.shape[0] and 0 <= column < self.shape[1]):
            raise IndexError(f"point ({x:g}, {y:g}) lies outside of the grid of {self.shape[0]} by {self.shape[1]} cells")
        return int(row), int(column)

    def point(self, cell: Tuple[int, int]) -> Tuple[float, float]:
        """The middle of a cell in metres, x and y. ValueError unless the grid was made by `from_ros`."""
        frame, (row, column) = self._placed(), _cell(cell, self.shape)
        return _metres(frame, row + 0.5, column + 0.5)

    def inflate(self, radius: float, *, timeout: Optional[float] = None) -> "Grid":
        """A copy in which cells are blocked, too, that are within `radius` of a blocked one: for a robot of this radius.

        It is in metres if the grid was made by `from_ros`, in cells otherwise. What is blocked is the square that contains the circle: the cells
        that a search with diagonal steps from all blocked cells reaches.
        """
        if not 0 <= radius < math.inf:
            raise ValueError(f"radius {radius} is not a number from 0")
        # A quotient that is a whole number but for its rounding (messages have 32 bits) is that number.
        steps = min(max(0, math.ceil(radius / (1 if self._frame is None else self._frame[0]) - 1e-6)), max(self.shape))
        left = _clock(timeout)
        free = _waiting(lambda: self.free, left)
        blocked = np.concatenate([np.argwhere(~free[part]) + (part.start, 0) for part in _parts(len(free), left, max(1, _PART // free.shape[1]))])
        if len(blocked):
            levels = Grid(np.ones(free.shape, bool), connectivity=8, threads=self._threads).bfs(blocked, depth=steps, timeout=left()).levels
            free = _waiting(lambda: levels == np.iinfo(levels.dtype).max, left)
        diagonal, cut_corners = self._diagonal
        grid = Grid(free, connectivity=8 if diagonal else 4, cut_corners=cut_corners, threads=self._threads, timeout=left())
        grid._frame = self._frame
        return grid

    def plot(self, ax: Optional["Axes"] = None) -> "Axes":
        """Draws the cells with matplotlib, blocked ones black, row 0 at the top. If the grid was made by `from_ros`, its map is drawn in metres, y
        upwards: row 0 is at the bottom.

        Returns the axes: `ax`, or those of a new figure. ImportError without matplotlib.
        """
        return _drawn(self.free, repr(self)[1:-1], ax, self._frame, "gray", 1)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        diagonal, cut_corners = self._diagonal
        return _table("socbfs.Grid", {
            "cells": " x ".join(map(str, self.shape)), "free": f"{np.count_nonzero(self.free):,}",
            "neighbours": ("8" if cut_corners else "8, around corners") if diagonal else "4",
            **({} if self._frame is None else {"cell": f"{self._frame[0]:g} m"}),
        })

    @property
    def shape(self) -> Tuple[int, int]:
        """Rows and columns."""
        return self._core.shape

    @property
    def free(self) -> np.ndarray:
        """A copy of the cells: True where free."""
        return self._core.free().view(bool)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<socbfs.Grid of {rows} by {columns} cells>"

    def __setitem__(self, cells: Tuple[_Range, _Range], free: bool) -> None:
        if not (isinstance(cells, tuple) and len(cells) == 2) or not isinstance(free, (bool, np.bool_)):
            raise TypeError("cells are set by row and column, numbers or ranges, to True (free) or False; use assign for a whole array")
        rows, columns = (_range(part, size) for part, size in zip(cells, self.shape))
        self._core.fill(rows, columns, bool(free))

    def assign(self, free: "ArrayLike") -> None:
        """Replaces all cells, by an array of the grid's shape."""
        self._core.assign(_cells(free, _clock(None)))

    def bfs(self, sources: "ArrayLike", *, steps: bool = False, nearest: bool = False, target: Optional[Tuple[int, int]] = None, depth: Optional[int] = None, timeout: Optional[float] = None) -> GridTree:
        """Searches from one cell (row, column) or from several: the distance of a cell is that from the nearest.

        `steps`, `nearest`: whether to return the next step of each cell, and its nearest source. `target`: the search ends with the level that
        reaches this cell. `depth`: the search ends at this distance. `timeout`: TimeoutError after this many seconds.

        IndexError for a cell outside of the grid, ValueError for a source or a target that is blocked.
        """
        if depth is not None and not 0 <= depth < 2**32:
            raise ValueError(f"depth must be from 0 to {2**32 - 1}, not {depth}")
        left = _clock(timeout)
        pairs = _sources(sources, self.shape, left)
        to = None if target is None else _cell(target, self.shape)
        short, long, ways, origins, (reached, levels, seconds, end) = self._core.bfs(pairs, steps, nearest, to, depth, left())
        return GridTree(short if long is None else long, ways, origins, reached, levels, seconds, end, self._diagonal, self._frame)


def _metres(frame: _Frame, row: Any, column: Any) -> Tuple[Any, Any]:
    """The point (x, y) that many rows and columns from the corner; numbers or arrays."""
    size, left, low, yaw = frame
    along, across = column * size, row * size
    return left + math.cos(yaw) * along - math.sin(yaw) * across, low + math.sin(yaw) * along + math.cos(yaw) * across


def _drawn(cells: np.ndarray, title: str, ax: Optional["Axes"], frame: Optional[_Frame], colours: str = "viridis_r", most: Optional[int] = None) -> "Axes":
    """The axes, with the cells drawn on them; those that are masked are grey. Unless `most` is given, a bar explains the colours."""
    try:
        import matplotlib
        from matplotlib import pyplot, transforms
    except ImportError as problem:
        raise ImportError("plot draws with matplotlib, which is not installed: pip install matplotlib") from problem
    if ax is None:
        ax = pyplot.figure(layout="constrained").add_subplot()
    image = ax.imshow(cells, cmap=matplotlib.colormaps[colours].with_extremes(bad="#969696"), vmin=0, vmax=most, interpolation="nearest")
    if frame is None:
        ax.set(xlabel="column", ylabel="row")
    else:
        # The image has cell (0, 0) from -0.5 to 0.5. Limits from low to high undo that imshow turns the y axis.
        size, left, low, yaw = frame
        image.set_transform(transforms.Affine2D().translate(0.5, 0.5).scale(size).rotate(yaw).translate(left, low) + ax.transData)
        x, y = _metres(frame, *np.array([(0, 0, 1, 1), (0, 1, 0, 1)]) * np.array(cells.shape)[:, None])
        ax.set(xlim=(x.min(), x.max()), ylim=(y.min(), y.max()), xlabel="x in metres", ylabel="y in metres")
    ax.set_title(title)
    if most is None:
        ax.figure.colorbar(image, ax=ax, label="distance in steps")
    return ax


def _sources(sources: "ArrayLike", shape: Tuple[int, int], left: Callable[[], object]) -> np.ndarray:
    """The cells to search from, as a new array."""
    if not isinstance(sources, (list, tuple)):
        sources = np.atleast_1d(sources)
    if len(sources) == 2 and np.ndim(sources[0]) == 0:
        sources = [sources]
    pairs = np.empty((len(sources), 2), np.int64)
    for part in _parts(len(sources), left, _PART // 8):
        given = _without_mask(np.asanyarray(sources[part]), "sources", "numpy.ma.compress_rows(sources)")
        if given.dtype.kind not in "iu":
            raise TypeError(f"cells are pairs of integers, not {given.dtype}")
        if given.ndim != 2 or given.shape[1] != 2:
            raise ValueError(f"sources must be a cell (row, column) or an array of shape (sources, 2), not {(len(sources), *given.shape[1:])}")
        outside = ((given < 0) | (given >= np.array(shape, np.uint32))).any(axis=1)
        if outside.any():
            _cell(tuple(given[outside][0].tolist()), shape)
        pairs[part] = given
    return pairs


def _cells(free: "ArrayLike", left: Callable[[], object]) -> np.ndarray:
    """The cells as contiguous bytes: 1 is free, 0 blocked."""
    if not isinstance(free, (np.ndarray, list, tuple)):
        free = np.asanyarray(free)
    shape = free.shape if isinstance(free, np.ndarray) else (len(free), *np.shape(free[:1])[1:])
    if len(shape) != 2:
        raise ValueError(f"cells must be a two-dimensional array, not {len(shape)}-dimensional")
    if isinstance(free, np.ndarray) and free.dtype == bool and free.flags.c_contiguous and not np.ma.isMaskedArray(free):
        return np.asarray(free).view(np.uint8)
    cells = np.empty(shape, np.uint8)
    for part in _parts(shape[0], left, max(1, _PART // max(1, shape[1]))):
        given = _without_mask(np.asanyarray(free[part]), "cells", "free.filled(False)")
        if given.shape[1:] != shape[1:]:
            raise ValueError(f"rows of cells differ in length: {shape[1]} and {given.shape[1:]}")
        if given.dtype.kind not in "biu":
            raise TypeError(f"cells must be booleans or integers, not {given.dtype}: {_CURE}")
        for across in _parts(shape[1], left):
            here = given[:, across]
            strange = here[(here != 0) & (here != 1)]
            if strange.size:
                raise ValueError(f"a cell is {strange[0]}, neither 1 (free) nor 0 (blocked): {_CURE}")
            cells[part, across] = here
    return cells


def _cell(cell: Tuple[int, int], shape: Tuple[int, ...]) -> Tuple[int, int]:
    row, column = map(operator.index, cell)
    if not (0 <= row < shape[0] and 0 <= column < shape[1]):
        raise IndexError(f"cell ({row}, {column}) lies outside of the grid of {shape[0]} by {shape[1]} cells")
    return row, column


def _range(part: _Range, size: int) -> Tuple[int, int]:
    if isinstance(part, slice):
        begin, end, step = part.indices(size)
        if step != 1:
            raise ValueError("ranges of cells have no step")
        return begin, max(begin, end)
    at = operator.index(part)
    at += size if at < 0 else 0
    if not 0 <= at < size:
        raise IndexError(f"{part} lies outside of the grid")
    return at, at + 1
