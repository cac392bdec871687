"""The commands around a kernel: run, compile, disasm."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from .options import (
    MISMATCH,
    OK,
    RUNS,
    AsJson,
    CheckChoice,
    Entry,
    Inputs,
    Kernel,
    Machine,
    MaxCycles,
    Out,
    Params,
    Seed,
    Settings,
    TimingOnly,
    Warm,
    check_choice,
    pairs,
    print_json,
)


def run(
    kernel: Annotated[
        Path,
        typer.Argument(
            metavar="KERNEL",
            help="A kernel file (.py), an executable, or a bundle, which is replayed.",
        ),
    ],
    param: Params = None,
    set_: Settings = None,
    machine: Machine = None,
    inputs: Inputs = None,
    golden: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What outputs should be, in such a file; else what numpy computes.",
        ),
    ] = None,
    no_golden: Annotated[
        bool, typer.Option("--no-golden", help="Compare outputs with nothing.")
    ] = False,
    rule: Annotated[
        str | None, typer.Option(metavar="RULE", help="How outputs are compared; exact by default.")
    ] = None,
    entry: Entry = None,
    seed: Seed = None,
    timing_only: TimingOnly = False,
    warm: Warm = False,
    checks: CheckChoice = None,
    sum_: Annotated[
        str | None,
        typer.Option(
            "--sum",
            metavar="ORDER",
            help="Order of summation: group or sequential; group by default.",
        ),
    ] = None,
    cube: Annotated[
        str | None,
        typer.Option(
            metavar="WHO",
            help="Who multiplies: numba, or rtl, the cube's Verilog under Verilator, which also has "
            "its cycles compared; numba by default.",
        ),
    ] = None,
    max_cycles: MaxCycles = None,
    no_timeline: Annotated[
        bool, typer.Option("--no-timeline", help="Leave the timeline out of the bundle.")
    ] = False,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Run a kernel and compare its outputs with golden numpy.

    Without --inputs, inputs are drawn: normal numbers, and scales that differ from row to row and
    from group to group. The bundle keeps inputs, outputs, golden outputs, executable, kernel, machine
    and options, and a timeline for Perfetto, of the first clusters where all would be too much for it.
    A bundle in the place of KERNEL is run again: its outputs
    must be the same bytes.
    """
    from ...ir.numerics.elements import Summation
    from ...sim.device import Checks
    from ..commands.run import RunOptions, run_kernel
    from ..rtl_cube import Multiplier
    from .first_run import compilation_announced
    from .progress import progress_shown

    if cube is not None:
        check_choice("--cube", cube, (each.value for each in Multiplier))
    if checks is not None:
        check_choice("--checks", checks, (each.value for each in Checks))
    if sum_ is not None:
        check_choice("--sum", sum_, (each.value for each in Summation))
    options = RunOptions(
        kernel=kernel,
        params=pairs(param, "--param"),
        settings=pairs(set_, "--set"),
        machine=machine,
        inputs=inputs or (),
        golden=golden,
        compared=not no_golden,
        rule=rule,
        entry=entry,
        seed=seed,
        functional=not timing_only,
        warm=warm,
        checks=checks,
        sum=sum_,
        cube=cube,
        max_cycles=max_cycles,
        timeline=not no_timeline,
        out=out,
        runs=RUNS,
    )
    with progress_shown(sys.stderr, quiet=as_json) as progress, compilation_announced(sys.stderr):
        report = run_kernel(options, progress)
    if as_json:
        print_json(report.as_json())
    else:
        from rich.console import Console

        report.show(Console())
    raise typer.Exit(OK if report.ok else MISMATCH)


def compile(  # noqa: A001 - the name of the command
    kernel: Kernel,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where the executable goes."),
    ] = None,
    param: Params = None,
    set_: Settings = None,
    machine: Machine = None,
    print_after: Annotated[
        list[str] | None,
        typer.Option(
            "--print-after",
            metavar="PASS",
            help="Print the program after a pass, as source that parses back; also source or all.",
        ),
    ] = None,
    diff: Annotated[
        list[str] | None,
        typer.Option(
            "--diff", metavar="PASS|A..B", help="Show what a pass changes, or what A to B do."
        ),
    ] = None,
    stop_after: Annotated[
        str | None,
        typer.Option("--stop-after", metavar="PASS", help="Run no pass beyond this one."),
    ] = None,
    verify_each: Annotated[
        bool,
        typer.Option("--verify-each", help="Verify, print and parse back around every pass."),
    ] = False,
    time_passes: Annotated[
        bool, typer.Option("--time-passes", help="List the time of every pass.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compile a kernel to an executable, or look at what the passes do."""
    from ..commands.compile import compile_kernel
    from ..commands.pass_view import PassOptions
    from ..kernel_file import load_kernel_file, target_of_kernel

    options = PassOptions(
        print_after=print_after or (),
        diff=diff or (),
        stop_after=stop_after,
        verify_each=verify_each,
        time_passes=time_passes,
    )
    if output is None and options == PassOptions():
        message = (
            f"-o must say where the executable goes, for example -o {kernel.stem}.sbx, unless the "
            "passes are looked at"
        )
        raise typer.BadParameter(message)
    if output is not None and stop_after is not None:
        message = "-o must not go with --stop-after, which makes no executable"
        raise typer.BadParameter(message)
    source = load_kernel_file(kernel, pairs(param, "--param"))
    target = target_of_kernel(source, machine, pairs(set_, "--set"))
    answer = compile_kernel(source, target, output, options)
    if as_json:
        print_json(answer.as_json())
    else:
        print(answer.text, end="")


def disasm(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="An executable, a bundle, or a kernel file (.py)."),
    ],
    param: Params = None,
    set_: Settings = None,
    machine: Machine = None,
) -> None:
    """Print the instructions of an executable, a bundle or a kernel."""
    from ..commands.disasm import disassembly

    print(disassembly(file, pairs(param, "--param"), pairs(set_, "--set"), machine), end="")
