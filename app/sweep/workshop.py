"""How a process makes one run of a sweep, and what it keeps for the next ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...codegen.executable import Executable
from ...ir.core import Program
from ...ir.dynamic_dims import bind_dims, sizes_of_dims
from ...ir.errors import InputError, UserError
from ...ir.expr import ScalarType
from ...ir.interp import select_entry
from ...ir.mx_uses import CompoundUses
from ...ir.target import load_target
from ...traces.compare import compare
from ..account.bottleneck import largest_part
from ..api import interpret, machine_of, run
from ..commands.run import CHECKS
from ..drawn_inputs import draw_inputs
from ..kernel_file import SETTING_SOURCE, KernelFile, load_executable_or_kernel, machine_of_kernel
from ..report import RunReport
from ..signature import entry_function
from .compile_reuse import Compilations
from .rows import DIFFERS, EQUAL, RowStatus, unfinished
from .shared_arrays import read_shared, write_shared
from .verdicts import Early, Golden, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...ir.target import Target
    from ..result import Result
    from .grid import Point
    from .rows import SweepRow

NO_LOOP = "no loop did anything"
"""What bounds a run whose loops have no iteration."""


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What all runs of a sweep have in common.

    Attributes:
        kernel: A kernel file (.py), an executable's file, or either as an object.
        functional: Whether outputs are computed and compared with golden.
        inputs: Parameter name to array or number; None to draw them.
        entry: What is launched; None for the only Orchestration function, or the only function.
        seed: Of the inputs that are drawn.
        warm: Whether inputs lie in the second-level cache before the launch.
        checks: `"error"`, `"warn"` or `"off"`.
        max_cycles: Cycles that each run may take; None for any number.
    """

    kernel: Path | Program | Executable
    functional: bool = False
    inputs: Mapping[str, Any] | None = None
    entry: str | None = None
    seed: int = 0
    warm: bool = False
    checks: str = CHECKS
    max_cycles: int | None = None

    @property
    def title(self) -> str:
        """What the kernel is called."""
        return str(self.kernel) if isinstance(self.kernel, Path) else self.kernel.name


@dataclass(frozen=True)
class Data:
    """What the runs of one kernel of given sizes have in common.

    Attributes:
        inputs: As they are given to each run.
        golden: What outputs should be; None when nothing is compared, or not yet.
        problem: Why there is none of this.
        is_whole: Whether golden is there, if it is wanted.
    """

    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    golden: Mapping[str, Any] | None = None
    problem: str | None = None
    is_whole: bool = True


