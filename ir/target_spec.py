"""What a field of the machine record may be: its unit, its range, and how text becomes a value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias, cast

from .dtypes import DType
from .dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS
from .errors import MachineError

Pairs: TypeAlias = tuple[tuple[str, str], ...]
Value: TypeAlias = int | float | Pairs

MX_FAMILIES = (("E4M3", "E5M2"), ("E2M1", "E1M2"))
"""Element types of the cube's MX operands; a pair comes from one family, of one width."""

CASTABLE = tuple(
    sorted(
        row.name
        for row in (*FLOAT_FORMATS.values(), *INTEGER_FORMATS.values())
        if row.dtype is not DType.E8M0
    )
)
"""The dtypes that a conversion may be from or to; a scale is none."""


SIZE_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
"""The units that a size may be written with, in bytes."""

_SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([A-Za-z]+)\s*")
_MOST_SHOWN = 80
_MOST_SHOWN_BITS = 128


class Unit(Enum):
    """What a field counts; its value ends the field's name."""

    BYTES = "bytes"
    BYTES_PER_CYCLE = "bytes_per_cycle"
    CYCLES = "cycles"
    ELEMENTS = "elements"
    HERTZ = "hz"
    SECONDS = "seconds"
    COUNT = ""


class Status(Enum):
    """How well a value is known."""

    PUBLISHED = "published"
    DERIVED = "derived"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a value comes from."""

    source: str
    status: Status


class FieldType(Enum):
    """What kind of value a field holds."""

    INTEGER = "an integer"
    NUMBER = "a number"
    PAIRS = "a list of pairs of element types"
    CASTS = "a list of pairs of dtypes, from and to"

    @property
    def is_pairs(self) -> bool:
        """Whether the value is a list of pairs of names."""
        return self in (FieldType.PAIRS, FieldType.CASTS)


@dataclass(frozen=True, slots=True)
class Spec:
    """One field of the record.

    Args:
        type: Kind of value.
        unit: What it counts.
        doc: What it is, in a sentence.
        least: Smallest value.
        most: Largest value.
        multiple: What an integer is a multiple of.
        power_of_two: Whether an integer must be a power of two.
    """

    type: FieldType
    unit: Unit
    doc: str
    least: float = 0
    most: int = 1 << 48
    multiple: int = 1
    power_of_two: bool = False

    @property
    def rule(self) -> str:
        """What a value must be, as a noun phrase."""
        if self.type is FieldType.PAIRS:
            families = " or ".join(" and ".join(family) for family in MX_FAMILIES)
            return f"a non-empty list of pairs from {families}"
        if self.type is FieldType.CASTS:
            return f"a non-empty list of pairs of two different dtypes of {', '.join(CASTABLE)}"
        if self.power_of_two:
            return f"a power of two, {self.least} to {self.most}"
        multiple = f", a multiple of {self.multiple}" if self.multiple > 1 else ""
        return f"{self.type.value}, {self.least} to {self.most}{multiple}"

    def checked(self, name: str, value: object) -> Value:
        """Return `value` in the field's own type.

        Args:
            name: The field's name, for the message.
            value: What a file or a caller gave; of a field in bytes also text with a unit.

        Raises:
            MachineError: If it is of another type or breaks the rule.
        """
        if self.unit is Unit.BYTES and isinstance(value, str):
            return self._size(name, value)
        match self.type:
            case FieldType.PAIRS | FieldType.CASTS:
                return self._pairs(name, value)
            case FieldType.INTEGER:
                if type(value) is not int or not self._allows(value):
                    self.refuse(name, value)
                return value
            case FieldType.NUMBER:
                if type(value) not in (int, float):
                    self.refuse(name, value)
                number = cast("int | float", value)
                if not self._allows(number):
                    self.refuse(name, value)
                return float(number)

    def parsed(self, name: str, text: str) -> Value:
        """Return the value that `text` writes: `l1_bytes=0x40000`, `l1_bytes=256KiB`, `clock_hz=1.65e9`.

        Pairs are written `E4M3*E5M2,E2M1*E2M1`.

        Raises:
            MachineError: As :meth:`checked`.
        """
        if self.type.is_pairs:
            return self.checked(name, [each.strip().split("*") for each in text.split(",")])
        try:
            return self.checked(name, int(text, 0))
        except ValueError as error:
            if isinstance(error, MachineError):
                raise
        try:
            number = float(text)
        except ValueError:
            return self.checked(name, text)
        whole = self.type is FieldType.INTEGER and number.is_integer()
        return self.checked(name, int(number) if whole else number)

    def refuse(
        self, name: str, value: object, *, worth: Fraction | None = None, hint: str | None = None
    ) -> NoReturn:
        """Raise the error for a value that is not allowed.

        Args:
            name: The field's name.
            value: What was given.
            worth: How many bytes that is, if it is text with a unit.
            hint: What would be valid, where that is not plain from the rule.
        """
        bytes_of_it = "" if worth is None else f", which is {_plain(worth)}"
        message = f"{name} must be {self.rule}, not {shown(value)}{bytes_of_it}."
        raise MachineError(message, hint=hint)

    def _size(self, name: str, text: str) -> int:
        """Return the bytes of text with a unit, as in `256KiB` or `1.5 MiB`."""
        units = tuple(SIZE_UNITS)
        valid = f"a size in bytes may have a unit of {', '.join(units)}, as in 256KiB"
        size = size_of(text)
        if size is None:
            found = _SIZE.fullmatch(text)
            alike = (
                [] if found is None else [each for each in units if each[0] == found[2][0].upper()]
            )
            meant = "" if found is None or not alike else f"did you mean {found[1]}{alike[0]}? "
            self.refuse(name, text, hint=f"{meant}{valid}")
        if size.denominator != 1 or not self._allows(size.numerator):
            self.refuse(name, text, worth=size)
        return size.numerator

    def _allows(self, value: float) -> bool:
        if not self.least <= value <= self.most:
            return False
        if isinstance(value, int):
            if self.power_of_two and value & (value - 1):
                return False
            return value % self.multiple == 0
        return True

    def _pairs(self, name: str, value: object) -> Pairs:
        legal = self._legal_pairs()
        given = [_items(each) for each in _items(value)]
        if not given:
            self.refuse(name, value)
        for each in given:
            if each not in legal:
                self.refuse(name, each)
        return tuple(sorted((a, b) for a, b in legal if [a, b] in given))

    def _legal_pairs(self) -> list[list[str]]:
        if self.type is FieldType.CASTS:
            return [[a, b] for a in CASTABLE for b in CASTABLE if a != b]
        return [[a, b] for family in MX_FAMILIES for a in family for b in family]


def size_of(text: str) -> Fraction | None:
    """Return the bytes of a size with a unit, as in `1.5MiB`; None if that is not what `text` is."""
    found = _SIZE.fullmatch(text)
    if found is None or found[2] not in SIZE_UNITS:
        return None
    return Fraction(found[1]) * SIZE_UNITS[found[2]]


def shown(value: object) -> str:
    """Return a value as an error names it, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > _MOST_SHOWN_BITS:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except ValueError:
        return f"such a {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _plain(number: Fraction) -> str:
    return str(number.numerator if number.denominator == 1 else float(number))


