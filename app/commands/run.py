"""The run command: from a kernel file, or a saved run, to a report and a bundle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...ir.dynamic_dims import bind_dims, sizes_of_dims
from ...ir.errors import InputError
from ...ir.expr import ScalarType
from ...ir.interp import select_entry
from ...sim.progress import SILENT
from ...traces.bundle import is_bundle, refuse_foreign, save_bundle
from ...traces.compare import compare
from ...traces.containers import is_container
from ...traces.rules import parse_rule
from ..api import compile as compile_program
from ..api import interpret, machine_of, run
from ..drawn_inputs import draw_inputs
from ..kernel_file import (
    SETTING_SOURCE,
    KernelFile,
    load_executable_or_kernel,
    target_of_kernel,
)
from ..replay import replay
from ..report import GoldenSource, RunReport
from ..run_changes import Changes
from ..scale_faults import explain
from ..signature import entry_function
from .result_files import read_golden, read_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...ir.core import Function
    from ...sim.progress import Progress
    from ..result import Result

CHECKS, SUM, CUBE, RULE = "error", "group", "numba", "exact"
"""What checks, order of summation, multiplier and rule of comparison are when nothing is said."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `scalebox run`, as its help describes them; None where nothing was said."""

    kernel: Path
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    machine: str | None = None
    inputs: Sequence[Path] = ()
    golden: Path | None = None
    compared: bool = True
    rule: str | None = None
    entry: str | None = None
    seed: int | None = None
    functional: bool = True
    warm: bool = False
    checks: str | None = None
    sum: str | None = None
    cube: str | None = None
    max_cycles: int | None = None
    timeline: bool = True
    out: Path | None = None
    runs: Path = Path("scalebox-runs")
    record_scales: bool = False

    @property
    def changes(self) -> Changes:
        """What is changed of the kernel file and of the machine."""
        return Changes(params=self.params, settings=self.settings, warm=self.warm)


def run_kernel(options: RunOptions, progress: Progress = SILENT) -> RunReport:
    """Run a kernel file or an executable, compare it with golden, and save the bundle.

    A bundle is replayed as it was run.

    Args:
        options: What to run, and how.
        progress: Who is told how far it has come.

    Raises:
        UserError: For a kernel, an input or an option that is refused, or a fault of the kernel.
    """
    if is_bundle(options.kernel) or is_container(options.kernel):
        refuse_options(options, "a bundle is replayed as it was run", but="--out")
        return replay(options.kernel, options.out)
    if options.golden is not None and not options.functional:
        message = "Golden must go with a run that computes outputs, not with one for timing only"
        raise InputError(message)
    if not options.compared and (options.golden is not None or options.rule is not None):
        other = "--rule" if options.golden is None else "--golden"
        message = f"{other} must go with a run that is compared, not with --no-golden"
        raise InputError(message)
    rule = str(parse_rule(options.rule or RULE))
    place = options.out or options.runs / options.kernel.stem
    refuse_foreign(place)
    launch = run_once(options, progress)
    result, source, program = launch.result, launch.source, launch.result.program
    inputs, entry, sum_ = launch.result.inputs, launch.result.entry, options.sum or SUM
    golden = None
    if options.golden is not None:
        golden = read_golden(options.golden, list(result.outputs))
    elif program is not None and options.functional and options.compared:
        progress.phase("computing golden")
        golden = interpret(program, inputs, entry=entry, sum=sum_)
    comparison = None if golden is None else compare(result.outputs, golden, rule=rule)
    seed = launch.seed
    progress.phase("saving the bundle")
    bundle = result.bundle(golden, timeline=options.timeline)
    about = {
        "kernel": options.kernel.name,
        "seed": seed,
        "params": {} if source is None else dict(source.params),
        "dims": {} if source is None else dict(source.dims),
        "given": dict(options.params),
        "settings": dict(options.settings),
        "rule": rule,
        "golden": None if options.golden is None else options.golden.name,
    }
    replaced = is_bundle(place)
    save_bundle(place, replace(bundle, options={**bundle.options, **about}))
    hints: list[str] = []
    if comparison is not None and not comparison and program is not None:
        wrong, what = (result.outputs, "actual") if options.golden is None else (golden, "golden")
        found = explain(program, inputs, wrong or {}, entry=entry, sum=sum_)
        hints = [f"{what} is what comes out if {mistake}" for mistake in found]
    return RunReport(
        title=str(options.kernel),
        result=result,
        comparison=comparison,
        bundle=place,
        timeline=bundle.timeline,
        seed=seed,
        golden=_source_of_golden(options),
        hints=tuple(hints),
        changes=options.changes,
        replaced=replaced,
    )


