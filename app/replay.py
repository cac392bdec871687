"""A saved run, run again: the same inputs, executable and machine must give the same bytes."""

from __future__ import annotations

import sys
import tempfile
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.executable import Executable
from ..ir.core import Function, Program
from ..ir.errors import InputError, ParserError
from ..ir.language import parse
from ..ir.target import load_target
from ..traces.bundle import is_bundle, load_bundle, refuse_foreign, save_bundle
from ..traces.compare import Comparison, compare
from .api import interpret, machine_of, run
from .drawn_inputs import given_inputs
from .report import GoldenSource, RunReport
from .run_changes import Changes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..ir.target import Target
    from ..traces.bundle import Bundle
    from .result import Result


@dataclass(frozen=True)
class Kept:
    """What a run left when it was saved, against what it leaves now.

    Attributes:
        outputs: The comparison of the outputs; None for a run that computed none.
        has_same_bytes: Whether the outputs have the same bytes, those of NaNs included.
        cycles: How many cycles it took then; None if the bundle does not say.
    """

    outputs: Comparison | None
    has_same_bytes: bool
    cycles: int | None


def replay(path: Path, out: Path | None = None) -> RunReport:
    """Run a bundle again, as it was run.

    The outputs are held against those that the bundle keeps, byte by byte, and against golden: what
    the bundle keeps, or else what the interpreter computes from the kernel in it. A kernel in a bundle
    is run as any other kernel file: its text is Python.

    Args:
        path: The bundle.
        out: Where the new run is saved as a bundle; None saves nothing.

    Raises:
        InputError: There is no bundle, or it does not hold what it takes to be run.
        UserError: For a fault of the kernel.
    """
    bundle = load_bundle(path)
    if out is not None:
        refuse_foreign(out)
    result, options = run_bundle(bundle, str(path)), bundle.options
    program = None if bundle.program is None else program_of(bundle.program)
    computed = None
    if program is not None and result.options["functional"]:
        how = result.options
        computed = interpret(program, result.inputs, entry=how["entry"], sum=how["sum"])
    golden, source = bundle.golden, GoldenSource.KEPT
    if golden is None:
        golden, source = computed, GoldenSource.COMPUTED
    saved = None if out is None else _saved(bundle, result)
    replaced = out is not None and is_bundle(out)
    if out is not None and saved is not None:
        save_bundle(out, saved)
    return RunReport(
        title=str(path),
        result=result,
        comparison=_verdict(result, golden, options.get("rule", "exact")),
        bundle=out,
        timeline=None if saved is None else saved.timeline,
        seed=options.get("seed"),
        golden=source,
        kept=_kept(bundle, result),
        kept_golden=_verdict_of_golden(bundle, computed),
        changes=Changes.of_bundle(options),
        replaced=replaced,
    )


def run_bundle(bundle: Bundle, title: str, *, timing_only: bool = False) -> Result:
    """Run a bundle again, as it was run.

    Args:
        bundle: The run.
        title: What it is called in messages.
        timing_only: Whether only its cycles are asked for; then they always are.

    Raises:
        InputError: It does not hold what it takes to be run.
        UserError: For a fault of the kernel.
    """
    executable, target = _what_ran(title, bundle)
    options = bundle.options
    result = run(
        executable,
        given_inputs(bundle.inputs),
        entry=options.get("entry"),
        machine=target,
        functional=options.get("functional", True) and not timing_only,
        timing=options.get("timing", True) or timing_only,
        warm=options.get("warm", False),
        checks=options.get("checks", "error"),
        sum=options.get("sum", "group"),
        cube="numba" if timing_only else options.get("cube", "numba"),
    )
    return replace(result, dims=options.get("dims") or {})


def program_of(text: str) -> Program:
    """Return the kernel that a bundle keeps as text.

    What the text prints goes to standard error, as with a kernel file.

    Raises:
        ParserError: The text is no Python, does not run to its end, or the language refuses it.
    """
    with redirect_stdout(sys.stderr):
        try:
            item = parse(text)
        except SystemExit as error:
            message = (
                f"The kernel of a bundle must run to its end, but it exits with {error.code!r}"
            )
            raise ParserError(message) from error
    return Program([item], item.name, item.span) if isinstance(item, Function) else item


def _what_ran(title: str, bundle: Bundle) -> tuple[Executable, Target]:
    if bundle.executable is None:
        message = f"The bundle {title!r} must hold an executable to be run again; it has none"
        raise InputError(message)
    executable = Executable.from_bytes(bundle.executable)
    if bundle.machine is None:
        return executable, machine_of(executable)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "machine.toml"
        file.write_text(bundle.machine, encoding="utf-8")
        return executable, load_target(file)


def _verdict(result: Result, golden: Mapping[str, Any] | None, rule: str) -> Comparison | None:
    if golden is None or not result.options["functional"]:
        return None
    return compare(result.outputs, golden, rule=rule)


def _kept(bundle: Bundle, result: Result) -> Kept:
    said = bundle.options.get("cycles")
    cycles = said if isinstance(said, int) else None
    if bundle.outputs is None or not result.options["functional"]:
        return Kept(None, has_same_bytes=True, cycles=cycles)
    verdict = compare(result.outputs, bundle.outputs)
    same = all(
        np.asarray(result.outputs[name]).tobytes() == np.asarray(kept).tobytes()
        for name, kept in bundle.outputs.items()
    )
    return Kept(verdict, has_same_bytes=same, cycles=cycles)


def _verdict_of_golden(bundle: Bundle, computed: Mapping[str, Any] | None) -> Comparison | None:
    """Hold golden as the bundle keeps it against golden as it is computed now, if there are both.

    What a user gave as golden need not be what the kernel computes.
    """
    if bundle.golden is None or computed is None or bundle.options.get("golden") is not None:
        return None
    return compare(computed, bundle.golden)


def _saved(bundle: Bundle, result: Result) -> Bundle:
    """Return the new run as a bundle: the old one, but for what has been computed anew."""
    new = result.bundle(timeline=bundle.timeline is not None)
    anew = {name: new.options[name] for name in ("cycles", "versions")}
    return replace(
        bundle,
        outputs=new.outputs,
        timeline=new.timeline,
        options={**bundle.options, **anew},
    )
