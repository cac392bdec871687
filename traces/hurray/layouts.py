"""Dense layouts, which this implementation reads and writes: where each element stands.

Offsets count in elements from the element of index 0 everywhere. A private layout is carried as the
bytes that it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .buffers import PRIVATE_TAGS
from .errors import FieldTypeError, InvalidDescriptorError
from .shapes import Shape, check_rank, spell
from .sizes import U32_MAX, U64_MAX, checked_strides, checked_uint, checked_uints

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_NESTING: Final = 8
"""Tiled records in a chain, the outermost included."""


@dataclass(frozen=True, slots=True)
class RowMajorLayout:
    """The last index runs fastest."""

    tag: ClassVar[int] = 0x01
    name: ClassVar[str] = "row_major"
    buffer_count: ClassVar[int] = 1
    is_dense: ClassVar[bool] = True
    is_virtual: ClassVar[bool] = False

    def validate_against_shape(self, shape: Shape) -> None:
        """Accept every shape."""


@dataclass(frozen=True, slots=True)
class ColMajorLayout:
    """The first index runs fastest."""

    tag: ClassVar[int] = 0x02
    name: ClassVar[str] = "col_major"
    buffer_count: ClassVar[int] = 1
    is_dense: ClassVar[bool] = True
    is_virtual: ClassVar[bool] = False

    def validate_against_shape(self, shape: Shape) -> None:
        """Accept every shape."""


@dataclass(frozen=True, slots=True, init=False)
class StridedLayout:
    """A stride for every index.

    Args:
        strides: In elements, not bytes; negative ones and 0 are legal.

    Raises:
        FieldTypeError: They are no integers.
        FieldRangeError: One does not fit 64 signed bits.
    """

    tag: ClassVar[int] = 0x03
    name: ClassVar[str] = "strided"
    buffer_count: ClassVar[int] = 1
    is_dense: ClassVar[bool] = True
    is_virtual: ClassVar[bool] = False

    strides: tuple[int, ...]

    def __init__(self, strides: Sequence[int]) -> None:
        object.__setattr__(self, "strides", checked_strides(strides, "the strides"))

    def validate_against_shape(self, shape: Shape) -> None:
        """Refuse a shape of another rank.

        Raises:
            InvalidDescriptorError: The shape has not one extent a stride.
        """
        _check_length(self.strides, len(shape), "The strides of a strided layout")


class Order(StrEnum):
    """How tiles are ordered, or the elements of a tile."""

    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"
    STRIDED = "strided"
    TILED = "tiled"


@dataclass(frozen=True, slots=True, init=False)
class TiledLayout:
    """Tiles of one size, stored one after the other; tiles at the edge are padded to full size.

    Args:
        tile_shape: The extents of a tile, 1 or more.
        outer_layout: The order of the tiles: `row_major`, `col_major` or `strided`.
        inner_layout: The order of the elements of a tile: the same, or `tiled`.
        outer_strides: For strided tiles: in tiles.
        inner_strides: For strided elements: in elements.
        inner_tiled: For tiled elements: the layout of a tile, whose shape is `tile_shape`.

    Raises:
        InvalidDescriptorError: An extent is 0, an order is unknown, strides or the inner layout are
            missing or out of place or of another rank, or more than 8 records are nested.
        FieldTypeError: An argument is of the wrong type.
    """

    tag: ClassVar[int] = 0x04
    name: ClassVar[str] = "tiled"
    buffer_count: ClassVar[int] = 1
    is_dense: ClassVar[bool] = True
    is_virtual: ClassVar[bool] = False

    tile_shape: tuple[int, ...]
    outer_layout: Order
    inner_layout: Order
    outer_strides: tuple[int, ...] | None
    inner_strides: tuple[int, ...] | None
    inner_tiled: TiledLayout | None

    def __init__(
        self,
        tile_shape: Sequence[int],
        outer_layout: Order | str = Order.ROW_MAJOR,
        inner_layout: Order | str = Order.ROW_MAJOR,
        outer_strides: Sequence[int] | None = None,
        inner_strides: Sequence[int] | None = None,
        inner_tiled: TiledLayout | None = None,
    ) -> None:
        tile = checked_uints(tile_shape, U64_MAX, "the extents of a tile")
        if 0 in tile:
            sentence = f"The extents of a tile must be 1 or more, not {spell(tile)}"
            raise InvalidDescriptorError(sentence, found=0)
        check_rank(len(tile))
        outer = _checked_order(outer_layout, (*Order,)[:3], "The order of tiles")
        inner = _checked_order(inner_layout, (*Order,), "The order within a tile")
        _check_presence(inner_tiled, "inner_tiled", is_wanted=inner is Order.TILED)
        for name, value in (
            ("tile_shape", tile),
            ("outer_layout", outer),
            ("inner_layout", inner),
            ("outer_strides", _tile_strides(outer_strides, "outer_strides", outer, len(tile))),
            ("inner_strides", _tile_strides(inner_strides, "inner_strides", inner, len(tile))),
            ("inner_tiled", inner_tiled),
        ):
            object.__setattr__(self, name, value)
        if inner_tiled is not None:
            inner_tiled.validate_against_shape(tile)
            if self.depth > MAX_NESTING:
                sentence = (
                    f"Tiled layouts must be nested at most {MAX_NESTING} deep, not {self.depth}"
                )
                raise InvalidDescriptorError(sentence, found=self.depth)

    @property
    def depth(self) -> int:
        """Tiled records in the chain from here on, 1 where a tile is not tiled itself."""
        return 1 if self.inner_tiled is None else 1 + self.inner_tiled.depth

    def validate_against_shape(self, shape: Shape) -> None:
        """Refuse a shape of another rank.

        Raises:
            InvalidDescriptorError: The shape has not one extent an extent of the tile.
        """
        _check_length(self.tile_shape, len(shape), "The tile of a tiled layout")


@dataclass(frozen=True, slots=True)
class PrivateExtensionLayout:
    """A layout that only its parties know; nothing can be said of the sizes of its buffers.

    Args:
        tag: 0xF0 to 0xFE.
        extension_layout_id: Which layout, 64 bits.
        extension_data: What else its parties need.

    Raises:
        InvalidDescriptorError: The tag is not private, or a field does not fit.
        FieldTypeError: A field is of the wrong type.
    """

    name: ClassVar[str] = "extension"
    buffer_count: ClassVar[None] = None
    is_dense: ClassVar[bool] = False
    is_virtual: ClassVar[bool] = False

    tag: int
    extension_layout_id: int
    extension_data: bytes = b""

    def __post_init__(self) -> None:
        if self.tag not in PRIVATE_TAGS:
            sentence = f"The tag of a private layout must be in 0xF0..0xFE, not {self.tag!r}"
            raise InvalidDescriptorError(sentence, found=self.tag)
        checked_uint(self.extension_layout_id, U64_MAX, "The id of a private layout")
        data: Any = self.extension_data
        if not isinstance(data, bytes | bytearray | memoryview):
            sentence = f"The data of a private layout must be bytes, not {data!r}"
            raise FieldTypeError(sentence)
        checked_uint(len(self.extension_data), U32_MAX, "The length of a private layout's data")
        object.__setattr__(self, "extension_data", bytes(self.extension_data))

    def validate_against_shape(self, shape: Shape) -> None:
        """Accept every shape."""


def _tile_strides(
    given: Sequence[int] | None, name: str, order: Order, rank: int
) -> tuple[int, ...] | None:
    _check_presence(given, name, is_wanted=order is Order.STRIDED)
    if given is None:
        return None
    strides = checked_strides(given, f"the {name}")
    _check_length(strides, rank, f"The {name} of a tiled layout")
    return strides


def _checked_order(order: Any, valid: tuple[Order, ...], what: str) -> Order:
    for known in valid:
        if order == known:
            return known
    names = ", ".join(known.value for known in valid)
    sentence = f"{what} must be one of {names}, not {order!r}"
    raise InvalidDescriptorError(sentence, found=order)


def _check_presence(value: object, name: str, *, is_wanted: bool) -> None:
    if (value is not None) != is_wanted:
        what = "given" if is_wanted else "left out"
        sentence = f"{name} must be {what} for this order of a tiled layout, not {value!r}"
        raise InvalidDescriptorError(sentence, found=value)


def _check_length(values: tuple[int, ...], rank: int, what: str) -> None:
    if len(values) != rank:
        sentence = f"{what} must have {rank} entries, as the shape has, not {len(values)}"
        raise InvalidDescriptorError(sentence, found=len(values))
