"""Which mistake with the scales would explain a wrong result: each is tried on the kernel itself.

The interpreter runs the kernel with its scales taken wrongly in a way that is common. If all outputs
then equal those in question, bit for bit, the mistake explains them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..ir import numerics
from ..ir.binding import logical_shape, source_name
from ..ir.dtypes import DType
from ..ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..ir.errors import UserError
from ..ir.interp import select_entry
from ..ir.numerics.block_format import block_format_of
from ..ir.numerics.mxarray import MXArray
from ..ir.types import TensorLayout, TensorType
from ..traces.compare import compare
from .api import interpret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from ..ir.core import Program

    Codes = npt.NDArray[np.uint8]

_MOST_ELEMENTS = 1 << 18
"""Of larger inputs nothing is tried: it would take longer than the run."""

_UNIT = 127  # the code of 2^0


class _Side(NamedTuple):
    """How the scales of one operand are stored. Groups lie along `axis`."""

    axis: int
    pack: Callable[..., Codes]
    unpack: Callable[..., Codes]


_LEFT = _Side(1, numerics.pack_scales_a, numerics.unpack_scales_a)
_RIGHT = _Side(0, numerics.pack_scales_b, numerics.unpack_scales_b)

_MISTAKES: dict[str, Callable[[Codes, _Side], Codes]] = {
    "are all taken as 1, as if they were never read": lambda s, side: np.full_like(s, _UNIT),
    "are stored row by row, where boxes are read": lambda s, side: side.unpack(s, s.shape),
    "are read row by row, where boxes are stored": lambda s, side: side.pack(s).reshape(s.shape),
    "have rows and groups exchanged inside each box": lambda s, side: _exchanged(s, side),
    "are stored transposed, where boxes are read": lambda s, side: side.unpack(
        s.T.reshape(-1), s.shape
    ),
    "are stored transposed, where rows are read": lambda s, side: s.T.reshape(s.shape),
    "are read transposed, where rows are stored": lambda s, side: s.reshape(s.shape[::-1]).T,
    "are those of the group after": lambda s, side: np.roll(s, -1, side.axis),
    "are those of the group before": lambda s, side: np.roll(s, 1, side.axis),
    "are those of the neighbour after, across the groups": lambda s, side: np.roll(
        s, -1, 1 - side.axis
    ),
    "are those of the neighbour before, across the groups": lambda s, side: np.roll(
        s, 1, 1 - side.axis
    ),
}


def explain(
    program: Program, inputs: Mapping[str, Any], outputs: Mapping[str, Any], **options: Any
) -> list[str]:
    """Return the mistakes with scales that explain outputs, each as the end of a sentence.

    Args:
        program: The kernel, as it was written.
        inputs: What it was launched with.
        outputs: What came out, by name.
        options: Further arguments of `interpret`: the entry, and the order of summation.
    """
    if sum(_size(each) for each in inputs.values()) > _MOST_ELEMENTS:
        return []
    scales = _scales_of(program, inputs, options.get("entry"))
    singles: list[tuple[str, ...]] = [(name,) for name in scales]
    together = [tuple(scales)] if len(scales) > 1 else []
    found: list[str] = []
    for names in (*singles, *together):
        for text, mistake in _MISTAKES.items():
            changed = dict(inputs)
            for name in names:
                side, codes = scales[name]
                if not np.array_equal(wrong := mistake(codes, side), codes):
                    changed[name] = _given(inputs[name], wrong, side)
            if _gives(program, changed, outputs, options):
                found.append(f"the scales of {' and '.join(map(repr, names))} {text}")
    return found


def _gives(
    program: Program, inputs: Mapping[str, Any], outputs: Mapping[str, Any], options: dict[str, Any]
) -> bool:
    try:
        return bool(compare(interpret(program, inputs, **options), outputs))
    except UserError:
        return False


def _scales_of(
    program: Program, inputs: Mapping[str, Any], entry: str | None
) -> dict[str, tuple[_Side, Codes]]:
    """Return the scales that were given, by the input that holds them, in logical order."""
    function = select_entry(program, entry)
    found: dict[str, tuple[_Side, Codes]] = {}
    for param in function.params:
        name, type_ = source_name(param), param.type
        given = inputs.get(name)
        if given is None or not isinstance(type_, TensorType):
            continue
        if isinstance(given, MXArray):
            if _is_boxed(given):
                side = _LEFT if given.axis == 1 else _RIGHT
                found[name] = (side, given.scales)
        elif type_.layout.is_mx and type_.dtype is DType.E8M0:
            side = _LEFT if type_.layout is TensorLayout.MX_A_ZZ else _RIGHT
            data, shape = np.ascontiguousarray(given).view(np.uint8), logical_shape(type_, name)
            if data.size == math.prod(shape):
                found[name] = (side, side.unpack(data.reshape(-1), shape))
    return found


def _is_boxed(array: MXArray) -> bool:
    shape = array.scales.shape
    if len(shape) != 2 or block_format_of(array.dtype).scale is not DType.E8M0:
        return False
    return shape[1 - array.axis] % BOX_ROWS == 0 and shape[array.axis] % BOX_GROUPS == 0


def _given(given: Any, codes: Codes, side: _Side) -> Any:
    """Return scales in the form in which they were given."""
    if isinstance(given, MXArray):
        return MXArray(given.elements, codes, given.dtype, given.axis, given.tensor_scale)
    return side.pack(codes).reshape(given.shape).view(given.dtype)


def _exchanged(scales: Codes, side: _Side) -> Codes:
    boxes = side.pack(scales).reshape(-1, BOX_ROWS, BOX_GROUPS).transpose(0, 2, 1)
    return side.unpack(np.ascontiguousarray(boxes).reshape(-1), scales.shape)


def _size(given: Any) -> int:
    return given.elements.size if isinstance(given, MXArray) else np.size(given)
