"""Panels: the operands of a block-scaled product as the compiled kernel reads them.

A panel holds a few lanes of one operand, rows of the left one or columns of the right one, as
numbers with their scales multiplied in. That is exact, so a group's sum of such products is what
the group adds to the output before it is rounded. For each group of 32 along K a panel has 32 lines
with a number of each lane, and one more with the largest magnitude of each lane in the group:

    [ceil(lanes / width)][groups][GROUP_LINES][width]

The numbers are float64, or float32 where products and sums of the two formats fit its 24 bits.
Padding is +0.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

from ..dtypes.boxes import GROUP
from ..dtypes.formats import FloatFormat, IntegerFormat
from ..jit import compiled, lean
from .elements import block_exponent, element_of, unit_exponent
from .lane_kernels import (
    FORM_FIELDS,
    RUN,
    decode_group,
    transpose_8,
    transpose_16,
    transpose_packed_8,
    transpose_packed_16,
)
from .tables import integers, scale_table

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dtypes import DType

    Codes = npt.NDArray[np.uint8]
    Reals = npt.NDArray[np.floating[Any]]

_Real = TypeVar("_Real", np.float32, np.float64)

LEFT_LANES: Final = 8
"""Rows of a left panel."""
RIGHT_LANES: Final = 16
"""Columns of a right panel."""
GROUP_LINES: Final = GROUP + 1
"""Lines of a group: one for each k, and one for the largest magnitudes."""
SCRATCH_BYTES: Final = GROUP * RIGHT_LANES
"""Bytes that :func:`pack_panels` needs to work in."""

_FLOAT32_BITS, _FLOAT32_MANTISSA, _FLOAT32_BIAS = 32, 23, 127
_SINGLE_SUM_BITS, _DOUBLE_SUM_BITS = 24, 53
# Elements of the formats for float32 are at least 2^-6 and at most 28, so with factors in these
# bounds no product or sum of 32 is below 2^-124 or above 2^127.
_LEAST_FACTOR, _LARGEST_FACTOR = 2.0**-56, 2.0**56

assert RUN * 2 == GROUP
assert RUN == RIGHT_LANES


class Places(NamedTuple):
    """Where the codes of an operand lie in an array of bytes.

    Lane l of panel p has the first k of group g at byte `start + p * panel_step + l * lane_step +
    g // parts * line_step + g % parts * part_step`, and one more k every `depth_step` bytes.
    Where one of `depth_step` and `lane_step` is 1, packing is fast. With `depth_step` 0 there are
    two four-bit codes in each byte along K, the low half first.
    """

    start: int
    panel_step: int
    lane_step: int
    depth_step: int
    parts: int
    line_step: int
    part_step: int


class ElementForm(NamedTuple):
    """How the code of an element becomes a float32, and how many share a scale: see `lane_kernels.decode_group`.

    Attributes:
        mask: The bits of a magnitude, or of a whole integer.
        wrap: The sign bit of a two's complement integer, else 0.
        sign_shift: How far a float's sign bit is below float32's.
        shift: How far the mantissa is below float32's.
        offset: What float32's exponent field has more than a normal number's, in place.
        least_normal: The least magnitude that is not just a multiple of the unit.
        largest: The largest magnitude that is finite.
        unit: The float32 pattern of the unit, in which the smallest numbers are integers.
        span: Elements along K that share a scale, at most 32: a group. If there are fewer, the
            rest of the group's lines is 0.
    """

    mask: int
    wrap: int
    sign_shift: int
    shift: int
    offset: int
    least_normal: int
    largest: int
    unit: int
    span: int = GROUP


assert ElementForm._fields.index("span") == FORM_FIELDS


@cache
def element_form(dtype: DType) -> ElementForm:
    """Return how codes of an element format of at most 8 bits become numbers."""
    element = element_of(dtype)
    codes = element.code_count
    unit = np.ldexp(np.float32(1), unit_exponent(element) + block_exponent(element))
    pattern = int(unit.view(np.uint32))
    match element:
        case IntegerFormat():
            return ElementForm(
                mask=codes - 1,
                wrap=codes // 2,
                sign_shift=0,
                shift=0,
                offset=0,
                least_normal=codes,
                largest=codes,
                unit=pattern,
            )
        case FloatFormat():
            return ElementForm(
                mask=element.magnitude_mask,
                wrap=0,
                sign_shift=_FLOAT32_BITS - element.bits,
                shift=_FLOAT32_MANTISSA - element.mantissa_bits,
                offset=(_FLOAT32_BIAS - element.bias) << _FLOAT32_MANTISSA,
                least_normal=element.mantissa_mask + 1,
                largest=element.max_code,
                unit=pattern,
            )


@cache
def scale_factors(real: type[_Real]) -> npt.NDArray[_Real]:
    """Return the value of every E8M0 code, NaN among them, `[256]`, as float32 or float64."""
    return scale_table().astype(real)


def is_wide(a_dtype: DType, b_dtype: DType) -> bool:
    """Return whether a group sum of the two element formats can exceed float64's 53 bits."""
    return _largest_sum(a_dtype, b_dtype) >= 1 << _DOUBLE_SUM_BITS


