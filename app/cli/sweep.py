"""The command around several runs: sweep."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from .options import (
    INTERRUPTED,
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
    print_json,
)


def sweep(
    kernel: Annotated[
        Path, typer.Argument(metavar="KERNEL", help="A kernel file (.py), or an executable.")
    ],
    param: Params = None,
    set_: Settings = None,
    machine: Machine = None,
    functional: Annotated[
        bool,
        typer.Option("--functional", help="Compute outputs, too, and compare them with golden."),
    ] = False,
    inputs: Inputs = None,
    entry: Entry = None,
    seed: Seed = None,
    warm: Warm = False,
    checks: CheckChoice = None,
    max_cycles: MaxCycles = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Processes that share the work; one a core by default."
        ),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of text.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a kernel on many machines, and in many sizes.

    Every VALUE may be several, such as 64,128,256, or a range of integers: 8..32:8 is 8,16,24,32.
    --machine a5,a5-vendor-sim names several machines. All combinations are run, one a row: sizes
    change most slowly, fields fastest.

    A run that is refused or faults is a row that says why, and the exit status is 1. Ctrl-C ends it
    with the rows that are done.
    """
    from ...sim.device import Checks
    from ..commands.result_files import read_inputs
    from ..commands.run import CHECKS
    from ..sweep.grid import make_grid
    from ..sweep.report import SweepReport
    from ..sweep.runs import run_sweep
    from ..sweep.workshop import RunSettings
    from .first_run import compilation_announced
    from .progress import leave_echo, progress_shown

    if as_csv and as_json:
        message = "--csv must not go with --json: there is one output"
        raise typer.BadParameter(message)
    if checks is not None:
        check_choice("--checks", checks, (each.value for each in Checks))
    params, fields = pairs(param, "--param", several=True), pairs(set_, "--set", several=True)
    grid = make_grid(params, machine, fields)
    settings = RunSettings(
        kernel=kernel,
        functional=functional,
        inputs=read_inputs(inputs) if inputs else None,
        entry=entry,
        seed=seed or 0,
        warm=warm,
        checks=checks or CHECKS,
        max_cycles=max_cycles,
    )
    quiet = as_csv or as_json
    shown = progress_shown(sys.stderr, quiet=quiet, watched=False)
    with shown as progress, compilation_announced(sys.stderr):
        found = run_sweep(settings, grid, jobs=jobs, progress=progress, tick=progress.tick)
        if found.interrupted:
            leave_echo(sys.stderr)
    report = SweepReport(found)
    if as_json:
        print_json(report.as_json())
    elif as_csv:
        print(report.csv(), end="")
    else:
        print("\n".join(report.lines()))
    if found.interrupted:
        sys.stdout.flush()
        done = sum(row.cycles is not None or row.problem is not None for row in found.rows)
        print(f"Interrupted: {done:,} of {grid.runs:,} runs are done.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(OK if found.ok else MISMATCH)
