"""Checks of what callers give."""

from __future__ import annotations

import math
from typing import Optional

import numpy as np


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
