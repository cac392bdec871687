"""Random programs for one core or two of a cluster that come to their ends, whatever is drawn."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from scalebox.codegen.executable import Kernel, Layout, View
from scalebox.codegen.isa.vocabulary import ClusterCore, CoreKind

INPUTS = 3
BLOCK = 512
_CUBE = (
    "mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=16, k=64, n=48, a_type=e4m3, b_type=e4m3, init=zero",
    "l1_to_bias l1[0], bias[0], bytes=32",
    *(f"gm_to_l1_row v{view}, x0, x0, l1[0], cols=64" for view in range(INPUTS)),
    f"l0c_to_gm v{INPUTS}, x0, x0, l0c[0], rows=1, cols=8, src_rows=16, convert=fp32",
)
_VECTOR = (
    "v_unary ub[0], ub[0], op=exp, type=fp32, rows=1, cols=8, dst_pitch=1, src_pitch=1",
    *(f"gm_to_ub v{view}, x0, x0, ub[0], rows=1, cols=64, pitch=2" for view in range(INPUTS)),
    f"ub_to_gm v{INPUTS}, x0, x0, ub[0], rows=1, cols=8, pitch=1",
)
_WORK = {CoreKind.AIC: _CUBE, CoreKind.AIV: _VECTOR}
_PIPES = {
    CoreKind.AIC: ("s", "m", "mte1", "mte2", "fix"),
    CoreKind.AIV: ("s", "v", "mte2", "mte3"),
}


@st.composite
def texts(draw: st.DrawFn, cores: Sequence[ClusterCore]) -> list[str]:
    """Return a program for each core.

    Everything that is waited for stands before the wait in the order in which the lines were drawn, so
    that nothing waits for ever; in the end every flag is waited for.
    """
    found: list[list[str]] = [[] for _ in cores]
    pending: list[tuple[int, str]] = []
    for _ in range(draw(st.integers(0, 40))):
        number = draw(st.integers(0, len(cores) - 1))
        kind = cores[number].kind
        match draw(st.sampled_from(["work", "work", "work", "set", "wait", "barrier", "scalar"])):
            case "work":
                found[number].append(draw(st.sampled_from(_WORK[kind])))
            case "set":
                pending.append(_set(draw, found, cores, number))
            case "wait" if pending:
                waiter, line = pending.pop(draw(st.integers(0, len(pending) - 1)))
                found[waiter].append(line)
            case "barrier":
                pipe = draw(st.sampled_from([*_PIPES[kind][1:], "all"]))
                found[number].append(f"pipe_barrier pipe={pipe}")
            case _:
                found[number] += ["nop"] * draw(st.integers(1, 30))
    for waiter, line in pending:
        found[waiter].append(line)
    return ["\n".join([*lines, "halt"]) for lines in found]


def _set(
    draw: st.DrawFn, found: list[list[str]], cores: Sequence[ClusterCore], number: int
) -> tuple[int, str]:
    """Draw a set; return who must wait for it, and how."""
    flag, kind = draw(st.integers(0, 1)), cores[number].kind
    if len(cores) > 1 and draw(st.booleans()):
        other = 1 - number
        pipe = draw(st.sampled_from(_PIPES[kind][1:]))
        to, of = cores[other].name.lower(), cores[number].name.lower()
        found[number].append(f"set_core_flag pipe={pipe}, to={to}, id={flag}")
        waits = draw(st.sampled_from(_PIPES[cores[other].kind][1:]))
        return other, f"wait_core_flag pipe={waits}, of={of}, id={flag}"
    src, dst = draw(st.permutations(_PIPES[kind]))[:2]
    found[number].append(f"set_flag src={src}, dst={dst}, id={flag}")
    return number, f"wait_flag src={src}, dst={dst}, id={flag}"


def kernel_of(bench: Any, lines: Sequence[str]) -> Kernel:
    """Return a kernel of these programs; view v lies in block v of GM, the last one is the output."""
    params = [
        bench.tensor("a", "E4M3", (INPUTS, BLOCK)),
        bench.tensor("c", "FP32", (1, 8), "out"),
    ]
    views = [View(0, Layout.ND, 8, (1, 64), (64, 1), BLOCK * view) for view in range(INPUTS)]
    views.append(bench.plain(1, 32, 1, 8))
    if len(lines) == 1:
        return bench.kernel(lines[0], params, views)
    return bench.mixed(lines[0], lines[1], params, views)
