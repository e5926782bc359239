"""Labels of vertices, from columns of names to vertex numbers and back."""

from __future__ import annotations

import itertools
import operator
from collections import defaultdict
from numbers import Number
from typing import TYPE_CHECKING, Callable, Dict, Hashable, Iterable, List, Optional, Sequence, Tuple, Union, cast

import numpy as np

from ._arguments import _PART, _objects, _parts, _waiting, _without_mask

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_Column = Union[np.ndarray, Sequence[Hashable]]


class _Labels(Dict[Hashable, int]):
    """The number of each label. `listed`: the labels in the order of the vertices."""

    def __init__(self, numbers: Dict[Hashable, int]) -> None:
        super().__init__(numbers)
        self.listed = list(self)

    def __missing__(self, label: Hashable) -> int:
        raise KeyError(f"{label!r} is not a vertex: no vertex of the graph has this label")

    def __reduce__(self) -> Tuple[object, ...]:
        return _Labels, (dict(self),)


def _number(vertex: Hashable, labels: Optional[_Labels], vertices: int) -> int:
    """The number of a vertex. LookupError if it is none."""
    if labels is not None:
        return labels[vertex]
    number = operator.index(cast(int, vertex))
    if not 0 <= number < vertices:
        raise IndexError(f"{number} is not a vertex: the graph has {vertices} vertices, counted from 0")
    return number


def _named(vertices: Iterable[int], labels: Optional[_Labels]) -> List[Hashable]:
    """The labels of vertices, or their numbers if the graph has no labels."""
    return [vertex if labels is None else labels.listed[vertex] for vertex in vertices]


def _columns(given: Iterable[object], left: Callable[[], object]) -> List[_Column]:
    """The sources and the targets of edges, as lists or as arrays."""
    columns: List[_Column] = [column if isinstance(column, (list, tuple)) else _waiting(lambda: _array(column), left) for column in given]
    if len(columns[0]) != len(columns[1]):
        raise ValueError(f"the columns of edges must be of the same length, not {len(columns[0])} and {len(columns[1])}")
    return columns


def _array(column: object) -> np.ndarray:
    array = _without_mask(np.asanyarray(column), "labels", "the rows without them")
    if array.ndim != 1:
        raise ValueError(f"a column of edges must be one-dimensional, not of shape {array.shape}")
    return array


def _are_labels(ends: Iterable[object]) -> bool:
    """Whether edges are between labels, by the ends of the first. Numbers of any kind are taken for vertex numbers, and refused as such."""
    return not all(isinstance(end, (Number, np.bool_)) for end in ends)


def _edges(given: object, left: Callable[[], object]) -> Tuple["ArrayLike", Optional[List[_Column]]]:
    """Edges between vertex numbers; or edges between labels as `_numbered` takes them."""
    if isinstance(given, tuple) and len(given) == 2 and all(hasattr(column, "__array__") for column in given):
        columns = _columns(given, left)
        is_labelled = len(columns[0]) > 0 and _are_labels(column[0] for column in columns)
        return (given, columns) if is_labelled else (_waiting(lambda: np.stack(cast(List[np.ndarray], columns), axis=1), left), None)
    if isinstance(given, (list, tuple)):
        is_labelled = isinstance(next(iter(given), None), (list, tuple, np.ndarray)) and _are_labels(given[0])
        return given, [given] if is_labelled else None
    array = np.asanyarray(given)
    is_labelled = array.ndim == 2 and array.shape[1] == 2 and len(array) > 0 and _are_labels(np.asarray(array)[0])
    return array, _columns((array[:, 0], array[:, 1]), left) if is_labelled else None


def _ends(part: List[_Column]) -> Iterable[Hashable]:
    """The ends of edges, one after another."""
    if len(part) == 2:
        return itertools.chain.from_iterable(zip(*map(_objects, part)))
    for edge in part[0]:
        if not isinstance(edge, (list, tuple, np.ndarray)) or len(edge) != 2:
            raise ValueError(f"an edge is a pair of labels, not {edge!r}")
    return itertools.chain.from_iterable(cast(Iterable[Iterable[Hashable]], part[0]))


def _numbered(columns: List[_Column], left: Callable[[], object]) -> Tuple[np.ndarray, _Labels]:
    """Edges as pairs of vertex numbers, and the labels. Vertices are numbered as their labels first appear, edge by edge, sources first.

    `columns`: the sources and the targets, or a list of pairs alone.
    """
    numbers_of: "defaultdict[Hashable, int]" = defaultdict(itertools.count().__next__)
    arrays = [column for column in columns if isinstance(column, np.ndarray) and column.dtype.kind in "iu"]
    if len(arrays) == 2 and np.result_type(*arrays).kind in "iu":
        pairs, distinct = _waiting(lambda: _numbered_integers(np.stack(arrays, axis=1)), left)
        for part in _parts(len(distinct), left):
            numbers_of.update(zip(distinct[part].tolist(), range(part.start, part.stop)))
        return pairs, _Labels(numbers_of)
    pairs = np.empty((len(columns[0]), 2), np.uint32)
    for part in _parts(len(pairs), left, _PART // 8):  # since a dictionary is slow
        pairs[part] = np.fromiter(map(numbers_of.__getitem__, _ends([column[part] for column in columns])), np.uint32).reshape(-1, 2)
    labels = _Labels(numbers_of)
    for part in _parts(len(labels.listed), left):
        for label in filter(_is_missing, labels.listed[part]):
            row, end = divmod(int(np.argmax(pairs.ravel() == labels[label])), 2)
            raise ValueError(f"the {('source', 'target')[end]} in row {row}, counted from 0, is missing: {label!r}")
    return pairs, labels


def _numbered_integers(ends: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """The same for integers, which NumPy sorts: the pairs, and the labels in their order."""
    distinct, first, at = np.unique(ends.ravel(), return_index=True, return_inverse=True)
    order = np.argsort(first)
    numbers_of = np.empty(len(order), np.uint32)
    numbers_of[order] = np.arange(len(order), dtype=np.uint32)
    return numbers_of[at].reshape(-1, 2), distinct[order]


def _is_missing(label: Hashable) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA is neither equal to itself nor not
        return True
