"""Kernels that use both kinds of core, as text, and the order of flags in them judged."""

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import scalebox
from scalebox import pl
from scalebox.codegen.kernel import Kernel
from scalebox.codegen.lower import Lowered, lower
from scalebox.codegen.schedule import schedule
from scalebox.codegen.select.body import select
from scalebox.ir.core import Program
from scalebox.ir.target import load_target

from .emit.scalar_programs import steps_run
from .sync.clocks import gets_through
from .sync.flag_checker import Verdict, issue, judge_cores

Array = npt.NDArray[Any]


def program(params: str, body: Sequence[str], out: str, *, kind: str = "InCore") -> Program:
    """Return a program of one kernel `k` that writes `out`.

    Args:
        params: Its inputs, as in the language.
        body: Lines.
        out: Shape and dtype of `out`.
        kind: The function's type.
    """
    lines = (
        "@pl.program",
        "class P:",
        f"    @pl.function(type=pl.FunctionType.{kind})",
        f"    def k(self, {params}, out: pl.Out[pl.Tensor[{out}]]):",
        *(f"        {line}" for line in body),
        "        return out",
    )
    made = pl.parse("\n".join(lines))
    assert isinstance(made, Program)
    return made


def compiled(made: Program) -> Lowered:
    """Return what compilation makes of a program for the default machine."""
    return lower(made, load_target("a5"))


def agreed(made: Program, inputs: Mapping[str, Any], *, pair: bool = True) -> Array:
    """Return `out` as the machine makes it, with and without timing, once the interpreter agrees.

    The flags of each kernel are judged too, and whether it is for both kinds of core.
    """
    lowered = compiled(made)
    (kernel,) = lowered.executable.kernels
    assert (kernel.mate is not None) is pair
    scalars = [int(inputs[each.name]) for each in kernel.scalars]
    assert judged(lowered, scalars).sound
    streams = issue([each.program for each in kernel.programs], scalars)
    assert all(gets_through(streams, depth) for depth in (1, 32))
    golden = scalebox.interpret(made, dict(inputs))["out"]
    for timing in (False, True):
        found = scalebox.run(lowered.executable, dict(inputs), timing=timing)
        assert found.outputs["out"].tobytes() == golden.tobytes()
        assert not found.simulation.warnings
    return golden


def judged(lowered: Lowered, scalars: Sequence[int] = (), removed: Sequence[int] = ()) -> Verdict:
    """Return what the judge of flags says of the only kernel, some of its instructions taken out."""
    (kernel,) = lowered.executable.kernels
    return judged_kernel(lowered, kernel, scalars, removed)


def judged_kernel(
    lowered: Lowered, kernel: Kernel, scalars: Sequence[int] = (), removed: Sequence[int] = ()
) -> Verdict:
    """Return what the judge of flags says of one kernel of a program."""
    return judge_cores(
        [each.program for each in kernel.programs],
        kernel.views,
        scalars,
        removed,
        order_of(lowered, kernel, scalars) if kernel.mate is not None else (),
    )


def order_of(lowered: Lowered, kernel: Kernel, scalars: Sequence[int]) -> list[int]:
    """Return the core of each instruction on data, in the order of the kernel's one tree."""
    (function,) = (f for f in lowered.program.functions.values() if f.name == kernel.name)
    names = {each.name for each in kernel.scalars}
    given = [var for var in function.params if var.name_hint in names]
    ran = steps_run(schedule(select(function).block), dict(zip(given, scalars, strict=True)))
    return [int(step.core) for step, _ in ran]


# --------------------------------------------------------------------------- random kernels

CHAINED = (
    "x: pl.Tensor[[96, 64], pl.FP32], w: pl.Tensor[[64, 64], pl.FP32], "
    "q: pl.Tensor[[64, 64], pl.FP8E4M3FN], s: pl.Tensor[[2, 64], pl.FP8E8M0, pl.MX_B_NN], "
    "n: pl.Scalar[pl.INDEX]"
)
CHAINED_OUT = "[96, 64], pl.FP32"


def chained(rng: np.random.Generator) -> Program:
    """Return a kernel that sends a tile of 32 x 64 to the cube and back, in loops and branches too."""
    names = iter(range(1000))

    def multiplied() -> list[str]:
        left = "pl.load(w, [0, 0], [64, 64], target_memory=pl.Mem.Mat)"
        if rng.integers(2):
            return [f"t = pl.relu(pl.matmul(t, {left}))"]
        name = next(names)
        return [
            f"e{name}, c{name} = pl.quant_mx(t, group_axis=1, rule='{rng.choice(['floor', 'nv'])}')",
            f"t = pl.neg(pl.matmul_mx(e{name}, c{name}, pl.load(q, [0, 0], [64, 64], "
            "target_memory=pl.Mem.Mat), pl.load(s, [0, 0], [2, 64])))",
        ]

    def worked() -> list[str]:
        lines = (
            "t = pl.relu(t)",
            "t = pl.muls(t, 0.125)",
            "t = pl.add(t, r)",
            "t = pl.exp(pl.neg(t))",
        )
        return [str(rng.choice(lines))]

    def block(depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(rng.integers(1, 4)):
            match int(rng.integers(6 if depth else 4)):
                case 0 | 1:
                    lines += multiplied()
                case 2 | 3:
                    lines += worked()
                case 4:
                    name = next(names)
                    stop = rng.choice(["n", "2", "3"])
                    lines += [
                        f"for i{name} in pl.range(0, {stop}, 1):",
                        *indented(block(depth - 1)),
                    ]
                case _:
                    lines += ["if n > 1:", *indented(block(depth - 1))]
        return lines

    def indented(lines: list[str]) -> list[str]:
        return [f"    {line}" for line in lines]

    body = [
        "r = pl.load(x, [64, 0], [32, 64], target_memory=pl.Mem.Vec)",
        "for i in pl.range(0, 2, 1):",
        "    t = pl.load(x, [i * 32, 0], [32, 64], target_memory=pl.Mem.Vec)",
        *indented(block(2)),
        "    out = pl.store(t, [i * 32, 0], out)",
    ]
    return program(CHAINED, body, CHAINED_OUT)


def chained_inputs(rng: np.random.Generator) -> dict[str, Any]:
    """Return inputs for such a kernel."""
    return {
        "x": rng.standard_normal((96, 64)).astype(np.float32),
        "w": (rng.standard_normal((64, 64)) / 8).astype(np.float32),
        "q": rng.standard_normal((64, 64)).astype(ml_dtypes.float8_e4m3fn),
        "s": np.exp2(rng.integers(-5, -1, (2, 64))).astype(ml_dtypes.float8_e8m0fnu),
        "n": int(rng.integers(0, 4)),
        "out": np.zeros((96, 64), np.float32),
    }