def is_single(a_dtype: DType, b_dtype: DType) -> bool:
    """Return whether every group sum of the two element formats fits float32's 24 bits."""
    return _largest_sum(a_dtype, b_dtype) < 1 << _SINGLE_SUM_BITS


@cache
def _largest_sum(a_dtype: DType, b_dtype: DType) -> int:
    left, right = (int(np.abs(integers(dtype)).max()) for dtype in (a_dtype, b_dtype))
    return left * right * GROUP


@lean
def panel_numbers(lanes: int, groups: int, width: int) -> int:
    """Return how many numbers the panels of an operand hold."""
    return (lanes + width - 1) // width * groups * GROUP_LINES * width


@compiled
def pack_panels(
    source: Codes,
    places: Places,
    lanes: int,
    depth: int,
    width: int,
    form: ElementForm,
    scales: Codes,
    factors: Reals,
    out: Reals,
    scratch: Codes,
) -> bool:
    """Pack an operand into panels.

    Args:
        source: Bytes `[any]`, of which only codes of lanes and elements that exist are read.
        places: Where the codes lie.
        lanes: Rows of the left operand, or columns of the right one.
        depth: Elements along K.
        width: Lanes of a panel, `LEFT_LANES` or `RIGHT_LANES`.
        form: The format of the codes.
        scales: Scale codes in the order of the panels, `[panels][groups][width]`; those of lanes
            that do not exist may be anything.
        factors: What each scale code is worth, `[256]`.
        out: Receives the panels, of the same type, at least `panel_numbers` long.
        scratch: At least `SCRATCH_BYTES`.

    Returns:
        Whether the panels are exact and remain so in products and sums. In float32 a scale near the
        ends of its range can prevent that; float64 panels always are.
    """
    span = form.span
    groups = (depth + span - 1) // span
    exact = True
    for panel in range((lanes + width - 1) // width):
        there = min(width, lanes - panel * width)
        for group in range(groups):
            scale_at = (panel * groups + group) * width
            out_at = scale_at * GROUP_LINES
            factor_at = out_at + GROUP * width
            is_extreme = False
            for lane in range(width):
                factor = factors[scales[scale_at + lane]]
                is_extreme |= _is_extreme(factor)
                out[factor_at + lane] = factor
            at = places.start + panel * places.panel_step
            at += group // places.parts * places.line_step
            at += group % places.parts * places.part_step
            count = min(span, depth - group * span)
            runs = GROUP * width // RUN
            if width == RUN and there == width and count == GROUP and places.lane_step == 1:
                codes, first, step = source, at, places.depth_step
            else:
                _order(source, at, places, there, count, width, scratch)
                codes, first, step = scratch, 0, RUN
            if is_extreme and out.itemsize == 4:
                for lane in range(there):
                    if _is_extreme(out[factor_at + lane]):
                        exact &= not _has_number(codes, first, step, width, lane, form.mask)
            decode_group(codes, first, step, runs, form, out, out_at)
    return exact


@lean
def _is_extreme(factor: Any) -> bool:
    return abs(factor) < _LEAST_FACTOR or abs(factor) > _LARGEST_FACTOR


@lean
def _has_number(codes: Codes, first: int, step: int, width: int, lane: int, mask: int) -> bool:
    """Return whether a lane of a group, as `decode_group` takes it, is anything but zeros."""
    for k in range(GROUP):
        number = k * width + lane
        if codes[first + number // RUN * step + number % RUN] & mask:
            return True
    return False


@lean
def _order(
    source: Codes, at: int, places: Places, lanes: int, count: int, width: int, out: Codes
) -> None:
    """Put the codes of one group into lines of `width` lanes, zero where there are none."""
    step, along = places.lane_step, places.depth_step
    for i in range(count * width if lanes == width else 0, GROUP * width):
        out[i] = 0
    if lanes == width and count % RUN == 0 and along <= 1:
        for half in range(count // RUN):
            target = half * RUN * width
            if along == 1 and width == LEFT_LANES:
                transpose_8(source, at + half * RUN, step, out, target)
            elif along == 1:
                transpose_16(source, at + half * RUN, step, out, target)
            elif width == LEFT_LANES:
                transpose_packed_8(source, at + half * RUN // 2, step, out, target)
            else:
                transpose_packed_16(source, at + half * RUN // 2, step, out, target)
        return
    for k in range(count):
        for lane in range(lanes):
            here = at + lane * step
            if along == 0:
                code = (source[here + k // 2] >> (k % 2 * 4)) & 0xF
            else:
                code = source[here + k * along]
            out[k * width + lane] = code
