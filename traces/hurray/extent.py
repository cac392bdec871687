"""How large the buffers of a layout must be, in exact integers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from .carried_layouts import (
    BlockPagedLayout,
    CompositeLayout,
    CooLayout,
    CscLayout,
    CsfLayout,
    CsrLayout,
    HilbertLayout,
    MortonLayout,
)
from .layouts import (
    ColMajorLayout,
    PrivateExtensionLayout,
    RowMajorLayout,
    StridedLayout,
    TiledLayout,
)
from .shapes import static
from .sizes import packed_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .layout_codec import Layout
    from .shapes import Shape

Dense: TypeAlias = (
    RowMajorLayout | ColMajorLayout | StridedLayout | TiledLayout | MortonLayout | HilbertLayout
)
"""The layouts in which every element stands in buffer 0."""

_INDEX_BYTES: Final = 8
_PAGE_INDEX_BYTES: Final = {"uint32": 4, "uint64": 8}
_MORE_BITS_THAN_ANY_BUFFER: Final = 72


class Need(NamedTuple):
    """What one buffer must hold.

    Attributes:
        buffer: Which one.
        role: What it is.
        size: Bytes that it must have at least.
        elements: How many of the tensor's type it holds, or None where it holds something else.
    """

    buffer: int
    role: str
    size: int
    elements: int | None = None


def buffer_needs(layout: Layout, shape: Shape, bit_width: int, byte_offset: int) -> list[Need]:
    """Return what the buffers of a tensor must hold, as far as its layout says.

    Args:
        layout: The layout; nothing is known of the buffers of a private one.
        shape: The shape; where an extent is dynamic and counts, nothing is known.
        bit_width: Bits of an element, from the extension section for a private type.
        byte_offset: Where the element of index 0 stands in buffer 0.
    """
    match layout:
        case RowMajorLayout() | ColMajorLayout() | StridedLayout() | TiledLayout():
            return _dense(layout, shape, bit_width, byte_offset)
        case MortonLayout() | HilbertLayout():
            return _dense(layout, shape, bit_width, byte_offset)
        case PrivateExtensionLayout() | CompositeLayout():
            return []
        case CooLayout():
            return [
                _values(layout.nnz, bit_width),
                Need(1, "indices", layout.nnz * len(shape) * _INDEX_BYTES),
            ]
        case CsrLayout():
            return _compressed(layout.nnz, shape[0], bit_width, ("col_indices", "row_ptr"))
        case CscLayout():
            return _compressed(layout.nnz, shape[1], bit_width, ("row_indices", "col_ptr"))
        case CsfLayout():
            return [
                _values(layout.nnz, bit_width),
                Need(1, "pos", 2 * _INDEX_BYTES),
                Need(2 * len(shape), "crd", layout.nnz * _INDEX_BYTES),
            ]
        case BlockPagedLayout():
            return _paged(layout, shape, bit_width)


def reach(layout: Dense, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Return the least and the greatest element offset of a layout, or None for an empty tensor.

    The padding of tiles at the edge counts.
    """
    if 0 in shape:
        return None
    match layout:
        case RowMajorLayout() | ColMajorLayout() | HilbertLayout():
            return 0, math.prod(shape) - 1
        case StridedLayout():
            return _strided_reach(layout.strides, shape)
        case TiledLayout():
            return _tiled_reach(layout, shape)
        case MortonLayout():
            return 0, _morton_reach(layout.morton_bits, shape)


def _dense(layout: Dense, shape: Shape, bit_width: int, byte_offset: int) -> list[Need]:
    known = static(shape)
    if known is None:
        return []
    span = reach(layout, known)
    if span is None:
        return [Need(0, "data", byte_offset, 0)]
    least, greatest = span
    extent = packed_bytes(bit_width, greatest - least + 1)
    forward = byte_offset + packed_bytes(bit_width, greatest + 1)
    return [Need(0, "data", max(extent, forward), greatest - least + 1)]


def _strided_reach(strides: Sequence[int], shape: Sequence[int]) -> tuple[int, int]:
    ends = [stride * (extent - 1) for stride, extent in zip(strides, shape, strict=True)]
    return sum([end for end in ends if end < 0]), sum([end for end in ends if end > 0])


def _tiled_reach(layout: TiledLayout, shape: tuple[int, ...]) -> tuple[int, int]:
    tile = layout.tile_shape
    grid = [-(-extent // size) for extent, size in zip(shape, tile, strict=True)]
    least, greatest = 0, math.prod(grid) - 1
    if layout.outer_strides is not None:
        least, greatest = _strided_reach(layout.outer_strides, grid)
    elements = math.prod(tile)
    inner_least, inner_greatest = 0, elements - 1
    if layout.inner_strides is not None:
        inner_least, inner_greatest = _strided_reach(layout.inner_strides, tile)
    elif layout.inner_tiled is not None:
        inner_least, inner_greatest = _tiled_reach(layout.inner_tiled, tile)
    return least * elements + inner_least, greatest * elements + inner_greatest


def _morton_reach(bits: tuple[int, ...], shape: tuple[int, ...]) -> int:
    # No buffer has 2^72 elements, and larger powers may be too large to form.
    grid = (1 << min(sum(bits), _MORE_BITS_THAN_ANY_BUFFER)) - 1
    rank = len(shape)
    last = 0
    for axis, extent in enumerate(shape):
        index = extent - 1
        for bit in range(index.bit_length()):
            last |= (index >> bit & 1) << (bit * rank + axis)
    return max(grid, last)


def _values(nnz: int, bit_width: int) -> Need:
    return Need(0, "values", packed_bytes(bit_width, nnz), nnz)


def _compressed(nnz: int, lines: int | None, bit_width: int, roles: tuple[str, str]) -> list[Need]:
    found = [_values(nnz, bit_width), Need(1, roles[0], nnz * _INDEX_BYTES)]
    if lines is not None:
        found.append(Need(2, roles[1], (lines + 1) * _INDEX_BYTES))
    return found


def _paged(layout: BlockPagedLayout, shape: Shape, bit_width: int) -> list[Need]:
    begins = (layout.num_seqs + 1) * _PAGE_INDEX_BYTES[layout.block_table_index_type]
    found = [Need(2, "seq_ptr", begins)]
    entry = static(shape[1:])
    if entry is not None:
        fused = 2 if layout.kv_role == "fused" else 1
        count = layout.num_pages * layout.page_size * math.prod(entry) * fused
        found.insert(0, Need(0, "page_pool", packed_bytes(bit_width, count), count))
    return found
