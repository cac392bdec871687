"""Type rules of the forms that a call takes in passes: boxes in global memory, flattened tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..expr import Mul, Type, index
from ..numerics.nz import NZ_ROWS, nz_columns
from ..types import (
    SCALE_ARRANGEMENT,
    MemorySpace,
    TensorLayout,
    TensorType,
    TileType,
    TileView,
    constant_dim,
    constant_dims,
    implicit_tile_view,
)
from .checks import (
    arrangement_name,
    check_offsets,
    check_rank,
    check_window,
    is_mx_blocked,
    is_nz_blocked,
    operand_dims,
    operand_type,
    same_dims,
    show_dims,
)
from .rules_memory import infer_load, view_with_valid

if TYPE_CHECKING:
    from ..expr import Expr
    from ..types import Dims
    from .row import CallSite


def infer_load_form(site: CallSite, stored: Type) -> TileType:
    """Return the tile of a load in the form that passes give it, given the type that the call has.

    What is loaded is scale boxes, boxes in NZ, or a window of more axes than its flattened tile has.
    """
    source = operand_type(site, 0, TensorType)
    if is_mx_blocked(source):
        return _infer_boxes(site, stored)
    if is_nz_blocked(source):
        return _infer_nz_boxes(site, stored)
    whole = infer_load(site)
    return flat_tile(whole) if isinstance(stored, TileType) and len(stored.shape) == 2 else whole


def flat_tile(tile: TileType) -> TileType:
    """Return the type of a tile with all axes but the last merged; the same object up to rank 2.

    Strides and start offsets of a view do not survive; the arrangement stays, or is the memory's own
    where it was that.
    """
    if len(tile.shape) <= 2:
        return tile
    shape, valid = merged(tile.shape), merged(tile.valid_shape)
    view = tile.tile_view
    own = implicit_tile_view(tile.shape, tile.memory_space).arrangement
    if view is None or view.arrangement == own:
        made = view_with_valid(implicit_tile_view(shape, tile.memory_space), valid)
        pad, compact = (view.pad, view.compact) if view else (made.pad, made.compact)
    else:
        made, pad, compact = view_with_valid(view, valid), view.pad, view.compact
    flat = TileView(valid, None, None, made.blayout, made.slayout, made.fractal, pad, compact)
    return TileType(shape, tile.dtype, tile.memref, flat, tile.memory_space)


def merged(dims: Dims) -> Dims:
    """Return extents with all axes but the last multiplied into one."""
    *leading, last = dims
    known = constant_dims(tuple(leading))
    if known is not None:
        count = 1
        for dim in known:
            count *= dim
        return index(count), last
    rows: Expr | None = None
    for dim in leading:
        if constant_dim(dim) != 1:
            rows = dim if rows is None else Mul(rows, dim, index(0).dtype, dim.span)
    assert rows is not None, "an extent is not constant"
    return rows, last


# --------------------------------------------------------------------------- scale boxes


def _whole_boxes(site: CallSite, called: str) -> tuple[TensorType, Dims]:
    """Return the blocked tensor and the window of a load, checked to be of whole boxes inside."""
    tensor = operand_type(site, 0, TensorType)
    offsets, window, valid = (operand_dims(site, i) for i in (1, 2, 3))
    for dims, what in ((offsets, "offsets"), (window, "shapes"), (valid, "valid_shape")):
        check_rank(site, dims, len(tensor.shape), what, "the blocked tensor")
    if not same_dims(window, valid):
        message = f"must take whole boxes, not {show_dims(valid)} of {show_dims(window)}"
        raise site.value_error(message)
    check_offsets(site, offsets, tensor.dtype)
    check_window(site, offsets, window, tensor.shape, what=called)
    return tensor, window


def _infer_boxes(site: CallSite, stored: Type) -> TileType:
    """Return the tile of a load of scale boxes, given the type that the call has.

    Offsets count boxes, the window is whole boxes, and the tile keeps its logical shape; its valid
    shape is metadata that the call alone knows.
    """
    tensor, window = _whole_boxes(site, "the window of scale boxes")
    shape = logical_window(tensor.layout, window)
    if not isinstance(stored, TileType) or not same_dims(stored.shape, shape):
        found = show_dims(stored.shape) if isinstance(stored, TileType) else "another kind"
        message = f"must give a tile of {show_dims(shape)}, not of {found}"
        raise site.type_error(message)
    blayout, slayout, fractal = SCALE_ARRANGEMENT[tensor.layout]
    view = TileView(stored.valid_shape, blayout=blayout, slayout=slayout, fractal=fractal)
    return TileType(shape, tensor.dtype, None, view, MemorySpace.Mat)


def logical_window(layout: TensorLayout, blocked: Dims) -> Dims:
    """Return the logical rank-2 shape of a blocked one: [1, rows/16, groups/2, 16, 2]."""
    counts = constant_dims(blocked[1:3])
    assert counts is not None, blocked
    rows, groups = index(counts[0] * BOX_ROWS), index(counts[1] * BOX_GROUPS)
    return (rows, groups) if layout is TensorLayout.MX_A_ZZ else (groups, rows)


# --------------------------------------------------------------------------- boxes in NZ


def _infer_nz_boxes(site: CallSite, stored: Type) -> TileType:
    """Return the tile of a load of boxes in NZ: offsets and window count boxes of whole rows."""
    tensor, window = _whole_boxes(site, "the window of boxes")
    space = site.kwargs.get("target_memory")
    if space is not MemorySpace.Mat:
        message = "a load of boxes in NZ requires target_memory=MemorySpace.Mat"
        raise site.value_error(message)
    shape = nz_window(site, tensor, window)
    if not isinstance(stored, TileType) or not same_dims(_as_matrix(stored.shape), shape):
        found = show_dims(stored.shape) if isinstance(stored, TileType) else "another kind"
        message = f"must give a tile of {show_dims(shape)}, not of {found}"
        raise site.type_error(message)
    return TileType(stored.shape, tensor.dtype, None, None, MemorySpace.Mat)


def _as_matrix(shape: Dims) -> Dims:
    return merged(shape) if len(shape) > 2 else shape


def nz_window(site: CallSite, tensor: TensorType, window: Dims) -> Dims:
    """Return the rank-2 shape of a window of boxes `[batches, across, down, 16, c0]`."""
    counts = constant_dims(window)
    box = (NZ_ROWS, nz_columns(tensor.dtype.bits))
    if counts is None or counts[3:] != box:
        message = f"must take boxes of {box[0]} x {box[1]} elements, not {show_dims(window)}"
        raise site.value_error(message)
    batches, across, down, rows, columns = counts
    return index(batches * down * rows), index(across * columns)


# --------------------------------------------------------------------------- stores


def infer_store_form(site: CallSite, stored: Type) -> TensorType:
    """Return the tensor of a store of scale boxes into a blocked tensor."""
    del stored
    tile = operand_type(site, 0, TileType)
    offsets, tensor = operand_dims(site, 1), operand_type(site, 2, TensorType)
    check_rank(site, offsets, len(tensor.shape), "offsets", "the blocked tensor")
    check_offsets(site, offsets, tensor.dtype)
    found = tile.get_effective_tile_view()
    if found.arrangement != SCALE_ARRANGEMENT[tensor.layout]:
        message = (
            f"a tile for a tensor in {tensor.layout.name} must lie in that layout, "
            f"not in {arrangement_name(found)}"
        )
        raise site.value_error(message)
    return tensor
