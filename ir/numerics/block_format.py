"""Block-scaled formats as the quantisers need them, and the named choices that they offer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from ..dtypes import BlockScaledDType, DType, WholeExtent
from ..dtypes.formats import FloatFormat, IntegerFormat
from ..errors import IRTypeError
from .elements import block_exponent, element_of

if TYPE_CHECKING:
    from ..dtypes import SimpleDType

_BYTE = 8


class ScaleRule(Enum):
    """How a group's largest magnitude, amax, chooses the exponent of its E8M0 scale."""

    FLOOR = "floor"
    """OCP MX v1.0: floor(log2 amax) - emax. Elements at the top of a binade saturate."""
    CEIL = "ceil"
    """ceil(log2 amax) - emax."""
    EVEN = "even"
    """Of amax rounded to nearest even at the element's mantissa width: floor(log2) - emax."""
    RCEIL = "rceil"
    """ceil(log2(amax / max)), the smallest exponent at which nothing saturates."""
    NV = "nv"
    """The machine's: float32(amax * float32(1 / max)), its exponent rounded up."""


class InfinityPolicy(Enum):
    """What becomes of a group that holds an infinity."""

    NAN = "nan"
    """The group is NaN: scale code 255 (the rule nv gives 254 all the same)."""
    SATURATE = "saturate"
    """The scale is the largest, and infinite elements become the largest element."""


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """A block-scaled dtype taken apart.

    Attributes:
        element: The element's format, at most 8 bits wide.
        block: Elements that share one scale.
        scale: The dtype of the innermost scales: E8M0, or E4M3 with a tensor scale on top.
        has_tensor_scale: Whether one float32 scales the whole tensor.
    """

    element: FloatFormat | IntegerFormat
    block: int
    scale: SimpleDType
    has_tensor_scale: bool

    @property
    def mantissa_bits(self) -> int:
        """Fraction bits of the element's largest binade."""
        match self.element:
            case FloatFormat():
                return self.element.mantissa_bits
            case IntegerFormat():
                return self.element.bits - 2

    @property
    def max(self) -> float:
        """The largest element, counted as block scaling counts it."""
        return math.ldexp(self.element.max, block_exponent(self.element))

    @property
    def emax(self) -> int:
        """The exponent of the largest element's leading bit."""
        return math.frexp(self.max)[1] - 1

    @property
    def nan_element(self) -> int:
        """What elements of a NaN group are: the element's NaN, or code 0 where there is none."""
        match self.element:
            case FloatFormat():
                return self.element.nan_code or 0
            case IntegerFormat():
                return 0


def block_format_of(dtype: DType) -> BlockFormat:
    """Return the block format of a dtype.

    Raises:
        IRTypeError: `dtype` is not block-scaled, or neither of the MX form (one level of E8M0) nor
            of the NVFP4 form (E4M3 over a block, Float32 over the whole), or of elements that block
            scaling does not define.
    """
    if not isinstance(dtype, BlockScaledDType):
        raise _not_block_scaled(dtype)
    return _format_of(dtype)


@cache
def _format_of(dtype: BlockScaledDType) -> BlockFormat:
    match [(level.scale, level.block) for level in dtype.levels]:
        case [(DType.E8M0, int(block))]:
            return BlockFormat(_narrow(dtype), block, DType.E8M0, has_tensor_scale=False)
        case [(DType.E4M3, int(block)), (DType.Float32, WholeExtent())]:
            element = _narrow(dtype)
            if isinstance(element, IntegerFormat) or element.has_nan:
                message = (
                    f"The elements of {dtype.name}, which has two levels of scales, must be "
                    f"floats with neither NaN nor infinity, not {element.name}"
                )
                raise IRTypeError(message)
            return BlockFormat(element, block, DType.E4M3, has_tensor_scale=True)
        case _:
            raise _not_block_scaled(dtype)


def _not_block_scaled(dtype: object) -> IRTypeError:
    message = f"The dtype must be a block-scaled format, not {_name(dtype)}"
    valid = ", ".join(known.name for known in BlockScaledDType.registered())
    return IRTypeError(message, hint=f"Valid are: {valid}.")


def _narrow(dtype: BlockScaledDType) -> FloatFormat | IntegerFormat:
    element = element_of(dtype.element)
    match element:
        case FloatFormat():
            is_element = element.has_zero and element.bits <= _BYTE
        case IntegerFormat():
            is_element = element.dtype is DType.Int8
    if not is_element:
        message = (
            f"The elements of {dtype.name} must be Int8, or floats of at most {_BYTE} bits that "
            f"have a zero, not {element.name}"
        )
        raise IRTypeError(message)
    return element


def _name(dtype: object) -> str:
    return dtype.name if isinstance(dtype, DType) else repr(dtype)
