"""Assembler text, written from the rows and read back by them.

One instruction a line, operands in the order of the row's fields:

| field | text |
|---|---|
| register | `x3` |
| view, scalar parameter | `v0`, `p0` |
| address | `l1[0x1000]` |
| signed number | `-5` |
| unsigned number, enum | `rows=64`, `init=acc` |
| branch target | `L0`, a label that stands on a line `L0:` before its instruction |

Everything after `;` is a comment. Writing and reading are inverse of each other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from ...ir.errors import ExecutableError, IRValueError
from .program import Instruction, row_of
from .vocabulary import FieldKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .row import Field, Row

_PREFIX = {FieldKind.REG: "x", FieldKind.VIEW: "v", FieldKind.PARAM: "p"}
_MNEMONIC_WIDTH = 14
_COMMENT_COLUMN = 72
_LABEL_LINE = re.compile(r"([A-Za-z_]\w*)\s*:")
_NUMBER = re.compile(r"-?(0x[0-9a-fA-F]+|\d+)")
_MAX_DIGITS = 24


def format_instruction(instruction: Instruction, target: str | None = None) -> str:
    """Return one instruction as text.

    Args:
        instruction: What is to be shown.
        target: The label of its branch target; by default the distance, as `+3`.
    """
    row = instruction.row
    operands = [
        _operand(field, value, target)
        for field, value in zip(row.fields, instruction.values, strict=True)
    ]
    return f"{row.mnemonic:<{_MNEMONIC_WIDTH}} {', '.join(operands)}".rstrip()


def format_program(program: Sequence[Instruction], comments: Sequence[str] = ()) -> str:
    """Return a program as text, with labels where branches go.

    Args:
        program: The instructions; every branch must land on one of them or just behind the last.
        comments: Nothing, or one per instruction; empty ones are left out.
    """
    targets = {index: _destination(index, each) for index, each in enumerate(program)}
    places = sorted({place for place in targets.values() if place is not None})
    labels = {place: f"L{number}" for number, place in enumerate(places)}
    lines: list[str] = []
    for index, instruction in enumerate(program):
        if index in labels:
            lines.append(f"{labels[index]}:")
        place = targets[index]
        label = labels[place] if place is not None else None
        text = f"    {format_instruction(instruction, label)}"
        comment = " ".join(comments[index].split()) if comments else ""
        lines.append(f"{text:<{_COMMENT_COLUMN}} ; {comment}" if comment else text)
    if len(program) in labels:
        lines.append(f"{labels[len(program)]}:")
    return "".join(f"{line}\n" for line in lines)


def parse_program(text: str) -> list[Instruction]:
    """Return the instructions of assembler text.

    Raises:
        ExecutableError: If a line is no instruction, naming its number.
    """
    lines: list[tuple[int, str]] = []
    labels: dict[str, int] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.partition(";")[0].strip()
        while match := _LABEL_LINE.match(line):
            if match[1] in labels:
                _refuse(number, f"a label must stand once, not again as {match[1]!r} does")
            labels[match[1]] = len(lines)
            line = line[match.end() :].strip()
        if line:
            lines.append((number, line))
    return [_parse_line(number, line, index, labels) for index, (number, line) in enumerate(lines)]


def _destination(index: int, instruction: Instruction) -> int | None:
    for field, value in zip(instruction.row.fields, instruction.values, strict=True):
        if field.kind is FieldKind.TARGET:
            return index + value
    return None


def _operand(field: Field, value: int, target: str | None) -> str:
    match field.kind:
        case FieldKind.REG | FieldKind.VIEW | FieldKind.PARAM:
            return f"{_PREFIX[field.kind]}{value}"
        case FieldKind.ADDR:
            assert field.space is not None, "an address has a space"
            return f"{field.space.name.lower()}[{value:#x}]"
        case FieldKind.ENUM:
            assert field.enum is not None, "an enum field has an enum"
            return f"{field.name}={field.enum(value).name.lower()}"
        case FieldKind.IMM:
            return f"{field.name}={value}"
        case FieldKind.SIMM:
            return str(value)
        case FieldKind.TARGET:
            return target if target is not None else f"{value:+d}"


def _parse_line(number: int, line: str, index: int, labels: Mapping[str, int]) -> Instruction:
    mnemonic, _, rest = line.partition(" ")
    try:
        row = row_of(mnemonic)
    except IRValueError as error:
        _refuse(number, f"{error.message[0].lower()}{error.message[1:-1]}", hint=error.hint)
    operands = [each.strip() for each in rest.split(",")] if rest.strip() else []
    if len(operands) != len(row.fields):
        _refuse(number, f"{_shape(row)} must be given, not {len(operands)} operands")
    values: list[int] = []
    for field, operand in zip(row.fields, operands, strict=True):
        if field.kind is FieldKind.TARGET and operand in labels:
            values.append(labels[operand] - index)
            continue
        value = _value(field, operand)
        if value is None:
            wanted = _operand_example(field)
            _refuse(
                number, f"{field.name} of {mnemonic} must be written as {wanted}, not {operand!r}"
            )
        values.append(value)
    try:
        return Instruction(row, tuple(values))
    except IRValueError as error:
        _refuse(number, f"{error.message[0].lower()}{error.message[1:-1]}")


def _value(field: Field, operand: str) -> int | None:
    """Return the value that `operand` writes, or None if it is not of the field's form."""
    match field.kind:
        case FieldKind.REG | FieldKind.VIEW | FieldKind.PARAM:
            prefix = _PREFIX[field.kind]
            return _number(operand[1:]) if operand.startswith(prefix) else None
        case FieldKind.ADDR:
            assert field.space is not None, "an address has a space"
            opening = f"{field.space.name.lower()}["
            inside = operand.startswith(opening) and operand.endswith("]")
            return _number(operand[len(opening) : -1]) if inside else None
        case FieldKind.ENUM:
            assert field.enum is not None, "an enum field has an enum"
            name, _, member = operand.partition("=")
            members = {each.name.lower(): int(each) for each in field.enum}
            return members.get(member) if name == field.name else None
        case FieldKind.IMM:
            name, _, shown = operand.partition("=")
            return _number(shown) if name == field.name else None
        case FieldKind.SIMM:
            return _number(operand)
        case FieldKind.TARGET:
            return _number(operand[1:] if operand.startswith("+") else operand)


def _number(text: str) -> int | None:
    if len(text) > _MAX_DIGITS or not _NUMBER.fullmatch(text):
        return None
    return int(text, 0 if "x" in text else 10)


def _operand_example(field: Field) -> str:
    if field.kind is FieldKind.TARGET:
        return "a label of the program"
    if field.enum is not None:
        return f"{field.name}= one of {', '.join(each.name.lower() for each in field.enum)}"
    return _operand(field, 0, None)


def _shape(row: Row) -> str:
    operands = ", ".join(field.name for field in row.fields)
    return f"the operands of {row.mnemonic} ({operands or 'none'})"


def _refuse(number: int, clause: str, *, hint: str | None = None) -> NoReturn:
    message = f"In line {number}, {clause}."
    raise ExecutableError(message, hint=hint)
