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
from ..ir.dtypes import DType, SimpleDType
from ..ir.dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS
from ..ir.errors import InputError
from ..ir.expr import ScalarType
from ..ir.types import TensorLayout, TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ..ir.core import Function

#: Scale codes around 127 (2^0): no product of two leaves float32.
_LEAST_SCALE = 120
_SCALES = 15
_INTEGER_LIMIT = 8


def draw_inputs(function: Function, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Return an array for every tensor that a function reads; the same seed gives the same arrays.

    Args:
        function: The entry, with logical parameter types.
        seed: Any integer from 0 on.

    Raises:
        InputError: For a scalar parameter, which nobody can guess, or a negative seed.
    """
    if seed < 0:
        message = f"The seed must be 0 or more, not {seed}"
        raise InputError(message)
    rng = np.random.default_rng(seed)
    drawn: dict[str, npt.NDArray[Any]] = {}
    for param, direction in zip(function.params, function.param_directions, strict=True):
        if isinstance(param.type, ScalarType):
            message = (
                f"The scalar {source_name(param)!r} of {function.name!r} must be given by --inputs: "
                "only tensors are drawn"
            )
            raise InputError(message)
        if isinstance(param.type, TensorType) and direction is not ParamDirection.Out:
            drawn[source_name(param)] = _draw(rng, param.type)
    return drawn


def _draw(rng: np.random.Generator, type_: TensorType) -> npt.NDArray[Any]:
    shape = logical_shape(type_)
    dtype = cast("SimpleDType", type_.dtype)
    if dtype is DType.E8M0:
        codes = _in_memory_order(_scales(rng, shape), type_.layout)
        return codes.reshape(shape).view(natural_type(dtype))
    if dtype in INTEGER_FORMATS:
        least = -_INTEGER_LIMIT if INTEGER_FORMATS[dtype].min < 0 else 0
        return rng.integers(least, _INTEGER_LIMIT, shape).astype(natural_type(dtype))
    if dtype in FLOAT_FORMATS:
        values = rng.standard_normal(shape, dtype=np.float32)
        return numerics.encode(values, dtype).view(natural_type(dtype))
    message = f"Inputs of {dtype.name} cannot be drawn; give them by --inputs"
    raise InputError(message)


def _scales(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Return random codes of which no two neighbours along an axis are equal."""
    codes = rng.integers(0, _SCALES, shape)
    while (clashes := _equal_to_the_one_before(codes)).any():
        codes[clashes] = rng.integers(0, _SCALES, int(clashes.sum()))
    return (codes + _LEAST_SCALE).astype(np.uint8)


def _in_memory_order(scales: npt.NDArray[np.uint8], layout: TensorLayout) -> npt.NDArray[np.uint8]:
    match layout:
        case TensorLayout.MX_A_ZZ:
            return numerics.pack_scales_a(scales)
        case TensorLayout.MX_B_NN:
            return numerics.pack_scales_b(scales)
        case _:
            return scales


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
