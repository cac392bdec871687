"""The command line: run, compile, disasm, compare, rtl."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..ir.errors import (
    IRTypeError,
    IRValueError,
    ParserError,
    SimulationFault,
    UserError,
    VerificationError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..codegen.executable import Executable
    from ..ir.target import Target
    from .kernel_file import KernelFile

RUNS = Path("scalebox-runs")

OK, MISMATCH, USAGE = 0, 1, 2
"""Exit statuses: all is well; a result differs or the kernel is at fault; wrong usage or input."""

BROKEN_PIPE = 128 + 13
"""Exit status when the reader of our output went away, as shells give it for SIGPIPE."""

_KERNEL_FAULTS = (ParserError, IRValueError, IRTypeError, VerificationError, SimulationFault)

app = typer.Typer(
    name="scalebox",
    help="Compile and run microscaling kernels for an Ascend-A5-like NPU, without the NPU.",
    epilog="Example:\n\n\b\n  scalebox run examples/mx_matmul.py",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _example(*lines: str) -> str:
    """Return an epilog whose lines are not wrapped, so that they can be copied."""
    return "\n".join(["Example:\n\n\b", *(f"  {line}" for line in lines)])


Kernel = Annotated[Path, typer.Argument(metavar="KERNEL", help="A kernel file (.py).")]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="Replace a pl.param of the kernel file."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Change a field of the machine."),
]
Machine = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="A machine by name, or a TOML file; else the kernel file's MACHINE, or a5.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.command(
    epilog=_example("scalebox run examples/mx_matmul.py --param K=2048 --set l2_miss_cycles=600")
)
def run(
    kernel: Annotated[
        Path, typer.Argument(metavar="KERNEL", help="A kernel file (.py), or an executable.")
    ],
    param: Params = None,
    set_: Settings = None,
    machine: Machine = None,
    inputs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An .npz file of inputs by parameter name."),
    ] = None,
    entry: Annotated[
        str | None,
        typer.Option(
            metavar="FUNCTION",
            help="What to launch; else the only Orchestration function, or the only function.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Seed of the inputs that are drawn; 0 by default."),
    ] = None,
    timing_only: Annotated[
        bool, typer.Option("--timing-only", help="Compute cycles and no outputs.")
    ] = False,
    checks: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What becomes of reads of bytes never written and of flags left over: "
            "error, warn or off.",
        ),
    ] = "error",
    sum_: Annotated[
        str,
        typer.Option("--sum", metavar="ORDER", help="Order of summation: group or sequential."),
    ] = "group",
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help=f"Folder for the bundle; by default below {RUNS}/."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a kernel and compare its outputs with golden numpy.

    Without --inputs, inputs are drawn: normal numbers, and scales that differ from row to row and
    from group to group. The bundle keeps inputs, outputs, golden outputs, executable, machine and
    options, and a timeline for Perfetto.
    """
    from ..ir.numerics.elements import Summation
    from ..sim.device import Checks
    from .first_run import compilation_announced
    from .run_command import RunOptions, run_kernel

    _check_choice("--checks", checks, (each.value for each in Checks))
    _check_choice("--sum", sum_, (each.value for each in Summation))
    options = RunOptions(
        kernel=kernel,
        params=_pairs(param, "--param"),
        settings=_pairs(set_, "--set"),
        machine=machine,
        inputs=inputs,
        entry=entry,
        seed=seed,
        functional=not timing_only,
        checks=checks,
        sum=sum_,
        out=out,
        runs=RUNS,
    )
    with compilation_announced(sys.stderr):
        report = run_kernel(options)
    if as_json:
        _print_json(report.as_json())
    else:
        from rich.console import Console

        report.show(Console())
    raise typer.Exit(OK if report.ok else MISMATCH)


@app.command(
    epilog=_example(
        "scalebox compile examples/mx_matmul.py -o matmul.sbx",
        "scalebox run matmul.sbx",
        "scalebox compile examples/mx_matmul.py --diff BlockMxScaleTensorViews",
    )
)
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
    from .compile_command import compile_kernel
    from .kernel_file import load_kernel_file
    from .pass_view import PassOptions

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
    source = load_kernel_file(kernel, _pairs(param, "--param"))
    target = _target(machine, source, _pairs(set_, "--set"))
    answer = compile_kernel(source, target, output, options)
    if as_json:
        _print_json(answer.as_json())
    else:
        print(answer.text, end="")


