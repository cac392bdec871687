"""Type rules of the vector core's ops that go element by element, on tiles and on tensors alike.

What lies beyond a valid shape is neither read nor written: operands must agree in it, and the result
takes it over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType, Index, SimpleDType
from ..dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS
from ..expr import ConstFloat, ConstInt, Expr, ScalarType
from ..numerics.functions import NUMBERS
from ..types import (
    MemorySpace,
    TensorLayout,
    TensorType,
    TileType,
    constant_dim,
    implicit_tile_view,
)
from .checks import same_dims, show_dims
from .rules_memory import view_with_valid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..numerics.functions import Binary, Unary
    from ..types import Dims
    from .row import CallSite

    Array = TileType | TensorType

_REACHES_VEC = (None, MemorySpace.Vec, MemorySpace.Acc)


def array(
    site: CallSite, position: int, dtypes: Sequence[DType] = NUMBERS, *, rank: int | None = None
) -> Array:
    """Return the type of a tile or tensor operand that the vector core can work on.

    Args:
        site: The call.
        position: Which operand.
        dtypes: What it may hold.
        rank: How many axes it must have.

    Raises:
        IRTypeError: For another dtype.
        IRValueError: For another rank, a tile that lies elsewhere, or a tensor that is not whole.
    """
    name = site.row.operands[position].name
    found = site.args[position].type
    assert isinstance(found, TileType | TensorType), f"{site.row.name}: {name} is {found!r}"
    if found.dtype not in dtypes:
        names = ", ".join(dtype.name for dtype in dtypes)
        message = f"{name} must hold {names}, not {found.dtype.name}"
        raise site.type_error(message, "pl.cast converts what is in Vec to another dtype")
    if rank is not None and len(found.shape) != rank:
        message = f"{name} must have rank {rank}, not {len(found.shape)}"
        raise site.value_error(message)
    if isinstance(found, TileType):
        _check_tile(site, name, found)
    else:
        check_whole_tensor(site, name, found)
    return found


def _check_tile(site: CallSite, name: str, tile: TileType) -> None:
    if tile.memory_space not in _REACHES_VEC:
        message = (
            f"{name} must lie in Vec, where the vector core works, not in {tile.memory_space.name}"
        )
        raise site.value_error(message, "load it with target_memory=pl.Mem.Vec")


def check_whole_tensor(site: CallSite, name: str, tensor: TensorType) -> None:
    """Refuse a tensor that lies in boxes, or is valid only in part."""
    if tensor.layout not in (TensorLayout.ND, TensorLayout.DN):
        message = f"{name} must lie row by row or column by column, not in {tensor.layout.name}"
        raise site.value_error(message)
    if tensor.valid_shape:
        message = (
            f"{name} must be valid as a whole, not only {show_dims(tensor.valid_shape)} of "
            f"{show_dims(tensor.shape)}"
        )
        raise site.value_error(message, "pl.load takes a part of a tensor, for the ops on tiles")


def valid_of(found: Array) -> Dims:
    """Return the valid extents of a tile or of a tensor that is valid as a whole."""
    return found.valid_shape or found.shape


def made(like: Array, shape: Dims, valid: Dims, dtype: DType) -> Array:
    """Return the type of a result: a tile in Vec, or a fresh tensor, as `like` is one."""
    if isinstance(like, TensorType):
        return TensorType(shape, dtype)
    view = view_with_valid(implicit_tile_view(shape, MemorySpace.Vec), valid)
    return TileType(shape, dtype, None, view, MemorySpace.Vec)


def check_same(site: CallSite, first: int, second: int) -> None:
    """Refuse two operands that provably differ in dtype, shape or valid shape."""
    (one, a), (other, b) = check_same_dtype(site, first, second)
    check_same_extents(site, (one, a), (other, b))


def check_same_dtype(
    site: CallSite, first: int, second: int
) -> tuple[tuple[str, Array], tuple[str, Array]]:
    """Refuse two operands of different dtypes; return their names and types."""
    one, other = site.row.operands[first].name, site.row.operands[second].name
    a, b = site.args[first].type, site.args[second].type
    assert isinstance(a, TileType | TensorType), a
    assert isinstance(b, TileType | TensorType), b
    if a.dtype is not b.dtype:
        message = f"{one} and {other} must hold one dtype, not {a.dtype.name} and {b.dtype.name}"
        raise site.type_error(message, "pl.cast converts one of them")
    return (one, a), (other, b)


def check_same_extents(site: CallSite, first: tuple[str, Array], second: tuple[str, Array]) -> None:
    """Refuse two operands that provably differ in shape or valid shape."""
    (one, a), (other, b) = first, second
    if not same_dims(a.shape, b.shape):
        message = (
            f"{one} and {other} must be of one shape, not {show_dims(a.shape)} and "
            f"{show_dims(b.shape)}"
        )
        raise site.value_error(message, _expansion_hint(b.shape))
    if not same_dims(valid_of(a), valid_of(b)):
        message = (
            f"{one} and {other} must be valid in the same extents, not in "
            f"{show_dims(valid_of(a))} and {show_dims(valid_of(b))}"
        )
        raise site.value_error(message)


def _expansion_hint(shape: Dims) -> str | None:
    match [constant_dim(dim) for dim in shape]:
        case [_, 1]:
            return "pl.row_expand_add and its like take a column [M, 1] for all columns"
        case [1, _]:
            return "pl.col_expand_add and its like take a row [1, N] for all rows"
        case _:
            return None


# --------------------------------------------------------------------------- one and two operands


def infer_unary(function: Unary, site: CallSite) -> Array:
    """Return the type of a function of each element."""
    x = array(site, 0, function.dtypes)
    check_scratch(site, 1, x.dtype)
    return made(x, x.shape, valid_of(x), x.dtype)


def check_scratch(site: CallSite, position: int, dtype: DType) -> None:
    """Refuse a scratch tile of another dtype; it may be left out."""
    if len(site.args) <= position:
        return
    name = site.row.operands[position].name
    scratch = array(site, position)
    if scratch.dtype is not dtype:
        message = f"{name} must hold {dtype.name}, as what it helps with, not {scratch.dtype.name}"
        raise site.type_error(message)


def infer_binary(function: Binary, site: CallSite) -> Array:
    """Return the type of a function of pairs of elements."""
    a = array(site, 0, function.dtypes)
    array(site, 1, function.dtypes)
    check_same(site, 0, 1)
    return made(a, a.shape, valid_of(a), a.dtype)


def infer_scalar(function: Binary, site: CallSite) -> Array:
    """Return the type of a function of each element and one scalar."""
    a = array(site, 0, function.dtypes)
    check_scalar(site, 1, a.dtype)
    return made(a, a.shape, valid_of(a), a.dtype)


# --------------------------------------------------------------------------- scalars


def complete_scalar(site: CallSite, *, like: int = 0) -> tuple[Expr, ...]:
    """Return the operands with a literal at the end as a constant of the dtype of operand `like`."""
    found = site.args[like].type
    assert isinstance(found, TileType | TensorType), found
    return (*site.args[:-1], literal_of(site, len(site.args) - 1, found.dtype))


def literal_of(site: CallSite, position: int, dtype: DType) -> Expr:
    """Return a scalar operand; a plain number as a constant of `dtype`.

    Raises:
        IRValueError: For a number that an integer dtype does not hold.
    """
    name, given = site.row.operands[position].name, site.args[position]
    if not isinstance(given, ConstInt | ConstFloat) or given.dtype not in (Index, DType.Float32):
        return given
    if given.dtype is dtype or not isinstance(dtype, SimpleDType):
        return given
    if dtype in FLOAT_FORMATS:
        return ConstFloat(float(given.value), dtype, given.span)
    if dtype not in INTEGER_FORMATS:
        return given
    row, value = INTEGER_FORMATS[dtype], given.value
    if not isinstance(given, ConstInt) or not row.min <= value <= row.max:
        message = (
            f"{name} must be an integer in {row.min}..{row.max}, as {dtype.name} has them, "
            f"not {value}"
        )
        raise site.value_error(message)
    return ConstInt(given.value, dtype, given.span)


def check_scalar(site: CallSite, position: int, dtype: DType) -> None:
    """Refuse a scalar of another dtype than the elements that it meets."""
    name, found = site.row.operands[position].name, site.args[position].type
    assert isinstance(found, ScalarType), found
    if found.dtype is not dtype:
        message = f"{name} must be a scalar of {dtype.name}, not of {found.dtype.name}"
        raise site.type_error(message, "pl.cast(x, dtype) converts a scalar")


# --------------------------------------------------------------------------- comparisons


def infer_compare(site: CallSite) -> Array:
    """Return the type of a mask: Bool, in the shape of what is compared."""
    a = array(site, 0)
    array(site, 1)
    check_same(site, 0, 1)
    return made(a, a.shape, valid_of(a), DType.Bool)


def infer_compare_scalar(site: CallSite) -> Array:
    """Return the type of the mask of a comparison with one scalar."""
    a = array(site, 0)
    check_scalar(site, 1, a.dtype)
    return made(a, a.shape, valid_of(a), DType.Bool)


def infer_select(site: CallSite) -> Array:
    """Return the type of what a mask chooses from two operands."""
    chosen = _masked(site)
    array(site, 2)
    check_same(site, 1, 2)
    return made(chosen, chosen.shape, valid_of(chosen), chosen.dtype)


def infer_select_scalar(site: CallSite) -> Array:
    """Return the type of what a mask chooses from an operand and one scalar."""
    chosen = _masked(site)
    check_scalar(site, 2, chosen.dtype)
    return made(chosen, chosen.shape, valid_of(chosen), chosen.dtype)


def _masked(site: CallSite) -> Array:
    mask, chosen = array(site, 0, (DType.Bool,)), array(site, 1)
    names = [site.row.operands[position].name for position in (0, 1)]
    check_same_extents(site, (names[0], mask), (names[1], chosen))
    return chosen
