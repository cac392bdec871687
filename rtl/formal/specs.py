"""What must hold of the circuits, as circuits around them.

Every specification has the unit's inputs as its own, so that a prover is free to choose them in every
cycle, the reset included. A wire named `holds_...` is a property.
"""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amaranth.hdl import Array, Assert, Assume, Const, Module, Mux, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from ...codegen.isa.table import MAD_LIMIT
from ...ir.dtypes.boxes import BOX_ROWS, GROUP
from ..shapes import BIAS, CODE, NAN_CODE

if TYPE_CHECKING:
    from amaranth.hdl import Value

    from ..dot.decode import ElementDecode
    from ..dot.formats import Element
    from ..scale_pair import ScalePair

__all__ = ["CombineSpec", "DecodeSpec", "LaneSpec", "StreamSpec"]

_OUTPUT_STREAMS: Final = ("a_request", "b_request", "o")
_TILES: Final = -(-MAD_LIMIT // BOX_ROWS)
_GROUPS: Final = -(-MAD_LIMIT // GROUP)
_IN_FLIGHT: Final = 4
"""More boxes than two slots and the output register hold at a time: three."""


class CombineSpec(wiring.Component):
    """The combine step: the sum of both exponents, exact, and NaN if either code is.

    Args:
        unit: The circuit.
    """

    def __init__(self, unit: ScalePair) -> None:
        self._unit = unit
        super().__init__({"a": In(CODE), "b": In(CODE)})

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        m.submodules.unit = unit = self._unit
        m.d.comb += [unit.a.eq(self.a), unit.b.eq(self.b)]
        either = (self.a == NAN_CODE) | (self.b == NAN_CODE)
        _hold(m, "nan_if_either_is", unit.is_nan == either)
        # Both sides are compared as integers, so that no wrapped sum can pass.
        _hold(m, "exponent_is_exact_sum", unit.exponent + 2 * BIAS == self.a + self.b)
        return m


class DecodeSpec(wiring.Component):
    """The decoder of elements: every code has the value that its fields say.

    Args:
        unit: The circuit.
        element: The format that it decodes.
    """

    def __init__(self, unit: ElementDecode, element: Element) -> None:
        self._unit = unit
        self._element = element
        super().__init__({"code": In(element.bits)})

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        m.submodules.unit = unit = self._unit
        m.d.comb += unit.code.eq(self.code)
        row = self._element.row
        codes = range(1 << row.bits)
        infinity = row.infinity_code if row.has_infinity else None
        half = 1 << (row.bits - 1)
        magnitudes = [code % half for code in codes]
        if infinity is not None:
            nans = [magnitude > infinity for magnitude in magnitudes]
        else:
            nans = [row.nan_code is not None and magnitude == half - 1 for magnitude in magnitudes]
        infinities = [magnitude == infinity for magnitude in magnitudes]
        finite = Array([Const(int(not nan)) for nan in nans])[self.code] & ~unit.is_infinity
        value = Array([Const(_units(code, row.mantissa_bits), 48) for code in magnitudes])[
            self.code
        ]
        _hold(m, "sign", unit.sign == (self.code >= half))
        _hold(m, "zero", unit.is_zero == (self.code % half == 0))
        _hold(m, "nan", unit.is_nan == Array([Const(int(nan)) for nan in nans])[self.code])
        _hold(
            m, "infinity", unit.is_infinity == Array([Const(int(x)) for x in infinities])[self.code]
        )
        _hold(m, "value", ~finite | ((unit.significand << unit.shift) == value))
        return m


class StreamSpec(wiring.Component):
    """The rules of streams, for every stream that leaves the scale-decode unit, in every cycle.

    A word on offer stays on offer, unchanged, until it is taken; after a cycle of reset nothing is
    on offer and the unit takes a start and beats.

    Args:
        unit: The unit.
    """

    def __init__(self, unit: Any) -> None:
        self._unit = unit
        super().__init__(_inputs_of(unit))

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        m.submodules.unit = unit = self._unit
        _connect(m, self, unit)
        past, past_reset = _register(m, "past", Const(1)), _register(m, "past_reset", ResetSignal())
        for name in _OUTPUT_STREAMS:
            stream = getattr(unit, name)
            payload = stream.payload.as_value()
            past_payload = _register(m, f"{name}_past_payload", payload)
            waits = _register(m, f"{name}_waits", stream.valid & ~stream.ready & ~ResetSignal())
            _hold(m, f"{name}_valid_until_taken", ~(past & waits) | stream.valid)
            _hold(m, f"{name}_payload_until_taken", ~(past & waits) | (payload == past_payload))
            _hold(m, f"{name}_empty_after_reset", ~(past & past_reset) | ~stream.valid)
        for name in ("start", "a", "b"):
            ready = getattr(unit, name).ready
            _hold(m, f"{name}_ready_after_reset", ~(past & past_reset) | ready)
        return m


class LaneSpec(wiring.Component):
    """What entered as a chosen byte of every box leaves as a chosen lane of the records.

    In order, none lost, none twice, whatever stalls, for a mad of any shape whose
    beats come after the requests for them. The
    numbers and marks of the records are held too. Without resets: `StreamSpec` has those.

    Args:
        unit: The unit.
        beat_bytes: Bytes of its beats.
        side: `a` or `b`.
        row: Row of the box, 0 to 15.
        group: Group of the box, 0 or 1.
    """

    def __init__(self, unit: Any, *, beat_bytes: int, side: str, row: int, group: int) -> None:
        self._unit = unit
        self._beat_bytes = beat_bytes
        self._side = side
        self._row = row
        self._group = group
        super().__init__(_inputs_of(unit))

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        m.submodules.unit = unit = self._unit
        _connect(m, self, unit)
        m.d.comb += Assume(~ResetSignal())
        start = unit.start
        counts = ("row_tiles", "column_tiles", "groups")
        for name, most in zip(counts, (_TILES, _TILES, _GROUPS), strict=True):
            count = start.payload[name]
            m.d.comb += Assume(~start.valid | ((count != 0) & (count <= most)))
        for name in ("a", "b"):
            self._only_what_was_asked_for(m, name)

        # The chosen byte is every box's byte `2 * row + group`: rows of two groups, ascending.
        beats = getattr(unit, self._side)
        word, place = divmod(2 * self._row + self._group, self._beat_bytes)
        beat = Signal(range(max(2, 32 // self._beat_bytes)))
        comes = Signal()
        taken = beats.valid & beats.ready
        m.d.comb += comes.eq(taken & (beat == word))
        with m.If(taken):
            m.d.sync += beat.eq(Mux(beat == 32 // self._beat_bytes - 1, 0, beat + 1))

        # A mad's shape, and the record that is due.
        shape = {name: Signal(start.payload[name].shape(), name=f"mad_{name}") for name in counts}
        paired, under_way = Signal(), Signal()
        row, column, group = (Signal(16, name=f"due_{name}") for name in ("row", "column", "group"))
        with m.If(start.valid & start.ready):
            m.d.sync += [signal.eq(start.payload[name]) for name, signal in shape.items()]
            m.d.sync += [paired.eq(start.payload.paired), under_way.eq(1)]
        step = Mux(paired, 2, 1)
        last, end, leaves, has_second = Signal(), Signal(), Signal(), Signal()
        m.d.comb += leaves.eq(unit.o.valid & unit.o.ready)
        m.d.comb += last.eq(group + step >= shape["groups"])
        m.d.comb += end.eq(
            last & (column + 1 == shape["column_tiles"]) & (row + 1 == shape["row_tiles"])
        )
        m.d.comb += has_second.eq(paired & (group + 1 < shape["groups"]))
        with m.If(leaves):
            m.d.sync += group.eq(Mux(last, 0, group + step))
            with m.If(last):
                m.d.sync += column.eq(Mux(column + 1 == shape["column_tiles"], 0, column + 1))
                with m.If(column + 1 == shape["column_tiles"]):
                    m.d.sync += row.eq(row + 1)
            with m.If(end):
                m.d.sync += [row.eq(0), under_way.eq(0)]

        # The codes that are inside, the oldest first.
        queue = [Signal(CODE, name=f"inside_{index}") for index in range(_IN_FLIGHT)]
        count = Signal(range(_IN_FLIGHT + 2))
        box_done = paired | group[0] | last
        pops = Signal()
        m.d.comb += pops.eq(leaves & box_done)
        left = Signal.like(count)
        m.d.comb += left.eq(count - pops)
        m.d.sync += count.eq(left + comes)
        for index, kept in enumerate(queue):
            follower = queue[index + 1] if index + 1 < _IN_FLIGHT else Const(0)
            m.d.sync += kept.eq(
                Mux(comes & (left == index), beats.payload[place], Mux(pops, follower, kept))
            )

        record = unit.o.payload
        valid = unit.o.valid
        concerned = (paired if self._group == 0 else has_second) | (
            ~paired & (group[0] == self._group)
        )
        half = Mux(paired & (self._group == 1), 1, 0)
        exponent = Array(
            each[f"{self._side}_exponent"][self._row]
            for each in (record.halves[0], record.halves[1])
        )[half]
        is_nan = Array(
            each[f"{self._side}_nan"][self._row] for each in (record.halves[0], record.halves[1])
        )[half]
        _hold(m, "a_box_is_inside", ~valid | (count != 0))
        _hold(m, "no_more_than_fits", count <= _IN_FLIGHT)
        _hold(m, "exponent", ~(valid & concerned) | (exponent + BIAS == queue[0]))
        _hold(m, "nan", ~(valid & concerned) | (is_nan == (queue[0] == NAN_CODE)))
        _hold(m, "only_in_a_mad", ~valid | under_way)
        _hold(m, "group", ~valid | (record.group == group))
        _hold(m, "second", ~valid | (record.second == has_second))
        _hold(m, "absent_half_is_zero", ~valid | has_second | (record.halves[1].as_value() == 0))
        _hold(m, "last", ~valid | (record.last == last))
        _hold(m, "end", ~valid | (record.end == end))
        return m

    def _only_what_was_asked_for(self, m: Module, name: str) -> None:
        """Assume that a beat comes in a later cycle than the request for its box was taken."""
        request, beats = getattr(self._unit, f"{name}_request"), getattr(self._unit, name)
        asked = Signal(16, name=f"{name}_asked")
        beat = Signal(range(max(2, 32 // self._beat_bytes)), name=f"{name}_beat")
        taken, is_last = beats.valid & beats.ready, beat == 32 // self._beat_bytes - 1
        m.d.comb += Assume(~beats.valid | (asked != 0))
        m.d.sync += asked.eq(asked + (request.valid & request.ready) - (taken & is_last))
        with m.If(taken):
            m.d.sync += beat.eq(Mux(is_last, 0, beat + 1))


def _units(magnitude: int, mantissa_bits: int) -> int:
    """Return the value of a code without sign, in smallest subnormals, by the rule of IEEE 754."""
    field, mantissa = divmod(magnitude, 1 << mantissa_bits)
    return mantissa if field == 0 else (mantissa + (1 << mantissa_bits)) << (field - 1)


def _hold(m: Module, name: str, condition: Value) -> None:
    wire = Signal(name=f"holds_{name}")
    m.d.comb += wire.eq(condition)
    m.d.comb += Assert(wire)


def _register(m: Module, name: str, value: Value) -> Signal:
    """Return a value one cycle later; no reset clears it, and at first it is 0."""
    register = Signal(len(value), name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register


def _inputs_of(unit: Any) -> dict[str, Any]:
    """Return the members that a specification shares with the unit's inputs."""
    members: dict[str, Any] = {}
    for name, member in unit.signature.members.items():
        stream = getattr(unit, name)
        if member.flow is In:
            members[f"{name}_valid"] = In(1)
            members[f"{name}_payload"] = In(len(stream.payload.as_value()))
        else:
            members[f"{name}_ready"] = In(1)
    return members


def _connect(m: Module, spec: Any, unit: Any) -> None:
    """Drive the unit's inputs with those of its specification."""
    for name, member in unit.signature.members.items():
        stream = getattr(unit, name)
        if member.flow is In:
            m.d.comb += stream.valid.eq(getattr(spec, f"{name}_valid"))
            m.d.comb += stream.payload.as_value().eq(getattr(spec, f"{name}_payload"))
        else:
            m.d.comb += stream.ready.eq(getattr(spec, f"{name}_ready"))
