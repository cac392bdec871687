"""How fast cycles are computed: instructions a second of programs of 10,000 instructions.

Run it as `python benchmarks/timing.py [--json]`. Programs are written by hand in the instruction set:
a vector program as a loop and written out, a cube program, and both at once on one cluster. The
first rows count what finds the times of a kernel that is decoded: the scalar unit, then the pipes.
The last ones count whole launches without data of a kernel that was launched before, with the checks
of bounds and what becomes a report. Figures are from the best of many tries, since what disturbs one
only ever makes it longer; `rows.Times` says what stands beside them.
"""

from dataclasses import replace

from rows import Row, Times, report, wants_json

from scalebox.codegen.executable import (
    Direction,
    Executable,
    HostProgram,
    Kernel,
    Layout,
    Param,
    ParamKind,
    View,
)
from scalebox.codegen.host.tasks import Task
from scalebox.codegen.isa.asm import parse_program
from scalebox.codegen.isa.vocabulary import CoreKind
from scalebox.ir.target import load_target
from scalebox.sim.cluster import prepare
from scalebox.sim.device import simulate
from scalebox.sim.pipes import timing
from scalebox.sim.pipes.l2 import L2
from scalebox.sim.pipes.timing import Program
from scalebox.sim.scalar import DEFAULT_MAX_INSTRUCTIONS

INSTRUCTIONS = 10_000
TRIES = 60
TARGET = 5.0
ROWS, COLS = 4096, 128
ROUND = 8
BASES = (512, 512 + ROWS * COLS * 4)

VECTOR = """
    gm_to_ub v0, x1, x0, ub[{first}], rows=1, cols=64, pitch=8
    set_flag src=mte2, dst=v, id={id}
    wait_flag src=mte2, dst=v, id={id}
    v_binary ub[{second}], ub[{first}], ub[{first}], op=add, type=fp32, rows=1, cols=64, dst_pitch=8, a_pitch=8, b_pitch=8
    v_binary ub[{second}], ub[{second}], ub[{first}], op=mul, type=fp32, rows=1, cols=64, dst_pitch=8, a_pitch=8, b_pitch=8
    v_unary ub[{third}], ub[{second}], op=exp, type=fp32, rows=1, cols=64, dst_pitch=8, src_pitch=8
    set_flag src=v, dst=mte3, id={id}
    wait_flag src=v, dst=mte3, id={id}
    ub_to_gm v1, x1, x3, ub[{third}], rows=1, cols=64, pitch=8
"""
CUBE = """
    gm_to_l1_nz v0, x1, x0, l1[{first}], rows=16, cols=16, l1_rows=16
    set_flag src=mte2, dst=mte1, id={id}
    wait_flag src=mte2, dst=mte1, id={id}
    l1_to_l0a l1[{first}], l0a[{first}], row_boxes=1, col_boxes=2, src_pitch=1, dst_pitch=1
    l1_to_l0b l1[{first}], l0b[{first}], bits=b32, k=16, n=16, src_k=16
    set_flag src=mte1, dst=m, id={id}
    wait_flag src=mte1, dst=m, id={id}
    mad l0c[{first}], l0a[{first}], l0b[{first}], bias[0], m=16, k=16, n=16, a_type=fp32, b_type=fp32, init=zero
    set_flag src=m, dst=fix, id={id}
    wait_flag src=m, dst=fix, id={id}
    l0c_to_gm v1, x1, x0, l0c[{first}], rows=16, cols=16, src_rows=16, convert=fp32
"""
REUSE = "set_flag src={pipe}, dst=mte2, id=0\nwait_flag src={pipe}, dst=mte2, id=0\n"
LAST_PIPE = {VECTOR: "mte3", CUBE: "fix"}
MEET = {
    CoreKind.AIC: "set_core_flag pipe=fix, to=aiv0, id=0\nwait_core_flag pipe=mte2, of=aiv0, id=1\n",
    CoreKind.AIV: "wait_core_flag pipe=mte2, of=aic, id=0\nset_core_flag pipe=mte3, to=aic, id=1\n",
}
LOOP = (
    "movi x1, 0\nmovi x2, {turns}\nmovi x3, 64\nturn:\n{body}addi x1, x1, 1\nblt x1, x2, turn\nhalt"
)


