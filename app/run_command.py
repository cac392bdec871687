"""The run command: from a kernel file to a report and a bundle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir.errors import InputError
from ..ir.expr import ScalarType
from ..ir.interp import select_entry
from ..ir.target import load_target
from ..traces.arrays import load_arrays
from ..traces.bundle import refuse_foreign, save_bundle
from ..traces.compare import compare
from .api import compile as compile_program
from .api import interpret, machine_of, run
from .drawn_inputs import draw_inputs, given_inputs
from .kernel_file import KernelFile, load_executable_or_kernel, machine_of_kernel
from .report import RunReport
from .signature import entry_function

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..ir.core import Function

SETTING_SOURCE = "set on the command line"
"""What a machine field says of itself when the command line has changed it."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `scalebox run`, as its help describes them."""

    kernel: Path
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    machine: str | None = None
    inputs: Path | None = None
    entry: str | None = None
    seed: int | None = None
    functional: bool = True
    checks: str = "error"
    sum: str = "group"
    out: Path | None = None
    runs: Path = Path("scalebox-runs")


def run_kernel(options: RunOptions) -> RunReport:
    """Run a kernel file or an executable, compare it with golden, and save the bundle.

    Raises:
        UserError: For a kernel, an input or an option that is refused, or a fault of the kernel.
    """
    if options.inputs is not None and options.seed is not None:
        message = "Either inputs or a seed to draw them must be given, not both"
        raise InputError(message)
    given = None if options.inputs is None else given_inputs(load_arrays(options.inputs))
    loaded = load_executable_or_kernel(options.kernel, options.params)
    place = options.out or options.runs / options.kernel.stem
    refuse_foreign(place)
    source = loaded if isinstance(loaded, KernelFile) else None
    if isinstance(loaded, KernelFile):
        named = machine_of_kernel(loaded) if options.machine is None else options.machine
        target = load_target(named).with_settings(options.settings, source=SETTING_SOURCE)
        executable = compile_program(loaded.program, machine=target)
        entry = select_entry(loaded.program, options.entry).name
    else:
        executable, target = loaded, machine_of(loaded, options.machine)
        target = target.with_settings(options.settings, source=SETTING_SOURCE)
        entry = executable.entry(options.entry).name
    function = entry_function(executable.entry(entry))
    inputs = _drawn(options, function) if given is None else given
    result = run(
        executable,
        inputs,
        entry=entry,
        machine=target,
        functional=options.functional,
        checks=options.checks,
        sum=options.sum,
    )
    golden = None
    if source is not None and options.functional:
        golden = interpret(source.program, inputs, entry=entry, sum=options.sum)
    seed = options.seed or 0 if given is None and inputs else None
    bundle = result.bundle(golden)
    about = {
        "kernel": options.kernel.name,
        "seed": seed,
        "params": dict(source.params) if source is not None else {},
        "settings": dict(options.settings),
    }
    save_bundle(place, replace(bundle, options={**bundle.options, **about}))
    comparison = None if golden is None else compare(result.outputs, golden)
    return RunReport(str(options.kernel), result, comparison, place, seed)


def _drawn(options: RunOptions, function: Function) -> dict[str, Any]:
    if not options.functional and not any(isinstance(p.type, ScalarType) for p in function.params):
        return {}
    return draw_inputs(function, options.seed or 0)
