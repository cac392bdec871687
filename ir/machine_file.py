"""Machine files: found by name or path, read as TOML, and joined with those that they inherit."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from .errors import MachineError, Span
from .suggest import near
from .target_spec import Provenance, Status, Value, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .target_spec import Spec

_MACHINES = Path(__file__).parent / "machines"
_TABLE_KEYS = ("value", "source", "status")
_MOST_BYTES = 1 << 20
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")


@dataclass(frozen=True, slots=True)
class MachineFile:
    """A file as it was read.

    Args:
        path: Where it lies.
        text: What stands in it.
        document: The same as a table.
    """

    path: Path
    text: str
    document: Mapping[str, object]

    def error(self, message: str, key: str, hint: str | None = None) -> MachineError:
        """Return an error about a key of the file, at the line in which it stands."""
        lines = self.text.splitlines()
        pattern = re.compile(rf"""\s*\[?\s*["']?({re.escape(key)})["']?\s*[\]=.]""")
        for number, line in enumerate(lines, 1):
            found = pattern.match(line)
            if found is not None:
                span = Span(str(self.path), number, found.start(1) + 1, number, found.end(1) + 1)
                return MachineError(message, span, hint=hint, source_lines=lines)
        return MachineError(message, hint=hint, note=f"in the machine file {str(self.path)!r}")


@dataclass(frozen=True, slots=True)
class Entry:
    """A field as a file gives it.

    Args:
        value: What was checked.
        origin: Where it comes from.
        file: The file that says so.
    """

    value: Value
    origin: Provenance
    file: MachineFile


def machine_names() -> tuple[str, ...]:
    """Return the names of the machines that come with the package."""
    return tuple(sorted(path.stem for path in _MACHINES.glob("*.toml")))


def read_machine(
    machine: str | os.PathLike[str], rules: Mapping[str, Spec]
) -> tuple[str, MachineFile, dict[str, Entry]]:
    """Return the name of a machine, its file, and all that it and those that it inherits give.

    Args:
        machine: A name of `machine_names()` or the path of a TOML file.
        rules: Field name to rule.

    Raises:
        MachineError: If there is no such machine, or if a file is unreadable, inherits from itself,
            has an unknown key or gives an impossible value.
    """
    files = _chain(machine)
    entries: dict[str, Entry] = {}
    for file in reversed(files):
        for key, value in file.document.items():
            if key not in ("name", "inherit"):
                entries[key] = _entry(file, key, value, rules)
    first = files[0]
    return _text_of(first, "name") or _printable(first.path.stem), first, entries


def _chain(machine: str | os.PathLike[str]) -> list[MachineFile]:
    """Return the file of a machine, the one that it inherits, and so on."""
    files = [_read(_find(machine, Path()))]
    readers = [files[0].path.resolve()]
    while (parent := _text_of(files[-1], "inherit")) is not None:
        child = files[-1]
        try:
            path = _find(parent, child.path.parent)
            file = _read(path)
        except MachineError as error:
            if error.span is not None:
                raise
            raise child.error(error.message, "inherit", error.hint) from error
        resolved = path.resolve()
        if resolved in readers:
            circle = " → ".join(each.name for each in (*readers, resolved))
            message = f"A machine file must not inherit from itself, as {circle} does."
            raise child.error(message, "inherit")
        files.append(file)
        readers.append(resolved)
    return files


def _find(machine: str | os.PathLike[str], folder: Path) -> Path:
    text = str(machine)
    if text in machine_names():
        return _MACHINES / f"{text}.toml"
    path = folder / text
    if path.suffix == ".toml" or len(Path(text).parts) > 1 or os.path.isfile(path):  # noqa: PTH113 - of any length
        return path
    message = f"A machine must be a name or the path of a TOML file, not {shown(text)}."
    raise MachineError(message, hint=near(text, machine_names()))


def _read(path: Path) -> MachineFile:
    try:
        with path.open("rb") as stream:
            raw = stream.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        message = f"The machine file {str(path)!r} must be readable, which it is not: {error}."
        raise MachineError(message) from error
    if len(raw) > _MOST_BYTES:
        message = f"The machine file {str(path)!r} must have at most {_MOST_BYTES} bytes."
        raise MachineError(message)
    text = ""
    try:
        text = raw.decode("utf-8-sig")
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"The machine file {str(path)!r} must be UTF-8 TOML, which it is not: {error}."
        place = _PLACE.search(str(error))
        span = Span(str(path), int(place[1]), int(place[2])) if place is not None else None
        raise MachineError(message, span, source_lines=text.splitlines()) from error
    file = MachineFile(path, text, document)
    _text_of(file, "name")
    return file


def _text_of(file: MachineFile, key: str) -> str | None:
    """Return the text of a key that is no field, or None if it is not there."""
    if key not in file.document:
        return None
    value = file.document[key]
    if isinstance(value, str) and value:
        return value
    message = f"{key} must be a non-empty string, not {shown(value)}."
    raise file.error(message, key)


def _entry(file: MachineFile, key: str, value: object, rules: Mapping[str, Spec]) -> Entry:
    try:
        return Entry(*_checked(file, key, value, rules), file)
    except MachineError as error:
        raise file.error(error.message, key, error.hint) from error


def _checked(
    file: MachineFile, key: str, value: object, rules: Mapping[str, Spec]
) -> tuple[Value, Provenance]:
    rule = rule_of(key, rules)
    table = cast("dict[str, object]", value) if isinstance(value, dict) else {"value": value}
    for each in table:
        if each not in _TABLE_KEYS:
            keys = ", ".join(_TABLE_KEYS)
            message = f"A key of {key} must be one of {keys}, not {shown(each)}."
            raise MachineError(message)
    if "value" not in table:
        message = f"{key} must have a value, which is missing."
        raise MachineError(message)
    source = table.get("source", f"set in {_printable(file.path.name)}")
    status = table.get("status", Status.ASSUMED.value)
    if not isinstance(source, str) or not source:
        message = f"source of {key} must be a non-empty string, not {shown(source)}."
        raise MachineError(message)
    known = {each.value: each for each in Status}
    if not isinstance(status, str) or status not in known:
        message = f"status of {key} must be one of {', '.join(known)}, not {shown(status)}."
        raise MachineError(message)
    return rule.checked(key, table["value"]), Provenance(source, known[status])


def rule_of(name: str, rules: Mapping[str, Spec]) -> Spec:
    """Return the rule of a field.

    Raises:
        MachineError: If there is no such field; it tells the nearest ones.
    """
    rule = rules.get(name)
    if rule is None:
        message = f"A machine field must be one of the record's, not {shown(name)}."
        raise MachineError(message, hint=near(name, rules, listed_in="docs/machine.md"))
    return rule


def _printable(text: str) -> str:
    """Return a file's name as text that can be written, bytes of no character as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
