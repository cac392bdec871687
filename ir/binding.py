"""Launch inputs: what a caller hands in for the parameters of a function, and what comes back.

The interpreter and the launcher of the machine share this file, so both accept the same arrays and
refuse the same mistakes.

* A tensor is given as a numpy array of its dtype (`ml_dtypes` has the narrow ones) or as raw codes in
  the unsigned type that holds one; elements of 4 bits stand one in a byte. The shape is the logical
  one, in logical order.
* A tensor that lies in boxes, scales in an MX layout or elements in NZ, is given as memory holds it:
  in box order, under the logical, the blocked or a flat shape; never in logical order. It comes back
  the same way, under the logical shape. `numerics.pack_scales_a`, `pack_scales_b` and `pack_nz` make
  that order.
* A tensor of a compound dtype is given as an MXArray, grouped along the axis that its use needs, also
  where a pass has made two tensors of it.
* A scalar is a Python int, float or bool.
* Outputs may be omitted; they then start as zero bytes.

Outputs are numpy arrays in the logical shape. Their type is the natural one of the dtype where numpy
or ml_dtypes has it, else uint8 codes (:func:`natural_type`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .core import ParamDirection
from .dtypes import (
    DType,
    SimpleDType,
)
from .dtypes.boxes import BOX_GROUPS, BOX_ROWS
from .dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS
from .errors import InputError
from .expr import Expr, ScalarType, Var
from .given import article, describe_given, show_shape
from .memory_order import buffer_items, in_memory, memory_strides, strided, tensor_shape
from .mx_binding import CompoundParam, axis_of_scales, bind_compound, compound_params_of
from .numerics.mxarray import MXArray
from .numerics.natural import NATURAL
from .numerics.nz import nz_fault, nz_folds, nz_given_shapes, nz_logical_shape
from .numerics.scales import pack_scales_a, pack_scales_b
from .placement import NZ_BLOCKED_RANK, code_type
from .suggest import near
from .types import TensorLayout, TensorType

if TYPE_CHECKING:
    import numpy.typing as npt

    from .core import Function
    from .expr import Type

Scalar = int | float | bool

SCRATCH_OUTPUTS = "scratch_outputs"
"""The attribute of a function that names outputs which it writes only to read them again itself."""

_TEMPORARY = re.compile(r"_t\d+")
_TEMPORARY_OR_COPY = re.compile(r"_t\d+(_\w+)?")
_SSA_MARK = re.compile(r"__(ssa|iter|rv|phi|idx)_v\d+")
_SSA_SUFFIX = re.compile(f"{_SSA_MARK.pattern}$")
_BYTE = 8
_NIBBLE = 4


def source_name(var: Var) -> str:
    """Return the name that a variable had in the kernel's text, before SSA conversion."""
    return _SSA_SUFFIX.sub("", var.name_hint)


def written_name(name: str) -> str | None:
    """Return the name in the kernel's text of what passes call `name`; None for nested calls."""
    base = _SSA_MARK.split(name, maxsplit=1)[0]
    return None if _TEMPORARY_OR_COPY.fullmatch(base) else base


def result_name(value: Expr) -> str | None:
    """Return the name under which a function returns a value; None for one without a name.

    Variables that the compiler made for nested calls have none.
    """
    if not isinstance(value, Var) or _TEMPORARY.fullmatch(value.name_hint):
        return None
    return source_name(value)


def natural_type(dtype: DType) -> np.dtype[Any]:
    """Return the array type in which values of `dtype` come back; uint8 codes for E1M2."""
    found = NATURAL.get(dtype) if isinstance(dtype, SimpleDType) else None
    return found if found is not None else np.dtype(np.uint8)


@dataclass(frozen=True, eq=False)
class BoundTensor:
    """A tensor argument: its codes in memory order, one item an element, and its type."""

    codes: npt.NDArray[Any]
    type: TensorType


Bound = BoundTensor | MXArray | Scalar
"""A launch argument."""


