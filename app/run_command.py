"""The run command: from a kernel file to a report and a bundle."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir.binding import source_name
from ..ir.interp import select_entry
from ..ir.target import load_target
from ..traces.arrays import load_arrays
from ..traces.bundle import save_bundle
from ..traces.compare import compare
from .api import compile as compile_program
from .api import interpret, run
from .drawn_inputs import draw_inputs, given_inputs
from .kernel_file import KernelFile, load_executable_or_kernel
from .report import RunReport
from .signature import entry_function

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..traces.compare import Comparison
    from .api import Result


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `scalebox run`, as its help describes them."""

    kernel: Path
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    machine: str | None = None
    inputs: Path | None = None
    entry: str | None = None
    seed: int = 0
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
    loaded = load_executable_or_kernel(options.kernel, options.params)
    source = loaded if isinstance(loaded, KernelFile) else None
    named = options.machine or (source.machine if source is not None else None)
    if isinstance(loaded, KernelFile):
        target = load_target(named or "a5").with_settings(options.settings)
        executable = compile_program(loaded.program, machine=target)
        entry = select_entry(loaded.program, options.entry).name
    else:
        executable = loaded
        target = load_target(named or executable.machine).with_settings(options.settings)
        entry = executable.entry(options.entry).name
    inputs = _inputs(options, entry_function(executable.entry(entry)))
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
    comparison = None if golden is None else _compared(result, golden)
    seed = options.seed if options.inputs is None else None
    bundle = _save(options, result, golden, seed)
    return RunReport(str(options.kernel), result, comparison, bundle, seed)


def _inputs(options: RunOptions, function: Any) -> dict[str, Any]:
    if options.inputs is not None:
        return given_inputs(load_arrays(options.inputs))
    if not options.functional and not any(_scalars(function)):
        return {}
    return draw_inputs(function, options.seed)


def _scalars(function: Any) -> list[str]:
    from ..ir.expr import ScalarType

    return [source_name(p) for p in function.params if isinstance(p.type, ScalarType)]


def _compared(result: Result, golden: Mapping[str, Any]) -> Comparison:
    origins = result.origins
    tiles = {origins.tile(name) for name in golden}
    tile = tiles.pop() if len(tiles) == 1 else None
    return compare(result.outputs, golden, tile=tile, producer=origins)


def _save(
    options: RunOptions, result: Result, golden: Mapping[str, Any] | None, seed: int | None
) -> Path | None:
    from dataclasses import replace

    if not options.functional and options.out is None:
        return None
    place = options.out or options.runs / options.kernel.stem
    bundle = result.bundle(golden)
    about = {"kernel": options.kernel.name, "seed": seed, "params": dict(options.params)}
    save_bundle(place, replace(bundle, options={**bundle.options, **about}))
    return place
