"""How long a user waits for a matmul: all of `scalebox run`, and what it does one after the other.

The kernel is `examples/mxfp8_performance.py` as it stands, with operands of E5M2, in a small size
and in a large one. Nothing is demanded of these rows: they answer how long a run will take.
"""

import itertools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rows import Row, Times, interleaved
from speed_machine import KERNEL

import scalebox
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.app.signature import entry_function
from scalebox.ir.language.text import load_file
from scalebox.traces.bundle import save_bundle

TRIES = {1024: 3, 4096: 2}
"""Sizes, each with how often it is measured."""

_TENS = 10

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "`scalebox run`": (),
    "`scalebox run --no-golden --no-timeline`": ("--no-golden", "--no-timeline"),
    "`scalebox run --timing-only`": ("--timing-only",),
}
"""What a user calls, by name."""


@dataclass(frozen=True)
class Wait:
    """Something that a user waits for.

    Attributes:
        what: What it is, in Markdown.
        size: M, K and N of the matmul.
        taken: How long it takes.
    """

    what: str
    size: int
    taken: Times

    def row(self) -> Row:
        """Return it as a row."""
        return self.taken.alone(f"{self.what.replace('`', '')}, {self.size}^3")


def waits(tries: Mapping[int, int] = TRIES) -> list[Wait]:
    """Measure all there is, size by size; the first size has everything else compiled and read."""
    found: list[Wait] = []
    for number, (size, count) in enumerate(tries.items()):
        with tempfile.TemporaryDirectory() as folder:
            for what, work in (_commands(size, folder) | _parts(size, folder)).items():
                (taken,) = interleaved(work, tries=count, warm=number > 0)
                found.append(Wait(what, size, taken))
    return found


def _commands(size: int, folder: str) -> dict[str, Callable[[], object]]:
    """Return the commands as processes of their own, which take a second to start."""
    params = [word for name in "MKN" for word in ("--param", f"{name}={size}")]

    def called(options: Sequence[str]) -> None:
        command = [sys.executable, "-m", "scalebox", "run", str(KERNEL), *params, *options]
        subprocess.run(
            command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    return {what: lambda options=options: called(options) for what, options in COMMANDS.items()}


def _parts(size: int, folder: str) -> dict[str, Callable[[], object]]:
    """Return what a run does, one after the other, in this process."""
    sizes = dict.fromkeys("MKN", size)
    program = load_file(KERNEL, params=sizes).program
    executable = scalebox.compile(program)
    function = entry_function(executable.entry(None))
    inputs = draw_inputs(function, 0)
    result = scalebox.run(executable, inputs)
    golden = dict(result.outputs)
    places = (Path(folder, f"run{number}") for number in itertools.count())

    def save(*, timeline: bool) -> None:
        save_bundle(next(places), result.bundle(golden, timeline=timeline))

    return {
        "compiling": lambda: scalebox.compile(load_file(KERNEL, params=sizes).program),
        "drawing inputs": lambda: draw_inputs(function, 0),
        "cycles alone": lambda: scalebox.run(executable, {}, functional=False),
        "outputs and cycles, with checks": lambda: scalebox.run(executable, inputs),
        "golden": lambda: scalebox.interpret(program, inputs),
        "writing the bundle": lambda: save(timeline=True),
        "writing it without timeline": lambda: save(timeline=False),
    }


def table(found: Sequence[Wait], where: str) -> str:
    """Return a table of a page: a line for each thing to wait for, a column for each size."""
    sizes = list(dict.fromkeys(wait.size for wait in found))
    cells = {(wait.what, wait.size): _cell(wait) for wait in found}
    lines = [
        f"Measured on: {where}.",
        "",
        f"| seconds for | {' | '.join(f'{size}³' for size in sizes)} |",
        f"|---|{'---|' * len(sizes)}",
    ]
    lines += [
        f"| {' | '.join([what, *(cells[what, size] for size in sizes)])} |"
        for what in dict.fromkeys(wait.what for wait in found)
    ]
    return "\n".join([*lines, ""])


def _cell(wait: Wait) -> str:
    row = wait.row()
    seconds = f"{row.figure:.0f}" if row.figure >= _TENS else f"{row.figure:.2g}"
    return seconds + ", disturbed" * row.disturbed
