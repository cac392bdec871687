"""The calls that a Python user makes: compile, run, interpret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..codegen.executable import Executable
from ..ir.binding import BoundTensor, bind_inputs, pack_image, unpack_image
from ..ir.core import Program
from ..ir.dynamic_dims import bind_dims, dynamic_dims, sizes_of_dims
from ..ir.errors import InputError, IRTypeError, MachineError
from ..ir.given import describe_given
from ..ir.interp import select_entry
from ..ir.node_check import check_nodes
from ..ir.numerics.elements import Summation
from ..ir.target import Target, load_target, machine_names
from ..sim.progress import SILENT
from .origin import Origins, Outputs
from .result import Result
from .rtl_cube import Multiplier, account_of, engine_of
from .scale_recording import recorder_of
from .signature import entry_function, entry_types, given_scalars, scalar_words

if TYPE_CHECKING:
    import os

    import numpy.typing as npt

    from ..ir.language import JITFunction
    from ..sim.progress import Progress

    Machine = str | os.PathLike[str] | Target


def compile(  # noqa: A001 - the promised name
    program: Program | JITFunction,
    *,
    machine: Machine = "a5",
    allow_mx_store: bool = False,
    bind: Mapping[str, int] | None = None,
) -> Executable:
    """Compile a program for a machine.

    Args:
        program: A class under `@pl.program`, a function under `@pl.jit`, or any other program.
        machine: The name of a machine, a path to a TOML file, or a record.
        allow_mx_store: Whether scale tiles may be stored into tensors in an MX layout.
        bind: The extents of its dynamic dimensions by name: an executable has constants only.

    Raises:
        UserError: For a program that cannot run on the machine, an unknown machine, or a dynamic
            dimension without an extent.
    """
    from ..codegen.lower import lower

    bound = bind_dims(checked_program(program), _checked_bind(bind))
    return lower(bound, load_target(machine), allow_mx_store=allow_mx_store).executable


def interpret(
    program: Program | JITFunction,
    inputs: Mapping[str, Any],
    *,
    entry: str | None = None,
    sum: str = "group",  # noqa: A002 - the promised name
    bind: Mapping[str, int] | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Return the golden answer of a program, in plain numpy.

    Args:
        program: As written, or as it stands after any pass.
        inputs: Parameter name to array or number; see :mod:`scalebox.ir.binding`.
        entry: The function to launch; by default the only Orchestration function, else the only one.
        sum: `"group"` or `"sequential"`, the order in which products are added up.
        bind: Extents of dynamic dimensions by name, for those that no array in `inputs` has.

    Raises:
        UserError: For inputs that do not fit, an unknown entry or order.
    """
    from ..ir.interp import interpret_program

    made, bound = checked_program(program), _checked_bind(bind)
    return interpret_program(made, inputs, entry=entry, sum=sum, bind=bound)


def run(
    executable_or_program: Executable | Program | JITFunction,
    inputs: Mapping[str, Any] | None = None,
    *,
    entry: str | None = None,
    machine: Machine | None = None,
    functional: bool = True,
    timing: bool = True,
    warm: bool = False,
    checks: str = "error",
    sum: str = "group",  # noqa: A002 - the promised name
    cube: str = "numba",
    record_scales: bool = False,
    bind: Mapping[str, int] | None = None,
    max_cycles: int | None = None,
    threads: int | None = None,
    progress: Progress = SILENT,
) -> Result:
    """Run a program, compiled or not, on the machine model.

    A program with dynamic dimensions is compiled for the extents that the arrays in `inputs` have, or
    `bind` gives; `Result.dims` tells which.

    Args:
        executable_or_program: What to run; a program is compiled first.
        inputs: Parameter name to array or number, as for `interpret`. Without functional execution
            only scalars are looked at.
        entry: What to launch; by default the only Orchestration function, else the only function.
        machine: Where to run; by default the machine that the executable was compiled for.
        functional: Whether to compute outputs.
        timing: Whether to compute cycles.
        warm: Whether inputs lie in the second-level cache before the launch, as far as they fit there.
        checks: `"error"`, `"warn"` or `"off"`: what becomes of races, scales of other data, reads of
            bytes that nobody wrote, and flags that nobody waits for.
        sum: `"group"` or `"sequential"`, the order in which products are added up.
        cube: `"numba"`, or `"rtl"`: the generated Verilog of the cube multiplies, under Verilator.
            Outputs are the same; `Result.cube` holds its cycles against those of the machine.
        record_scales: Whether to keep the boxes that the scale-decode unit consumes, in
            `Result.scales`; needs functional execution.
        bind: Extents of dynamic dimensions by name, for those that no array has.
        max_cycles: Cycles that the run may take; one that takes more is a fault of the program.
        threads: Threads of this computer that may compute outputs; by default all that numba may use,
            where that is worth while. Results do not depend on it.
        progress: Who is told of tasks that are checked and executed.

    Raises:
        UserError: For inputs that do not fit, an unknown entry or machine, or a fault of the program.
    """
    from ..sim.device import simulate

    check_options(inputs, functional=functional, timing=timing, record_scales=record_scales)
    check_budget(max_cycles, timing=timing)
    _check_threads(threads)
    multiplier, summation = Multiplier.of(cube), Summation.of(sum)
    made, dims = _bound(executable_or_program, inputs or {}, entry, bind)
    executable, target, program = _executable(made, machine)
    engine = engine_of(multiplier, target=target, summation=summation, functional=functional)
    recorder = recorder_of(executable, target, functional=functional) if record_scales else None
    host = executable.entry(entry)
    function = entry_function(host)
    given = dict(inputs or {})
    if not functional:
        given = given_scalars(function, given)
    bound = bind_inputs(function, given, copied=False) if functional else given
    images = {n: pack_image(v) for n, v in bound.items() if isinstance(v, BoundTensor)}
    scalars = scalar_words(function, bound)
    found = simulate(
        executable,
        images,
        target=target,
        scalars=scalars,
        entry=host.name,
        functional=functional,
        timing=timing,
        warm=warm,
        checks=checks,
        sum=sum,
        cube=engine,
        scales=recorder,
        max_cycles=max_cycles,
        threads=threads,
        progress=progress,
    )
    account = None if engine is None else account_of(engine, found, target)
    types = entry_types(host)
    arrays = {
        name: unpack_image(image, types[name], copied=False)
        for name, image in found.outputs.items()
    }
    outputs = Outputs(arrays, Origins(executable, host.name, scalars, found))
    options = {
        "entry": host.name,
        "checks": checks,
        "sum": sum,
        "cube": multiplier.value,
        "functional": functional,
        "timing": timing,
        "warm": warm,
    }
    scales = None if recorder is None else recorder.finish()
    return Result(
        executable,
        target,
        host.name,
        given,
        outputs,
        found,
        options,
        program,
        account,
        scales,
        dims,
    )


