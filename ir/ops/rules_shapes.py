"""Type rules of the ops that make tiles, turn them, cut them and put them together."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from ..dtypes import DType, Index, Int64, SimpleDType, UInt64
from ..dtypes.boxes import BOX_ROWS
from ..dtypes.formats import INTEGER_FORMATS
from ..expr import Expr, ScalarType, index
from ..numerics.functions import NUMBERS
from ..types import (
    SCALE_ARRANGEMENT,
    CompactMode,
    MemorySpace,
    PadValue,
    TensorLayout,
    TensorType,
    TileType,
    constant_dim,
    constant_dims,
    implicit_tile_view,
)
from .checks import (
    arrangement_name,
    check_offsets,
    check_rank,
    check_shape,
    check_window,
    operand_dims,
    operand_type,
    same_dim,
    same_dims,
    show_dims,
)
from .rules_memory import view_with_valid
from .rules_slice import check_dropped, kept, pads, valid_part
from .rules_vector import array, check_same_dtype, check_scalar, literal_of, made, valid_of
from .rules_window import valid_extent

if TYPE_CHECKING:
    from ..types import Dims
    from .row import CallSite
    from .rules_vector import Array

_RANK = 2
#: What can be moved about in Vec: all that the vector core computes with, masks, and elements of MX.
MOVABLE: tuple[DType, ...] = (*NUMBERS, DType.Bool, DType.E4M3, DType.E5M2, DType.E2M1)
#: What a scalar can hold of an array.
READABLE: tuple[DType, ...] = (*NUMBERS, DType.Bool, Int64, UInt64, Index)
_CREATED_IN = (
    MemorySpace.Vec,
    MemorySpace.Mat,
    MemorySpace.Left,
    MemorySpace.Right,
    MemorySpace.Acc,
    MemorySpace.Bias,
)


# --------------------------------------------------------------------------- new tiles


def infer_create_tile(site: CallSite) -> TileType:
    """Return the type of a tile whose content nobody has written."""
    shape, dtype = operand_dims(site, 0), site.kwargs["dtype"]
    space: MemorySpace = site.row.attribute(site.kwargs, "target_memory")
    _check_constant(site, shape)
    if not isinstance(dtype, SimpleDType):
        message = f"dtype must be simple, not {dtype.name}"
        raise site.type_error(message)
    if space not in _CREATED_IN:
        names = ", ".join(each.name for each in _CREATED_IN)
        message = f"target_memory must be one of {names}, not {space.name}"
        raise site.value_error(message, "scales are loaded to Mat and moved to their buffer")
    check_shape(site, shape, dtype)
    return TileType(shape, dtype, None, None, space)


def infer_full(site: CallSite) -> Array:
    """Return the type of a tile, or a tensor, of one value."""
    shape, dtype = operand_dims(site, 0), site.kwargs["dtype"]
    _check_constant(site, shape)
    if dtype not in NUMBERS:
        names = ", ".join(each.name for each in NUMBERS)
        message = f"dtype must be one of {names}, not {dtype.name}"
        raise site.type_error(message)
    check_shape(site, shape, dtype)
    check_scalar(site, 1, dtype)
    if site.row.name.startswith("tensor."):
        return TensorType(shape, dtype)
    return TileType(shape, dtype, None, None, MemorySpace.Vec)


def complete_full(site: CallSite) -> tuple[Expr, ...]:
    """Return the operands with a literal as a constant of the dtype asked for."""
    return (site.args[0], literal_of(site, 1, site.kwargs["dtype"]))


def _check_constant(site: CallSite, shape: Dims) -> None:
    if constant_dims(shape) is None:
        message = f"shape must be constant, not {show_dims(shape)}"
        raise site.value_error(message)


# --------------------------------------------------------------------------- other shapes


def axes_of(site: CallSite, rank: int) -> tuple[int, int]:
    """Return the two axes that a transposition exchanges, counted from the first.

    Raises:
        IRValueError: For an axis that is not there.
    """
    return _axis(site, "axis1", rank), _axis(site, "axis2", rank)


def _axis(site: CallSite, name: str, rank: int) -> int:
    """Return the axis that an attribute names, counted from the first."""
    axis = site.row.attribute(site.kwargs, name)
    if isinstance(axis, bool) or not -rank <= axis < rank:
        message = f"{name} must be in {-rank}..{rank - 1}, not {axis}"
        raise site.value_error(message)
    return axis % rank


def infer_transpose(site: CallSite) -> Array:
    """Return the type of an array with two axes exchanged."""
    x = array(site, 0, MOVABLE)
    if isinstance(x, TileType) and len(x.shape) != _RANK:
        message = f"x must have rank {_RANK}, not {len(x.shape)}"
        raise site.value_error(message)
    first, second = axes_of(site, len(x.shape))
    shape, valid = list(x.shape), list(valid_of(x))
    for dims in (shape, valid):
        dims[first], dims[second] = dims[second], dims[first]
    check_shape(site, tuple(shape), x.dtype)
    return made(x, tuple(shape), tuple(valid), x.dtype)


def infer_reshape(site: CallSite) -> Array:
    """Return the type of the same elements, row after row, in another shape."""
    x, shape = array(site, 0, MOVABLE), operand_dims(site, 1)
    _check_constant(site, shape)
    check_shape(site, shape, x.dtype)
    if not same_dims(valid_of(x), x.shape):
        message = (
            f"x must be valid as a whole, not only {show_dims(valid_of(x))} of {show_dims(x.shape)}"
        )
        raise site.value_error(message, "pl.fillpad fills the rest of a tile up")
    before, after = constant_dims(x.shape), constant_dims(shape)
    if before is not None and after is not None and prod(before) != prod(after):
        message = (
            f"shape must hold the {prod(before)} elements of {show_dims(x.shape)}, not the "
            f"{prod(after)} of {show_dims(shape)}"
        )
        raise site.value_error(message)
    return made(x, shape, shape, x.dtype)


def infer_concat(site: CallSite) -> Array:
    """Return the type of two arrays side by side."""
    a, b = array(site, 0, MOVABLE), array(site, 1, MOVABLE)
    check_same_dtype(site, 0, 1)
    *rows, last = a.shape
    *others, width = b.shape
    if not same_dims(tuple(rows), tuple(others)):
        message = (
            f"a and b must agree in all extents but the last, not be {show_dims(a.shape)} and "
            f"{show_dims(b.shape)}"
        )
        raise site.value_error(message)
    if same_dim(valid_of(a)[-1], last) is False:
        message = (
            f"a must be valid up to its last column, where b follows, not only in "
            f"{show_dims(valid_of(a))} of {show_dims(a.shape)}"
        )
        raise site.value_error(message)
    if not same_dims(valid_of(a)[:-1], valid_of(b)[:-1]):
        message = (
            f"a and b must be valid in the same rows, not in {show_dims(valid_of(a))} and "
            f"{show_dims(valid_of(b))}"
        )
        raise site.value_error(message)
    columns = constant_dims((last, width))
    if columns is None:
        message = (
            f"a and b must have constant columns, not {show_dims(a.shape)} and {show_dims(b.shape)}"
        )
        raise site.value_error(message)
    whole = (*rows, index(sum(columns)))
    end = constant_dim(valid_of(b)[-1])
    if end is None:
        message = f"the valid columns of b must be constant, not {show_dims(valid_of(b))}"
        raise site.value_error(message)
    valid = (*valid_of(a)[:-1], index(columns[0] + end))
    return made(a, whole, valid, a.dtype)


# --------------------------------------------------------------------------- windows


def infer_slice(site: CallSite) -> TileType:
    """Return the type of a window of a tile, valid as far as the tile is."""
    tile = operand_type(site, 0, TileType)
    _check_in_vec(site, 0, tile)
    shape, offset = operand_dims(site, 1), operand_dims(site, 2)
    for dims, what in ((shape, "shape"), (offset, "offset")):
        check_rank(site, dims, len(tile.shape), what, "the tile")
    _check_constant(site, shape)
    check_shape(site, shape, tile.dtype)
    check_offsets(site, offset, tile.dtype)
    valid = valid_part(site, offset, shape, tile.valid_shape, owner="the tile")
    if valid is None:
        check_window(site, offset, shape, tile.shape, what="the window", owner="the tile")
        extents = zip(offset, shape, tile.valid_shape, tile.shape, strict=True)
        valid = tuple(valid_extent(site, *each) for each in extents)
    check_dropped(site, shape)
    shape, valid = kept(site, shape), kept(site, valid)
    view = view_with_valid(
        implicit_tile_view(shape, MemorySpace.Vec), shape if pads(site) else valid
    )
    return TileType(shape, tile.dtype, None, view, MemorySpace.Vec)


def _check_in_vec(site: CallSite, position: int, tile: TileType) -> None:
    if tile.memory_space not in (None, MemorySpace.Vec):
        name = site.row.operands[position].name
        message = f"{name} must lie in Vec, not in {tile.memory_space.name}"
        hint = "pl.tile.extract takes a window of a tile in Mat"
        raise site.value_error(message, hint if tile.memory_space is MemorySpace.Mat else None)


def infer_assemble(site: CallSite) -> TileType:
    """Return the type of the target, a window of which another tile has replaced."""
    target, source = (operand_type(site, position, TileType) for position in (0, 1))
    for position, tile in ((0, target), (1, source)):
        _check_in_vec(site, position, tile)
    offset = operand_dims(site, 2)
    if target.dtype is not source.dtype:
        message = (
            f"target and source must hold one dtype, not {target.dtype.name} and "
            f"{source.dtype.name}"
        )
        raise site.type_error(message, "pl.cast converts one of them")
    check_rank(site, source.shape, len(target.shape), "source", "the target")
    check_rank(site, offset, len(target.shape), "offset", "the target")
    check_offsets(site, offset, target.dtype)
    what = "the valid part of source"
    owner = "the valid part of target"
    check_window(site, offset, source.valid_shape, target.valid_shape, what=what, owner=owner)
    return _changed(target)


def _changed(tile: TileType) -> TileType:
    """Return the type of a tile in Vec that has been changed in part: its view stays."""
    own = implicit_tile_view(tile.shape, MemorySpace.Vec)
    view = tile.tile_view if tile.memory_space is MemorySpace.Vec else None
    kept = view_with_valid(view or own, tile.valid_shape)
    return TileType(tile.shape, tile.dtype, None, kept, MemorySpace.Vec)


# --------------------------------------------------------------------------- valid shapes


def infer_set_valid(site: CallSite) -> TileType:
    """Return the type of a tile of which less is valid."""
    tile = operand_type(site, 0, TileType)
    if len(tile.shape) != _RANK:
        message = f"x must have rank {_RANK}, not {len(tile.shape)}"
        raise site.value_error(message)
    valid: list[Expr] = []
    for position, has in zip((1, 2), tile.valid_shape, strict=True):
        given, name = site.args[position], site.row.operands[position].name
        if not isinstance(given.type, ScalarType) or given.type.dtype not in INTEGER_FORMATS:
            message = f"{name} must be an integer, not a scalar of another kind"
            raise site.type_error(message)
        size, limit = constant_dim(given), constant_dim(has)
        if size is not None and limit is not None and not 0 < size <= limit:
            message = f"{name} must be in 1..{limit}, what is valid now, not {size}"
            hint = "pl.fillpad makes all of a tile valid"
            raise site.value_error(message, hint if size > limit else None)
        valid.append(given)
    view = view_with_valid(tile.get_effective_tile_view(), tuple(valid))
    if tile.memory_space is MemorySpace.Acc and _in_last_box(valid[0], tile.shape[0]):
        view = replace(view, compact=CompactMode.normal)
    return TileType(tile.shape, tile.dtype, None, view, tile.memory_space)


def _in_last_box(valid: Expr, rows: Expr) -> bool:
    """Return whether valid rows end in the last box of a tile, where compact boxes stand no closer."""
    some, every = constant_dim(valid), constant_dim(rows)
    if some is None or every is None:
        return False
    return some < every and -(-some // BOX_ROWS) == -(-every // BOX_ROWS)


def infer_fillpad(site: CallSite) -> TileType:
    """Return the type of a tile that is valid as a whole.

    The view says no pad: that would be what lies beyond the valid part, and nothing does.
    """
    x = array(site, 0, NUMBERS)
    assert isinstance(x, TileType), x
    _check_pad_value(site)
    view = implicit_tile_view(x.shape, MemorySpace.Vec)
    return TileType(x.shape, x.dtype, None, view, MemorySpace.Vec)


def infer_fillpad_mat(site: CallSite) -> TileType:
    """Return the type of a tile in Mat that is valid as a whole, in the arrangement that it had."""
    x = operand_type(site, 0, TileType)
    if x.memory_space is not MemorySpace.Mat:
        found = "a memory that is not known yet" if x.memory_space is None else x.memory_space.name
        message = f"x must lie in Mat, not in {found}"
        raise site.value_error(message, "pl.fillpad takes a tile in Vec as well")
    if len(x.shape) != _RANK:
        message = f"x must have rank {_RANK}, not {len(x.shape)}"
        raise site.value_error(message)
    view = x.get_effective_tile_view()
    if x.dtype is DType.E8M0 or view.arrangement in SCALE_ARRANGEMENT.values():
        message = (
            f"x must hold elements, not scales in {arrangement_name(view)}, which have no zero"
        )
        raise site.type_error(message, "fill the data up: where it is zero, scales do not matter")
    pad = site.row.attribute(site.kwargs, "pad_value")
    if pad is not PadValue.zero:
        message = (
            f"pad_value must be zero in Mat, which is filled up with zeros only, not {pad.name}"
        )
        raise site.value_error(message, "a tile in Vec can be filled up with max and min")
    return TileType(x.shape, x.dtype, None, view_with_valid(view, x.shape), MemorySpace.Mat)


def infer_fillpad_tensor(site: CallSite) -> TensorType:
    """Return the type of a fresh tensor that is valid as a whole."""
    x = operand_type(site, 0, TensorType)
    _check_pad_value(site)
    if x.dtype not in NUMBERS or x.layout is not TensorLayout.ND:
        names = ", ".join(each.name for each in NUMBERS)
        message = f"x must hold {names} row by row, not {x.dtype.name} in {x.layout.name}"
        raise site.type_error(message)
    return TensorType(x.shape, x.dtype)


def _check_pad_value(site: CallSite) -> None:
    if site.row.attribute(site.kwargs, "pad_value") is PadValue.null:
        message = "pad_value must be zero, max or min, not null"
        raise site.value_error(message)


# --------------------------------------------------------------------------- single elements


def infer_read(site: CallSite) -> ScalarType:
    """Return the type of one element."""
    dtype = _element(site)
    return ScalarType(dtype)


def infer_write(site: CallSite) -> Array:
    """Return the type of an array of which one element has another value."""
    dtype = _element(site)
    check_scalar(site, 2, dtype)
    x = array(site, 0, READABLE)
    return _changed(x) if isinstance(x, TileType) else x


def _element(site: CallSite) -> SimpleDType:
    """Return the dtype of the element at an index, once both are known to be good."""
    x = array(site, 0, READABLE)
    if isinstance(x, TileType):
        _check_in_vec(site, 0, x)
    at = operand_dims(site, 1)
    check_rank(site, at, len(x.shape), "idx", "x")
    check_offsets(site, at, x.dtype)
    ones = (index(1),) * len(at)
    check_window(site, at, ones, valid_of(x), what="the element", owner="what is valid of x")
    assert isinstance(x.dtype, SimpleDType), x
    return x.dtype


def infer_dim(site: CallSite) -> ScalarType:
    """Return the type of an extent of a tensor."""
    _axis(site, "axis", len(operand_type(site, 0, TensorType).shape))
    return ScalarType(Index)
