"""What the ops that make, turn, cut and join tiles mean on numpy values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import DType, SimpleDType
from ..dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS
from ..numerics import functions
from ..numerics.mxarray import MXArray
from ..placement import code_type, window_positions
from ..types import PadValue, TensorType, TileType
from . import meaning_tensors
from .meaning import check_valid, check_window, clamped
from .meaning_tensors import fresh, whole
from .meaning_vector import simple
from .rules_shapes import axes_of
from .values import TensorValue, TileValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .values import Evaluation

Ints = tuple[int, ...]


def create(run: Evaluation, shape: Ints) -> TileValue:
    """Make a tile of zero bytes."""
    tile = _result(run)
    return TileValue(np.zeros(shape, code_type(tile.dtype)), tile.dtype)


def full(run: Evaluation, shape: Ints, value: float) -> TileValue:
    """Make a tile of one value."""
    tile = _result(run)
    assert isinstance(tile.dtype, SimpleDType), tile
    code = functions.scalar_code(value, tile.dtype)
    return TileValue(np.full(shape, code, code.dtype), tile.dtype)


def full_tensor(run: Evaluation, shape: Ints, value: float) -> TensorValue:
    """Make a tensor of one value."""
    made = run.result_type
    assert isinstance(made, TensorType), made
    assert isinstance(made.dtype, SimpleDType), made
    code = functions.scalar_code(value, made.dtype)
    return fresh(TileValue(np.full(shape, code, code.dtype), made.dtype))


def _result(run: Evaluation) -> TileType:
    assert isinstance(run.result_type, TileType), run.result_type
    return run.result_type


def transpose(run: Evaluation, x: TileValue) -> TileValue:
    """Exchange two axes."""
    first, second = axes_of(run.site, x.codes.ndim)
    return TileValue(x.codes.swapaxes(first, second), x.dtype)


def reshape(run: Evaluation, x: TileValue, shape: Ints) -> TileValue:
    """Give the same elements another shape."""
    if x.codes.size != np.prod(shape, dtype=int):
        message = (
            f"x must be valid as a whole, in as many elements as {list(shape)} has, not only in "
            f"{list(x.codes.shape)}"
        )
        raise run.site.value_error(message)
    return TileValue(x.codes.reshape(shape), x.dtype)


def concat(run: Evaluation, a: TileValue, b: TileValue) -> TileValue:
    """Put one array to the right of another."""
    source = run.call.args[0].type
    assert isinstance(source, TileType | TensorType), source
    whole = run.extents(source.shape)[-1]
    if a.codes.shape[-1] != whole or a.codes.shape[:-1] != b.codes.shape[:-1]:
        message = (
            f"a must be valid in all of its {whole} columns and b in the same rows, not in "
            f"{list(a.codes.shape)} and {list(b.codes.shape)}"
        )
        raise run.site.value_error(message)
    return TileValue(np.concatenate([a.codes, b.codes], axis=-1), a.dtype)


def cut(
    run: Evaluation, tile: TileValue, shape: Ints, offset: Ints, valid: Ints | None = None
) -> TileValue:
    """Take a window of a tile, as far as it is valid."""
    check_valid(run, valid or shape, shape)
    extents, limits = list(valid or shape), tile.codes.shape
    pad = run.site.row.attribute(run.site.kwargs, "pad_value")
    if valid is None and pad is PadValue.null:
        extents = list(run.extents(_result(run).valid_shape))
        for axis in run.site.row.attribute(run.site.kwargs, "drop_dims"):
            extents.insert(axis, 1)
    elif valid is None or run.site.row.attribute(run.site.kwargs, "clamp"):
        extents = clamped(offset, extents, limits)
    window = _window(run, offset, extents, limits, "the window")
    codes = tile.codes[window]
    if pad is not PadValue.null:
        room = np.zeros(shape, codes.dtype)
        room[tuple(slice(size) for size in codes.shape)] = codes
        codes = padded(room, codes.shape, pad, simple(tile))
    return TileValue(_without_axes(run, codes), tile.dtype)


def _without_axes(run: Evaluation, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a window without the axes that it drops."""
    dropped: tuple[int, ...] = run.site.row.attribute(run.site.kwargs, "drop_dims")
    kept = [size for axis, size in enumerate(codes.shape) if axis not in dropped]
    return codes.reshape(kept)


def cut_tensor(
    run: Evaluation,
    tensor: TensorValue | MXArray,
    shape: Ints,
    offset: Ints,
    valid: Ints | None = None,
) -> TensorValue | MXArray:
    """Take a window of a tensor; what is not valid of it is filled up, or else holds zeros."""
    clamps = run.site.row.attribute(run.site.kwargs, "clamp")
    if valid is None and not clamps:
        found = meaning_tensors.cut(run, tensor, shape, offset)
        if isinstance(found, MXArray):
            return found
        return fresh(TileValue(_without_axes(run, whole(found).codes), found.dtype))
    assert isinstance(tensor, TensorValue), tensor
    source = run.call.args[0].type
    assert isinstance(source, TensorType), source
    check_valid(run, valid or shape, shape)
    limits, extents = run.extents(source.valid_shape) or tensor.shape, valid or shape
    if clamps:
        extents = clamped(offset, extents, limits)
    check_window(run, limits, offset, extents)
    cuts = [slice(start, start + size) for start, size in zip(offset, extents, strict=True)]
    codes = np.zeros(shape, tensor.buffer.dtype)
    codes[tuple(map(slice, extents))] = tensor.buffer[window_positions(tensor.positions, cuts)]
    pad = run.site.row.attribute(run.site.kwargs, "pad_value")
    tile = TileValue(codes, tensor.dtype)
    if pad is not PadValue.null:
        tile = TileValue(padded(codes, extents, pad, simple(tile)), tensor.dtype)
    return fresh(TileValue(_without_axes(run, tile.codes), tensor.dtype))


