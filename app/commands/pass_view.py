"""What `scalebox compile` shows of the passes: programs between them, differences, times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...ir.errors import InputError
from ...ir.passes import (
    RoundTripInstrument,
    Stage,
    StagesInstrument,
    TimingInstrument,
    VerificationInstrument,
    default_pipeline,
    stage_diff,
)
from ...ir.passes.base import PassContext
from ...ir.passes.instruments import SOURCE
from ...ir.printer import python_print
from ...ir.suggest import near

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...ir.core import Program
    from ...ir.passes.base import Instrument
    from ...ir.target import Target

ALL = "all"


@dataclass(frozen=True, kw_only=True)
class PassOptions:
    """What to show of the passes. A pass goes by its name, `ConvertToSSA` or `convert_to_ssa`.

    Attributes:
        print_after: Passes after which to print the program; `source` prints it as it was parsed,
            `all` after every pass.
        diff: Passes whose change to show, or `FROM..TO` for what changed between two stages.
        stop_after: The last pass to run; None runs all.
        verify_each: Whether to verify, print and parse the program around every pass.
        time_passes: Whether to list what time each pass took.
    """

    print_after: Sequence[str] = ()
    diff: Sequence[str] = ()
    stop_after: str | None = None
    verify_each: bool = False
    time_passes: bool = False


class PassView:
    """Looks on while passes run, and tells what was asked for.

    Raises:
        InputError: For a name that is no pass, or a pass beyond the last that runs.
    """

    def __init__(self, options: PassOptions) -> None:
        self._names = [SOURCE, *default_pipeline().get_pass_names()]
        self._options = options
        self.last: str | None = None
        if options.stop_after is not None:
            self.last = self._named(options.stop_after, "--stop-after", self._names[1:])
            self._names = self._names[: self._names.index(self.last) + 1]
        self._printed = self._to_print()
        self._diffs = [self._pair(text) for text in options.diff]
        self._stages = StagesInstrument()
        self._timing = TimingInstrument()

    @property
    def instruments(self) -> list[Instrument]:
        """What the passes have to run under."""
        verifying = [VerificationInstrument(), RoundTripInstrument()]
        return [
            *(verifying if self._options.verify_each else ()),
            self._stages,
            self._timing,
        ]

    def run(self, program: Program, target: Target) -> None:
        """Run the passes up to the last that was asked for, without making an executable."""
        with PassContext(self.instruments, target):
            for each in default_pipeline():
                program = each(program)
                if each.name == self.last:
                    return

    def show(self) -> str:
        """Return what was asked for, of the stages that were reached.

        A single program and nothing else is text that parses; several have headings as comments.
        """
        parts = [python_print(stage.program) for stage in self._shown()]
        heads = [_heading(stage) for stage in self._shown()]
        several = len(parts) + len(self._diffs) > 1 or self._options.time_passes
        texts = [
            f"{head}\n{part}" if several else part for head, part in zip(heads, parts, strict=True)
        ]
        texts += [text or f"# {a} and {b} print alike\n" for a, b, text in self._differences()]
        if self._options.time_passes:
            texts.append(self._times())
        return "\n".join(texts)

    def as_json(self) -> dict[str, Any]:
        """Return the same as plain values: `stages`, `diffs` and `passes`, as far as asked for."""
        answer: dict[str, Any] = {}
        if self._printed:
            answer["stages"] = [
                {"after": stage.name, "text": python_print(stage.program)}
                for stage in self._shown()
            ]
        if self._diffs:
            answer["diffs"] = [
                {"from": a, "to": b, "text": text} for a, b, text in self._differences()
            ]
        if self._options.time_passes:
            answer["passes"] = [
                {"name": each.name, "seconds": each.seconds, "changed": each.changed}
                for each in self._timing.timings
            ]
        return answer

    # ----------------------------------------------------------------- names

    def _named(self, text: str, option: str, known: Iterable[str]) -> str:
        names = list(known)
        found = next((name for name in names if _plain(name) == _plain(text)), None)
        if found is None:
            message = f"{option} must name a pass that runs, not {text!r}"
            raise InputError(message, hint=near(text, names))
        return found

    def _to_print(self) -> list[str]:
        options = self._options
        if ALL in options.print_after:
            return self._names[1:]
        asked = {self._named(text, "--print-after", self._names) for text in options.print_after}
        if self.last is not None and not (asked or options.diff or options.time_passes):
            asked = {self.last}
        return [name for name in self._names if name in asked]

    def _pair(self, text: str) -> tuple[str, str]:
        first, dots, second = text.partition("..")
        if dots:
            return self._named(first, "--diff", self._names), self._named(
                second, "--diff", self._names
            )
        name = self._named(text, "--diff", self._names[1:])
        return self._names[self._names.index(name) - 1], name

    # ----------------------------------------------------------------- stages

    def _shown(self) -> list[Stage]:
        return [stage for stage in self._stages.stages if stage.name in self._printed]

    def _differences(self) -> list[tuple[str, str, str]]:
        reached = {stage.name: stage for stage in self._stages.stages}
        return [
            (a, b, stage_diff(reached[a], reached[b]))
            for a, b in self._diffs
            if a in reached and b in reached
        ]

    def _times(self) -> str:
        lines = [
            f"# {each.name:<{max(map(len, self._names))}} {each.seconds * 1e3:8.2f} ms"
            f"{'' if each.changed else '  nothing to do'}"
            for each in self._timing.timings
        ]
        return "\n".join(lines) + "\n"


def _heading(stage: Stage) -> str:
    return "# source" if stage.name == SOURCE else f"# after {stage.name}"


def _plain(name: str) -> str:
    return name.replace("_", "").casefold()
