"""What a row of the instruction table is: fields, rules between fields, and its self-check.

A malformed row is our own bug, so the checks here are assertions; they run when the table is
imported. A value that a well-formed row refuses is the user's affair: `Row.complaint` says so in
a sentence and the caller decides which error carries it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from .vocabulary import (
    ADDRESS_BITS,
    ADDRESS_MULTIPLE,
    ADDRESS_UNIT,
    CoreKind,
    FieldKind,
    Flow,
    Pipe,
    Space,
    TimingClass,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from enum import IntEnum

    Values: TypeAlias = Mapping[str, int]

WORD_BITS = 128
HALF_BITS = 64
OPCODE_BITS = 8
REGISTERS = 32


@dataclass(frozen=True, slots=True)
class Field:
    """A stretch of bits of an instruction word.

    Args:
        name: Unique within the row; also the keyword of `make`.
        kind: How the bits are read.
        low: Lowest bit; no field crosses bit 64.
        width: Number of bits.
        doc: What the value counts.
        enum: The enum of an `ENUM` field.
        space: The memory of an `ADDR` field.
        rank: Number of dimensions of the view of a `VIEW` field.
        written: Whether a `REG` field is a result rather than an operand.
        least: Smallest value allowed, if narrower than the bits.
        most: Largest value allowed, if narrower than the bits.
        multiple: What the value is a multiple of.
        unit: What one step of the encoded bits counts; the value is a multiple of it.
    """

    name: str
    kind: FieldKind
    low: int
    width: int
    doc: str
    enum: type[IntEnum] | None = None
    space: Space | None = None
    rank: int | None = None
    written: bool = False
    least: int | None = None
    most: int | None = None
    multiple: int = 1
    unit: int = 1

    @property
    def signed(self) -> bool:
        """Whether the bits are two's complement."""
        return self.kind in (FieldKind.SIMM, FieldKind.TARGET)

    @property
    def high(self) -> int:
        """Highest bit."""
        return self.low + self.width - 1

    @property
    def minimum(self) -> int:
        """Smallest value allowed."""
        smallest = -(1 << (self.width - 1)) if self.signed else 0
        return smallest if self.least is None else self.least

    @property
    def maximum(self) -> int:
        """Largest value allowed."""
        largest = ((1 << (self.width - (1 if self.signed else 0))) - 1) * self.unit
        return largest if self.most is None else self.most

    def complaint(self, value: int) -> str | None:
        """Return why `value` is not legal here, as "must be …, not …", or None if it is."""
        if self.enum is not None:
            if value in {int(member) for member in self.enum}:
                return None
            names = ", ".join(f"{member.name.lower()} ({int(member)})" for member in self.enum)
            return f"{self.name} must be one of {names}, not {value}"
        if not self.minimum <= value <= self.maximum:
            return f"{self.name} must be {self.minimum} to {self.maximum}, not {value}"
        if value % self.multiple:
            return f"{self.name} must be a multiple of {self.multiple}, not {value}"
        return None


@dataclass(frozen=True, slots=True)
class Rule:
    """A relation that the fields of one instruction must keep.

    Args:
        doc: The rule as a clause, "rows is at most l1_rows".
        complaint: Given the field values, why they break the rule, or None.
    """

    doc: str
    complaint: Callable[[Values], str | None]