def _items(value: object) -> list[object]:
    """Return the items of a list or tuple; of anything else, none."""
    return (
        list(cast("list[object] | tuple[object, ...]", value))
        if isinstance(value, list | tuple)
        else []
    )


def size(doc: str, *, least: int = 0, most: int = 1 << 48, multiple: int = 32) -> Any:
    """Return a record field for the size of a memory in bytes."""
    return spec(FieldType.INTEGER, Unit.BYTES, doc, least=least, most=most, multiple=multiple)


def count(doc: str, *, least: int = 1, most: int = 1 << 20, unit: Unit = Unit.COUNT) -> Any:
    """Return a record field for a whole number of things."""
    return spec(FieldType.INTEGER, unit, doc, least=least, most=most)


def cycles(doc: str, *, least: int = 0) -> Any:
    """Return a record field for a duration in whole cycles."""
    return spec(FieldType.INTEGER, Unit.CYCLES, doc, least=least, most=1 << 24)


def part_cycles(doc: str) -> Any:
    """Return a record field for a duration in cycles and parts of them, of which many are summed."""
    return spec(FieldType.NUMBER, Unit.CYCLES, doc, most=1 << 16)


_LEAST_RATE = 0.001
"""Below this, cycles would leave 64 bits."""


def rate(doc: str) -> Any:
    """Return a record field for a bandwidth in bytes a cycle."""
    return spec(FieldType.NUMBER, Unit.BYTES_PER_CYCLE, doc, least=_LEAST_RATE, most=1 << 32)


def spec(
    kind: FieldType,
    unit: Unit,
    doc: str,
    *,
    least: float = 0,
    most: int = 1 << 48,
    multiple: int = 1,
    power_of_two: bool = False,
) -> Any:
    """Return a record field that carries a :class:`Spec`."""
    rule = Spec(
        kind,
        unit,
        doc,
        least=least,
        most=most,
        multiple=multiple,
        power_of_two=power_of_two,
    )
    return field(metadata={"spec": rule})
