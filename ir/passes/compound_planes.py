"""The planes of a tensor of a compound dtype as tensors of their own, and the proof that they are.

    MXFP8_E4M3 [M, K], a left operand   ->  E4M3 [M, K]  and  E8M0 [M, K/32] in MX_A_ZZ
    MXFP8_E4M3 [K, N], a right operand  ->  E4M3 [K, N]  and  E8M0 [K/32, N] in MX_B_NN

Of the representation that the dtype system gives such a tensor, only the placement of plane 1 changes:
the elements stay where they are, and each keeps its scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ..dtypes import BlockScaledDType, DType
from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..errors import IRTypeError, IRValueError
from ..mx_types import Side, boxed, operand, plane_shapes
from ..ops.cube_formats import planes_on_tiles
from ..types import TensorLayout, TensorType, constant_dims
from .mx_box_layout import logical_placement

if TYPE_CHECKING:
    from ..errors import Span

_LAYOUT = {Side.LEFT: TensorLayout.MX_A_ZZ, Side.RIGHT: TensorLayout.MX_B_NN}
INTERPRETS = "scalebox.interpret runs the program as it stands"


@dataclass(frozen=True)
class Planes:
    """The types of a tensor's planes; one that no matmul takes has no scales that matter."""

    elements: TensorType
    scales: TensorType | None


def planes_of(what: str, type_: TensorType, side: Side | None, span: Span) -> Planes:
    """Return the planes of a tensor of a compound dtype.

    Args:
        what: The tensor, for the error: "'a' of 'gemm'".
        type_: Its type.
        side: The side of matmuls on which it is used; None where no matmul takes it.
        span: Where it stands.

    Raises:
        IRTypeError: The machine multiplies no tensors of its dtype, or its shape is symbolic.
        IRValueError: Its scales do not fill their boxes.
    """
    dtype = type_.dtype
    if planes_on_tiles(dtype) is None:
        message = (
            f"{what} must be of MXFP8_E4M3, MXFP8_E5M2 or MXFP4 to be compiled, not of {dtype.name}"
        )
        raise IRTypeError(message, span, hint=INTERPRETS)
    assert isinstance(dtype, BlockScaledDType), dtype
    shape = constant_dims(type_.shape)
    if shape is None:
        message = f"{what} must have constant dimensions to be compiled, not symbolic ones"
        raise IRTypeError(message, span, hint=INTERPRETS)
    elements = TensorType(type_.shape, dtype.element)
    if side is None:
        return Planes(elements, None)
    try:
        scales = _scales(dtype, shape, side)
    except IRValueError as error:
        message = f"{what} must have scales that fill their boxes to be compiled: {error.message}"
        hint = f"pad the tensor to whole boxes; {INTERPRETS}"
        raise IRValueError(message, span, hint=hint) from error
    return Planes(elements, TensorType(scales, DType.E8M0, None, _LAYOUT[side]))


@lru_cache(maxsize=1024)
def _scales(dtype: DType, shape: tuple[int, ...], side: Side) -> tuple[int, ...]:
    """Return the shape of the scales, after the proof that only their placement changes."""
    logical = operand(dtype, shape, side)
    physical = boxed(logical)
    elements, scales = plane_shapes(logical)
    assert elements.shape == shape, "plane 0 has the tensor's own shape"
    assert physical.placements[0] == logical.placements[0], "the elements stay where they are"
    assert physical.adjacent_layouts == logical.adjacent_layouts, "each element keeps its scale"
    assert plane_shapes(physical) == plane_shapes(logical), "the levels keep their sizes"
    groups = scales.shape if side is Side.LEFT else scales.shape[::-1]
    blocked = (1, groups[0] // BOX_ROWS, groups[1] // BOX_GROUPS, BOX_ROWS, BOX_GROUPS)
    assert physical.placements[1] == logical_placement(blocked, _LAYOUT[side]), (
        "plane 1 stands as BlockMxScaleTensorViews will address it"
    )
    return scales.shape