@dataclass(frozen=True, slots=True)
class Step:
    """What a vector core does in one step of an instruction.

    Args:
        loads: Registers that are loaded from UB.
        operations: Arithmetic operations.
        stores: Registers that are stored into UB.
    """

    loads: int
    operations: int
    stores: int

    def __str__(self) -> str:
        parts = (
            f"{number} {name}{'' if number == 1 else 's'}"
            for number, name in (
                (self.loads, "load"),
                (self.operations, "operation"),
                (self.stores, "store"),
            )
            if number
        )
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One instruction of the set; rows are equal only to themselves.

    Args:
        mnemonic: Its name in assembler text.
        opcode: Bits 0 to 7 of the word.
        pipe: The pipe that runs it, where `pipe_field` does not say.
        timing: Which formula gives its cycles.
        doc: What it does, in full sentences.
        fields: In the order of assembler text.
        reads: Memories that it reads.
        writes: Memories that it writes.
        flow: Which instruction comes next.
        rules: Relations between fields.
        pipe_field: The `Pipe` field that names the queue; `ALL` there means the scalar unit.
        step: What a step of a vector instruction takes; nothing else has steps.
    """

    mnemonic: str
    opcode: int
    pipe: Pipe
    timing: TimingClass
    doc: str
    fields: tuple[Field, ...] = ()
    reads: tuple[Space, ...] = ()
    writes: tuple[Space, ...] = ()
    flow: Flow = Flow.NEXT
    rules: tuple[Rule, ...] = ()
    pipe_field: str | None = None
    step: Step | None = None
    _columns: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        columns = {each.name: index for index, each in enumerate(self.fields)}
        object.__setattr__(self, "_columns", columns)
        _assert_well_formed(self)

    @property
    def core(self) -> CoreKind | None:
        """The only kind of core that has it, or None if both have."""
        if self.pipe in (Pipe.MTE1, Pipe.M, Pipe.FIX):
            return CoreKind.AIC
        if self.pipe in (Pipe.V, Pipe.MTE3) or Space.UB in self.writes:
            return CoreKind.AIV
        return CoreKind.AIC if Space.L1 in self.writes else None

    def column(self, name: str) -> int:
        """Return the position of field `name` among the fields."""
        return self._columns[name]

    def has(self, name: str) -> bool:
        """Return whether there is a field `name`."""
        return name in self._columns

    def complaint(self, values: tuple[int, ...]) -> str | None:
        """Return why `values`, one per field in order, are illegal as a sentence, or None."""
        for each, value in zip(self.fields, values, strict=True):
            why = each.complaint(value)
            if why is not None:
                return f"In {self.mnemonic}, {why}."
        named = {each.name: value for each, value in zip(self.fields, values, strict=True)}
        for rule in self.rules:
            why = rule.complaint(named)
            if why is not None:
                return f"In {self.mnemonic}, {why}."
        return None

    def queue(self, values: tuple[int, ...]) -> Pipe:
        """Return the pipe on whose queue the scalar unit puts the instruction."""
        if self.pipe_field is None:
            return self.pipe
        named = Pipe(values[self.column(self.pipe_field)])
        return Pipe.S if named is Pipe.ALL else named


def reg(name: str, low: int, doc: str, *, written: bool = False) -> Field:
    """Return a field for a scalar register."""
    return Field(name, FieldKind.REG, low, 5, doc, written=written)


def imm(
    name: str,
    low: int,
    width: int,
    doc: str,
    *,
    least: int = 0,
    most: int | None = None,
    multiple: int = 1,
) -> Field:
    """Return a field for an unsigned number."""
    return Field(name, FieldKind.IMM, low, width, doc, least=least, most=most, multiple=multiple)


def simm(
    name: str, low: int, width: int, doc: str, *, least: int | None = None, most: int | None = None
) -> Field:
    """Return a field for a signed number."""
    return Field(name, FieldKind.SIMM, low, width, doc, least=least, most=most)


def addr(name: str, low: int, space: Space, doc: str) -> Field:
    """Return a field for a byte address in `space`; width and alignment follow from the space."""
    unit = ADDRESS_UNIT.get(space, 1)
    return Field(
        name,
        FieldKind.ADDR,
        low,
        ADDRESS_BITS[space] - (unit.bit_length() - 1),
        doc,
        space=space,
        multiple=ADDRESS_MULTIPLE[space],
        unit=unit,
    )


def view(name: str, low: int, rank: int, doc: str) -> Field:
    """Return a field for an index into the kernel's views; the view must have `rank` dimensions."""
    return Field(name, FieldKind.VIEW, low, 10, doc, rank=rank)


