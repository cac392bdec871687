"""Type rules of loads and stores, and what they share with moves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import BFloat16, DType, Float16, UInt8
from ..errors import IRValueError
from ..placement import NZ_BLOCKED_RANK
from ..types import (
    SCALE_ARRANGEMENT,
    MemorySpace,
    TensorLayout,
    TensorType,
    TileLayout,
    TileType,
    TileView,
    constant_dim,
    constant_dims,
    implicit_tile_view,
)
from .checks import (
    LOADED_LESS,
    STORED_LESS,
    check_offsets,
    check_rank,
    check_shape,
    check_valid_shape,
    check_window,
    clamped_extents,
    operand_dims,
    operand_type,
    same_dims,
    show_dims,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..expr import Expr
    from ..types import Dims
    from .row import CallSite

TILE_RANK = 2
FIXPIPE = ("dtype", "pre_quant", "pre_relu")
SCALED_HINT = "pre_quant=, a number by which sums are multiplied, stores them in 8 bits"
FLOAT32_REACH = 2.0**128 - 2.0**103
"""Where numbers begin that Float32 rounds to infinity."""
SCALE_DTYPES = (DType.E8M0, UInt8)
#: What the fixpipe can write, by the dtype in the accumulator.
ACC_STORE_DTYPES: Mapping[DType, tuple[DType, ...]] = {
    DType.Float32: (DType.Float32, BFloat16, Float16),
    DType.Int32: (DType.Int32,),
}
#: What the fixpipe writes besides once it has multiplied by a number.
PRE_QUANT_DTYPES = (DType.E4M3, DType.E5M2, DType.Int8, UInt8)
SCALE_LAYOUT = {
    MemorySpace.LeftScale: TensorLayout.MX_A_ZZ,
    MemorySpace.RightScale: TensorLayout.MX_B_NN,
}
_L0 = (MemorySpace.Left, MemorySpace.Right, MemorySpace.Bias, *SCALE_LAYOUT)
#: Where a tile can be moved from each memory.
MOVES: Mapping[MemorySpace, tuple[MemorySpace, ...]] = {
    MemorySpace.Mat: _L0,
    MemorySpace.Vec: (MemorySpace.Mat,),
    MemorySpace.Acc: (MemorySpace.Vec, MemorySpace.Mat),
}
#: Where a load can go.
LOAD_TARGETS = (MemorySpace.Vec, MemorySpace.Mat)
#: Ranks of a tensor in NZ before it is cut into boxes.
NZ_RANKS = range(2, NZ_BLOCKED_RANK)


# --------------------------------------------------------------------------- load


def complete_load(site: CallSite) -> tuple[Expr, ...]:
    """Return the operands of a load with the valid shape, which defaults to the window."""
    tensor, offsets, window, *valid = site.args
    return (tensor, offsets, window, *(valid or (window,)))


def default_load_target(operands: Sequence[Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return Mat as the target of a load of MX scales, or from NZ, that names none."""
    source = getattr(operands[0], "type", None) if operands else None
    boxed = isinstance(source, TensorType) and (
        source.layout.is_mx or source.layout is TensorLayout.NZ
    )
    if boxed and attributes.get("target_memory") is None:
        return {"target_memory": MemorySpace.Mat}
    return {}


def infer_load(site: CallSite) -> TileType:
    """Return the tile of a load from a tensor in its logical shape."""
    tensor = operand_type(site, 0, TensorType)
    offsets, window, valid = (operand_dims(site, i) for i in (1, 2, 3))
    for dims, what in ((offsets, "offsets"), (window, "shapes"), (valid, "valid_shape")):
        check_rank(site, dims, len(tensor.shape), what, "the tensor")
    if tensor.layout is TensorLayout.NZ and len(tensor.shape) not in NZ_RANKS:
        message = f"a tensor in NZ must have rank 2 to {NZ_RANKS[-1]}, not {len(tensor.shape)}"
        raise site.value_error(message)
    check_shape(site, window, tensor.dtype)
    check_offsets(site, offsets, tensor.dtype)
    space = site.kwargs.get("target_memory")
    if space is not None and space not in LOAD_TARGETS:
        message = f"target_memory must be Vec or Mat, not {space.name}"
        hint = f"load to Mat, then pl.move to {space.name}"
        if space not in MOVES[MemorySpace.Mat]:
            hint = f"nothing is loaded to {space.name}; ops that multiply put their sums into Acc"
        raise site.value_error(message, hint)
    check_valid_shape(site, valid, window)
    source = tensor.valid_shape or tensor.shape
    if site.kwargs.get("clamp"):
        valid = clamped_extents(offsets, valid, source)
    else:
        check_window(site, offsets, valid, source, what="what is loaded", hint=LOADED_LESS)
    if tensor.layout.is_mx:
        view = _scale_load_view(site, tensor, offsets, window, valid)
    elif tensor.layout is TensorLayout.DN and space is MemorySpace.Mat:
        view = TileView(valid, blayout=TileLayout.row_major, slayout=TileLayout.col_major)
    else:
        view = view_with_valid(implicit_tile_view(window, space), valid)
    return TileType(window, tensor.dtype, None, view, space)


