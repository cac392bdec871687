"""Instructions as objects, and a builder that resolves labels.

An :class:`Instruction` is always legal: it cannot be made with a value that its row refuses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ...ir.errors import IRValueError
from ...ir.suggest import near
from .row import Row
from .table import BY_MNEMONIC
from .vocabulary import FieldKind, Pipe

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One legal instruction.

    Args:
        row: Its row of the table.
        values: One integer per field of the row, in order.

    Raises:
        IRValueError: If a value or a combination of values is not legal.
    """

    row: Row
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        why = self.row.complaint(self.values)
        if why is not None:
            raise IRValueError(why)

    @property
    def mnemonic(self) -> str:
        """The name of the row."""
        return self.row.mnemonic

    @property
    def fields(self) -> dict[str, int]:
        """Field name to value, in order."""
        return {each.name: value for each, value in zip(self.row.fields, self.values, strict=True)}

    @property
    def pipe(self) -> Pipe:
        """The pipe on whose queue it is put."""
        return self.row.queue(self.values)

    def __getitem__(self, name: str) -> int:
        return self.values[self.row.column(name)]

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.fields.items())
        return f"{self.mnemonic} {shown}".rstrip()


def row_of(mnemonic: str) -> Row:
    """Return the row of `mnemonic`.

    Raises:
        IRValueError: If there is none.
    """
    row = BY_MNEMONIC.get(mnemonic)
    if row is None:
        message = f"A mnemonic must be one of the instruction table's, not {mnemonic!r}."
        raise IRValueError(message, hint=near(mnemonic, BY_MNEMONIC))
    return row


def make(mnemonic: str, **fields: int) -> Instruction:
    """Return the instruction `mnemonic` with a value for each of its fields.

    Args:
        mnemonic: A row's name.
        **fields: Every field of the row, by name, as integers or members of the field's enum.

    Raises:
        IRValueError: For an unknown mnemonic or field, a missing field, or an illegal value.
    """
    row = row_of(mnemonic)
    names = [each.name for each in row.fields]
    if set(fields) != set(names):
        wanted = ", ".join(names) if names else "no fields"
        given = ", ".join(fields) if fields else "no fields"
        message = f"{mnemonic} must have the fields {wanted}, not {given}."
        raise IRValueError(message)
    return Instruction(row, tuple(int(fields[name]) for name in names))


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """A place in a program that is being built; labels are equal only to themselves."""

    name: str


@dataclass(slots=True)
class ProgramBuilder(Generic[T]):
    """Collects instructions, each with a tag of the caller's (a span, a note), and labels.

    Branches name a label, placed before or after them; `build` turns labels into distances.
    """

    _pending: list[tuple[Row, dict[str, int], Label | None, T]] = field(
        default_factory=list[tuple[Row, dict[str, int], "Label | None", T]]
    )
    _places: dict[Label, int] = field(default_factory=dict[Label, int])

    def __len__(self) -> int:
        return len(self._pending)

    def emit(self, mnemonic: str, tag: T, *, label: Label | None = None, **fields: int) -> None:
        """Append an instruction.

        Args:
            mnemonic: A row's name.
            tag: What `build` returns beside the instruction.
            label: The place that a branch goes to, instead of its target field.
            **fields: The other fields.

        Raises:
            IRValueError: As in :func:`make`.
        """
        row = row_of(mnemonic)
        if label is not None:
            name = next((f.name for f in row.fields if f.kind is FieldKind.TARGET), None)
            if name is None:
                message = f"{mnemonic} must not be given a label: it has no target."
                raise IRValueError(message)
            fields = {**fields, name: 0}
        make(mnemonic, **fields)
        self._pending.append((row, fields, label, tag))

    def place(self, label: Label) -> None:
        """Put `label` before the next instruction."""
        assert label not in self._places, f"label {label.name} is placed twice"
        self._places[label] = len(self._pending)

    def build(self) -> tuple[list[Instruction], list[T]]:
        """Return the instructions with labels resolved, and their tags."""
        instructions: list[Instruction] = []
        for index, (row, fields, to, _) in enumerate(self._pending):
            resolved = dict(fields)
            if to is not None:
                assert to in self._places, f"label {to.name} is never placed"
                name = next(f.name for f in row.fields if f.kind is FieldKind.TARGET)
                resolved[name] = self._places[to] - index
            instructions.append(make(row.mnemonic, **resolved))
        return instructions, [tag for *_, tag in self._pending]
