"""Type rules of the block-scaled matmuls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from ..dtypes.boxes import GROUP
from ..expr import Expr, index
from ..types import (
    SCALE_ARRANGEMENT,
    CompactMode,
    MemorySpace,
    TileType,
    TileView,
    constant_dim,
    implicit_tile_view,
)
from .checks import arrangement_name, operand_type, same_dim, same_dims, show_dims
from .cube_formats import OPERAND_SETS
from .rules_forms import flat_tile
from .rules_memory import SCALE_DTYPES, SCALE_LAYOUT, is_row_of_scales, scale_hint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..types import Dims
    from .row import CallSite

_RANK = 2
#: What the physical extents of a matmul must be multiples of.
MULTIPLES = {"M": 16, "K": 64, "N": 32}


def infer_matmul_mx(site: CallSite) -> TileType:
    """Return the accumulator of lhs times rhs."""
    return _product_type(site, first=0)


def infer_matmul_mx_acc(site: CallSite) -> TileType:
    """Return the accumulator after the product of lhs and rhs was added to it."""
    product = _product_type(site, first=1)
    check_acc(site, product)
    return product


def infer_matmul_mx_bias(site: CallSite) -> TileType:
    """Return the accumulator of lhs times rhs, started from a row of biases."""
    product = _product_type(site, first=0)
    check_bias(site, 4, product)
    return product


def check_acc(site: CallSite, product: TileType) -> None:
    """Refuse a first operand that is no accumulator for a product."""
    acc = operand_type(site, 0, TileType)
    check_space(site, 0)
    if acc.dtype is not product.dtype:
        message = f"acc must hold {product.dtype.name}, not {acc.dtype.name}"
        raise site.type_error(message)
    if not same_dims(acc.shape, product.shape):
        message = f"acc must be {show_dims(product.shape)}, not {show_dims(acc.shape)}"
        raise site.value_error(message)
    if not same_dims(acc.valid_shape, product.valid_shape):
        message = (
            f"the valid shape of acc must be {show_dims(product.valid_shape)}, "
            f"not {show_dims(acc.valid_shape)}"
        )
        raise site.value_error(message, "pl.set_validshape narrows a tile of pl.create_tile")


def check_bias(site: CallSite, position: int, product: TileType) -> None:
    """Refuse an operand that is no row of biases for a product."""
    bias = operand_type(site, position, TileType)
    check_space(site, position)
    if bias.dtype is not product.dtype:
        message = f"bias must hold {product.dtype.name}, not {bias.dtype.name}"
        raise site.type_error(message)
    one = index(1)
    wanted, valid = (one, product.shape[-1]), (one, product.valid_shape[-1])
    if not same_dims(bias.shape, wanted):
        message = f"bias must be {show_dims(wanted)}, not {show_dims(bias.shape)}"
        raise site.value_error(message)
    if not same_dims(bias.valid_shape, valid):
        message = (
            f"the valid shape of bias must be {show_dims(valid)}, not {show_dims(bias.valid_shape)}"
        )
        raise site.value_error(message)


def _product_type(site: CallSite, *, first: int) -> TileType:
    gemv = site.row.name.startswith("tile.gemv")
    lhs, lhs_scale, rhs, rhs_scale = (
        operand_type(site, position, TileType) for position in range(first, first + 4)
    )
    for position in range(first, first + 4):
        check_space(site, position)
    check_pair(site, lhs.dtype, rhs.dtype)
    ones = (index(1),) * (len(lhs.shape) - _RANK)  # the rows of the result are those of lhs
    lhs, rhs = matrix(site, "lhs", lhs), matrix(site, "rhs", rhs)
    check_extents(site, lhs, rhs, {**MULTIPLES, "M": 1} if gemv else MULTIPLES)
    if gemv:
        check_row(site, first, lhs)
    if site.args[first + 1] is site.args[first + 3]:
        message = "lhs_scale and rhs_scale must be two tiles, not the same one"
        raise site.value_error(message)
    _check_scale(site, first + 1, lhs_scale, lhs, k_axis=1)
    _check_scale(site, first + 3, rhs_scale, rhs, k_axis=0)
    return accumulator(ones, lhs, rhs, DType.Float32)


def check_row(site: CallSite, position: int, lhs: TileType) -> None:
    """Refuse a left operand that is more than one row."""
    if constant_dim(lhs.shape[0]) != 1:
        name = site.row.operands[position].name
        message = f"{name} must be a row [1, K], not {show_dims(lhs.shape)}"
        raise site.value_error(message, "pl.matmul and pl.matmul_mx take a matrix")


def accumulator(ones: Dims, lhs: TileType, rhs: TileType, dtype: DType) -> TileType:
    """Return the type of the product of two matrices; `ones` are leading axes of one element."""
    shape = (*ones, lhs.shape[0], rhs.shape[1])
    valid = (*ones, lhs.valid_shape[0], rhs.valid_shape[1])
    place = implicit_tile_view(shape, MemorySpace.Acc)
    full_rows = same_dim(valid[-2], shape[-2]) is True
    view = TileView(
        valid,
        blayout=place.blayout,
        slayout=place.slayout,
        fractal=place.fractal,
        compact=CompactMode.null if full_rows else CompactMode.normal,
    )
    return TileType(shape, dtype, None, view, MemorySpace.Acc)


def check_space(site: CallSite, position: int) -> None:
    """Refuse a tile that was placed elsewhere; one that is unplaced, in Mat or in Vec can still move."""
    operand = site.row.operands[position]
    space = operand_type(site, position, TileType).memory_space
    (wanted,) = operand.spaces
    movable = wanted is not MemorySpace.Acc and space in (MemorySpace.Mat, MemorySpace.Vec)
    if space is not None and space is not wanted and not movable:
        message = f"{operand.name} must lie in {wanted.name}, not in {space.name}"
        hint = f"load it to pl.Mem.Mat, and pl.move it from there to pl.Mem.{wanted.name}"
        if wanted is MemorySpace.Acc:
            hint = "nothing is moved to Acc; begin with a sum that pl.matmul or pl.matmul_mx makes"
        elif space is MemorySpace.Acc:
            hint = "pl.move it to pl.Mem.Vec, from where the compiler takes it on"
        raise site.value_error(message, hint)


def check_pair(site: CallSite, lhs: DType, rhs: DType) -> None:
    """Refuse two element dtypes that the cube does not multiply with each other."""
    pair = (lhs, rhs)
    if any(all(dtype in legal for dtype in pair) for legal in OPERAND_SETS):
        return
    sets = " or ".join(f"both from {{{', '.join(d.name for d in s)}}}" for s in OPERAND_SETS)
    message = f"lhs and rhs must be {sets}, not {lhs.name} and {rhs.name}"
    mixed = all(any(dtype in legal for legal in OPERAND_SETS) for dtype in pair)
    hint = "cast the 4-bit operand to E4M3 first (pl.cast): the cube has no FP8 x FP4 product"
    raise site.type_error(message, hint if mixed else None)


def matrix(site: CallSite, name: str, tile: TileType) -> TileType:
    """Return the tile as a matrix: of a higher rank it must be one, each extent before it 1."""
    if len(tile.shape) < _RANK:
        message = f"{name} must have rank {_RANK}, not {len(tile.shape)}"
        raise site.value_error(message)
    if any(constant_dim(dim) != 1 for dim in tile.shape[:-_RANK]):
        message = f"{name} must be one matrix, not the several of {show_dims(tile.shape)}"
        raise site.value_error(message)
    return flat_tile(tile)


def check_extents(
    site: CallSite, lhs: TileType, rhs: TileType, multiples: Mapping[str, int]
) -> None:
    """Refuse operands whose physical extents are no multiples, or that do not agree in K."""
    found = {"M": lhs.shape[0], "K": lhs.shape[1], "N": rhs.shape[1]}
    for name, dim in found.items():
        value = constant_dim(dim)
        if value is not None and value % multiples[name]:
            message = f"the physical {name} must be a multiple of {multiples[name]}, not {value}"
            hint = "load a larger window and narrow it by valid_shape"
            raise site.value_error(message, hint)
    for name, tile in (("lhs", lhs), ("rhs", rhs)):
        if any(constant_dim(dim) == 0 for dim in tile.valid_shape):
            valid = show_dims(tile.valid_shape)
            message = f"{name} must have valid elements, not the valid shape {valid}"
            raise site.value_error(message)
    check_equal(site, "the physical K", lhs.shape[1], rhs.shape[0])
    check_equal(site, "the valid K", lhs.valid_shape[1], rhs.valid_shape[0])


def check_equal(site: CallSite, what: str, left: Expr, right: Expr) -> None:
    """Refuse two extents, of lhs and of rhs, that provably differ."""
    if same_dim(left, right) is False:
        a, b = constant_dim(left), constant_dim(right)
        message = f"{what} must be the same on both sides, but lhs has {a} and rhs has {b}"
        raise site.value_error(message)


def _check_scale(
    site: CallSite, position: int, scale: TileType, data: TileType, *, k_axis: int
) -> None:
    operand = site.row.operands[position]
    name, (space,) = operand.name, operand.spaces
    layout = SCALE_LAYOUT[space]
    # Bytes that are still in Mat become E8M0 on their move into the scale buffer.
    unmoved = scale.memory_space is MemorySpace.Mat and scale.dtype in SCALE_DTYPES
    if scale.dtype is not DType.E8M0 and not unmoved:
        message = f"{name} must hold E8M0, not {scale.dtype.name}"
        raise site.type_error(message)
    found = scale.get_effective_tile_view()
    one_row = site.row.name.startswith("tile.gemv") and is_row_of_scales(scale, layout)
    if found.arrangement != SCALE_ARRANGEMENT[layout] and not one_row:
        message = (
            f"{name} must come from a tensor in {layout.name}, not in {arrangement_name(found)}"
        )
        raise site.value_error(message, scale_hint(layout))
    wanted = scale_shape(data.shape, k_axis)
    if not same_dims(scale.shape, wanted):
        message = (
            f"{name} must be {show_dims(wanted)}, one scale for {GROUP} elements along K, "
            f"not {show_dims(scale.shape)}"
        )
        raise site.value_error(message)
    least = scale_shape(data.valid_shape, k_axis)
    for has, needs in zip(scale.valid_shape, least, strict=True):
        a, b = constant_dim(has), constant_dim(needs)
        if a is not None and b is not None and a < b:
            message = (
                f"the valid shape of {name} must cover {show_dims(least)}, "
                f"not {show_dims(scale.valid_shape)}"
            )
            raise site.value_error(message)


def scale_shape(dims: tuple[Expr, ...], k_axis: int) -> tuple[Expr, ...]:
    """Return `dims` with the K axis counted in groups; a symbolic extent stays as it is."""
    groups = constant_dim(dims[k_axis])
    if groups is None:
        return dims
    counted = index(-(-groups // GROUP))
    return (dims[0], counted) if k_axis == 1 else (counted, dims[1])