def _scale_load_view(
    site: CallSite, tensor: TensorType, offsets: Dims, window: Dims, valid: Dims
) -> TileView:
    layout = tensor.layout.name
    if tensor.dtype not in SCALE_DTYPES:
        message = f"a tensor in {layout} must hold E8M0 or UInt8, not {tensor.dtype.name}"
        raise site.type_error(message)
    if len(tensor.shape) != TILE_RANK:
        message = f"a tensor in {layout} must have rank 2, not {len(tensor.shape)}"
        raise site.value_error(message)
    if tensor.stride and not is_packed(tensor):
        message = f"a tensor in {layout} must be packed, not of stride {show_dims(tensor.stride)}"
        raise site.value_error(message)
    if site.kwargs.get("target_memory") is not MemorySpace.Mat:
        found = site.kwargs.get("target_memory")
        named = "another one" if found is None else found.name
        message = f"a load from {layout} requires target_memory=MemorySpace.Mat, not {named}"
        raise site.value_error(message)
    check_window(site, offsets, window, tensor.shape, what="the window of scale boxes")
    blayout, slayout, fractal = SCALE_ARRANGEMENT[tensor.layout]
    return TileView(valid, blayout=blayout, slayout=slayout, fractal=fractal)


def is_packed(tensor: TensorType) -> bool:
    """Return whether a tensor's strides are those of a packed row-major one."""
    shape, stride = constant_dims(tensor.shape), constant_dims(tensor.stride)
    if shape is None or stride is None or len(shape) != len(stride):
        return False
    step = 1
    for dim, found in zip(reversed(shape), reversed(stride), strict=True):
        if dim != 1 and found != step:
            return False
        step *= dim
    return True


# --------------------------------------------------------------------------- store


def infer_store(site: CallSite) -> TensorType:
    """Return the tensor of a store: the output tensor with a new value."""
    tile = operand_type(site, 0, TileType)
    offsets = operand_dims(site, 1)
    tensor = operand_type(site, 2, TensorType)
    _check_store_source(site, tile, tensor)
    check_rank(site, offsets, len(tensor.shape), "offsets", "the output tensor")
    check_offsets(site, offsets, tensor.dtype)
    extents = tile.valid_shape
    if len(site.args) > 3:
        window = operand_dims(site, 3)
        check_rank(site, window, len(tensor.shape), "shapes", "the output tensor")
        _check_same_count(site, window, tile)
        extents = window
    elif len(tile.shape) != len(tensor.shape):
        message = (
            f"a tile of rank {len(tile.shape)} must go into a tensor of that rank, "
            f"not {len(tensor.shape)}"
        )
        raise site.value_error(message, "give shapes, the window in the tensor's rank")
    check_window(site, offsets, extents, tensor.shape, what="what is stored", hint=STORED_LESS)
    return tensor


def _check_store_source(site: CallSite, tile: TileType, tensor: TensorType) -> None:
    space = tile.memory_space
    if space is not None and space in (*_L0, MemorySpace.ScalarLocal):
        message = f"a tile must be stored from Acc or Vec, not from {space.name}"
        raise site.value_error(message)
    if site.kwargs.get("pre_relu"):
        check_fixpipe(site, tile, "pre_relu", "pl.relu takes a tile in Vec")
    if site.kwargs.get("pre_quant") is not None:
        check_fixpipe(site, tile, "pre_quant", "pl.mul and pl.cast take a tile in Vec")
    allowed = stored_dtypes(tile, site.kwargs)
    if tensor.dtype not in allowed:
        names = ", ".join(dtype.name for dtype in allowed)
        where = f" in {space.name}" if space is not None else ""
        message = (
            f"a tile of {tile.dtype.name}{where} must be stored as {names}, "
            f"not into a tensor of {tensor.dtype.name}"
        )
        if tensor.dtype in stored_dtypes(tile, {"pre_quant": 1.0}):
            raise site.type_error(message, SCALED_HINT)
        in_vec = space is MemorySpace.Vec
        raise site.type_error(message, "pl.cast converts the tile first" if in_vec else None)


