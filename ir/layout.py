"""Layouts: hierarchical shapes, and the map from their coordinates to integers.

A mode of a shape is an extent or again a tuple of modes. Coordinates have the same hierarchy, and
an integer may stand for any part of a coordinate: it counts that part's coordinates with the first
mode fastest. All numbers are Python integers, so nothing overflows; nothing here but `offsets` and
`coordinates` takes time in proportion to the number of coordinates.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

from .errors import IRTypeError, IRValueError
from .injectivity import is_injective

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self, SupportsIndex

    import numpy as np
    import numpy.typing as npt

Tree: TypeAlias = "tuple[int | Tree, ...]"
"""Nested tuples of integers: the modes of a shape, a stride or a coordinate."""

Key: TypeAlias = "SupportsIndex | tuple[Any, ...] | list[Any]"
"""A coordinate, or an integer for any part of it."""

_INT64_LIMIT = 1 << 63


@dataclass(frozen=True, init=False, repr=False)
class _Hierarchy:
    """Immutable nested integers, equal and hashed by value within one class."""

    __slots__ = ("tree",)
    tree: Tree
    _smallest: ClassVar[int]
    _what: ClassVar[str]

    def __new__(cls, *items: Any) -> Self:
        single = items[0] if len(items) == 1 and _as_int(items[0]) is None else items
        tree = cls._copied(single)
        made = super().__new__(cls)
        object.__setattr__(made, "tree", tree)
        return made

    @classmethod
    def _copied(cls, items: Iterable[Any]) -> Tree:
        if isinstance(items, str | bytes) or not hasattr(type(items), "__iter__"):
            message = f"{cls._what} must be an integer or an iterable of these, not {items!r}"
            raise IRValueError(message)
        return tuple(cls._copied_item(item) for item in items)

    @classmethod
    def _copied_item(cls, item: Any) -> int | Tree:
        number = _as_int(item)
        if number is None:
            return cls._copied(item)
        if number < cls._smallest:
            message = f"{cls._what} must be {cls._smallest} or more, not {number}"
            raise IRValueError(message)
        return number

    @property
    def leaves(self) -> tuple[int, ...]:
        """All integers, depth first, without the hierarchy."""
        return tuple(_leaves(self.tree))

    def __len__(self) -> int:
        return len(self.tree)

    def __iter__(self) -> Iterator[int | Tree]:
        return iter(self.tree)

    def __getitem__(self, key: int | slice) -> Self:
        return type(self)(_selected(self.tree, key))

    def __repr__(self) -> str:
        items = ", ".join(map(repr, self.tree))
        nested = len(self.tree) == 1 and isinstance(self.tree[0], tuple)
        return f"{type(self).__name__}({f'[{items}]' if nested else items})"

    def __reduce__(self) -> tuple[type[Self], tuple[Tree]]:
        return type(self), (self.tree,)


class Shape(_Hierarchy):
    """A hierarchy of extents, each 1 or more; `Shape()` has rank zero and one coordinate.

    `Shape(2, [3, 4])` and `Shape([2, [3, 4]])` are the same shape, and neither is
    `Shape(2, 3, 4)`. `shape[k]` is the k-th top-level mode, or a slice of modes, as a Shape.

    Raises:
        IRValueError: If an item is no positive integer and no iterable of such.
    """

    __slots__ = ()
    _smallest = 1
    _what = "An extent of a shape"

    @property
    def size(self) -> int:
        """The number of coordinates: the product of all extents."""
        return math.prod(self.leaves)

    def encode(self, key: Key) -> int:
        """Return the ordinal of a coordinate, counting with the first mode fastest.

        Args:
            key: A coordinate; an integer may stand for any part of it.

        Raises:
            IRTypeError: If a part is no integer, tuple or list.
            IRValueError: If a part is missing, too many, or outside the shape.
        """
        return _encode(self.tree, _checked_key(self.tree, key))

    def decode(self, key: Key) -> Tree:
        """Return the coordinate, in the hierarchy of the shape, of an ordinal.

        Args:
            key: An ordinal, or a coordinate with ordinals for some of its parts.

        Raises:
            IRTypeError: If a part is no integer, tuple or list.
            IRValueError: If a part is missing, too many, or outside the shape.
        """
        coordinate = _checked_key(self.tree, key)
        assert isinstance(coordinate, tuple)
        return coordinate

    def coordinates(self) -> Iterator[Tree]:
        """Iterate over all coordinates, the first mode fastest."""
        return (self.decode(ordinal) for ordinal in range(self.size))

    def is_congruent(self, other: _Hierarchy) -> bool:
        """Return whether another hierarchy has the same nesting, whatever its numbers."""
        return _profile(self.tree) == _profile(other.tree)


class Stride(_Hierarchy):
    """A hierarchy of strides, each 0 or more; `stride[k]` is a part of it, as a Stride.

    Raises:
        IRValueError: If an item is no non-negative integer and no iterable of such.
    """

    __slots__ = ()
    _smallest = 0
    _what = "A stride"


@dataclass(frozen=True, init=False)
class Layout:
    """A map from the coordinates of a shape to integers: the sum of coordinate times stride.

    Args:
        shape: The coordinates.
        stride: What one step along each leaf of the shape adds.

    Raises:
        IRValueError: If they are no Shape and Stride of the same hierarchy.
    """

    __slots__ = ("shape", "stride")
    shape: Shape
    stride: Stride

    def __new__(cls, shape: Shape, stride: Stride) -> Self:  # noqa: D102 - above
        kinds = f"{type(shape).__name__} and {type(stride).__name__}"
        if not isinstance(cast("object", shape), Shape) or not isinstance(
            cast("object", stride), Stride
        ):
            message = f"A layout must be made of a Shape and a Stride, not of {kinds}"
            raise IRValueError(message)
        if not shape.is_congruent(stride):
            message = f"{stride} must have the hierarchy of {shape}, not another"
            raise IRValueError(message)
        layout = super().__new__(cls)
        object.__setattr__(layout, "shape", shape)
        object.__setattr__(layout, "stride", stride)
        return layout

    def __reduce__(self) -> tuple[type[Layout], tuple[Shape, Stride]]:
        return Layout, (self.shape, self.stride)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.shape.size

    @property
    def cosize(self) -> int:
        """The smallest span from 0 that holds every index: 1 plus the greatest index."""
        return 1 + sum((extent - 1) * step for extent, step in self._modes())

    @property
    def is_injective(self) -> bool:
        """Whether no two coordinates have the same index; holes do not matter.

        Exact. Nested and padded layouts are decided at once; only strides that interleave are
        searched for a collision.
        """
        return is_injective(self._modes())

    def index(self, key: Key) -> int:
        """Return the index of a coordinate; `layout(key)` is the same.

        Args:
            key: A coordinate; an integer may stand for any part of it, first mode fastest.

        Raises:
            IRTypeError: If a part is no integer, tuple or list.
            IRValueError: If a part is missing, too many, or outside the shape.
        """
        coordinate = _leaves(self.shape.decode(key))
        return sum(map(operator.mul, coordinate, self.stride.leaves))

    __call__ = index

    def __getitem__(self, key: int | slice) -> Layout:
        return Layout(self.shape[key], self.stride[key])

    def offsets(self) -> npt.NDArray[np.int64]:
        """Return the index of every coordinate.

        Returns:
            A new array of shape (size,), in the order of ordinals, the first mode fastest.

        Raises:
            IRValueError: If an index does not fit 64 bits.
        """
        import numpy as np

        if self.cosize > _INT64_LIMIT:
            message = f"The indices of a layout must fit 64 bits, but its cosize is {self.cosize}"
            raise IRValueError(message)
        result = np.zeros(1, dtype=np.int64)
        for extent, step in self._modes():
            if extent > 1:
                steps = np.arange(extent, dtype=np.int64) * step
                result = np.add.outer(steps, result).reshape(-1)
        return result

    def uniform_preimage_extent(self, target: Shape) -> int | None:
        """Return k if exactly k coordinates map to each ordinal of `target`, else None.

        Decided from extents and strides alone: with positive strides the smallest and the greatest
        index have one coordinate each, so only zero strides can repeat; and what remains is a
        bijection onto 0..size-1 exactly if it is a mixed-radix chain.

        Raises:
            IRTypeError: If `target` is no Shape.
        """
        if not isinstance(target, Shape):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"The target must be a Shape, not {type(target).__name__}"
            raise IRTypeError(message)
        repeated = math.prod(extent for extent, step in self._modes() if step == 0)
        expected = 1
        for extent, step in sorted(self._long_modes(), key=operator.itemgetter(1)):
            if step != expected:
                return None
            expected *= extent
        return repeated if expected == target.size else None

    def permute(self, *order: Any) -> Layout:
        """Return the layout whose top-level mode j is this one's mode `order[j]`.

        Args:
            order: Every mode's number once, as arguments or as one iterable.

        Raises:
            IRTypeError: If an entry is no integer.
            IRValueError: If a mode is left out, named twice, or does not exist.
        """
        entries = order[0] if len(order) == 1 and _as_int(order[0]) is None else order
        numbers = [_as_int(entry) for entry in entries]
        if None in numbers:
            message = f"The order of modes must be integers, not {order!r}"
            raise IRTypeError(message)
        if sorted(cast("list[int]", numbers)) != list(range(len(self.shape))):
            message = (
                f"The order must name each of the {len(self.shape)} modes once, not be {numbers}"
            )
            raise IRValueError(message)
        chosen = cast("list[int]", numbers)
        return Layout(
            Shape([self.shape.tree[number] for number in chosen]),
            Stride([self.stride.tree[number] for number in chosen]),
        )

    def broadcast_to(self, target: Shape) -> Layout:
        """Return the layout over `target` that repeats every mode of extent 1 as needed.

        Raises:
            IRTypeError: If `target` is no Shape.
            IRValueError: If it has another hierarchy, or an extent that is not 1 would change.
        """
        if not isinstance(target, Shape):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"The target must be a Shape, not {type(target).__name__}"
            raise IRTypeError(message)
        if not target.is_congruent(self.shape):
            message = f"{target} must have the hierarchy of {self.shape}, not another"
            raise IRValueError(message)
        steps: list[int] = []
        for (extent, step), wanted in zip(self._modes(), target.leaves, strict=True):
            if extent not in (1, wanted):
                message = f"An extent must be 1 to be broadcast, not {extent} as in {self.shape}"
                raise IRValueError(message)
            steps.append(step if extent == wanted else 0)
        return Layout(target, Stride(_refilled(target.tree, iter(steps))))

    def _modes(self) -> list[tuple[int, int]]:
        return list(zip(self.shape.leaves, self.stride.leaves, strict=True))

    def _long_modes(self) -> list[tuple[int, int]]:
        return [(extent, step) for extent, step in self._modes() if extent > 1 and step > 0]


def _as_int(value: object) -> int | None:
    """Return an integer, a numpy one included, as an int; None for all else, bool included."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        return None
    try:
        return operator.index(cast("Any", value))
    except TypeError:
        return None


