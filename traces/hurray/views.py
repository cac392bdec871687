"""The elements of a dense tensor as a numpy array: views of its bytes where they can be.

Wide elements are never copied out of row_major, col_major and strided layouts. Narrow ones are
unpacked, and tiles are put in order; both cost no more than the buffer's own elements.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .errors import BufferError, UnsupportedError  # noqa: A004 - the specification's name
from .extent import reach
from .layout_codec import COL_MAJOR, ROW_MAJOR
from .layouts import ColMajorLayout, Order, RowMajorLayout, StridedLayout, TiledLayout
from .numpy_types import numpy_dtype
from .packing import group, unpack_codes
from .shapes import spell, static

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    import numpy.typing as npt

    from .descriptor import Descriptor

    Placed: TypeAlias = RowMajorLayout | ColMajorLayout | StridedLayout | TiledLayout
    Array: TypeAlias = npt.NDArray[Any]

_BYTE = 8
_MOST_AXES: Final = 64
_MOST_BYTES: Final = (1 << 63) - 1
_WIDEST_ITEM: Final = 16
_UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def element_array(descriptor: Descriptor, data: memoryview) -> Array:
    """Return the elements in their logical shape, of the numpy type that holds them.

    Args:
        descriptor: Of the tensor.
        data: The bytes of buffer 0.

    Raises:
        UnsupportedError: numpy has no such type, or as :func:`element_codes`.
        BufferError: As :func:`element_codes`.
    """
    item = numpy_dtype(descriptor.dtype)
    raw = _UNSIGNED.get(item.itemsize, np.complex128)
    # Not every type of ml_dtypes can be strided; plain numbers of the same width can.
    return _elements(descriptor, data, raw).view(item)


def element_codes(descriptor: Descriptor, data: memoryview) -> Array:
    """Return the bit patterns of the elements in their logical shape, as unsigned integers.

    Args:
        descriptor: Of the tensor; its elements may be private, of up to 64 bits.
        data: The bytes of buffer 0.

    Raises:
        UnsupportedError: An extent is dynamic, or they are too large for numpy; the layout is private, sparse or a curve, elements
            are on another device, or no unsigned integer is as wide as they are.
        BufferError: An element stands before the first byte.
    """
    width = descriptor.bit_width
    item = _UNSIGNED.get(max(1, width // _BYTE))
    if item is None:
        sentence = f"Elements as integers must be of 1, 2, 4 or 8 bytes, not of {width} bits"
        raise UnsupportedError(sentence)
    return _elements(descriptor, data, item)


def _elements(descriptor: Descriptor, data: memoryview, item: Any) -> Array:
    """Return elements as numbers of type `item`, which is as wide as they are, or a byte."""
    shape, layout = _placeable(descriptor)
    span = reach(layout, shape)
    if span is None:
        return np.empty(shape, item)
    least, greatest = span
    per_group, group_bytes = group(descriptor.bit_width)
    begin = descriptor.byte_offset + least // per_group * group_bytes
    if begin < 0:
        sentence = (
            f"The elements of a tensor must stand in its buffer, but {-least} elements before "
            f"byte {descriptor.byte_offset} are {-begin} bytes before its first byte"
        )
        raise BufferError(sentence)
    count = greatest - least + 1
    if descriptor.bit_width < _BYTE:
        skipped = least % per_group
        packed = np.frombuffer(data, np.uint8, offset=begin)
        flat = unpack_codes(packed, descriptor.bit_width, count + skipped)[skipped:]
    else:
        flat = np.frombuffer(data, np.dtype(item).newbyteorder("<"), count, begin)
    return _spread(flat, -least, layout, shape)


def _placeable(descriptor: Descriptor) -> tuple[tuple[int, ...], Placed]:
    """Return the shape and the layout of a tensor whose elements can be looked up."""
    shape, layout = static(descriptor.shape), descriptor.layout
    if shape is None:
        sentence = f"Every extent of an array must be known, not {spell(descriptor.shape)}"
        raise UnsupportedError(sentence)
    # numpy counts the bytes of an empty array as if its extents of 0 were not there.
    if math.prod(extent for extent in shape if extent) * _WIDEST_ITEM > _MOST_BYTES:
        sentence = f"The extents of an array must be ones that numpy can hold, not {spell(shape)}"
        raise UnsupportedError(sentence)
    if descriptor.device.kind != "cpu":
        sentence = f"The bytes of an array must be on the CPU, not on {descriptor.device.kind}"
        raise UnsupportedError(sentence)
    if not isinstance(layout, RowMajorLayout | ColMajorLayout | StridedLayout | TiledLayout):
        sentence = (
            "The layout of an array must be row_major, col_major, strided or tiled, "
            f"not {layout.name}, whose elements are carried but not looked up"
        )
        raise UnsupportedError(sentence)
    return shape, layout


def _spread(flat: Array, origin: int, layout: Placed, shape: tuple[int, ...]) -> Array:
    """Put the elements along the last axis of `flat` into `shape`; axes before it stay.

    Args:
        flat: `[..., extent]`, every element that the layout reaches.
        origin: Which of them has index 0.
        layout: Their layout.
        shape: Their logical shape.
    """
    if not isinstance(layout, TiledLayout):
        return _strided(flat, origin, shape, _strides(layout, shape))
    tile = layout.tile_shape
    grid = tuple(-(-extent // size) for extent, size in zip(shape, tile, strict=True))
    padded = tuple(count * size for count, size in zip(grid, tile, strict=True))
    _check_tiles(flat.ndim + 2 * len(shape), math.prod(padded), flat.shape[-1])
    tiles = _layout_of(layout.outer_layout, layout.outer_strides)
    inner = layout.inner_tiled or _layout_of(layout.inner_layout, layout.inner_strides)
    span = reach(inner, tile)
    assert span is not None, tile
    least, greatest = span
    steps = [math.prod(tile) * step for step in _strides(tiles, grid)]
    each = _strided(flat, origin + least, (*grid, greatest - least + 1), (*steps, 1))
    apart = _spread(each, -least, inner, tile)
    batch, rank = flat.ndim - 1, len(shape)
    order = [*range(batch)]
    for axis in range(rank):
        order += [batch + axis, batch + rank + axis]
    whole = apart.transpose(order).reshape((*flat.shape[:-1], *padded))
    return whole[(..., *(slice(extent) for extent in shape))]


def _strided(flat: Array, origin: int, shape: tuple[int, ...], steps: Sequence[int]) -> Array:
    step = flat.strides[-1]
    return as_strided(
        flat[..., origin:],
        (*flat.shape[:-1], *shape),
        (
            *flat.strides[:-1],
            *(step * s if extent > 1 else 0 for s, extent in zip(steps, shape, strict=True)),
        ),
        writeable=False,
    )


def _check_tiles(axes: int, elements: int, reached: int) -> None:
    if axes > _MOST_AXES:
        sentence = f"Tiles of an array must need at most {_MOST_AXES} axes, not {axes}"
        raise UnsupportedError(sentence)
    if elements > reached:
        sentence = (
            f"Tiles of an array must not overlap, but {elements} elements stand in {reached} places"
        )
        raise UnsupportedError(sentence)


def _layout_of(order: Order | str, strides: tuple[int, ...] | None) -> Placed:
    if strides is not None:
        return StridedLayout(strides)
    return COL_MAJOR if order == Order.COL_MAJOR else ROW_MAJOR


def _strides(layout: Placed, shape: tuple[int, ...]) -> tuple[int, ...]:
    match layout:
        case StridedLayout():
            return layout.strides
        case ColMajorLayout():
            return tuple(math.prod(shape[:axis]) for axis in range(len(shape)))
        case _:
            return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