def steps(text: str, count: int) -> str:
    """Return `count` steps of `text`, each on tiles of its own until the last of a round is stored."""
    one_round = REUSE.format(pipe=LAST_PIPE[text])
    return "".join(
        text.format(
            first=turn % ROUND * 1024,
            second=0x10000 + turn % ROUND * 1024,
            third=0x20000 + turn % ROUND * 1024,
            id=turn % ROUND,
        )
        + (one_round if turn % ROUND == ROUND - 1 else "")
        for turn in range(count)
    )


def kernel(text: str, core: CoreKind) -> Kernel:
    """Return a kernel on two FP32 matrices."""
    params = [
        Param(name, ParamKind.TENSOR, "FP32", 32, direction, (ROWS, COLS))
        for name, direction in (("a", Direction.IN), ("c", Direction.OUT))
    ]
    views = [View(place, Layout.ND, 32, (ROWS, COLS), (COLS, 1)) for place in range(2)]
    return Kernel.assemble("k", params=params, views=views, program=parse_program(text), core=core)


def looped(text: str, core: CoreKind) -> Kernel:
    """Return a kernel that goes through rounds of `text` until it has executed enough."""
    body = steps(text, ROUND)
    each = len(parse_program(f"{body}halt")) + 1
    return kernel(LOOP.format(turns=-(-INSTRUCTIONS // each), body=body), core)


def meeting() -> Kernel:
    """Return a kernel of both kinds whose cores wait for each other after every round."""
    texts = {CoreKind.AIC: CUBE, CoreKind.AIV: VECTOR}
    bodies = {core: steps(text, ROUND) + MEET[core] for core, text in texts.items()}
    each = sum(len(parse_program(f"{body}halt")) + 1 for body in bodies.values())
    turns = -(-INSTRUCTIONS // each)
    cube, vector = (
        kernel(LOOP.format(turns=turns, body=body), core) for core, body in bodies.items()
    )
    return replace(cube, mate=vector)


def kernels() -> dict[str, Kernel]:
    """Return what is timed, by name."""
    aic, aiv = CoreKind.AIC, CoreKind.AIV
    return {
        "vector program in a loop": looped(VECTOR, aiv),
        "vector program written out": kernel(steps(VECTOR, -(-INSTRUCTIONS // 9)) + "halt", aiv),
        "cube program in a loop": looped(CUBE, aic),
        "both at once on a cluster": meeting(),
    }


def time_row(name: str, made: Kernel) -> Row:
    """Return the row for finding the times of a decoded kernel."""
    target = load_target("a5")
    task = Task(0, ("a", "c"), (), ())
    parts = prepare(made, target)

    def resolved() -> list[Program]:
        limit = DEFAULT_MAX_INSTRUCTIONS
        return [part.program(task, BASES, max_instructions=limit) for part in parts]

    def work() -> timing.Timing:
        l2 = L2(BASES[1] * 2, target.l2_block_bytes, target.l2_bytes, target.l2_line_bytes)
        return timing.run(resolved(), target=target, l2=l2)

    cycles = work().cycles
    instructions = sum(each.stream.executed for each in resolved())
    scalar = Times.of(resolved, tries=TRIES).best
    taken = Times.of(work, tries=TRIES)
    return rate(taken, name, instructions, cycles=cycles, scalar_share=scalar / taken.best)


def launch_row(name: str, made: Kernel) -> Row:
    """Return the row for whole launches without data."""
    target = load_target("a5")
    executable = Executable("p", "a5", "", (made,), (HostProgram.of_kernel(0, made),), made.name)

    def work() -> int:
        return simulate(executable, {}, target=target, functional=False).instructions

    return rate(Times.of(work, tries=TRIES), f"launch: {name}", work())


def rate(taken: Times, name: str, instructions: int, **beside: float) -> Row:
    """Return the row for so many instructions a run."""
    beside |= {"instructions": instructions}
    return taken.rate(name, instructions, unit="M/s", target=TARGET, **beside)


def main() -> None:
    """Measure and print."""
    as_json = wants_json(__doc__ or "")
    made = kernels()
    rows = [time_row(name, each) for name, each in made.items()]
    rows += [launch_row(name, each) for name, each in made.items()]
    report(rows, as_json=as_json)


if __name__ == "__main__":
    main()
