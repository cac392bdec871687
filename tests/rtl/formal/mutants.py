"""Wrong circuits, each a small edit of a right one, made when a test asks for it."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from scalebox.rtl.dot.formats import ELEMENTS
from scalebox.rtl.formal import Method, Verdict, check_adder, check_circuit, check_rounder
from scalebox.rtl.formal.plan import ROUNDERS
from scalebox.rtl.formal.specs import CombineSpec, DecodeSpec, LaneSpec, StreamSpec

ROOM = "scalebox.rtl."


def mutated(name: str, old: str, new: str) -> ModuleType:
    """Return a second copy of a module of `rtl` in which a text stands for another."""
    original = import_module(ROOM + name)
    count = inspect.getsource(original).count(old)
    assert count == 1, f"{old!r} must stand once in {name}, not {count} times"
    return copied(name, lambda source: source.replace(old, new))


def copied(name: str, edit: Callable[[str], str] = str) -> ModuleType:
    """Return a second copy of a module of `rtl`, its source edited."""
    original = import_module(ROOM + name)
    assert original.__file__ is not None
    module = ModuleType(original.__name__)
    module.__package__ = original.__package__
    module.__file__ = original.__file__
    source = edit(inspect.getsource(original))
    exec(compile(source, original.__file__, "exec"), module.__dict__)
    return module


@dataclass(frozen=True)
class Mutant:
    """A wrong circuit.

    Attributes:
        name: Its name.
        module: Which module of `rtl` is edited.
        old: The text that goes.
        new: The text that comes.
        killer: The proof that must reject it, one of `KILLERS`.
        breaks: Part of the name of a property that the counter-example breaks; empty where only a bound rejects it.
    """

    name: str
    module: str
    old: str
    new: str
    killer: str
    breaks: str


def combine(changed: ModuleType) -> Verdict:
    return check_circuit(CombineSpec(changed.ScalePair()), method=Method.BOUNDED, depth=1)


def decode(changed: ModuleType) -> Verdict:
    verdicts = [
        check_circuit(
            DecodeSpec(changed.ElementDecode(element), element), method=Method.BOUNDED, depth=1
        )
        for element in ELEMENTS.values()
        if element.row.name in ("E4M3", "E5M2")
    ]
    return next((verdict for verdict in verdicts if not verdict.is_proof), verdicts[0])


def unit_of(changed: ModuleType) -> Any:
    """Return a scale-decode unit with beats of 32 bytes that is built with the changed module."""
    unit = changed if changed.__name__.endswith(".unit") else copied("scale_decode.unit")
    if changed is not unit:
        part = {"side": "Side", "walk": "Walk"}[changed.__name__.rpartition(".")[2]]
        setattr(unit, part, getattr(changed, part))
        if part == "Walk":
            side = copied("scale_decode.side")
            side.__dict__["Walk"] = changed.Walk
            unit.__dict__["Side"] = side.Side
    return unit.ScaleDecode(beat_bytes=32)


def streams(changed: ModuleType) -> Verdict:
    return check_circuit(StreamSpec(unit_of(changed)), method=Method.INDUCTION, depth=4)


def lane(changed: ModuleType) -> Verdict:
    spec = LaneSpec(unit_of(changed), beat_bytes=32, side="b", row=9, group=1)
    return check_circuit(spec, method=Method.BOUNDED, depth=9)


def add(changed: ModuleType) -> Verdict:
    return check_adder(changed.AddFp32())


def rounding(changed: ModuleType) -> Verdict:
    magnitude, exponent = ROUNDERS[0]
    unit = changed.RoundFp32(magnitude_bits=magnitude, exponent_bits=exponent)
    return check_rounder(unit, magnitude_bits=magnitude, exponent_bits=exponent)


def rounding_wide(changed: ModuleType) -> Verdict:
    magnitude, exponent = ROUNDERS[1]
    unit = changed.RoundFp32(magnitude_bits=magnitude, exponent_bits=exponent)
    return check_rounder(unit, magnitude_bits=magnitude, exponent_bits=exponent)


KILLERS: dict[str, Callable[[ModuleType], Verdict]] = {
    each.__name__: each for each in (combine, decode, streams, lane, add, rounding, rounding_wide)
}

_PAIR_SUM = "self.exponent.eq(exponent_of(self.a) + exponent_of(self.b))"
_UNIT, _SIDE, _ADD, _ROUND = "scale_decode.unit", "scale_decode.side", "dot.add", "dot.rounding"
_EXACT, _NAN = "exponent_is_exact_sum", "nan_if_either_is"
_SUM, _NEAREST = "sum_is_ieee", "rounds_to_nearest"

MUTANTS = (
    Mutant(
        "sum_one_too_high", "scale_pair", _PAIR_SUM, _PAIR_SUM[:-1] + " + 1)", "combine", _EXACT
    ),
    Mutant(
        "sum_wraps",
        "scale_pair",
        _PAIR_SUM,
        _PAIR_SUM.replace("eq(", "eq((")[:-1] + ")[:9].as_signed())",
        "combine",
        _EXACT,
    ),
    Mutant("difference", "scale_pair", ") + exponent_of", ") - exponent_of", "combine", _EXACT),
    Mutant("nan_of_both", "scale_pair", "(self.a) | is_nan", "(self.a) & is_nan", "combine", _NAN),
    Mutant("nan_of_a_only", "scale_pair", " | is_nan_code(self.b)", "", "combine", _NAN),
    Mutant(
        "no_leading_bit",
        "dot.decode",
        "Cat(mantissa, is_normal)",
        "Cat(mantissa, 0)",
        "decode",
        "value",
    ),
    Mutant(
        "subnormal_shift", "dot.decode", "(field - is_normal)", "(field - 1)", "decode", "value"
    ),
    Mutant("all_ones_is_finite", "dot.decode", "magnitude.all()", "0", "decode", "nan"),
    Mutant(
        "infinity_is_nan",
        "dot.decode",
        "field.all() & mantissa.any()",
        "field.all()",
        "decode",
        "nan",
    ),
    Mutant(
        "zero_by_field",
        "dot.decode",
        "self.is_zero.eq(~magnitude.any())",
        "self.is_zero.eq(~is_normal)",
        "decode",
        "zero",
    ),
    Mutant(
        "output_always_advances",
        _UNIT,
        "& (self.o.ready | ~self.o.valid)",
        "",
        "streams",
        "o_payload_until_taken",
    ),
    Mutant(
        "output_drops",
        _UNIT,
        "with m.Elif(self.o.ready):",
        "with m.Elif(1):",
        "streams",
        "o_valid_until_taken",
    ),
    Mutant(
        "request_drops",
        _SIDE,
        "with m.Elif(walk.step & walk.at_last)",
        "with m.Elif(walk.at_last)",
        "streams",
        "request_valid_until_taken",
    ),
    Mutant(
        "request_runs_on",
        _SIDE,
        "self.request.valid & self.request.ready",
        "self.request.valid",
        "streams",
        "request_payload_until_taken",
    ),
    Mutant(
        "reset_leaves_slots",
        _SIDE,
        'name=f"full_{index}")',
        'name=f"full_{index}", reset_less=True)',
        "streams",
        "a_ready_after_reset",
    ),
    Mutant(
        "reset_leaves_busy",
        _UNIT,
        "busy, paired, odd = Signal(), ",
        "busy, paired, odd = Signal(reset_less=True), ",
        "streams",
        "start_ready_after_reset",
    ),
    Mutant(
        "groups_swapped",
        _UNIT,
        "Mux(upper, upper_group, lower_group)",
        "Mux(upper, lower_group, upper_group)",
        "lane",
        "exponent",
    ),
    Mutant(
        "last_too_early",
        _UNIT,
        "record.last.eq(whole & walk",
        "record.last.eq(walk",
        "lane",
        "last",
    ),
    Mutant(
        "end_too_early",
        _UNIT,
        "record.end.eq(whole & walk.at_last)",
        "record.end.eq(walk.at_last)",
        "lane",
        "end",
    ),
    Mutant("oldest_stands_still", _SIDE, "oldest.eq(~oldest)", "oldest.eq(oldest)", "lane", ""),
    Mutant(
        "other_slot_filled",
        _SIDE,
        "into = taken & (filling == index)",
        "into = taken & (filling != index)",
        "lane",
        "",
    ),
    Mutant(
        "odd_k_ignored", _UNIT, "walk.at_last_block & odd", "walk.at_last_block & 0", "lane", ""
    ),
    Mutant(
        "second_half_always",
        _UNIT,
        "Mux(second, upper_group, 0)",
        "upper_group",
        "lane",
        "absent_half_is_zero",
    ),
    Mutant("ties_up", _ADD, " | mantissa[0])", " | 1)", "add", _SUM),
    Mutant("truncates", _ADD, "Cat(mantissa, field) + up", "Cat(mantissa, field)", "add", _SUM),
    Mutant(
        "zero_keeps_sign",
        _ADD,
        "larger[-1] & ~(subtracts & ~total.any())",
        "larger[-1]",
        "add",
        _SUM,
    ),
    Mutant(
        "infinities_cancel", _ADD, "is_infinity & subtracts &", "is_infinity & 0 &", "add", _SUM
    ),
    Mutant("ties_up_once", _ROUND, "(significand[1] | sticky)", "1", "rounding_wide", _NEAREST),
    Mutant("no_sticky", _ROUND, "moved[: len(kept)].any() | rest", "rest", "rounding", _NEAREST),
    Mutant(
        "no_rest",
        _ROUND,
        "moved[: len(kept)].any() | rest",
        "moved[: len(kept)].any()",
        "rounding_wide",
        _NEAREST,
    ),
    Mutant("zero_is_signed", _ROUND, "Mux(is_zero, 0,", "Mux(0, 0,", "rounding", _NEAREST),
    Mutant(
        "no_overflow",
        _ROUND,
        "Mux(overflows, INFINITY, magnitude)",
        "Mux(0, INFINITY, magnitude)",
        "rounding",
        _NEAREST,
    ),
)
