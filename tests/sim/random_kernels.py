"""Random hand-written programs on tensors of a few blocks, for the timing model."""

from collections.abc import Sequence
from random import Random
from typing import Any

from scalebox.codegen.executable import Kernel, Layout, View
from scalebox.codegen.isa.vocabulary import ClusterCore, CoreKind
from scalebox.sim import decode
from scalebox.sim.pipes.layout import code_of
from scalebox.sim.pipes.timing import Program
from scalebox.sim.scalar import resolve

BLOCK = 512
"""Bytes of a block of the L2; every view of the kernels lies in one of its own."""

INPUTS = 3
CUBE_WORK = (
    "mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=16, k=32, n=48, a_type=e4m3, b_type=e4m3, init=zero",
    "l1_to_bias l1[0], bias[0], bytes=32",
    *(f"gm_to_l1_row v{view}, x0, x0, l1[0], cols=64" for view in range(INPUTS)),
    f"l0c_to_gm v{INPUTS}, x0, x0, l0c[0], rows=1, cols=8, src_rows=16, convert=fp32",
)
VECTOR_WORK = (
    "v_unary ub[0], ub[0], op=exp, type=fp32, rows=1, cols=8, dst_pitch=1, src_pitch=1",
    "v_unary ub[0], ub[0], op=neg, type=fp32, rows=9, cols=8, dst_pitch=1, src_pitch=1",
    *(f"gm_to_ub v{view}, x0, x0, ub[0], rows=1, cols=64, pitch=2" for view in range(INPUTS)),
    f"ub_to_gm v{INPUTS}, x0, x0, ub[0], rows=1, cols=8, pitch=1",
    "ub_to_l1 ub[0], l1[0], lines=1, units=1, ub_pitch=1, l1_pitch=1",
)
WORK = {CoreKind.AIC: CUBE_WORK, CoreKind.AIV: VECTOR_WORK}
TRANSFERS = {
    kind: [line for line in lines if line.startswith(("gm_", "l0c_", "ub_to_gm"))]
    for kind, lines in WORK.items()
}
OWN_PIPES = {
    CoreKind.AIC: ["s", "m", "mte1", "mte2", "fix"],
    CoreKind.AIV: ["s", "v", "mte2", "mte3"],
}


def kernel(bench: Any, text: str, core: ClusterCore) -> Kernel:
    """Return a kernel whose view v lies in block v of GM; the last one is the output."""
    views = [View(0, Layout.ND, 8, (1, 64), (64, 1), BLOCK * view) for view in range(INPUTS)]
    return bench.kernel(
        text,
        [bench.tensor("a", "E4M3", (INPUTS, BLOCK)), bench.tensor("c", "FP32", (1, 8), "out")],
        [*views, bench.plain(1, 32, 1, 8)],
        core=core.kind,
    )


def program(bench: Any, text: str, core: ClusterCore, target: Any) -> Program:
    """Return what `core` runs of such a kernel."""
    made = kernel(bench, text, core)
    decoded = decode.decode(made)
    bound = decode.bind_views(made, [0, INPUTS * BLOCK])
    transfers = decode.transfers(decoded)
    return Program(
        core,
        decoded,
        resolve(decoded, ()),
        bound,
        code_of(decoded, core, target, transfers),
        transfers,
        decode.transfer_starts(transfers, decoded, bound),
    )


def blocks_of(program: Program) -> dict[int, int]:
    """Return instruction to the block of GM that it touches."""
    lines = program.decoded.kernel.program
    return {at: each["view"] for at, each in enumerate(lines) if each.row.has("view")}


def busy_programs(rng: Random, cores: Sequence[ClusterCore]) -> list[str]:
    """Return programs that come to their ends: mostly transfers, and every set before its wait."""
    texts: list[list[str]] = [[] for _ in cores]
    for _ in range(rng.randint(1, 14)):
        place, other = rng.randrange(len(cores)), rng.randrange(len(cores))
        kind = cores[place].kind
        pipes = OWN_PIPES[kind]
        match rng.randrange(6):
            case 0:
                line = rng.choice([*WORK[kind], "nop"])
            case 1:
                source, destination = rng.sample(pipes, 2)
                flag = f"src={source}, dst={destination}, id=0"
                line = f"set_flag {flag}\nwait_flag {flag}"
            case 2:
                line = f"pipe_barrier pipe={rng.choice([*pipes, 'all'])}"
            case _:
                line = rng.choice(TRANSFERS[kind])
        texts[place].append(line)
        if other != place and rng.randrange(2):
            to, of = cores[other].name.lower(), cores[place].name.lower()
            waiter = rng.choice(OWN_PIPES[cores[other].kind])
            texts[place].append(f"set_core_flag pipe={rng.choice(pipes)}, to={to}, id=0")
            texts[other].append(f"wait_core_flag pipe={waiter}, of={of}, id=0")
    return ["\n".join(lines) for lines in texts]