def check_options(inputs: object, **switches: object) -> None:
    """Refuse inputs that are no mapping, and switches that are neither on nor off."""
    if inputs is not None and not isinstance(inputs, Mapping):
        message = f"inputs must map parameter names to arrays, not be {describe_given(inputs)}"
        raise InputError(message)
    for name, given in switches.items():
        if not isinstance(given, bool | np.bool_):
            message = f"{name} must be True or False, not {describe_given(given)}"
            raise InputError(message)


def check_budget(max_cycles: object, *, timing: bool) -> None:
    """Refuse a limit of cycles that is none, or that nobody could keep.

    Raises:
        InputError: With what it must be.
    """
    if max_cycles is None:
        return
    if isinstance(max_cycles, bool) or not isinstance(max_cycles, int) or max_cycles < 1:
        found = describe_given(max_cycles)
        message = f"max_cycles must be a whole number of cycles from 1 on, not {found}"
        raise InputError(message)
    if not timing:
        message = "max_cycles must go with timing, not with a run that computes no cycles"
        raise InputError(message)


def _check_threads(threads: object) -> None:
    if threads is None:
        return
    given: Any = threads
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
        message = f"threads must be a whole number from 1 on, not {describe_given(threads)}"
        raise InputError(message)


def _checked_bind(bind: object) -> Mapping[str, int]:
    if bind is not None and not isinstance(bind, Mapping):
        message = f"bind must map dimension names to extents, not be {describe_given(bind)}"
        raise InputError(message)
    return cast("Mapping[str, int]", bind or {})


def _bound(
    given: object, inputs: Mapping[str, Any], entry: str | None, bind: Mapping[str, int] | None
) -> tuple[Executable | Program, dict[str, int]]:
    """Return what is run with constant dimensions, and the extents of those that were dynamic."""
    bind = _checked_bind(bind)
    if isinstance(given, Executable):
        if bind:
            message = "bind must go with a program: the dimensions of an executable are constant"
            raise InputError(message)
        return given, {}
    program = checked_program(given)
    if not bind and not dynamic_dims(program):
        return program, {}
    sizes = sizes_of_dims(program, select_entry(program, entry), inputs, bind)
    return bind_dims(program, sizes), sizes


def checked_program(given: object) -> Program:
    """Return a program as it is compiled.

    Raises:
        IRTypeError: It is none.
    """
    if isinstance(given, Program):
        check_nodes(given)
        return given
    from ..ir.language import JITFunction

    if isinstance(given, JITFunction):
        return given.specialize()
    message = f"A program must be a class under @pl.program, not {_kind(given)}"
    raise IRTypeError(message, hint="scalebox.pl.parse(text) makes one from source text")


def _kind(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"


def machine_of(executable: Executable, machine: Machine | None = None) -> Target:
    """Return the machine on which an executable runs.

    Args:
        executable: What is run.
        machine: Which one; by default that which the executable was compiled for.

    Raises:
        MachineError: For an unknown machine, or if the executable's own is not known here.
    """
    if machine is not None:
        return load_target(machine)
    name, way_out = executable.machine, "give the machine file that it was compiled for"
    if name in machine_names():
        target = load_target(name)
        if target.digest == executable.machine_digest:
            return target
        message = (
            f"The machine {name!r} must be as it was when the executable was compiled for it, but "
            "its fields are others now"
        )
        hint = f"name {name!r} to run on the machine as it is now, or {way_out}"
        raise MachineError(message, hint=hint)
    message = f"The machine must be named for an executable whose own, {name!r}, is not known here"
    raise MachineError(message, hint=f"name one, or {way_out}")


def _executable(
    made: Executable | Program, machine: Machine | None
) -> tuple[Executable, Target, Program | None]:
    if isinstance(made, Executable):
        return made, machine_of(made, machine), None
    target = load_target("a5" if machine is None else machine)
    return compile(made, machine=target), target, made
