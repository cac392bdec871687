"""Programs with a fault put into them, and what the checks say of it."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from scalebox.codegen.executable import Kernel, Task
from scalebox.codegen.isa.program import Instruction, make
from scalebox.ir.errors import SimulationFault
from scalebox.ir.target import Target, load_target
from scalebox.sim.checks import TaskCheck, task_faults
from scalebox.sim.cluster import prepare
from scalebox.sim.memory import GlobalMemory
from scalebox.sim.pipes.timing import Program

MACHINE = load_target("a5")
NOP = make("nop")
FLAGS = ("set_flag", "wait_flag", "set_core_flag", "wait_core_flag")


def programs_of(
    kernel: Kernel, scalars: Sequence[int] = (), target: Target = MACHINE
) -> list[Program]:
    """Return what the cores of a cluster run of a kernel that is launched alone."""
    gm = GlobalMemory({each.name: each.size_bytes for each in kernel.tensors}, {}, filled=False)
    addresses = [gm.allocations[each.name].address for each in kernel.tensors]
    names = tuple(each.name for each in kernel.tensors)
    numbers = (*scalars, *(0 for _ in kernel.scalars[len(scalars) :]))
    task = Task(0, names, numbers, ())
    prepared = prepare(kernel, target)
    return [each.program(task, addresses, max_instructions=1 << 24) for each in prepared]


def faults_of(
    kernel: Kernel, scalars: Sequence[int] = (), target: Target = MACHINE
) -> list[SimulationFault]:
    """Return what the checks say of a kernel, a deadlock included."""
    found: list[SimulationFault] = []
    try:
        found.extend(task_faults(programs_of(kernel, scalars, target), target))
    except SimulationFault as fault:
        found.append(fault)
    return found


def overruns_of(kernel: Kernel) -> list[str]:
    """Return the warnings about flags that may be set too far ahead."""
    return [each.message for each in TaskCheck(programs_of(kernel), MACHINE).overruns()]


def messages(kernel: Kernel, scalars: Sequence[int] = ()) -> list[str]:
    return [fault.message for fault in faults_of(kernel, scalars)]


def instructions(kernel: Kernel) -> list[Instruction]:
    """Return the instructions of all programs of a kernel, numbered through."""
    return [each for program in kernel.programs for each in program.program]


def executed(kernel: Kernel) -> set[int]:
    """Return the instructions that run for the scalars zero, numbered through."""
    found: set[int] = set()
    first = 0
    for program in programs_of(kernel):
        found |= {first + index for index in program.stream.static.tolist()}
        first += len(program.decoded)
    return found


def changed(kernel: Kernel, new: dict[int, Instruction]) -> Kernel:
    """Return a kernel with other instructions at some places, numbered through."""
    mate = kernel.mate
    if mate is not None:
        count = len(kernel.program)
        mate = changed(mate, {index - count: each for index, each in new.items()})
    program = tuple(new.get(index, each) for index, each in enumerate(kernel.program))
    return dataclasses.replace(kernel, program=program, mate=mate)


def without(kernel: Kernel, removed: Iterable[int]) -> Kernel:
    """Return a kernel some of whose instructions do nothing."""
    return changed(kernel, dict.fromkeys(removed, NOP))


def with_fields(kernel: Kernel, index: int, **fields: int) -> Kernel:
    """Return a kernel one of whose instructions has other fields."""
    each = instructions(kernel)[index]
    return changed(kernel, {index: make(each.mnemonic, **(each.fields | fields))})


def places(kernel: Kernel, mnemonic: str) -> list[int]:
    """Return where a kernel has an instruction."""
    found = enumerate(instructions(kernel))
    return [index for index, each in found if each.mnemonic == mnemonic]


def linked(pairs: Iterable[tuple[int, int]]) -> list[frozenset[int]]:
    """Return the flags of a kernel: the sets and waits that belong together, over all trips of loops."""
    groups: dict[int, set[int]] = {}
    for one, other in pairs:
        first, second = groups.setdefault(one, {one}), groups.setdefault(other, {other})
        if first is not second:
            first |= second
            groups.update(dict.fromkeys(second, first))
    return sorted({frozenset(each) for each in groups.values()}, key=min)


def run_text(bench: Any, text: str, **more: Any) -> Kernel:
    """Return a kernel of `text` over three [64, 64] FP8 tensors a, b and c, views v0 to v2."""
    params = [bench.tensor(name, "E4M3", (64, 64), "inout") for name in "abc"]
    views = [bench.plain(number, 8, 64, 64) for number in range(3)]
    return bench.kernel(text, params, views, **more)
