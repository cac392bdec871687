"""What looks on while passes run: the printed form read back, the time each takes, every stage kept."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import UserError, VerificationError
from .base import Instrument

if TYPE_CHECKING:
    from ..core import Program
    from .base import Pass

#: The name of the stage before the first pass.
SOURCE = "source"


class RoundTripInstrument(Instrument):
    """Prints the program after every pass and reads it back: nothing may get lost."""

    def after_pass(self, each: Pass, program: Program) -> None:
        """Print, parse and compare.

        Raises:
            VerificationError: When the text does not parse, or parses to another program; it names the
                pass and the first difference.
        """
        from ..core import Function, Program
        from ..language.text import parse
        from ..printer import python_print
        from ..structural import first_difference

        title = f"[RoundtripInstrument] Printing and parsing failed after pass '{each.name}'"
        try:
            read = parse(python_print(program))
        except UserError as error:
            message = f"{title}: {error.message}"
            raise VerificationError(
                message, error.span, hint=error.hint, source_lines=error.source_lines
            ) from error
        again = Program([read], program.name) if isinstance(read, Function) else read
        difference = first_difference(program, again)
        if difference is not None:
            message = f"{title}: the program that was read back differs: {difference}"
            raise VerificationError(message, program.span)


@dataclass(frozen=True)
class Timing:
    """How long a pass took.

    Attributes:
        name: The pass.
        seconds: Wall time, what the instruments take left out.
        changed: Whether the program is another object than before.
    """

    name: str
    seconds: float
    changed: bool


@dataclass
class TimingInstrument(Instrument):
    """Measures passes; stand it last, closest to the pass, so that other instruments do not count.

    Attributes:
        timings: One a pass, in the order in which they ran.
    """

    timings: list[Timing] = field(default_factory=list[Timing])
    _started: tuple[float, Program] | None = None

    def before_pass(self, each: Pass, program: Program) -> None:
        """Start the clock."""
        self._started = (time.perf_counter(), program)

    def after_pass(self, each: Pass, program: Program) -> None:
        """Stop the clock."""
        ended = time.perf_counter()
        assert self._started is not None, "a pass ends that did not begin"
        began, before = self._started
        self.timings.append(Timing(each.name, ended - began, program is not before))


@dataclass(frozen=True)
class Stage:
    """A program at one place of the pipeline: after the pass `name`, or `source`."""

    name: str
    program: Program


@dataclass
class StagesInstrument(Instrument):
    """Keeps the program before the first pass and after every one.

    Attributes:
        stages: The source first, then one a pass.
    """

    stages: list[Stage] = field(default_factory=list[Stage])

    def before_pass(self, each: Pass, program: Program) -> None:
        """Keep the source."""
        if not self.stages:
            self.stages.append(Stage(SOURCE, program))

    def after_pass(self, each: Pass, program: Program) -> None:
        """Keep what the pass returned."""
        self.stages.append(Stage(each.name, program))


def make_roundtrip_instrument() -> RoundTripInstrument:
    """Return a new :class:`RoundTripInstrument`, under the name that PyPTO's tests call."""
    return RoundTripInstrument()


def stage_diff(before: Stage, after: Stage) -> str:
    """Return the unified diff of two stages as they print; empty when they print alike."""
    from difflib import unified_diff

    from ..printer import python_print

    old, new = (python_print(each.program).splitlines(keepends=True) for each in (before, after))
    return "".join(unified_diff(old, new, before.name, after.name))
