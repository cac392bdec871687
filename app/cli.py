"""The command line: run, compile, disasm, compare, show, report, sweep, cosim, rtl."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from ..ir.errors import (
    IRTypeError,
    IRValueError,
    ParserError,
    SimulationFault,
    UserError,
    VerificationError,
)
from .cli_hardware import cosim, rtl
from .cli_options import (
    AS_JSON,
    MISMATCH,
    OK,
    RUNS,
    USAGE,
    AsJson,
    CheckChoice,
    Command,
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
    error_as_json,
    example,
    pairs,
    print_answer,
    print_json,
)
from .cli_streams import CLOSED, OutputError, guarded_streams
from .cli_sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Sequence


_NEW_OBJECTS = 50_000
"""After how many new objects Python looks for cycles among them. A command makes very many that stay,
and hardly one that does not; with Python's own number it would look at them all, again and again."""

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


@app.command(
    cls=Command,
    epilog=example(
        "scalebox run examples/mx_matmul.py --param K=2048 --set l2_miss_cycles=600",
        "scalebox run examples/mx_matmul.py --out matmul.hrry",
        "scalebox run matmul.hrry",
    ),
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
    from ..ir.numerics.elements import Summation
    from ..sim.device import Checks
    from .first_run import compilation_announced
    from .progress import progress_shown
    from .rtl_cube import Multiplier
    from .run_command import RunOptions, run_kernel

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


@app.command(
    cls=Command,
    epilog=example(
        "scalebox compile examples/mx_matmul.py -o matmul.sbx",
        "scalebox run matmul.sbx",
        "scalebox compile examples/mx_matmul.py --diff BlockMxScaleTensorViews",
    ),
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
    from .kernel_file import load_kernel_file, target_of_kernel
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
    source = load_kernel_file(kernel, pairs(param, "--param"))
    target = target_of_kernel(source, machine, pairs(set_, "--set"))
    answer = compile_kernel(source, target, output, options)
    if as_json:
        print_json(answer.as_json())
    else:
        print(answer.text, end="")


@app.command(cls=Command, epilog=example("scalebox disasm examples/mx_matmul.py"))
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
    from .disasm_command import disassembly

    print(disassembly(file, pairs(param, "--param"), pairs(set_, "--set"), machine), end="")


@app.command(
    cls=Command,
    epilog=example(
        "scalebox run examples/mx_matmul.py --out run1",
        "scalebox compare run1/outputs.npz run1/golden.npz --rule ulp:1",
        "scalebox compare run1 run1/golden.npz --plot map.png",
    ),
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
    from .compare_command import compare_files

    report = compare_files(actual, golden, rule=rule, picture=plot)
    print_answer(report, as_json=as_json)
    raise typer.Exit(OK if report.comparison else MISMATCH)


@app.command(
    cls=Command,
    epilog=example("scalebox run examples/mx_matmul.py --out run1", "scalebox show run1"),
)
def show(
    place: Annotated[
        Path,
        typer.Argument(metavar="BUNDLE", help="A bundle, or an .npz, .npy or .hrry file."),
    ],
    as_json: AsJson = False,
) -> None:
    """Show what a bundle holds, or a file of arrays."""
    from .show_command import show as show_place

    shown = show_place(place)
    print_answer(shown, as_json=as_json)


@app.command(
    cls=Command,
    epilog=example(
        "scalebox report examples/mx_matmul.py --param K=4096 --warm",
        "scalebox run examples/mx_matmul.py --out run1",
        "scalebox report run1 --json",
    ),
)
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
    from ..sim.device import Checks
    from .report_command import report_on
    from .run_command import RunOptions

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


app.command(
    cls=Command,
    epilog=example(
        "scalebox sweep examples/mx_matmul.py --set gm_port_bytes_per_cycle=64,128",
        "scalebox sweep examples/mx_matmul.py --param K=1024,4096 --csv",
    ),
)(sweep)
app.command(
    cls=Command,
    epilog=example(
        "scalebox cosim examples/mx_matmul.py",
        "scalebox cosim examples/mx_matmul.py --set scale_beat_bytes=8 --json",
    ),
)(cosim)
app.command(
    cls=Command,
    epilog=example(
        "scalebox rtl -o build/rtl",
        "scalebox rtl -o build/rtl --unit dot",
    ),
)(rtl)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0: all is well. 1: a result differs, or the kernel is at fault. 2: wrong usage or input. Beyond
    128: stopped from outside, as shells count.

    Args:
        arguments: What follows the command's name; by default that of this process.
    """
    gc.set_threshold(_NEW_OBJECTS)
    with guarded_streams() as has_output:
        try:
            if not has_output:
                raise OutputError(CLOSED)
            status = _call(None if arguments is None else list(arguments))
            sys.stdout.flush()
        except BrokenPipeError:
            return BROKEN_PIPE
        except UserError as error:
            if AS_JSON in (sys.argv[1:] if arguments is None else arguments):
                with suppress(OutputError):
                    print_json(error_as_json(error))
            _tell(error.render())
            return MISMATCH if isinstance(error, _KERNEL_FAULTS) else USAGE
        except MemoryError as error:
            _tell(f"Error: This must fit into memory, which it does not: {error}")
            return USAGE
    return status


def _tell(problem: str) -> None:
    """Print a problem after what was printed before, if that can be."""
    with suppress(OutputError, BrokenPipeError):
        sys.stdout.flush()
    print(problem, file=sys.stderr)


def _call(arguments: list[str] | None) -> int:
    try:
        app(args=arguments, prog_name="scalebox")
    except SystemExit as done:
        if isinstance(done.__context__, BrokenPipeError):  # typer has made it its own exit
            raise done.__context__ from None
        return done.code if isinstance(done.code, int) else OK
    return OK
