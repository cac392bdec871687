"""Seeded inputs for a kernel that is run without any.

Elements are normal numbers rounded to the parameter's dtype; scales differ from row to row and from
group to group, so that a scale box which is packed or read in the wrong order changes the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..ir import numerics
from ..ir.binding import logical_shape, natural_type, source_name
from ..ir.core import ParamDirection
from ..ir.dtypes import BlockScaledDType, DType, SimpleDType
from ..ir.dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS, FloatFormat
from ..ir.errors import InputError
from ..ir.expr import ScalarType
from ..ir.mx_binding import axis_of_scales, compound_params_of
from ..ir.numerics.block_format import block_format_of
from ..ir.numerics.mxarray import scale_shape
from ..ir.types import TensorLayout, TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ..ir.core import Function
    from ..ir.expr import Var

#: Scale codes around 127 (2^0): no product of two leaves float32.
_LEAST_SCALE = 120
_SCALES = 15
_INTEGER_LIMIT = 8


def draw_inputs(
    function: Function, seed: int, *, grouped_axes: Mapping[Var, int] | None = None
) -> dict[str, Any]:
    """Return an array for every tensor that a function reads; the same seed gives the same arrays.

    Args:
        function: The entry, with logical parameter types.
        seed: Any integer from 0 on.
        grouped_axes: For parameters of compound dtypes, the axis along which their use needs groups;
            the last one where it says nothing.

    Returns:
        By name, numpy arrays, and a block-scaled array for each compound tensor, be it one parameter
        or two that are its planes.

    Raises:
        InputError: For a scalar parameter, which nobody can guess, or a negative seed.
    """
    if seed < 0:
        message = f"The seed must be 0 or more, not {seed}"
        raise InputError(message)
    rng = np.random.default_rng(seed)
    drawn: dict[str, Any] = {}
    compounds = compound_params_of(function)
    hidden = {compound.scale for compound in compounds.values()}
    types = {source_name(param): param.type for param in function.params}
    for param, direction in zip(function.params, function.param_directions, strict=True):
        if isinstance(param.type, ScalarType):
            message = (
                f"The scalar {source_name(param)!r} of {function.name!r} must be given by --inputs: "
                "only tensors are drawn"
            )
            raise InputError(message)
        name = source_name(param)
        if not isinstance(param.type, TensorType) or direction is ParamDirection.Out:
            continue
        if name in compounds:
            scales = types.get(compounds[name].scale or "")
            axis = axis_of_scales(scales.layout) if isinstance(scales, TensorType) else 1
            drawn[name] = _draw_array(rng, compounds[name].dtype, param.type, axis)
        elif param.type.dtype.is_compound():
            axis = (grouped_axes or {}).get(param, len(param.type.shape) - 1)
            drawn[name] = _draw_array(rng, param.type.dtype, param.type, axis)
        elif name not in hidden:
            drawn[name] = _draw(rng, param.type)
    return drawn


def _draw_array(
    rng: np.random.Generator, dtype: DType, type_: TensorType, axis: int
) -> numerics.MXArray:
    """Return a block-scaled array whose scales differ from block to block."""
    form = block_format_of(dtype)
    shape = logical_shape(type_)
    groups = scale_shape(shape, axis, form.block)
    assert isinstance(dtype, BlockScaledDType), dtype
    if form.scale is not DType.E8M0 or not isinstance(form.element, FloatFormat):
        return numerics.quantize(rng.standard_normal(shape), dtype, axis=axis)
    values = rng.standard_normal(shape, dtype=np.float32)
    codes = numerics.encode(values, dtype.element)
    return numerics.MXArray(codes, _scales(rng, groups), dtype, axis)


def _draw(rng: np.random.Generator, type_: TensorType) -> npt.NDArray[Any]:
    shape = logical_shape(type_)
    dtype = cast("SimpleDType", type_.dtype)
    if dtype is DType.E8M0:
        codes = _in_memory_order(_scales(rng, shape), type_.layout)
        return codes.reshape(shape).view(natural_type(dtype))
    if dtype in INTEGER_FORMATS:
        least = -_INTEGER_LIMIT if INTEGER_FORMATS[dtype].min < 0 else 0
        drawn = rng.integers(least, _INTEGER_LIMIT, shape).astype(natural_type(dtype))
        return _in_memory_order(drawn, type_.layout).reshape(shape)
    if dtype in FLOAT_FORMATS:
        values = rng.standard_normal(shape, dtype=np.float32)
        codes = _in_memory_order(numerics.encode(values, dtype), type_.layout)
        return codes.reshape(shape).view(natural_type(dtype))
    message = f"Inputs of {dtype.name} cannot be drawn; give them by --inputs"
    raise InputError(message)


def _scales(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Return random codes of which no two neighbours along an axis are equal."""
    codes = rng.integers(0, _SCALES, shape)
    while (clashes := _equal_to_the_one_before(codes)).any():
        codes[clashes] = rng.integers(0, _SCALES, int(clashes.sum()))
    return (codes + _LEAST_SCALE).astype(np.uint8)


def _in_memory_order(codes: npt.NDArray[Any], layout: TensorLayout) -> npt.NDArray[Any]:
    match layout:
        case TensorLayout.MX_A_ZZ:
            return numerics.pack_scales_a(codes)
        case TensorLayout.MX_B_NN:
            return numerics.pack_scales_b(codes)
        case TensorLayout.NZ:
            return numerics.pack_nz(codes)
        case _:
            return codes


def _equal_to_the_one_before(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    found = np.zeros(codes.shape, np.bool_)
    for axis in range(codes.ndim):
        later = [slice(None)] * codes.ndim
        later[axis] = slice(1, None)
        found[tuple(later)] |= np.diff(codes, axis=axis) == 0
    return found


def given_inputs(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays from a file as launch inputs: those of rank 0 are scalars."""
    return {
        name: value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
        for name, value in arrays.items()
    }
