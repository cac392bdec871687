"""Type rules of the steps that a quantisation of a tile is made of, which only passes write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType, UInt8
from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS, GROUP
from ..expr import index
from ..tile_bytes import FRACTAL_BYTES, round_up
from ..types import (
    SCALE_ARRANGEMENT,
    MemorySpace,
    TensorLayout,
    TileType,
    TileView,
    constant_dims,
)
from .checks import operand_type, same_dims, show_dims
from .rules_quant import check_quantised
from .rules_vector import made

if TYPE_CHECKING:
    from .row import CallSite


def infer_scales(site: CallSite) -> TileType:
    """Return the tile of the scale codes of a tile's rows, `[M, K/32]` of `[M, round32(K/32)]`."""
    source, (rows, depth) = _source(site)
    groups = depth // GROUP
    shape = (index(rows), index(round_up(groups, FRACTAL_BYTES)))
    found = made(source, shape, (index(rows), index(groups)), UInt8)
    assert isinstance(found, TileType), found
    return found


def infer_elements(site: CallSite) -> TileType:
    """Return the tile of the element codes, in the shape of the source."""
    source, _ = _source(site)
    scales = operand_type(site, 1, TileType)
    wanted = infer_scales(site)
    if scales.dtype is not UInt8 or not same_dims(scales.valid_shape, wanted.valid_shape):
        message = (
            f"scales must be UInt8 codes of {show_dims(wanted.valid_shape)}, not {scales.dtype.name} "
            f"of {show_dims(scales.valid_shape)}"
        )
        raise site.type_error(message)
    dtype: DType = site.row.attribute(site.kwargs, "dtype")
    return TileType(source.shape, dtype, None, None, MemorySpace.Vec)


def _source(site: CallSite) -> tuple[TileType, tuple[int, int]]:
    source = operand_type(site, 0, TileType)
    return source, check_quantised(site, source)


def infer_boxes(site: CallSite) -> TileType:
    """Return the tile of scales in boxes: `[M, G]` of a left operand, `[G, N]` of a right one."""
    scales = operand_type(site, 0, TileType)
    layout: TensorLayout = site.row.attribute(site.kwargs, "layout")
    if layout not in SCALE_ARRANGEMENT:
        message = f"layout must be MX_A_ZZ or MX_B_NN, not {layout.name}"
        raise site.value_error(message)
    extents = constant_dims(scales.valid_shape)
    if scales.dtype is not UInt8 or extents is None or len(extents) != 2:
        message = (
            f"scales must be constant rows and columns of UInt8, not {scales.dtype.name} of "
            f"{show_dims(scales.valid_shape)}"
        )
        raise site.type_error(message)
    rows, groups = extents
    if rows % BOX_ROWS or groups % BOX_GROUPS:
        message = f"scales must fill whole boxes of {BOX_ROWS} x {BOX_GROUPS}, not {list(extents)}"
        raise site.value_error(message)
    shape = (rows, groups) if layout is TensorLayout.MX_A_ZZ else (groups, rows)
    blayout, slayout, fractal = SCALE_ARRANGEMENT[layout]
    view = TileView(blayout=blayout, slayout=slayout, fractal=fractal)
    return TileType(shape, DType.E8M0, None, view, MemorySpace.Vec)