def logical_shape(type_: TensorType, what: str = "The tensor") -> tuple[int, ...]:
    """Return the shape in which callers see a tensor: that before it was cut into boxes.

    A blocked NZ tensor no longer knows its leading axes: they show as one, or none if that is 1.
    """
    shape = tensor_shape(type_, what)
    if type_.layout is TensorLayout.NZ and len(shape) == NZ_BLOCKED_RANK:
        return nz_logical_shape(shape)
    if type_.layout.is_mx and len(shape) > 2:
        rows, groups = shape[1] * BOX_ROWS, shape[2] * BOX_GROUPS
        return (rows, groups) if type_.layout is TensorLayout.MX_A_ZZ else (groups, rows)
    return shape


def empty_tensor(type_: TensorType) -> BoundTensor:
    """Return a tensor of zero bytes."""
    return BoundTensor(np.zeros(buffer_items(type_), code_type(type_.dtype)), type_)


# --------------------------------------------------------------------------- inputs


def bind_inputs(
    function: Function,
    inputs: Mapping[str, Any],
    *,
    grouped_axes: Mapping[Var, int] | None = None,
    copied: bool = True,
) -> dict[str, Bound]:
    """Return the value of every parameter of `function`, by the parameter's name.

    Args:
        function: The function that is launched.
        inputs: Parameter name to array or number.
        grouped_axes: For parameters of compound dtypes, the axis along which their use needs groups.
        copied: Whether arrays of simple dtypes are copied; else what is bound is only to be read.

    Raises:
        InputError: For an unknown or missing name, or a value of the wrong shape, dtype or range;
            the sentence names the parameter, what it must be, and what was found.
    """
    if not isinstance(inputs, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"inputs must map parameter names to arrays, not be {describe_given(inputs)}"
        raise InputError(message)
    compounds = compound_params_of(function)
    hidden = {param.scale for param in compounds.values()}
    types = {source_name(param): param.type for param in function.params}
    names = [name for name in types if name not in hidden]
    for name in inputs:
        if name not in names:
            message = f"{function.name} has no parameter {name!r}"
            raise InputError(message, function.span, hint=near(name, names))
    axes = grouped_axes or {}
    bound: dict[str, Bound] = {}
    for param, direction in zip(function.params, function.param_directions, strict=True):
        name = source_name(param)
        given = inputs.get(name)
        match param.type:
            case TensorType() if name in hidden:
                continue  # it is bound together with its elements
            case TensorType() as type_ if name in compounds:
                bound |= _bind_planes(compounds[name], type_, types, given)
            case TensorType() as type_ if type_.dtype.is_compound():
                bound[name] = bind_compound(name, type_, given, axes.get(param))
            case TensorType() as type_ if given is None and direction is ParamDirection.Out:
                bound[name] = empty_tensor(type_)
            case TensorType() as type_:
                bound[name] = bind_tensor(name, type_, given, copied=copied)
            case ScalarType(dtype):
                bound[name] = bind_scalar(name, dtype, given)
            case other:
                message = f"{name} cannot be given from outside: it is a {type(other).__name__}"
                raise InputError(message, param.span)
    return bound


def _bind_planes(
    param: CompoundParam, elements: TensorType, types: Mapping[str, Type], given: Any
) -> dict[str, BoundTensor]:
    """Return the planes of a block-scaled array as the tensor arguments that stand for it."""
    scales = None if param.scale is None else types[param.scale]
    assert scales is None or isinstance(scales, TensorType), scales
    axis = None if scales is None else axis_of_scales(scales.layout)
    logical = TensorType(elements.shape, param.dtype)
    array = bind_compound(param.name, logical, given, axis)
    planes = {param.name: BoundTensor(array.elements.copy().reshape(-1), elements)}
    if scales is not None and param.scale is not None:
        pack = pack_scales_a if scales.layout is TensorLayout.MX_A_ZZ else pack_scales_b
        planes[param.scale] = BoundTensor(pack(array.scales), scales)
    return planes


def bind_tensor(name: str, type_: TensorType, given: Any, *, copied: bool = True) -> BoundTensor:
    """Return an array as a tensor argument, of memory of its own if it is to be `copied`.

    Raises:
        InputError: When it is missing, or of the wrong shape or dtype.
    """
    shape = logical_shape(type_, name)
    dtype = type_.dtype
    wanted = f"{name} must be {article(dtype)} {dtype.name} array of shape {show_shape(shape)}"
    if given is None:
        message = f"{wanted}, but it was not given"
        raise InputError(message)
    assert isinstance(dtype, SimpleDType), dtype
    if not isinstance(given, np.ndarray):
        message = f"{wanted}, not {describe_given(given)}"
        raise InputError(message, hint=_hint(type_, shape))
    array = cast("npt.NDArray[Any]", given)
    codes = _codes(array, dtype)
    if codes is None:
        message = f"{wanted}, not an array of {array.dtype}"
        raise InputError(message, hint=_hint(type_, shape))
    if dtype.bits < _BYTE * codes.itemsize and codes.size and int(codes.max()) >> dtype.bits:
        message = (
            f"{name} must hold {dtype.name} codes 0..{(1 << dtype.bits) - 1}, one a byte, "
            f"not {int(codes.max())}"
        )
        raise InputError(message)
    folded = type_.layout is TensorLayout.NZ and nz_folds(array.shape, shape)
    if array.shape not in _accepted_shapes(type_, shape) and not folded:
        message = f"{wanted}, not of shape {show_shape(array.shape)}"
        raise InputError(message, hint=_hint(type_, shape))
    strides = memory_strides(type_)
    if strides is None:
        return BoundTensor(np.array(codes, copy=copied or None).reshape(-1), type_)
    return BoundTensor(in_memory(codes, type_, strides, copied=copied), type_)


def _codes(array: npt.NDArray[Any], dtype: SimpleDType) -> npt.NDArray[Any] | None:
    """Return an array's items as codes, or None when they are not of `dtype`."""
    holder = code_type(dtype)
    is_void = array.dtype.type is np.void and array.dtype.names is None
    if array.dtype == NATURAL.get(dtype) or array.dtype == holder or is_void:
        if array.dtype.itemsize != holder.itemsize:
            return None
        return array.view(holder)
    return None


def _accepted_shapes(type_: TensorType, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    if type_.layout is TensorLayout.NZ:
        fault = nz_fault(shape, type_.dtype.bits)
        if fault is not None:
            message = f"A tensor in NZ that is run must have {fault}"
            raise InputError(message)
        return nz_given_shapes(shape, type_.dtype.bits)
    if not type_.layout.is_mx:
        return [shape]
    boxed = shape if type_.layout is TensorLayout.MX_A_ZZ else shape[::-1]
    rows, groups = boxed
    blocked = (1, rows // BOX_ROWS, groups // BOX_GROUPS, BOX_ROWS, BOX_GROUPS)
    return [shape, blocked, blocked[1:], (rows * groups,)]


def _hint(type_: TensorType, shape: tuple[int, ...]) -> str:
    assert isinstance(type_.dtype, SimpleDType), type_
    natural = NATURAL.get(type_.dtype)
    kinds = [str(code_type(type_.dtype))] if natural is None else [natural.name]
    if natural is not None and natural != code_type(type_.dtype):
        kinds.append(f"{code_type(type_.dtype)} codes")
    text = f"valid are arrays of {' or '.join(kinds)}"
    if type_.layout.is_mx:
        shapes = ", ".join(show_shape(s) for s in _accepted_shapes(type_, shape))
        side = "a" if type_.layout is TensorLayout.MX_A_ZZ else "b"
        text += f", of shape {shapes}, in box order (numerics.pack_scales_{side} makes it)"
    elif type_.layout is TensorLayout.NZ:
        shapes = ", ".join(show_shape(s) for s in _accepted_shapes(type_, shape))
        text += f", of shape {shapes}, in NZ order (numerics.pack_nz makes it)"
    return text


def bind_scalar(name: str, dtype: SimpleDType, given: Any) -> Scalar:
    """Return a number as a scalar argument.

    Raises:
        InputError: When it is missing, of another kind, or beyond the range of `dtype`.
    """
    wanted = f"{name} must be a scalar of {dtype.name}"
    if given is None:
        message = f"{wanted}, but it was not given"
        raise InputError(message)
    value = cast("np.generic[Any]", given).item() if isinstance(given, np.generic) else given
    match value:
        case bool() if dtype is DType.Bool:
            return value
        case int() if dtype in INTEGER_FORMATS and not isinstance(value, bool):
            row = INTEGER_FORMATS[dtype]
            if row.min <= value <= row.max:
                return value
            message = f"{wanted}, within {row.min}..{row.max}, not {value}"
            raise InputError(message)
        case int() | float() if dtype in FLOAT_FORMATS and not isinstance(value, bool):
            return rounded(float(value), dtype)
        case _:
            message = f"{wanted}, not {describe_given(value)}"
            raise InputError(message)


def rounded(value: float, dtype: SimpleDType) -> float:
    """Return a float rounded once to a scalar dtype, nearest even; beyond its range is infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.float64(value).astype(natural_type(dtype)))


# --------------------------------------------------------------------------- images and outputs


def pack_image(bound: BoundTensor) -> npt.NDArray[np.uint8]:
    """Return a tensor's bytes as they stand in global memory.

    Elements narrower than a byte are packed without gaps, element 0 in the low bits; wider ones are
    little-endian.

    Returns:
        uint8, flat, to be read only: it may be the tensor's own memory.
    """
    dtype = bound.type.dtype
    assert isinstance(dtype, SimpleDType), dtype
    if dtype.bits % _BYTE == 0:
        little = bound.codes.astype(bound.codes.dtype.newbyteorder("<"), copy=False)
        image = np.ascontiguousarray(little).reshape(-1).view(np.uint8)
        image.flags.writeable = False
        return image
    if dtype.bits == _NIBBLE:
        return _joined(bound.codes.reshape(-1))
    codes = bound.codes.astype(np.uint8)[:, None]
    bits = np.unpackbits(codes, axis=1, count=dtype.bits, bitorder="little")
    return np.packbits(bits.reshape(-1), bitorder="little")


def image_bytes(type_: TensorType) -> int:
    """Return how many bytes of global memory a tensor takes."""
    assert isinstance(type_.dtype, SimpleDType), type_
    return -(-buffer_items(type_) * type_.dtype.bits // _BYTE)


def unpack_image(
    image: npt.NDArray[np.uint8] | bytes, type_: TensorType, *, copied: bool = True
) -> npt.NDArray[Any]:
    """Return a tensor from its bytes in global memory, as :func:`pack_image` made them.

    Args:
        image: The bytes.
        type_: The tensor's type.
        copied: Whether the array has memory of its own; else it may be that of `image`.

    Returns:
        An array in the logical shape, of :func:`natural_type`; an MX layout keeps box order.
    """
    dtype = type_.dtype
    assert isinstance(dtype, SimpleDType), dtype
    raw = np.frombuffer(image, np.uint8)
    count = buffer_items(type_)
    if dtype.bits % _BYTE == 0:
        kind = code_type(dtype)
        codes = raw[: count * kind.itemsize].view(kind.newbyteorder("<")).astype(kind, copy=False)
    elif dtype.bits == _NIBBLE:
        codes = _parted(raw[: -(-count // 2)])[:count]
    else:
        bits = np.unpackbits(raw, count=count * dtype.bits, bitorder="little")
        parts = bits.reshape(count, dtype.bits)
        codes = np.packbits(parts, axis=1, bitorder="little").reshape(count)
    return to_array(BoundTensor(codes, type_), copied=copied)


def _joined(codes: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return codes of 4 bits two a byte, the first in the low bits."""
    image = np.zeros(-(-codes.size // 2), np.uint8)
    image[: codes.size // 2] = codes[1::2] << _NIBBLE
    image |= codes[::2].astype(np.uint8, copy=False)
    return image


def _parted(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the two codes of 4 bits of each byte, that of the low bits first."""
    codes = np.empty(2 * image.size, np.uint8)
    codes[::2] = image & (1 << _NIBBLE) - 1
    codes[1::2] = image >> _NIBBLE
    return codes


def to_array(bound: BoundTensor, *, copied: bool = True) -> npt.NDArray[Any]:
    """Return a tensor as callers see it: logical shape, natural type; a fresh array if `copied`."""
    shape = logical_shape(bound.type)
    strides = memory_strides(bound.type)
    codes = bound.codes
    if strides is not None:
        codes = strided(codes, tensor_shape(bound.type, "The tensor"), strides)
    array = np.array(codes, copy=copied or None, order="C")
    return array.reshape(shape).view(natural_type(bound.type.dtype))
