"""The commands around the hardware: cosim and rtl."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from ...ir.errors import IRValueError
from .options import (
    MISMATCH,
    OK,
    RUNS,
    AsJson,
    CheckChoice,
    Entry,
    Inputs,
    Machine,
    Out,
    Params,
    Seed,
    Settings,
    check_choice,
    pairs,
    print_answer,
)


def cosim(
    kernel: Annotated[
        Path,
        typer.Argument(
            metavar="KERNEL",
            help="A kernel file (.py), an executable, or a bundle that this command left.",
        ),
    ],
    limit: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=1_000_000,
            help="Cycles that go through cocotb; all of them go through Verilator's library.",
        ),
    ] = 200_000,
    waves: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write what cocotb saw as waves, for GTKWave or Surfer (.vcd)."
        ),
    ] = None,
    param: Params = None,
    set_: Settings = None,
    machine: Machine = None,
    inputs: Inputs = None,
    entry: Entry = None,
    seed: Seed = None,
    checks: CheckChoice = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Check the RTL against the scales that a kernel consumes.

    The kernel is run. Every mad's scale boxes, with the cycles in which they came, go through the
    generated Verilog of the scale-decode unit, and every wire must carry in every cycle what the
    machine model says. The bundle keeps the boxes as scales.npz.
    """
    from ..commands.cosim import cosimulate
    from ..commands.run import RunOptions
    from .first_run import compilation_announced

    options = RunOptions(
        kernel=kernel,
        params=pairs(param, "--param"),
        settings=pairs(set_, "--set"),
        machine=machine,
        inputs=inputs or (),
        entry=entry,
        seed=seed,
        checks=checks,
        out=out,
        runs=RUNS,
    )
    with compilation_announced(sys.stderr):
        report = cosimulate(options, limit=limit, waves=waves)
    print_answer(report, as_json=as_json)
    raise typer.Exit(OK if report.ok else MISMATCH)


def rtl(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the files.")
    ],
    unit: Annotated[
        str,
        typer.Option(
            metavar="UNIT", help="The unit to write: scale_decode or dot or cube or scale_pair."
        ),
    ] = "scale_decode",
    beat: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            help="What a side of scale_decode or cube reads a cycle: 8, 16 or 32; 32 by default.",
        ),
    ] = None,
    combined: Annotated[
        bool,
        typer.Option("--combined", help="Let scale_decode add all 16 x 16 exponents of a record."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write beside files that are not ours.")
    ] = False,
) -> None:
    """Write a unit as Verilog, with vectors and a bench.

    The bench holds the Verilog, or a unit of your own, to the test vectors; it needs cocotb and a
    simulator, and not Scalebox.
    """
    from ...rtl.emit import UNITS
    from ..commands.rtl import write_rtl

    check_choice("--unit", unit, UNITS)
    try:
        written = write_rtl(output, unit, beat_bytes=beat, combined=combined, force=force)
    except IRValueError as error:  # no kernel is at fault here, only what was asked for
        raise typer.BadParameter(error.message) from error
    print("\n".join(map(str, written)))
