"""The question "what if": one kernel on many machines, and in many sizes."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...codegen.executable import Executable
from ...ir.errors import InputError, UserError
from ...ir.given import describe_given
from ...sim.device import Checks
from ...sim.progress import SILENT
from ..api import check_budget, check_options, checked_program
from ..worker_pool import can_fork, free_cores
from .grid import make_grid
from .rows import unfinished, with_machines, with_speedups
from .tasks import groups_of, one_by_one, side_by_side
from .workshop import RunSettings, Workshop

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping

    from ...ir.core import Program
    from ...ir.language import JITFunction
    from ...sim.progress import Progress
    from .grid import Grid, MachineName
    from .rows import SweepRow

MOST_JOBS = 1024


@dataclass(frozen=True)
class Sweep:
    """What a sweep found.

    Attributes:
        settings: What its runs have in common.
        grid: What was tried.
        rows: Its runs, in the order of the grid.
        interrupted: Whether somebody stopped it before all were made.
    """

    settings: RunSettings
    grid: Grid
    rows: tuple[SweepRow, ...]
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        """Whether all runs were made, and nothing differs."""
        return all(row.ok for row in self.rows)


def sweep(
    kernel: str | os.PathLike[str] | Program | JITFunction | Executable,
    *,
    params: Mapping[str, Any] | None = None,
    machines: Iterable[MachineName] | MachineName | None = None,
    settings: Mapping[str, Any] | None = None,
    functional: bool = False,
    inputs: Mapping[str, Any] | None = None,
    entry: str | None = None,
    seed: int = 0,
    warm: bool = False,
    checks: str = "error",
    max_cycles: int | None = None,
    jobs: int | None = None,
) -> list[SweepRow]:
    """Run a kernel in all combinations of sizes, machines and fields of machines.

    Sizes change most slowly from row to row, fields fastest, and of each the last one given. A run that is
    refused or faults is a row that says why.

    Args:
        kernel: The path of a kernel file or an executable, or such a thing as an object.
        params: `pl.param` of the kernel file, or dynamic dimension, to a value, several, or text: `1024`,
            `[1024, 2048]`, `"1024,2048"` or `"8..32:8"`, which is 8, 16, 24 and 32.
        machines: A machine or several: names, paths of machine files, or records. By default that of the
            kernel file, or a5.
        settings: Field of the machine to its values, in the same way.
        functional: Whether outputs are computed and compared with golden; else cycles only.
        inputs: Parameter name to array or number; by default inputs are drawn, once for all runs of the
            same sizes, which share golden too.
        entry: What to launch; by default the only Orchestration function, else the only function.
        seed: Of the inputs that are drawn.
        warm: Whether inputs lie in the second-level cache before the launch.
        checks: `"error"`, `"warn"` or `"off"`, as for `scalebox.run`.
        max_cycles: Cycles that each run may take.
        jobs: How many processes share the work; by default as many as there are cores. On Linux only; one
            elsewhere.

    Returns:
        A row a run, in the order of the grid.

    Raises:
        UserError: For a grid, a kernel or an option that no run could be made with.
    """
    made = RunSettings(
        kernel=_kernel(kernel),
        functional=functional,
        inputs=inputs,
        entry=entry,
        seed=seed,
        warm=warm,
        checks=checks,
        max_cycles=max_cycles,
    )
    found = run_sweep(made, make_grid(params, machines, settings), jobs=jobs)
    if found.interrupted:
        raise KeyboardInterrupt
    return list(found.rows)


def run_sweep(
    settings: RunSettings,
    grid: Grid,
    *,
    jobs: int | None = None,
    progress: Progress = SILENT,
    tick: Callable[[], None] = lambda: None,
) -> Sweep:
    """Make the runs of a grid; Ctrl-C ends it with those that are made.

    Args:
        settings: What they have in common.
        grid: What is tried.
        jobs: How many processes share the work; None for as many as there are cores.
        progress: Who is told of the runs that are made.
        tick: What is called a few times a second while other processes work.

    Raises:
        UserError: As :func:`sweep`.
    """
    check_options(settings.inputs, functional=settings.functional, warm=settings.warm)
    check_budget(settings.max_cycles, timing=True)
    Checks.of(settings.checks)
    _check_seed(settings.seed)
    jobs = min(_checked_jobs(jobs), grid.runs)
    groups = groups_of(grid)
    rows = [unfinished(point) for group in groups for point in group.points]
    workshop = Workshop(settings)
    interrupted = False
    try:
        progress.phase("runs", grid.runs)
        _try_kernel(workshop, groups[0].points[0].params, alone=len(groups) == 1)
        made = (
            one_by_one(workshop, groups)
            if jobs == 1
            else side_by_side(workshop, groups, jobs, tick)
        )
        with closing(made):
            for row in made:
                rows[row.index] = row
                progress.advance()
    except KeyboardInterrupt:
        interrupted = True
    return Sweep(settings, grid, tuple(with_speedups(with_machines(rows))), interrupted)


def _check_seed(seed: object) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        message = f"seed must be a whole number from 0 on, not {describe_given(seed)}"
        raise InputError(message)


def _try_kernel(workshop: Workshop, params: Mapping[str, int], *, alone: bool) -> None:
    """Read the kernel of the first run.

    Raises:
        InputError: There is none, or it has no such parameter, so that no run could be made.
        UserError: It is refused, and there are no other sizes with which it might not be.
    """
    try:
        workshop.kernel(params)
    except InputError:
        raise
    except UserError:
        if alone:
            raise


def _kernel(given: object) -> Path | Program | Executable:
    if isinstance(given, Executable):
        return given
    if isinstance(given, str | Path) or hasattr(given, "__fspath__"):
        return Path(given)  # pyright: ignore[reportArgumentType] - it has just been looked at
    return checked_program(given)


def _checked_jobs(jobs: object) -> int:
    if jobs is None:
        return free_cores() if can_fork() else 1
    if isinstance(jobs, bool) or not isinstance(jobs, int) or not 1 <= jobs <= MOST_JOBS:
        found = describe_given(jobs)
        message = f"jobs must be a number of processes, 1 to {MOST_JOBS}, not {found}"
        raise InputError(message)
    if jobs > 1 and not can_fork():
        message = f"jobs must be 1 where processes cannot be copied, as here, not {jobs}"
        raise InputError(message)
    return jobs