def stored_dtypes(tile: TileType, kwargs: Mapping[str, Any]) -> tuple[DType, ...]:
    """Return the dtypes that a store of a tile with these attributes can write."""
    if tile.memory_space is not MemorySpace.Acc:
        return (tile.dtype,)
    plain = ACC_STORE_DTYPES.get(tile.dtype, ())
    scaled = kwargs.get("pre_quant") is not None and tile.dtype is DType.Float32
    return (*plain, *PRE_QUANT_DTYPES) if scaled else plain


def read_pre_quant(given: object) -> float:
    """Return the number by which a store multiplies, as the Float32 that the fixpipe has.

    Raises:
        IRValueError: For what is no finite number, or one that Float32 does not reach.
    """
    number = given if isinstance(given, int | float) and not isinstance(given, bool) else math.nan
    if not abs(number) < FLOAT32_REACH:
        message = f"pre_quant must be a finite number of Float32, not {given!r}"
        raise IRValueError(message, hint="a constant; sums are multiplied by it")
    return float(np.float32(number))


def check_fixpipe(site: CallSite, tile: TileType, name: str, hint: str) -> None:
    """Refuse what is done on the way of a tile that the fixpipe does not store as Float32 numbers."""
    if tile.memory_space is MemorySpace.Acc and tile.dtype is DType.Float32:
        return
    message = (
        f"{name} must be for a tile of Float32 in Acc, not of {tile.dtype.name} in "
        f"{space_name(tile)}"
    )
    raise site.type_error(message, hint)


def _check_same_count(site: CallSite, window: Dims, tile: TileType) -> None:
    """Check that shapes hold what is valid of a tile, row by row where that is not all of it."""
    valid, found = constant_dims(tile.valid_shape), constant_dims(window)
    if valid is None or found is None:
        return
    partial = not same_dims(tile.valid_shape, tile.shape)
    if _product(valid) != _product(found):
        message = (
            f"shapes must hold the {_product(valid)} {'valid ' if partial else ''}elements of the tile "
            f"{show_dims(tile.valid_shape)}, not the {_product(found)} of {show_dims(window)}"
        )
        raise site.value_error(message)
    if partial and found[-1] != valid[-1]:
        message = (
            f"shapes of a tile that is valid in part must keep its rows of {valid[-1]} elements, "
            f"not make them {found[-1]}"
        )
        raise site.value_error(message)


def _product(values: Sequence[int]) -> int:
    result = 1
    for value in values:
        result *= value
    return result


def is_row_of_scales(tile: TileType, layout: TensorLayout) -> bool:
    """Return whether a tile is one plain row of scales, which is what the row of a gemv has."""
    plain = implicit_tile_view(tile.shape, MemorySpace.Bias).arrangement
    return (
        layout is TensorLayout.MX_A_ZZ
        and constant_dim(tile.shape[0]) == 1
        and tile.get_effective_tile_view().arrangement == plain
    )


def scale_hint(layout: TensorLayout) -> str:
    """Return how a scale tensor comes to be in `layout`."""
    side, axis = ("left", 1) if layout is TensorLayout.MX_A_ZZ else ("right", 0)
    return (
        f"annotate the {side} operand's scales pl.Tensor[[…], pl.FP8E8M0, pl.{layout.name}] "
        f"and give their bytes in box order; pl.quant_mx makes them with group_axis={axis}"
    )


def view_with_valid(view: TileView, valid: Dims) -> TileView:
    """Return `view` with another valid shape."""
    return TileView(
        valid, view.stride, view.start_offset, view.blayout, view.slayout, view.fractal, view.pad,
        view.compact,
    )  # fmt: skip


def space_name(tile: TileType) -> str:
    """Return where a tile lies, for an error message."""
    return "a memory that is not known yet" if tile.memory_space is None else tile.memory_space.name
