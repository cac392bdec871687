"""The grid of a sweep: which sizes, machines and fields are tried, and in which order."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ...ir.errors import InputError
from ...ir.given import describe_given
from ...ir.machine_file import rule_of
from ...ir.target import Target, load_target, specs
from ...ir.target_spec import FieldType, Unit, shown, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...ir.target_spec import Spec, Value

MachineName: TypeAlias = "str | os.PathLike[str] | Target"

_Reader: TypeAlias = "Callable[[object], Any]"

MOST_RUNS = 10_000
"""Larger grids are refused: nobody reads so many rows, and most are mistakes."""

_RANGE = re.compile(r"\s*(?P<first>[^:]+?)\s*\.\.\s*(?P<last>[^:]+?)\s*(?::\s*(?P<step>.+?)\s*)?")


@dataclass(frozen=True)
class Point:
    """One run of a grid.

    Attributes:
        index: Its row, from 0 on.
        params: Sizes of the kernel file that the grid gives, by name.
        machine: The machine, before fields are changed; None for the kernel's own.
        settings: Fields that the grid changes, by name.
    """

    index: int
    params: Mapping[str, int]
    machine: MachineName | None
    settings: Mapping[str, Value]

    @property
    def machine_name(self) -> str | None:
        """What the machine is called in the grid."""
        match self.machine:
            case None:
                return None
            case Target():
                return self.machine.name
            case _:
                return os.fspath(self.machine)


@dataclass(frozen=True)
class Grid:
    """All that is tried.

    Attributes:
        params: Size of the kernel file to its values.
        machines: The machines; empty for the kernel's own.
        settings: Field of the machine to its values.
    """

    params: Mapping[str, tuple[int, ...]]
    machines: tuple[MachineName, ...]
    settings: Mapping[str, tuple[Value, ...]]

    @property
    def runs(self) -> int:
        """How many runs these are."""
        axes = (*self.params.values(), self.machines or (None,), *self.settings.values())
        return math.prod(map(len, axes))

    def points(self) -> Iterator[Point]:
        """Yield the runs: sizes change most slowly, fields fastest, and of each the last one given."""
        params = product(*self.params.values())
        settings = list(product(*self.settings.values()))
        tried = product(params, self.machines or (None,), settings)
        for index, (sizes, machine, fields) in enumerate(tried):
            yield Point(
                index,
                dict(zip(self.params, sizes, strict=True)),
                machine,
                dict(zip(self.settings, fields, strict=True)),
            )


def make_grid(
    params: Mapping[str, Any] | None = None,
    machines: Iterable[MachineName] | MachineName | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Grid:
    """Return a grid.

    Args:
        params: Size of the kernel file to a value, several, or text as on the command line.
        machines: One machine or several: names, paths of machine files, or records.
        settings: Field of the machine to the same.

    Raises:
        InputError: A list is empty or names a value twice, a value is no number, or the grid is too
            large.
        MachineError: There is no such machine or field, or a field cannot have such a value.
    """
    sizes = {
        name: _values(f"The parameter {name}", given, _size_of(name))
        for name, given in _named("params", params).items()
    }
    rules = {name: rule_of(name, specs()) for name in _named("settings", settings)}
    fields = {
        name: _values(f"The field {name}", given, _field_of(name, rules[name]), rules[name])
        for name, given in (settings or {}).items()
    }
    grid = Grid(sizes, _machines(machines), fields)
    if grid.runs > MOST_RUNS:
        raise _too_many(grid.runs)
    return grid


def _named(what: str, given: object) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        message = f"{what} must map names to values, not be {describe_given(given)}"
        raise InputError(message)
    return cast("Mapping[str, Any]", given)


def _machines(given: Iterable[MachineName] | MachineName | None) -> tuple[MachineName, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        found: tuple[MachineName, ...] = tuple(each.strip() for each in given.split(","))
    elif isinstance(given, os.PathLike | Target):
        found = (given,)
    elif isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        found = tuple(given)
    else:
        message = f"machines must be a machine or a list of them, not {describe_given(given)}"
        raise InputError(message)
    if not found or "" in found:
        message = (
            "A list of machines must have a machine between any two commas, and be no empty one"
        )
        raise InputError(message)
    names = [each.name if isinstance(each, Target) else each for each in found]
    for number, each in enumerate(found):
        load_target(each)
        if names[number] in names[:number]:
            message = f"Each machine must be given once, but {str(names[number])!r} comes twice"
            raise InputError(message)
    return found


def _size_of(name: str) -> _Reader:
    def read(given: object) -> int:
        try:
            if isinstance(given, str):
                return int(given, 0)
        except ValueError:
            pass
        if isinstance(given, bool) or not hasattr(given, "__index__"):
            message = f"The parameter {name} must be an integer, not {describe_given(given)}"
            raise InputError(message)
        return int(cast("int", given))

    return read


def _field_of(name: str, rule: Spec) -> _Reader:
    def read(given: object) -> Value:
        return rule.parsed(name, given) if isinstance(given, str) else rule.checked(name, given)

    return read


def _values(what: str, given: object, read: _Reader, rule: Spec | None = None) -> tuple[Any, ...]:
    """Return the values of an axis of the grid, of which there must be one at least, and none twice."""
    if rule is not None and rule.type.is_pairs:
        return (read(given),)
    found: list[Any] = []
    for each in _items(what, given):
        found += _read(what, each, read, rule)
        if len(found) > MOST_RUNS:
            raise _too_many(len(found))
    if not found:
        message = f"{what} must have a value at least, not an empty list"
        raise InputError(message)
    twice = [value for value, times in Counter(found).items() if times > 1]
    if twice:
        message = f"{what} must have each value once, but {twice[0]} comes twice"
        raise InputError(message)
    return tuple(found)


def _items(what: str, given: object) -> list[object]:
    if isinstance(given, str):
        parts = [part.strip() for part in given.split(",")]
        if "" in parts:
            message = f"{what} must have a value between any two commas, as in 1,2,4, not {given!r}"
            raise InputError(message)
        return list(parts)
    if isinstance(given, Iterable) and not isinstance(given, Mapping | bytes):
        items: list[object] = []
        for each in cast("Iterable[object]", given):
            items.append(each)
            if len(items) > MOST_RUNS:
                raise _too_many(len(items))
        return items
    return [given]


def _read(what: str, given: object, read: _Reader, rule: Spec | None) -> Iterable[Any]:
    """Return the values that one item of a list stands for: a range has several."""
    if not isinstance(given, str) or ".." not in given:
        return [read(given)]
    found = _RANGE.fullmatch(given)
    takes_integers = rule is None or rule.type is FieldType.INTEGER
    if found is not None and rule is not None and rule.type is FieldType.NUMBER:
        takes_integers = all(_is_whole(found[end]) for end in ("first", "last"))
    if found is None or not takes_integers:
        how = "FIRST..LAST:STEP, as in 8..32:8" if found is None else "a list, as in 1.5,2,2.5"
        message = f"{what} must have {how}, not {given!r}"
        raise InputError(message)
    step = _step_of(found["step"] or "1", rule)
    first, last = int(read(found["first"])), int(read(found["last"]))
    if step < 1 or last < first:
        message = (
            f"{what} must have a range that goes up, as in 8..32:8, which is 8, 16, 24 and 32, "
            f"not {given!r}"
        )
        raise InputError(message)
    if (last - first) % step:
        message = f"{what} must have a range that ends on a step, as 8..32:8 does, not {given!r}"
        raise InputError(message)
    count = (last - first) // step + 1
    if count > MOST_RUNS:
        raise _too_many(count)
    return [read(each) for each in range(first, last + 1, step)]


def _step_of(text: str, rule: Spec | None) -> int:
    """Return the step of a range, 0 if it is none; that of sizes may have a unit, as they may."""
    size = size_of(text) if rule is not None and rule.unit is Unit.BYTES else None
    if size is not None:
        return int(size) if size.denominator == 1 else 0
    try:
        return int(text, 0)
    except ValueError:
        return 0


def _is_whole(text: str) -> bool:
    try:
        int(text, 0)
    except ValueError:
        return False
    return True


def _too_many(runs: int) -> InputError:
    message = f"A sweep must have {MOST_RUNS:,} runs at most, not {shown(runs)}"
    return InputError(message, hint="fewer values, or several sweeps")