def param(name: str, low: int, doc: str) -> Field:
    """Return a field for an index among the kernel's scalar parameters."""
    return Field(name, FieldKind.PARAM, low, 16, doc)


def enum(name: str, low: int, width: int, members: type[IntEnum], doc: str) -> Field:
    """Return a field for a member of `members`."""
    return Field(name, FieldKind.ENUM, low, width, doc, enum=members)


def target(name: str, low: int, doc: str) -> Field:
    """Return a field for a distance in instructions."""
    return Field(name, FieldKind.TARGET, low, 32, doc)


def at_most(small: str, large: str) -> Rule:
    """Return the rule that field `small` does not exceed field `large`."""

    def complaint(values: Values) -> str | None:
        if values[small] <= values[large]:
            return None
        return f"{small} must be at most {large} ({values[large]}), not {values[small]}"

    return Rule(f"{small} is at most {large}", complaint)


def _assert_well_formed(row: Row) -> None:
    where = f"row {row.mnemonic}"
    assert row.mnemonic.isidentifier(), f"{where}: a mnemonic is one word"
    assert row.mnemonic.islower(), f"{where}: a mnemonic is lower case"
    assert row.doc.endswith("."), f"{where}: doc is made of sentences"
    assert 0 <= row.opcode < 1 << OPCODE_BITS, f"{where}: opcode {row.opcode} out of range"
    names = [each.name for each in row.fields]
    assert len(set(names)) == len(names), f"{where}: a field name stands twice"
    taken = (1 << OPCODE_BITS) - 1
    for each in row.fields:
        _assert_field_well_formed(each, f"{where}, field {each.name}")
        bits = ((1 << each.width) - 1) << each.low
        assert not taken & bits, f"{where}, field {each.name}: bits overlap with another field"
        taken |= bits
    targets = sum(each.kind is FieldKind.TARGET for each in row.fields)
    jumps = row.flow in (Flow.BRANCH, Flow.JUMP)
    assert targets == int(jumps), f"{where}: a branch has one target, anything else none"
    has_steps = row.timing is TimingClass.VECTOR
    assert (row.step is not None) == has_steps, f"{where}: vector instructions have steps"
    if row.pipe_field is not None:
        chosen = row.fields[row.column(row.pipe_field)]
        assert chosen.enum is Pipe, f"{where}: pipe_field must name a field of pipes"


def _assert_field_well_formed(each: Field, where: str) -> None:
    assert each.name.isidentifier(), f"{where}: a field name is one word"
    assert each.width > 0, f"{where}: width must be positive"
    assert each.high < WORD_BITS, f"{where}: ends beyond bit {WORD_BITS - 1}"
    assert each.low // HALF_BITS == each.high // HALF_BITS, f"{where}: crosses bit {HALF_BITS}"
    assert (each.enum is not None) == (each.kind is FieldKind.ENUM), f"{where}: enum and kind"
    assert (each.space is not None) == (each.kind is FieldKind.ADDR), f"{where}: space and kind"
    assert (each.rank is not None) == (each.kind is FieldKind.VIEW), f"{where}: rank and kind"
    assert each.space is not Space.GM, f"{where}: GM is reached through views only"
    assert not each.written or each.kind is FieldKind.REG, f"{where}: only registers are results"
    assert not each.multiple % each.unit, f"{where}: a multiple that the bits cannot tell"
    largest = ((1 << (each.width - int(each.signed))) - 1) * each.unit
    smallest = -(1 << (each.width - 1)) if each.signed else 0
    assert smallest <= each.minimum <= each.maximum <= largest, f"{where}: range exceeds the bits"
    if each.enum is not None:
        codes = [int(member) for member in each.enum]
        assert each.unit == 1, f"{where}: an enum counts nothing"
        assert all(0 <= code <= largest for code in codes), f"{where}: enum exceeds the bits"
    if each.kind is FieldKind.REG:
        assert largest == REGISTERS - 1, f"{where}: there are {REGISTERS} registers"
