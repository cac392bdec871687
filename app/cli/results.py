"""The commands around what a run left: compare, show, report."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from .options import (
    MISMATCH,
    OK,
    AsJson,
    CheckChoice,
    Entry,
    Inputs,
    Machine,
    MaxCycles,
    Params,
    Seed,
    Settings,
    Warm,
    check_choice,
    pairs,
    print_answer,
)


def compare(
    actual: Annotated[
        Path,
        typer.Argument(
            metavar="ACTUAL", help="An .npz, .npy or .hrry file, or a bundle: its outputs."
        ),
    ],
    golden: Annotated[Path, typer.Argument(metavar="GOLDEN", help="The same, as it should be.")],
    rule: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="exact; ulp:N; close:RTOL,ATOL; or fraction:TOL,SHARE, which lets that share of "
            "the elements be off by more.",
        ),
    ] = "exact",
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw where elements differ into a PNG file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two results and name the first difference."""
    from ..commands.compare import compare_files

    report = compare_files(actual, golden, rule=rule, picture=plot)
    print_answer(report, as_json=as_json)
    raise typer.Exit(OK if report.comparison else MISMATCH)


def show(
    place: Annotated[
        Path,
        typer.Argument(metavar="BUNDLE", help="A bundle, or an .npz, .npy or .hrry file."),
    ],
    as_json: AsJson = False,
) -> None:
    """Show what a bundle holds, or a file of arrays."""
    from ..commands.show import show as show_place

    shown = show_place(place)
    print_answer(shown, as_json=as_json)


def report(
    place: Annotated[
        Path,
        typer.Argument(
            metavar="BUNDLE|KERNEL", help="A bundle, a kernel file (.py), or an executable."
        ),
    ],
    param: Params = None,
    set_: Settings = None,
    machine: Machine = None,
    inputs: Inputs = None,
    entry: Entry = None,
    seed: Seed = None,
    warm: Warm = False,
    checks: CheckChoice = None,
    max_cycles: MaxCycles = None,
    as_json: AsJson = False,
) -> None:
    """Tell where the cycles of a run went.

    It is run for its cycles only, and nothing is saved. The report has the bounds of the machine and
    what of them was reached, what each pipe did and waited for, the critical path by pipe and line of
    source, the flags that cost most of it, bytes moved, and tasks.
    """
    from ...sim.device import Checks
    from ..commands.report import report_on
    from ..commands.run import RunOptions

    if checks is not None:
        check_choice("--checks", checks, (each.value for each in Checks))
    options = RunOptions(
        kernel=place,
        params=pairs(param, "--param"),
        settings=pairs(set_, "--set"),
        machine=machine,
        inputs=inputs or (),
        entry=entry,
        seed=seed,
        functional=False,
        warm=warm,
        checks=checks,
        max_cycles=max_cycles,
    )
    print_answer(report_on(options), as_json=as_json)