class Workshop:
    """What one process keeps from run to run: the kernel last read, what it was compiled to, and data.

    Args:
        settings: What all runs have in common.
    """

    def __init__(self, settings: RunSettings) -> None:
        self.settings = settings
        self._kernel: tuple[Mapping[str, int], KernelFile | Executable] | None = None
        self._compiled: Compilations | None = None
        self._data: tuple[int, Data] | None = None

    def kernel(self, params: Mapping[str, int]) -> KernelFile | Executable:
        """Return the kernel of given sizes.

        Raises:
            UserError: It cannot be read, or not with these sizes.
        """
        if self._kernel is None or self._kernel[0] != params:
            self._kernel = None
            loaded = _loaded(self.settings.kernel, params)
            if isinstance(loaded, KernelFile):
                loaded = self._with_dims(loaded)
                self._compiled = Compilations(loaded.program)
            self._kernel = params, loaded
        return self._kernel[1]

    def prepare(self, group: int, params: Mapping[str, int], place: Path) -> str | None:
        """Make the data of a group of runs, once for all processes; return why they cannot have it, if so.

        Args:
            group: Its number.
            params: The sizes that its runs have in common.
            place: The file in which they find it.
        """
        try:
            write_shared(place, self._data_of(group, params, None))
        except OSError as error:
            return (
                f"Data of {self.settings.title} must fit into a file in {place.resolve().parent} that the "
                f"processes of a sweep share: {error.strerror}; one job needs no such file"
            )
        except MemoryError as error:
            return _too_large(error)
        return None

    def row(
        self, group: int, point: Point, place: Path | None = None, problem: str | None = None
    ) -> SweepRow:
        """Make a run.

        Args:
            group: The number of the group that it belongs to.
            point: The run.
            place: The file of the group's data; without one they are made here, for the first run of a
                group.
            problem: Why there are none.
        """
        return self._tried(point, lambda: self._data_of(group, point.params, place), problem).row

    def early(self, group: int, point: Point, problem: str | None = None) -> Early:
        """Make a run whose golden is not there yet; `problem` says why it never will be."""
        return self._tried(point, lambda: self._inputs_of(group, point.params), problem)

    def golden(self, group: int, params: Mapping[str, int]) -> Golden:
        """Make golden of a group of runs; return what the processes that make them need of it."""
        try:
            data = self._data_of(group, params, None)
        except MemoryError as error:
            return Golden(problem=_too_large(error))
        if data.golden is None:
            return Golden(problem=data.problem)
        return Golden(digest_of(data.golden), warnings=compare(data.golden, data.golden).warnings)

    def _tried(self, point: Point, data: Callable[[], Data], problem: str | None) -> Early:
        """Make a run on its machine, or find out why it cannot be made; `problem` says why without data."""
        row = unfinished(point, RowStatus.REFUSED)
        wants_golden = False
        try:
            machine = _machine(self.kernel(point.params), point)
            row = replace(row, machine=point.machine_name or machine.name)
            target = machine.with_settings(point.settings, source=SETTING_SOURCE)
            wants_golden = True
            found = data() if problem is None else Data(problem=problem)
            return Early(point, *self._run(row, target, found))
        except UserError as error:
            return Early(point, replace(row, problem=str(error)), None, wants_golden)
        except MemoryError as error:
            return Early(point, replace(row, problem=_too_large(error)), None, wants_golden)

    def _with_dims(self, kernel: KernelFile) -> KernelFile:
        entry = select_entry(kernel.program, self.settings.entry)
        sizes = sizes_of_dims(kernel.program, entry, self.settings.inputs or {})
        return replace(
            kernel, program=bind_dims(kernel.program, sizes), dims={**kernel.dims, **sizes}
        )

    def _data_of(self, group: int, params: Mapping[str, int], place: Path | None) -> Data:
        data = self._kept(group)
        if data is None:
            data = self._inputs_of(group, params) if place is None else read_shared(place)
        self._data = group, data if data.is_whole else self._with_golden(data, params)
        return self._data[1]

    def _kept(self, group: int) -> Data | None:
        return None if self._data is None or self._data[0] != group else self._data[1]

    def _inputs_of(self, group: int, params: Mapping[str, int]) -> Data:
        """Return the data of a group of runs, which may lack golden yet, or why there are none."""
        data = self._kept(group)
        if data is None:
            self._data = None
            data = self._with_inputs(params)
            self._data = group, data
        return data

    def _with_inputs(self, params: Mapping[str, int]) -> Data:
        try:
            kernel, settings = self.kernel(params), self.settings
            inputs = self._drawn(kernel) if settings.inputs is None else settings.inputs
            return Data(inputs, is_whole=isinstance(kernel, Executable) or not settings.functional)
        except UserError as error:
            return Data(problem=str(error))

    def _with_golden(self, data: Data, params: Mapping[str, int]) -> Data:
        kernel = self.kernel(params)
        assert isinstance(kernel, KernelFile), "an executable has no golden"
        try:
            golden = interpret(kernel.program, data.inputs, entry=self.settings.entry)
        except UserError as error:
            return Data(problem=str(error))
        return Data(data.inputs, golden)

    def _drawn(self, kernel: KernelFile | Executable) -> dict[str, Any]:
        """Return inputs; for a run of timing only there are none, but that scalars are asked for."""
        settings = self.settings
        if isinstance(kernel, Executable):
            function, axes = entry_function(kernel.entry(settings.entry)), None
        else:
            function = select_entry(kernel.program, settings.entry)
            axes = CompoundUses(kernel.program).grouped_axes(function)
        has_scalars = any(isinstance(param.type, ScalarType) for param in function.params)
        if not settings.functional and not has_scalars:
            return {}
        return draw_inputs(function, settings.seed, grouped_axes=axes)

    def _run(self, row: SweepRow, target: Target, data: Data) -> tuple[SweepRow, str | None]:
        """Return a row with what its run found, and the digest of outputs that nobody compared yet."""
        if data.problem is not None:
            return replace(row, problem=data.problem), None
        kernel, settings = self.kernel(row.params), self.settings
        if isinstance(kernel, Executable):
            executable, entry = kernel, settings.entry
        else:
            assert self._compiled is not None, "a kernel file is read with its compilations"
            executable = self._compiled.of(target)
            entry = select_entry(kernel.program, settings.entry).name
        result = run(
            executable,
            data.inputs,
            entry=entry,
            machine=target,
            functional=settings.functional,
            warm=settings.warm,
            checks=settings.checks,
            max_cycles=settings.max_cycles,
        )
        if isinstance(kernel, KernelFile):
            result = replace(result, program=kernel.program, dims=kernel.dims)
        digest = None if data.is_whole else digest_of(result.outputs)
        return _filled(row, settings.title, result, data.golden), digest


def _loaded(
    kernel: Path | Program | Executable, params: Mapping[str, int]
) -> KernelFile | Executable:
    match kernel:
        case Path():
            return load_executable_or_kernel(kernel, {k: str(v) for k, v in params.items()})
        case Program():
            return KernelFile(Path(kernel.name), bind_dims(kernel, params), None, {}, params)
        case Executable():
            if params:
                message = "params must go with a kernel: the sizes of an executable are constant"
                raise InputError(message)
            return kernel


def _too_large(error: MemoryError) -> str:
    return f"This must fit into memory, which it does not: {error}"


def _machine(kernel: KernelFile | Executable, point: Point) -> Target:
    """Return the machine of a run, before fields are changed."""
    if point.machine is not None:
        return load_target(point.machine)
    if isinstance(kernel, Executable):
        return machine_of(kernel)
    return load_target(machine_of_kernel(kernel))


def _filled(
    row: SweepRow, title: str, result: Result, golden: Mapping[str, Any] | None
) -> SweepRow:
    """Return a row with what is told of a run."""
    comparison = None if golden is None else compare(result.outputs, golden)
    report = RunReport(title=title, result=result, comparison=comparison, bundle=None, seed=None)
    analysis, macs = report.analysis, result.simulation.macs
    idle = analysis.loops.are_all
    bound = largest_part(analysis.shares, max(1, report.work_cycles))
    return replace(
        row,
        status=RowStatus.OK if report.ok else RowStatus.DIFFERS,
        cycles=result.cycles,
        launch_cycles=result.simulation.launch_cycles,
        microseconds=result.microseconds,
        macs=macs,
        peak_share=report.macs_per_cycle / report.peak_macs_per_cycle if macs else None,
        bound=NO_LOOP if idle else bound,
        bottleneck=None if idle else analysis.sentence,
        golden=None if comparison is None else (EQUAL if comparison else DIFFERS),
        problem=None if comparison is None or comparison else str(comparison).splitlines()[0],
        warnings=report.warnings,
    )