@app.command(epilog=_example("scalebox disasm examples/mx_matmul.py"))
def disasm(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An executable, or a kernel file (.py).")
    ],
    param: Params = None,
    set_: Settings = None,
    machine: Machine = None,
) -> None:
    """Print the instructions of an executable or a kernel."""
    print(_executable_of(file, param, set_, machine).disassemble(), end="")


@app.command(
    epilog=_example(
        "scalebox run examples/mx_matmul.py --out run1",
        "scalebox compare run1/outputs.npz run1/golden.npz --rule ulp:1",
    )
)
def compare(
    actual: Annotated[
        Path,
        typer.Argument(metavar="ACTUAL", help="An .npz or .npy file, or a bundle: its outputs."),
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
    as_json: AsJson = False,
) -> None:
    """Compare two results and name the first difference."""
    from ..traces.compare import compare as compare_arrays
    from .report import comparison_as_json
    from .result_files import read_results

    verdict = compare_arrays(read_results(actual), read_results(golden), rule=rule)
    if as_json:
        _print_json(comparison_as_json(verdict))
    else:
        print(verdict)
    raise typer.Exit(OK if verdict else MISMATCH)


@app.command(epilog=_example("scalebox rtl -o build/rtl"))
def rtl(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the Verilog files.")
    ],
    unit: Annotated[
        str, typer.Option(metavar="UNIT", help="The unit to write: scale_decode or scale_pair.")
    ] = "scale_decode",
    force: Annotated[
        bool, typer.Option("--force", help="Write beside files that are not ours.")
    ] = False,
) -> None:
    """Write the RTL as Verilog."""
    from ..rtl.emit import UNITS, write_verilog

    _check_choice("--unit", unit, UNITS)
    for path in write_verilog(output, unit=unit, force=force):
        print(path)


def _check_choice(option: str, given: str, choices: Iterable[str]) -> None:
    known = list(choices)
    if given not in known:
        message = f"{option} must be one of {', '.join(known)}, not {given!r}"
        raise typer.BadParameter(message)


def _print_json(answer: dict[str, Any]) -> None:
    print(json.dumps(answer, indent=2, allow_nan=False))


def _pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            message = f"{option} must be NAME=VALUE, not {text!r}"
            raise typer.BadParameter(message)
        pairs[name] = value
    return pairs


def _target(machine: str | None, kernel: KernelFile, settings: dict[str, str]) -> Target:
    from ..ir.target import load_target
    from .kernel_file import machine_of_kernel
    from .run_command import SETTING_SOURCE

    target = load_target(machine_of_kernel(kernel) if machine is None else machine)
    return target.with_settings(settings, source=SETTING_SOURCE)


def _executable_of(
    file: Path, param: list[str] | None, set_: list[str] | None, machine: str | None
) -> Executable:
    from .api import compile as compile_program
    from .kernel_file import KernelFile, load_executable_or_kernel

    loaded = load_executable_or_kernel(file, _pairs(param, "--param"))
    if isinstance(loaded, KernelFile):
        target = _target(machine, loaded, _pairs(set_, "--set"))
        return compile_program(loaded.program, machine=target)
    if machine is not None or set_:
        message = (
            f"--machine and --set must go with a kernel file; {str(file)!r} is compiled already"
        )
        raise typer.BadParameter(message)
    return loaded


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0: all is well. 1: a result differs, or the kernel is at fault. 2: wrong usage or input. Beyond
    128: stopped from outside, as shells count.

    Args:
        arguments: What follows the command's name; by default that of this process.
    """
    try:
        status = _run(None if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    return status


def _run(arguments: list[str] | None) -> int:
    try:
        app(args=arguments, prog_name="scalebox")
    except SystemExit as done:
        if isinstance(done.__context__, BrokenPipeError):  # typer has made it its own exit
            raise done.__context__ from None
        return done.code if isinstance(done.code, int) else OK
    except UserError as error:
        sys.stdout.flush()
        print(error.render(), file=sys.stderr)
        return MISMATCH if isinstance(error, _KERNEL_FAULTS) else USAGE
    except MemoryError as error:
        sys.stdout.flush()
        print(f"Error: This must fit into memory, which it does not: {error}", file=sys.stderr)
        return USAGE
    return OK


def _drop_output() -> None:
    """Let nothing more be written, so that Python's own flush at exit has nothing to complain of."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
