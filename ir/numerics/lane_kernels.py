"""Codes brought into the order of a panel, and turned into numbers: the two steps of packing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import types as numba_types
from numba.extending import intrinsic as numba_intrinsic

from .vectors import F32, F64, I8, I32, I64, Emitter, constant, of, pairs

if TYPE_CHECKING:
    from collections.abc import Callable

types: Any = numba_types
intrinsic: Any = numba_intrinsic

RUN = 16
"""Codes that one step takes."""
FORM_FIELDS = 8
"""Fields of a `panels.ElementForm` that say what a code is."""
_ABOVE, _INFINITY = 0x4B000000, 0x7F800000


def _transposing(lanes: int, *, packed: bool) -> Callable[..., None]:
    """Return what brings 16 codes of each lane, one after the other along k, into lines of lanes.

    The bytes of all lanes in a row are addressed by (lane, k). To shuffle the upper half of the
    rows into the lower one moves the lane's highest bit to the end; doing so once per bit of the
    lane leaves (k, lane).
    """

    @intrinsic
    def transpose(
        _typing: Any, source: Any, at: Any, lane_step: Any, target: Any, target_at: Any
    ) -> Any:
        signature = types.void(source, at, lane_step, target, target_at)

        def generate(context: Any, builder: Any, called: Any, args: Any) -> Any:
            emit = Emitter(context, builder, called, args)
            first, out = emit.pointer(0, 1), emit.pointer(3, 4)
            rows: list[Any] = []
            for lane in range(lanes):
                place = emit.at(first, emit.times(args[2], lane))
                rows.append(_nibbles(emit, place) if packed else emit.load(place, I8, RUN))
            for _ in range(lanes.bit_length() - 1):
                mixed: list[Any] = []
                for upper, lower in pairs(rows):
                    for half in (0, RUN // 2):
                        order = [i + half + side for i in range(RUN // 2) for side in (0, RUN)]
                        mixed.append(emit.shuffle(upper, lower, order))
                rows = mixed
            for number, row in enumerate(rows):
                emit.store(row, emit.at(out, number * RUN))
            return context.get_dummy_value()

        return signature, generate

    return transpose


def _nibbles(emit: Emitter, place: Any) -> Any:
    """Return the 16 four-bit codes of 8 bytes, the low half of a byte first."""
    both = emit.load(place, I8, RUN // 2)
    low = emit.builder.and_(both, constant(15, I8, RUN // 2))
    high = emit.builder.lshr(both, constant(4, I8, RUN // 2))
    return emit.shuffle(low, high, [i + side for i in range(RUN // 2) for side in (0, RUN // 2)])


transpose_8 = _transposing(8, packed=False)
"""(source, at, lane_step, target, target_at): 16 bytes each of 8 lanes into 16 lines of 8."""
transpose_16 = _transposing(16, packed=False)
"""The same of 16 lanes."""
transpose_packed_8 = _transposing(8, packed=True)
"""The same of 8 lanes with two codes in a byte."""
transpose_packed_16 = _transposing(16, packed=True)
"""The same of 16 lanes with two codes in a byte."""


@intrinsic
def decode_group(
    _typing: Any, codes: Any, at: Any, step: Any, runs: Any, form: Any, out: Any, out_at: Any
) -> Any:
    """Turn a group's lines of codes into numbers times their lane's factor.

    The factors stand in the line after the group's last one; when all is done, the largest
    magnitude of each lane stands there instead, if the numbers are float64.

    Compiled signature: (codes, at, step, runs, form, out, out_at). There are `runs` times 16 codes,
    `step` bytes from one 16 to the next: 32 for 16 lanes, 16 for 8 lanes.
    """
    real = F64 if out.dtype == types.float64 else F32
    signature = types.void(codes, at, step, runs, form, out, out_at)

    def generate(context: Any, builder: Any, called: Any, args: Any) -> Any:
        emit = Emitter(context, builder, called, args)
        first, target = emit.pointer(0, 1), emit.pointer(5, 6)
        values = _Decoder(emit, args[4])
        is_narrow = builder.icmp_signed("==", args[3], I64(RUN))
        edge = emit.at(target, emit.times(args[3], RUN))
        factor = emit.variable(of(real, RUN), constant(0.0, real, RUN))
        with builder.if_else(is_narrow) as (narrow, whole):
            with narrow:
                eight = emit.load(edge, real, RUN // 2)
                twice = [*range(RUN // 2)] * 2
                builder.store(emit.shuffle(eight, eight, twice), factor)
            with whole:
                builder.store(emit.load(edge, real, RUN), factor)
        factors = builder.load(factor)
        peak = emit.variable(of(F32, RUN), constant(0.0, F32, RUN))
        with emit.loop(args[3]) as loop:
            place = emit.at(first, builder.mul(loop.index, args[2]))
            value = values.decoded(emit.load(place, I8, RUN))
            if real is F64:
                size, largest = emit.call("fabs", value), builder.load(peak)
                is_larger = builder.fcmp_ordered(">", size, largest)
                builder.store(builder.select(is_larger, size, largest), peak)
                value = builder.fpext(value, of(F64, RUN))
            value = builder.fmul(value, factors)
            emit.store(value, emit.at(target, emit.times(loop.index, RUN)))
        if real is F64:
            peaks = builder.fmul(builder.fpext(builder.load(peak), of(F64, RUN)), factors)
            with builder.if_else(is_narrow) as (narrow, whole):
                with narrow:
                    lower = emit.shuffle(peaks, peaks, range(RUN // 2))
                    upper = emit.shuffle(peaks, peaks, range(RUN // 2, RUN))
                    is_larger = builder.fcmp_ordered(">", upper, lower)
                    emit.store(builder.select(is_larger, upper, lower), edge)
                with whole:
                    emit.store(peaks, edge)
        return context.get_dummy_value()

    return signature, generate


class _Decoder:
    """Turns codes into float32, by steps that no subnormal number passes through.

    An integer below 2^23 becomes a float when 2^23 is put above it as an exponent and then taken
    away; so the unit's multiples are made, subnormals and two's complement integers.
    """

    def __init__(self, emit: Emitter, form: Any) -> None:
        self.emit = emit
        builder = emit.builder
        fields = [builder.trunc(builder.extract_value(form, i), I32) for i in range(FORM_FIELDS)]
        mask, wrap, sign_shift, shift, offset, least_normal, largest, unit = (
            emit.splat(field, RUN) for field in fields
        )
        self.mask, self.shift, self.offset = mask, shift, offset
        self.sign_shift, self.least_normal, self.largest = sign_shift, least_normal, largest
        self.floats, self.words = of(F32, RUN), of(I32, RUN)
        self.unit = builder.bitcast(unit, self.floats)
        self.above = builder.xor(wrap, constant(_ABOVE, I32, RUN))
        base = builder.bitcast(builder.or_(wrap, constant(_ABOVE, I32, RUN)), self.floats)
        self.base = builder.fmul(builder.fneg(base), self.unit)
        is_float = builder.icmp_unsigned("==", wrap, constant(0, I32, RUN))
        sign, none = constant(-1 << 31, I32, RUN), constant(0, I32, RUN)
        self.sign = builder.select(is_float, sign, none)

    def decoded(self, codes: Any) -> Any:
        """Return 16 codes as float32."""
        emit, builder = self.emit, self.emit.builder
        code = builder.zext(codes, self.words)
        magnitude = builder.and_(code, self.mask)
        number = builder.bitcast(builder.xor(magnitude, self.above), self.floats)
        small = builder.bitcast(emit.multiply_add(number, self.unit, self.base), self.words)
        normal = builder.add(builder.shl(magnitude, self.shift), self.offset)
        value = builder.select(
            builder.icmp_unsigned("<", magnitude, self.least_normal), small, normal
        )
        # A mantissa of zero makes this infinity, any other NaN; so it is in the formats.
        special = builder.or_(value, constant(_INFINITY, I32, RUN))
        value = builder.select(builder.icmp_unsigned(">", magnitude, self.largest), special, value)
        sign = builder.and_(builder.shl(code, self.sign_shift), self.sign)
        return builder.bitcast(builder.or_(value, sign), self.floats)
