"""Checks of what callers give, in steps between which Ctrl-C is answered, and results that say what was not requested."""

from __future__ import annotations

import html
import itertools
import math
import operator
import queue
import threading
import time
from dataclasses import fields
from typing import TYPE_CHECKING, Callable, Dict, Hashable, Iterable, Iterator, Optional, Tuple, TypeVar, cast

import numpy as np

_Result = TypeVar("_Result")
#: Entries that NumPy handles at a time. It answers Ctrl-C only between two calls.
_PART = 1 << 18


def _parts(entries: int, left: Callable[[], object], part: int = _PART) -> Iterator[slice]:
    """The entries in parts. TimeoutError between two of them."""
    for begin in range(0, entries, part):
        left()
        yield slice(begin, min(begin + part, entries))


def _clock(timeout: Optional[float]) -> Callable[[], Optional[float]]:
    """A function that says how many seconds are left (None: any number). TimeoutError if there are none."""
    seconds = _seconds(timeout)
    if seconds is None:
        return lambda: None
    end = time.monotonic() + seconds

    def left() -> float:
        rest = end - time.monotonic()
        if rest <= 0:
            raise TimeoutError("the call did not finish within its timeout")
        return rest

    return left


def _waiting(work: Callable[[], _Result], left: Callable[[], object]) -> _Result:
    """The result of `work`, which a thread does. Meanwhile this thread answers Ctrl-C."""
    results: "queue.SimpleQueue[Tuple[Optional[_Result], Optional[BaseException]]]" = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put((work(), None))
        except BaseException as problem:
            results.put((None, problem))

    threading.Thread(target=run, daemon=True).start()
    while True:
        try:
            result, problem = results.get(timeout=0.05)
        except queue.Empty:
            left()
            continue
        if problem is not None:
            raise problem
        return cast(_Result, result)


def _seconds(timeout: Optional[float]) -> Optional[float]:
    if timeout is None:
        return None
    try:
        seconds = float(timeout)
    except OverflowError:
        seconds = math.inf if timeout > 0 else -math.inf
    if not seconds >= 0:
        raise ValueError(f"timeout {timeout} is not a number of seconds")
    return seconds


def _without_mask(array: object, what: str, cure: str) -> np.ndarray:
    """The array. A masked entry is not to be taken for one that counts."""
    if np.ma.is_masked(array):
        raise ValueError(f"{what} are a masked array, in which some are masked: use {cure}")
    return np.asarray(array)


def _objects(part: Iterable[Hashable]) -> Iterable[Hashable]:
    """The entries as objects of Python. Dates remain NumPy's, which are more exact."""
    if not isinstance(part, np.ndarray):
        return part
    if part.dtype.kind in "fcmM" and (part != part).any():
        # NaN and NaT are unequal to themselves: a dictionary would keep each, and be slow.
        part = np.where(part != part, None, part)  # type: ignore[call-overload]
    return part if part.dtype.kind in "mM" else part.tolist()


def _vertices(given: Iterable[Hashable], vertices: int, left: Callable[[], object], numbers: Optional[Dict[Hashable, int]] = None) -> np.ndarray:
    """The vertices to search from, as a new array of uint32. `numbers`: those of the labels, if the graph has labels."""
    if isinstance(given, (str, bytes)):
        raise TypeError(f"roots are several vertices, as in [{given!r}], not {given!r}")
    if hasattr(given, "__array__") and not isinstance(given, np.generic):
        given = _without_mask(np.asanyarray(given), "roots", "roots.compressed()")
        flat = given if given.ndim == 1 else _waiting(given.ravel, left)
        parts: Iterator[Iterable[Hashable]] = (flat[part] for part in _parts(len(flat), left))
    else:
        each = iter(given)
        parts = iter(lambda: list(itertools.islice(each, _PART)), [])
    checked = [np.empty(0, np.uint32)]
    for part in parts:
        left()
        if numbers is not None:
            checked.append(np.fromiter(map(numbers.__getitem__, _objects(part)), np.uint32))
            continue
        roots = np.asarray(part)
        if roots.dtype.kind in ("f", "O") and all(isinstance(root, (int, np.integer)) for root in part):
            # Some are beyond 64 bits.
            roots = np.array([operator.index(cast(int, root)) for root in part], object)
        elif roots.dtype.kind not in "iu":
            raise TypeError(f"roots must be integers, not {roots.dtype}")
        outside = (roots < 0) | (roots >= vertices)
        if outside.any():
            raise IndexError(f"root {roots[outside][0]} is not a vertex: the graph has {vertices} vertices, counted from 0")
        checked.append(roots.astype(np.uint32))
    return np.concatenate(checked) if len(checked) < 3 else _waiting(lambda: np.concatenate(checked), left)


def _table(caption: str, rows: Dict[str, str]) -> str:
    """A table as HTML."""
    cells = "".join(f'<tr><th style="text-align: left">{name}</th><td style="text-align: left">{html.escape(text)}</td></tr>' for name, text in rows.items())
    return f"<table><caption>{caption}</caption>{cells}</table>"


class _Requested:
    """A result whose arrays are those that were requested: reading another one says how to get it."""

    #: Each array that may be missing, and how to request it.
    _requests = {"parents": "parents=True", "levels": "levels=True", "sources": "sources=True"}

    def __post_init__(self) -> None:
        for name in self._requests:
            if vars(self)[name] is None:
                del vars(self)[name]

    if not TYPE_CHECKING:  # which knows the attributes

        def __getattr__(self, name: str) -> np.ndarray:
            if name in self._requests:
                raise AttributeError(f"the search was not asked for {name}: request them with {self._requests[name]}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        held = (part.name for part in fields(self) if part.repr and part.name in vars(self))  # type: ignore[arg-type]
        shown = (f"{name}={vars(self)[name]!r}" for name in held)
        return f"{type(self).__name__}({', '.join(shown)})"