def _leaves(tree: int | Tree) -> Iterator[int]:
    if isinstance(tree, int):
        yield tree
    else:
        for item in tree:
            yield from _leaves(item)


def _profile(tree: int | Tree) -> Any:
    return None if isinstance(tree, int) else tuple(map(_profile, tree))


def _refilled(tree: int | Tree, numbers: Iterator[int]) -> Any:
    if isinstance(tree, int):
        return next(numbers)
    return tuple(_refilled(item, numbers) for item in tree)


def _selected(tree: Tree, key: int | slice) -> Tree:
    chosen = tree[key]
    return (chosen,) if isinstance(chosen, int) else chosen


def _checked_key(tree: int | Tree, key: Any) -> int | Tree:
    """Return `key` as a coordinate in the hierarchy of `tree`."""
    if isinstance(key, tuple | list):
        parts = cast("tuple[Any, ...] | list[Any]", key)
        if isinstance(tree, int):
            message = f"A coordinate of an extent {tree} must be an integer, not {key!r}"
            raise IRValueError(message)
        if len(parts) != len(tree):
            message = f"A coordinate of {tree} must have {len(tree)} parts, not {len(parts)}"
            raise IRValueError(message)
        return tuple(_checked_key(item, part) for item, part in zip(tree, parts, strict=True))
    ordinal = _as_int(key)
    if ordinal is None:
        message = f"A coordinate must be an int, a tuple or a list, not {key!r}"
        raise IRTypeError(message)
    size = math.prod(_leaves(tree))
    if not 0 <= ordinal < size:
        message = f"A coordinate of {tree} must lie in 0..{size - 1}, not be {ordinal}"
        raise IRValueError(message)
    return _decode(tree, ordinal)


def _decode(tree: int | Tree, ordinal: int) -> int | Tree:
    if isinstance(tree, int):
        return ordinal
    coordinate: list[int | Tree] = []
    for item in tree:
        ordinal, part = divmod(ordinal, math.prod(_leaves(item)))
        coordinate.append(_decode(item, part))
    return tuple(coordinate)


def _encode(tree: int | Tree, coordinate: int | Tree) -> int:
    if isinstance(tree, int):
        assert isinstance(coordinate, int)
        return coordinate
    assert isinstance(coordinate, tuple)
    ordinal, weight = 0, 1
    for item, part in zip(tree, coordinate, strict=True):
        ordinal += _encode(item, part) * weight
        weight *= math.prod(_leaves(item))
    return ordinal
