"""The verdict of a comparison, and how it reads."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .difference import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .difference import Difference
    from .difference_map import DifferenceMap
    from .histogram import Histogram

_WIDTH = 71  # of a guess, which may be indented further


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputComparison:
    """The verdict on one output.

    Attributes:
        name: Name of the output.
        elements: How many elements it has.
        differing: How many of them break the rule.
        equal: Whether the rule as a whole holds; `fraction` lets some elements differ.
        first: The first differing element in row-major order.
        warning: Why equality would prove little, or None.
        histogram: How far apart the differing elements are.
        map: Where they lie; None where nothing differs, or the output is too small for one.
        guesses: What they have in common, and where to look.
    """

    name: str
    elements: int
    differing: int
    equal: bool
    first: Difference | None
    warning: str | None
    histogram: Histogram | None = None
    map: DifferenceMap | None = None
    guesses: tuple[str, ...] = ()

    def lines(self, rule: str) -> Iterator[str]:
        """Yield the report on the output."""
        yield _headline(self, rule)
        if self.first is None:
            return
        yield from (f"  {line}" for line in str(self.first).splitlines())
        if self.differing > 1:  # of a single one all is said
            if self.histogram is not None:
                yield "  how far apart"
                yield from (f"    {line}" for line in self.histogram.lines())
            if self.map is not None:
                head, *grid = self.map.lines()
                yield f"  where, {head}"
                yield from (f"    {line}" for line in grid)
        for guess in self.guesses:
            yield from textwrap.wrap(
                guess, _WIDTH, initial_indent="  guess: ", subsequent_indent=" " * 9
            )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on all outputs; truthy when they are equal by the rule.

    Attributes:
        rule: The rule, as it was given.
        outputs: A verdict an output, in the golden result's order.
    """

    rule: str
    outputs: tuple[OutputComparison, ...]

    def __bool__(self) -> bool:
        return all(output.equal for output in self.outputs)

    @property
    def first(self) -> Difference | None:
        """The first difference: of an output that breaks the rule, else of one that bends it."""
        ordered = sorted(self.outputs, key=lambda output: output.equal)
        return next((output.first for output in ordered if output.first is not None), None)

    @property
    def elements(self) -> int:
        """How many elements were compared."""
        return sum(output.elements for output in self.outputs)

    @property
    def differing(self) -> int:
        """How many elements differ."""
        return sum(output.differing for output in self.outputs)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why this comparison may prove little."""
        return tuple(output.warning for output in self.outputs if output.warning is not None)

    def __str__(self) -> str:
        lines = [line for output in self.outputs for line in output.lines(self.rule)]
        lines.extend(f"warning: {warning}" for warning in self.warnings)
        return "\n".join(lines)


def _headline(output: OutputComparison, rule: str) -> str:
    if output.differing == 0:
        return f"{output.name}: equal, {counted(output.elements, 'element')} (rule {rule})"
    verb = "differs" if output.differing == 1 else "differ"
    verdict = ", which the rule allows" if output.equal else ""
    return (
        f"{output.name}: {output.differing} of {counted(output.elements, 'element')} {verb}{verdict} "
        f"(rule {rule})"
    )
