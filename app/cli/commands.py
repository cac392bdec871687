"""The command line: run, compile, disasm, compare, show, report, sweep, cosim, rtl."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from ...ir.errors import (
    IRTypeError,
    IRValueError,
    ParserError,
    SimulationFault,
    UserError,
    VerificationError,
)
from .hardware import cosim, rtl
from .kernels import compile, disasm, run  # noqa: A004 - the name of the command
from .options import (
    AS_JSON,
    MISMATCH,
    OK,
    USAGE,
    Command,
    error_as_json,
    example,
    print_json,
)
from .results import compare, report, show
from .streams import CLOSED, OutputError, guarded_streams
from .sweep import sweep

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

app.command(
    cls=Command,
    epilog=example(
        "scalebox run examples/mx_matmul.py --param K=2048 --set l2_miss_cycles=600",
        "scalebox run examples/mx_matmul.py --out matmul.hrry",
        "scalebox run matmul.hrry",
    ),
)(run)
app.command(
    cls=Command,
    epilog=example(
        "scalebox compile examples/mx_matmul.py -o matmul.sbx",
        "scalebox run matmul.sbx",
        "scalebox compile examples/mx_matmul.py --diff BlockMxScaleTensorViews",
    ),
)(compile)
app.command(cls=Command, epilog=example("scalebox disasm examples/mx_matmul.py"))(disasm)
app.command(
    cls=Command,
    epilog=example(
        "scalebox run examples/mx_matmul.py --out run1",
        "scalebox compare run1/outputs.npz run1/golden.npz --rule ulp:1",
        "scalebox compare run1 run1/golden.npz --plot map.png",
    ),
)(compare)
app.command(
    cls=Command,
    epilog=example("scalebox run examples/mx_matmul.py --out run1", "scalebox show run1"),
)(show)
app.command(
    cls=Command,
    epilog=example(
        "scalebox report examples/mx_matmul.py --param K=4096 --warm",
        "scalebox run examples/mx_matmul.py --out run1",
        "scalebox report run1 --json",
    ),
)(report)
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
