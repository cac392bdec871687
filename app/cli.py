"""The command line: run, compile, disasm, compare, rtl."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..ir.errors import InputError, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..codegen.executable import Executable
    from ..ir.target import Target
    from .kernel_file import KernelFile

RUNS = Path("scalebox-runs")
OK, MISMATCH, USAGE = 0, 1, 2

app = typer.Typer(
    name="scalebox",
    help="Compile and run microscaling kernels for an Ascend-A5-like NPU, without the NPU.",
    epilog="Example: scalebox run examples/mx_matmul.py",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

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
    typer.Option(help="A machine by name, or a TOML file; else the kernel file's MACHINE, or a5."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command(
    epilog="Example: scalebox run examples/mx_matmul.py --param N=256 --set cores=1 --out run1"
)
def run(
    kernel: Annotated[
        Path, typer.Argument(metavar="KERNEL", help="A kernel file (.py), or an executable.")
    ],
    param: Params = None,
    set_: Settings = None,
    machine: Machine = None,
    inputs: Annotated[
        Path | None, typer.Option(help="An .npz file of inputs by parameter name.")
    ] = None,
    entry: Annotated[str | None, typer.Option(help="The function to launch.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the inputs that are drawn.")] = 0,
    timing_only: Annotated[
        bool, typer.Option("--timing-only", help="Compute cycles and no outputs.")
    ] = False,
    checks: Annotated[
        str, typer.Option(help="What doubtful accesses are: error, warn or off.")
    ] = "error",
    sum_: Annotated[
        str, typer.Option("--sum", help="Order of summation: group or sequential.")
    ] = "group",
    out: Annotated[
        Path | None, typer.Option(help=f"Folder for the bundle; by default below {RUNS}/.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compile a kernel, run it on the machine model, and compare it with golden numpy."""
    from .run_command import RunOptions, run_kernel

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
    report = run_kernel(options)
    if as_json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        from rich.console import Console

        report.show(Console(soft_wrap=True))
    raise typer.Exit(OK if report.ok else MISMATCH)


@app.command(epilog="Example: scalebox compile examples/mx_matmul.py -o matmul.sbx")
def compile(  # noqa: A001 - the name of the command
    kernel: Kernel,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the executable goes.")],
    param: Params = None,
    set_: Settings = None,
    machine: Machine = None,
    as_json: AsJson = False,
) -> None:
    """Compile a kernel to an executable."""
    from .api import compile as compile_program
    from .kernel_file import load_kernel_file

    source = load_kernel_file(kernel, _pairs(param, "--param"))
    target = _target(machine, source, _pairs(set_, "--set"))
    executable = compile_program(source.program, machine=target)
    executable.save(output)
    sizes = {each.name: len(each.program) for each in executable.kernels}
    if as_json:
        print(json.dumps({"ok": True, "executable": str(output), "instructions": sizes}, indent=2))
        return
    listed = ", ".join(f"{name} ({count} instructions)" for name, count in sizes.items())
    print(f"{output}: {executable.name} for {executable.machine}: {listed}")


@app.command(epilog="Example: scalebox disasm examples/mx_matmul.py")
def disasm(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An executable, or a kernel file (.py).")
    ],
    param: Params = None,
    set_: Settings = None,
    machine: Machine = None,
) -> None:
    """Print the instructions of an executable, or of a kernel as it would be compiled."""
    print(_executable_of(file, param, set_, machine).disassemble())


@app.command(epilog="Example: scalebox compare run1 golden.npz --rule ulp:1")
def compare(
    actual: Annotated[
        Path, typer.Argument(metavar="ACTUAL", help="An .npz or .npy file, or a bundle.")
    ],
    golden: Annotated[Path, typer.Argument(metavar="GOLDEN", help="The same, as it should be.")],
    rule: Annotated[
        str, typer.Option(help="exact, ulp:N, close:RTOL,ATOL or fraction:TOL,SHARE.")
    ] = "exact",
    as_json: AsJson = False,
) -> None:
    """Compare two results and name the first difference."""
    from ..traces.compare import compare as compare_arrays
    from .result_files import read_results

    verdict = compare_arrays(read_results(actual), read_results(golden), rule=rule)
    if as_json:
        first = verdict.first
        answer: dict[str, Any] = {
            "ok": bool(verdict),
            "rule": verdict.rule,
            "elements": verdict.elements,
            "differing": verdict.differing,
            "first_difference": None if first is None else str(first),
        }
        print(json.dumps(answer, indent=2))
    else:
        print(verdict)
    raise typer.Exit(OK if verdict else MISMATCH)


@app.command(epilog="Example: scalebox rtl -o build/rtl --unit scale_decode")
def rtl(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the Verilog files.")],
    unit: Annotated[str, typer.Option(help="The unit to write.")] = "scale_decode",
    force: Annotated[
        bool, typer.Option("--force", help="Write beside files that are not ours.")
    ] = False,
) -> None:
    """Write the RTL as Verilog."""
    from ..rtl.emit import write_verilog

    for path in write_verilog(output, unit=unit, force=force):
        print(path)


def _pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            message = f"{option} must be NAME=VALUE, not {text!r}"
            raise typer.BadParameter(message)
        pairs[name] = value
    return pairs


def _target(machine: str | None, source: KernelFile | None, settings: dict[str, str]) -> Target:
    from ..ir.target import load_target

    named = machine or (source.machine if source is not None else None) or "a5"
    return load_target(named).with_settings(settings, source="set on the command line")


def _executable_of(
    file: Path, param: list[str] | None, set_: list[str] | None, machine: str | None
) -> Executable:
    from .api import compile as compile_program
    from .kernel_file import KernelFile, load_executable_or_kernel

    loaded = load_executable_or_kernel(file, _pairs(param, "--param"))
    if not isinstance(loaded, KernelFile):
        return loaded
    return compile_program(loaded.program, machine=_target(machine, loaded, _pairs(set_, "--set")))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0: all is well. 1: a result differs, or the kernel is at fault. 2: wrong usage or input.
    """
    try:
        app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
    except typer.Exit as done:
        return done.exit_code
    except UserError as error:
        print(error.render(), file=sys.stderr)
        return USAGE if isinstance(error, InputError) else MISMATCH
    return OK
