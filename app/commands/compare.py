"""The compare command: two results, what differs, and which mistake would explain it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.errors import InputError, UserError
from ...traces.compare import Comparison, Origin, Producer, compare
from ...traces.examine import examine
from ...traces.plot import LEGEND, plot
from ...traces.rules import parse_rule
from ..drawn_inputs import given_inputs
from ..report import comparison_as_json, hint_lines
from .result_files import Results, read_results

if TYPE_CHECKING:
    from pathlib import Path

    from ..origin import Outputs


@dataclass(frozen=True)
class CompareReport:
    """A verdict with what explains it.

    Attributes:
        comparison: The verdict.
        hints: Mistakes that explain what differs.
        plot: The picture that was drawn, if one was.
    """

    comparison: Comparison
    hints: tuple[str, ...]
    plot: Path | None

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        picture = None if self.plot is None else str(self.plot)
        return {**comparison_as_json(self.comparison), "hints": list(self.hints), "plot": picture}

    def lines(self) -> list[str]:
        """Return the report as text."""
        lines = str(self.comparison).splitlines()
        lines += [line for hint in self.hints for line in hint_lines(hint)]
        if self.plot is not None:
            lines += textwrap.wrap(f"{self.plot}: {LEGEND}", 79)
        return lines


def compare_files(
    actual: Path, golden: Path, *, rule: str = "exact", picture: Path | None = None
) -> CompareReport:
    """Compare two files or bundles.

    Args:
        actual: An `.npz`, `.npy` or `.hrry` file, or a bundle, of which the outputs count.
        golden: The same, as it should be.
        rule: See :func:`scalebox.traces.compare.compare`.
        picture: A PNG file to draw the differences into; its name ends so, lest a kernel is drawn over.

    Raises:
        InputError: A file cannot be read or written, or the two do not fit each other.
    """
    if picture is not None and picture.suffix.lower() != ".png":
        message = f"--plot must name a file that ends in .png, not {str(picture)!r}"
        raise InputError(message)
    one, other = read_results(actual), read_results(golden)
    left, right = _alike(one.arrays, other.arrays)
    verdict, tiles = compare(left, right, rule=rule), dict[str, tuple[int, ...]]()
    if not verdict and (made := _made_by(one) or _made_by(other)) is not None:
        known = {
            name
            for name, array in made.items()
            if name in left and array.shape == np.shape(left[name])
        }
        tiles = {name: tile for name in known if (tile := made.tile(name)) is not None}
        verdict = compare(left, right, rule=rule, tile=tiles, producer=_producer(made, known))
    if picture is not None:
        plot(picture, examine(left, right, parse_rule(rule)), tiles)
    return CompareReport(verdict, () if verdict else _hints(one, other), picture)


def _made_by(results: Results) -> Outputs | None:
    """Return the outputs of a bundle that is run again: they know which instruction wrote what."""
    if results.bundle is None or results.bundle.executable is None:
        return None
    from ..replay import run_bundle  # the machine model takes time to load

    try:
        return run_bundle(results.bundle, "of the outputs").outputs
    except UserError:  # a fault that came with a newer version is no matter of a comparison
        return None


def _producer(made: Outputs, known: set[str]) -> Producer:
    def written_by(output: str, index: tuple[int, ...]) -> Origin | None:
        return made.producer(output, index) if output in known else None

    return written_by


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Return a bare array beside the only one of a mapping under that one's name."""
    if _is_bare(left) and not _is_bare(right) and len(right) == 1:
        return dict.fromkeys(right, left), right
    if _is_bare(right) and not _is_bare(left) and len(left) == 1:
        return left, dict.fromkeys(left, right)
    return left, right


def _is_bare(arrays: Any) -> bool:
    return isinstance(arrays, np.ndarray)


def _hints(actual: Results, golden: Results) -> tuple[str, ...]:
    """Try the mistakes on the kernel of a bundle; what comes from elsewhere may have made them."""
    for run, what, wrong in ((golden, "actual", actual), (actual, "golden", golden)):
        bundle = run.bundle
        if bundle is None or bundle.program is None or bundle.outputs is None:
            continue
        from ..replay import program_of
        from ..scale_faults import explain

        try:
            program = program_of(bundle.program)
        except UserError:  # as above
            continue
        _, arrays = _alike(bundle.outputs, wrong.arrays)
        options = {"entry": bundle.options.get("entry"), "sum": bundle.options.get("sum", "group")}
        found = explain(program, given_inputs(bundle.inputs), arrays, **options)
        return tuple(f"{what} is what comes out if {mistake}" for mistake in found)
    return ()