def _window(
    run: Evaluation, offset: Ints, extents: Sequence[int], limits: Sequence[int], what: str
) -> tuple[slice, ...]:
    for axis, (start, size, has) in enumerate(zip(offset, extents, limits, strict=True)):
        if start < 0 or start + size > has:
            message = (
                f"{what} must lie within the {has} valid elements of axis {axis}, but takes {size} "
                f"from {start} on"
            )
            raise run.site.value_error(message)
    return tuple(slice(start, start + size) for start, size in zip(offset, extents, strict=True))


def assemble(run: Evaluation, target: TileValue, source: TileValue, offset: Ints) -> TileValue:
    """Replace a window of a tile by what is valid of another one."""
    window = _window(run, offset, source.codes.shape, target.codes.shape, "the source")
    codes = target.codes.copy()
    codes[window] = source.codes
    return TileValue(codes, target.dtype)


def set_valid(run: Evaluation, x: TileValue, rows: int, cols: int) -> TileValue:
    """Keep the first rows and columns only."""
    for name, size, has in zip(("rows", "cols"), (rows, cols), x.codes.shape, strict=True):
        if not 0 <= size <= has:
            message = f"{name} must be in 0..{has}, what is valid now, not {size}"
            raise run.site.value_error(message)
    return TileValue(x.codes[:rows, :cols], x.dtype)


def fillpad(run: Evaluation, x: TileValue) -> TileValue:
    """Fill the rest of a tile up."""
    pad = run.site.row.attribute(run.site.kwargs, "pad_value")
    shape = run.extents(_result(run).shape)
    codes = np.full(shape, pad_code(pad, simple(x)), x.codes.dtype)
    codes[tuple(slice(size) for size in x.codes.shape)] = x.codes
    return TileValue(codes, x.dtype)


def fillpad_tensor(run: Evaluation, x: TensorValue) -> TensorValue:
    """Fill a fresh copy of a tensor up."""
    source = run.call.args[0].type
    assert isinstance(source, TensorType), source
    valid = run.extents(source.valid_shape) or x.shape
    pad = run.site.row.attribute(run.site.kwargs, "pad_value")
    tile = whole(x)
    return fresh(TileValue(padded(tile.codes, valid, pad, simple(tile)), tile.dtype))


def padded(
    codes: npt.NDArray[Any], valid: Sequence[int], pad: PadValue, dtype: SimpleDType
) -> npt.NDArray[Any]:
    """Return codes with others in the place of those that are not valid."""
    filled = np.full(codes.shape, pad_code(pad, dtype), codes.dtype)
    part = tuple(slice(max(0, size)) for size in valid)
    filled[part] = codes[part]
    return filled


def pad_code(pad: PadValue, dtype: SimpleDType) -> int:
    """Return the code that fills a tile up: 0, or the largest or smallest there is.

    That of a float is an infinity.
    """
    if pad is PadValue.zero:
        return 0
    if dtype in FLOAT_FORMATS:
        row = FLOAT_FORMATS[dtype]
        largest = row.infinity_code or row.max_code
        return largest if pad is PadValue.max else largest | row.sign_mask
    row = INTEGER_FORMATS[dtype]
    value = row.max if pad is PadValue.max else row.min
    return value & ((1 << row.bits) - 1)


def read_tile(run: Evaluation, x: TileValue, at: Ints) -> float:
    """Return one element of a tile as a number."""
    window = _window(run, at, (1,) * len(at), x.codes.shape, "the element")
    return _number(x.codes[window].reshape(1), simple(x))


def read_tensor(run: Evaluation, x: TensorValue, at: Ints) -> float:
    """Return one element of a tensor as a number."""
    return _number(x.buffer[_place(run, x, at)].reshape(1), x.dtype)


def _number(codes: npt.NDArray[Any], dtype: DType) -> float:
    assert isinstance(dtype, SimpleDType), dtype
    if dtype is DType.Bool:
        return bool(codes[0])
    return functions.numbers(codes, dtype)[0].item()


def _place(run: Evaluation, x: TensorValue, at: Ints) -> npt.NDArray[np.int64]:
    check_window(run, x.shape, at, (1,) * len(at))
    return window_positions(x.positions, [slice(i, i + 1) for i in at])


def write_tile(run: Evaluation, x: TileValue, at: Ints, value: float) -> TileValue:
    """Give one element of a tile another value."""
    window = _window(run, at, (1,) * len(at), x.codes.shape, "the element")
    codes = x.codes.copy()
    codes[window] = _code(value, x.dtype)
    return TileValue(codes, x.dtype)


def write_tensor(run: Evaluation, x: TensorValue, at: Ints, value: float) -> TensorValue:
    """Give one element of a tensor another value, where the tensor lies."""
    x.buffer[_place(run, x, at)] = _code(value, x.dtype)
    return x


def _code(value: float, dtype: DType) -> npt.NDArray[Any]:
    assert isinstance(dtype, SimpleDType), dtype
    if dtype is DType.Bool:
        return np.array(int(value), np.uint8)
    return functions.scalar_code(value, dtype)


def extent(run: Evaluation, x: TensorValue) -> int:
    """Return how many elements an axis of a tensor has."""
    axis: int = run.site.row.attribute(run.site.kwargs, "axis")
    return x.shape[axis]