def _source_of_golden(options: RunOptions) -> GoldenSource:
    if not options.compared:
        return GoldenSource.UNASKED
    return GoldenSource.COMPUTED if options.golden is None else GoldenSource.GIVEN


@dataclass(frozen=True)
class Launch:
    """A run, and how it came about.

    Attributes:
        result: The run.
        source: The kernel file, unless an executable was run.
        seed: Of the drawn inputs; None when they were given, or none were needed.
    """

    result: Result
    source: KernelFile | None
    seed: int | None


def run_once(options: RunOptions, progress: Progress = SILENT) -> Launch:
    """Run a kernel file or an executable; nothing is compared or saved.

    Args:
        options: What to run, and how.
        progress: Who is told how far it has come.

    Raises:
        UserError: For a kernel, an input or an option that is refused, or a fault of the kernel.
    """
    if options.inputs and options.seed is not None:
        message = "Either inputs or a seed to draw them must be given, not both"
        raise InputError(message)
    progress.phase("compiling the kernel")
    given = read_inputs(options.inputs) if options.inputs else None
    loaded = load_executable_or_kernel(options.kernel, options.params)
    source: KernelFile | None = None
    if isinstance(loaded, KernelFile):
        target = target_of_kernel(loaded, options.machine, options.settings)
        source = _with_dims(loaded, options.entry, given or {})
        executable = compile_program(source.program, machine=target)
        entry = select_entry(source.program, options.entry).name
    else:
        executable, target = loaded, machine_of(loaded, options.machine)
        target = target.with_settings(options.settings, source=SETTING_SOURCE)
        entry = executable.entry(options.entry).name
    function = entry_function(executable.entry(entry))
    progress.phase("simulating")
    inputs = _drawn(options, function) if given is None else given
    result = run(
        executable,
        inputs,
        entry=entry,
        machine=target,
        functional=options.functional,
        warm=options.warm,
        checks=options.checks or CHECKS,
        sum=options.sum or SUM,
        cube=options.cube or CUBE,
        record_scales=options.record_scales,
        max_cycles=options.max_cycles,
        progress=progress,
    )
    program = None if source is None else source.program
    result = replace(result, program=program, dims={} if source is None else source.dims)
    seed = options.seed or 0 if given is None and inputs else None
    return Launch(result, source, seed)


def _with_dims(kernel: KernelFile, entry: str | None, given: Mapping[str, Any]) -> KernelFile:
    """Return a kernel with the extents that inputs give its dynamic dimensions."""
    sizes = sizes_of_dims(kernel.program, select_entry(kernel.program, entry), given)
    program = bind_dims(kernel.program, sizes)
    return replace(kernel, program=program, dims={**kernel.dims, **sizes})


def _drawn(options: RunOptions, function: Function) -> dict[str, Any]:
    if not options.functional and not any(isinstance(p.type, ScalarType) for p in function.params):
        return {}
    return draw_inputs(function, options.seed or 0)


def refuse_options(
    options: RunOptions, reason: str, *, but: str | None = None, hint: str | None = None
) -> None:
    """Refuse what a bundle cannot heed: every option of a run but one."""
    given = {
        "--param": options.params,
        "--set": options.settings,
        "--machine": options.machine,
        "--inputs": options.inputs,
        "--golden": options.golden,
        "--no-golden": not options.compared,
        "--rule": options.rule,
        "--entry": options.entry,
        "--seed": options.seed is not None,
        "--timing-only": not options.functional,
        "--warm": options.warm,
        "--checks": options.checks,
        "--sum": options.sum,
        "--cube": options.cube,
        "--max-cycles": options.max_cycles,
        "--no-timeline": not options.timeline,
        "--out": options.out,
    }
    wrong = next((name for name, value in given.items() if value and name != but), None)
    if wrong is not None:
        message = f"{wrong} must go with a kernel or an executable: {reason}"
        raise InputError(message, hint=hint)
