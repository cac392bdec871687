"""What the published kernels' times depend on: every number of the machine, a fifth less and a fifth more.

    python benchmarks/sensitivity.py          prints the table and writes it into docs/timing.md
    python benchmarks/sensitivity.py --json   the same for a program, and writes nothing

One field is changed at a time: whole numbers to the nearest that is legal, by one at least; sizes that are
powers of two are halved and doubled; what is not a fifth says which value it is for. A cell is the change of the time, the launch included, over the
kernels of `published`: the geometric mean of the ratios. A machine or a kernel that is refused then has
none. A kernel is compiled anew only for fields that its compiler asks for.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import published
from rows import machine, wants_json

import scalebox
from scalebox.app.kernel_file import machine_of_kernel
from scalebox.codegen.executable import Executable
from scalebox.ir.errors import UserError
from scalebox.ir.language.text import load_file
from scalebox.ir.target import Target, load_target, specs
from scalebox.ir.target_spec import FieldType, Spec, Unit

PAGE = Path(__file__).resolve().parents[1] / "docs" / "timing.md"
BLOCK = re.compile(r"(?<=<!-- sensitivity -->\n).*(?=<!-- end of sensitivity -->)", re.DOTALL)
STEP = 0.2
LEAST = 0.0005
"""A change of the time that the table does not show, as a share."""


@dataclass(frozen=True)
class Effect:
    """What a field does to the times.

    Attributes:
        field: The field.
        value: What the machine a5 has; a kernel with a machine of its own may have another.
        less, more: The change of the time with a fifth less and more, as a share; None where that
            is refused.
    """

    field: str
    value: float
    less: float | None
    more: float | None

    @property
    def size(self) -> float:
        """The larger change of the two."""
        return max(abs(each) for each in (self.less or 0.0, self.more or 0.0))

    @property
    def is_shown(self) -> bool:
        """Whether the table has a line of it."""
        return self.size >= LEAST or self.less is None or self.more is None

    def cell(self, factor: float) -> str:
        """Return the change for `factor`, with the field's value then if that is not `factor` times."""
        share = self.less if factor < 1 else self.more
        value = changed(specs()[self.field], self.value, factor)
        is_near = math.isclose(value, self.value * factor, rel_tol=0.05)
        shown = "refused" if share is None else f"{round(share, 3) + 0.0:+.1%}"
        return shown if is_near else f"{shown} with {_number(value)}"


def changed(rule: Spec, value: float, factor: float) -> float:
    """Return `value` times `factor`, or what the field's rule and its kind have in place of that."""
    if rule.type is FieldType.NUMBER:
        return min(max(value * factor, rule.least), rule.most)
    number, step = int(value), rule.multiple if factor > 1 else -rule.multiple
    if rule.unit in (Unit.BYTES, Unit.ELEMENTS) and number & (number - 1) == 0:
        other = number * 2 if factor > 1 else number // 2
    else:
        other = round(number * factor / rule.multiple) * rule.multiple
    if other == number:
        other += step
    return int(min(max(other, rule.least), rule.most))


def numbers(target: Target) -> Iterator[tuple[str, Spec, float]]:
    """Yield name, rule and value of every field that is a number."""
    for name, rule in specs().items():
        if not rule.type.is_pairs:
            yield name, rule, getattr(target, name)


class Watched(Target):
    """A machine that remembers which of its fields were asked for."""

    @classmethod
    def of(cls, target: Target) -> "Watched":
        """Return a machine like another one; nobody has asked for anything yet."""
        made = cls(**{each.name: getattr(target, each.name) for each in fields(target)})
        made.asked.clear()
        return made

    @cached_property
    def asked(self) -> set[str]:
        """The names of the fields that were asked for."""
        return set()

    @property
    def digest(self) -> str:
        """Nothing: what identifies a machine asks for every field, and no program depends on it."""
        return ""

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute, and remember it if it is a field."""
        if name in specs():
            self.asked.add(name)
        return super().__getattribute__(name)


class Compiled:
    """A row's kernel on its own machine, and on that with a field changed."""

    def __init__(self, row: published.Published) -> None:
        """Compile the kernel, and note which fields of the machine that takes."""
        kernel = load_file(row.file, params={"M": row.m, "K": row.k, "N": row.n})
        self._program, self._target = kernel.program, load_target(machine_of_kernel(kernel))
        watched = Watched.of(self._target)
        self._executable = scalebox.compile(self._program, machine=watched)
        self._compiler_fields = frozenset(watched.asked)
        self._seconds = self._run(self._executable, self._target)

    def ratio(self, field: str, factor: float) -> float:
        """Return how much longer the kernel takes with a field changed, as a factor.

        Raises:
            UserError: There is no such machine, or the kernel does not fit it.
        """
        value = changed(specs()[field], getattr(self._target, field), factor)
        target = self._target.with_settings({field: value})
        executable = self._executable
        if field in self._compiler_fields:
            executable = scalebox.compile(self._program, machine=target)
        return self._run(executable, target) / self._seconds

    def _run(self, executable: Executable, target: Target) -> float:
        result = scalebox.run(executable, {}, machine=target, functional=False)
        return result.simulation.cycles / target.clock_hz


def change(kernels: Sequence[Compiled], field: str, factor: float) -> float | None:
    """Return the mean change of the times, or None where a machine or a kernel is refused."""
    try:
        ratios = [each.ratio(field, factor) for each in kernels]
    except UserError:
        return None
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) - 1


def effects(rows: Sequence[published.Published]) -> list[Effect]:
    """Return what every field does, the largest effect first."""
    kernels = [Compiled(row) for row in rows]
    found: list[Effect] = []
    for name, _, value in numbers(load_target()):
        less, more = (change(kernels, name, 1 + step) for step in (-STEP, STEP))
        found.append(Effect(name, value, less, more))
    return sorted(found, key=lambda each: -each.size)


def markdown(found: Sequence[Effect]) -> str:
    """Return the effects as a table, and those that have none as a sentence."""
    lines = ["| field | value | a fifth less | a fifth more |", "|---|---|---|---|"]
    lines += [
        f"| `{each.field}` | {_number(each.value)} | {each.cell(1 - STEP)} | {each.cell(1 + STEP)} |"
        for each in found
        if each.is_shown
    ]
    silent = ", ".join(f"`{each.field}`" for each in found if not each.is_shown)
    return "\n".join([*lines, "", f"Less than {LEAST:.2%} either way: {silent}.", ""])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def main() -> None:
    """Print the effects, and write them down."""
    as_json = wants_json("Tell what the published kernels' times depend on.")
    found = effects(published.ROWS)
    if as_json:
        rows = [
            {"name": each.field, "value": each.value, "less": each.less, "more": each.more}
            for each in found
        ]
        print(json.dumps({"machine": machine(), "rows": rows}, indent=2))
        return
    table = markdown(found)
    print(table)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda _: table, page), encoding="utf-8")


if __name__ == "__main__":
    main()
