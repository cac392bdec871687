"""The vector core at work: elements a second of whole quantise kernels and of single instructions.

Run it as `python benchmarks/vector.py [--json]`. Kernels run on the machine model without cycles,
reads of never-written bytes looked for as always. Those that are compiled from the language are run as
a user runs them, by `scalebox.run`, from arrays to arrays. The others are written by hand in the
instruction set; what a launch costs beside them (filling global memory, taking outputs out) is counted
for the whole kernels among them, and taken off for single instructions. Every figure is
from the best of a few runs, since what disturbs a run only ever makes it longer; `rows.Times` says
what stands beside them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt
from rows import Row, Times, report, wants_json

import scalebox
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
from scalebox.codegen.isa.asm import parse_program
from scalebox.codegen.isa.vocabulary import CoreKind
from scalebox.ir.core import Program
from scalebox.ir.errors import Span
from scalebox.ir.target import load_target
from scalebox.sim.device import simulate

SIZE = 4096
TILE_ROWS, TILE_COLS = 64, 512
TRIES = 5
QUANTISE_TARGET = 200.0
INSTRUCTION_TARGET = 100.0
REPEATS = 40
_BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "e4m3": 8, "e5m2": 8, "e2m1": 4}

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Quantiser:
    """A quantise kernel: types of its source and its elements, and the scale's rule."""

    source: str
    element: str
    rule: str


QUANTISERS = (
    Quantiser("fp32", "e4m3", "floor"),
    Quantiser("fp32", "e4m3", "nv"),
    Quantiser("bf16", "e4m3", "floor"),
    Quantiser("fp16", "e5m2", "nv"),
    Quantiser("bf16", "e2m1", "floor"),
    Quantiser("fp16", "e2m1", "nv"),
)

_SHAPE = f"rows={TILE_ROWS}, cols={TILE_COLS}"
_FP32 = f"type=fp32, {_SHAPE}"
_PITCH = TILE_COLS * 4 // 32
_TWO = f"dst_pitch={_PITCH}, src_pitch={_PITCH}"
_ONE_OPERAND = f"dst_pitch={_PITCH}, a_pitch={_PITCH}"
INSTRUCTIONS = {
    "fp32 abs": f"v_unary ub[0], ub[0], op=abs, {_FP32}, {_TWO}",
    "fp32 exp": f"v_unary ub[0], ub[0], op=exp, {_FP32}, {_TWO}",
    "fp32 add a number": f"v_scalar ub[0], ub[0], x1, op=add, type=fp32, swap=0, {_SHAPE}, {_ONE_OPERAND}",
    "fp32 div by a number": f"v_scalar ub[0], ub[0], x1, op=div, type=fp32, swap=0, {_SHAPE}, {_ONE_OPERAND}",
    "fp32 maximum of a number": f"v_scalar ub[0], ub[0], x1, op=maximum, type=fp32, swap=0, {_SHAPE}, {_ONE_OPERAND}",
    "fp32 compare": f"v_compare_scalar ub[131072], ub[0], x1, op=lt, {_FP32}, dst_pitch=16, a_pitch={_PITCH}",
    "fp32 row sum": f"v_reduce ub[131072], ub[0], op=sum, axis=row, {_FP32}, src_pitch={_PITCH}",
    "fp32 row max": f"v_reduce ub[131072], ub[0], op=max, axis=row, {_FP32}, src_pitch={_PITCH}",
    "fp32 column sum": f"v_reduce ub[131072], ub[0], op=sum, axis=col, {_FP32}, src_pitch={_PITCH}",
    "fp32 row expand": f"v_expand ub[0], ub[0], ub[131072], op=mul, {_FP32}, {_ONE_OPERAND}, axis=row",
    "fp32 to bf16": f"v_cast ub[131072], ub[0], type=fp32, to=bf16, mode=rint, {_SHAPE}, dst_pitch=32, "
    f"src_pitch={_PITCH}",
    "fp32 to int8": f"v_cast ub[131072], ub[0], type=fp32, to=int8, mode=rint, {_SHAPE}, dst_pitch=16, "
    f"src_pitch={_PITCH}",
    "bf16 to fp32": f"v_cast ub[0], ub[131072], type=bf16, to=fp32, mode=none, {_SHAPE}, "
    f"dst_pitch={_PITCH}, src_pitch=32",
    "bf16 mul": f"v_binary ub[0], ub[0], ub[65536], op=mul, type=bf16, {_SHAPE}, dst_pitch=32, "
    "a_pitch=32, b_pitch=32",
    "int32 add a number": f"v_scalar ub[0], ub[0], x1, op=add, type=int32, swap=0, {_SHAPE}, {_ONE_OPERAND}",
    "fp32 fill": f"v_fill ub[0], x1, type=fp32, dst_skip=0, {_SHAPE}, dst_pitch={_PITCH}",
    "bf16 move": f"v_move ub[0], ub[65536], type=bf16, dst_skip=0, src_skip=0, {_SHAPE}, dst_pitch=32, "
    "src_pitch=32",
    "bf16 transpose": "v_transpose ub[0], ub[65536], type=bf16, rows=64, cols=512, dst_pitch=4, "
    "src_pitch=32",
}
"""Single instructions on a tile of 64 x 512 elements; x1 holds the code of a small number."""


def kernel_of(text: str, params: Sequence[Param], views: Sequence[View]) -> Executable:
    """Return an executable whose one kernel, for a vector core, is `text`."""
    program = parse_program(text)
    spans = [Span("vector.s", 1 + index, 1) for index in range(len(program))]
    kernel = Kernel.assemble(
        "k", params=params, views=views, program=program, spans=spans, core=CoreKind.AIV
    )
    return Executable("p", "a5", "", (kernel,), (HostProgram.of_kernel(0, kernel),), kernel.name)


def tensor(name: str, dtype: str, shape: Sequence[int], direction: str) -> Param:
    """Return a tensor parameter."""
    bits = _BITS.get(dtype, 8)
    return Param(name, ParamKind.TENSOR, dtype.upper(), bits, Direction(direction), tuple(shape))


def quantise_kernel(kind: Quantiser) -> Executable:
    """Return a kernel that quantises SIZE x SIZE numbers along their rows, tile by tile."""
    groups = SIZE // 32
    wide, narrow = _BITS[kind.source], _BITS[kind.element]
    params = [
        tensor("x", kind.source, (SIZE, SIZE), "in"),
        tensor("codes", kind.element, (SIZE, SIZE), "out"),
        tensor("scales", "e8m0", (SIZE, groups), "out"),
    ]
    dims = (1, SIZE // 16, groups // 2, 16, 2)
    views = [
        View(0, Layout.ND, wide, (SIZE, SIZE), (SIZE, 1)),
        View(1, Layout.ND, narrow, (SIZE, SIZE), (SIZE, 1)),
        View(2, Layout.MX_A_ZZ, 8, dims, (SIZE * groups, 16 * groups, 32, 2, 1)),
    ]
    codes = TILE_ROWS * TILE_COLS * 4
    scales, boxes = codes + TILE_ROWS * TILE_COLS, codes + TILE_ROWS * TILE_COLS + 4096
    source_pitch, code_pitch = TILE_COLS * wide // 256, TILE_COLS * narrow // 256
    pairs = TILE_COLS // 64
    text = f"""
        movi x1, 0
        movi x3, 0
        movi x8, {SIZE}
      rows:
        movi x2, 0
        movi x4, 0
      columns:
        gm_to_ub v0, x1, x2, ub[0], {_SHAPE}, pitch={source_pitch}
        set_flag src=mte2, dst=v, id=0
        wait_flag src=mte2, dst=v, id=0
        v_quant_mx ub[{codes}], ub[0], ub[{scales}], type={kind.source}, element={kind.element}, rule={kind.rule}, {_SHAPE}, dst_pitch={code_pitch}, src_pitch={source_pitch}, scale_pitch=1
        v_scale_boxes ub[{boxes}], ub[{scales}], rows={TILE_ROWS}, cols={TILE_COLS // 32}, src_pitch=1
        set_flag src=v, dst=mte3, id=0
        wait_flag src=v, dst=mte3, id=0
        ub_to_gm v1, x1, x2, ub[{codes}], {_SHAPE}, pitch={code_pitch}
        ub_to_gm_boxes v2, x3, x4, ub[{boxes}], ni={TILE_ROWS // 16}, nj={pairs}, ub_nj={pairs}
        pipe_barrier pipe=all
        addi x2, x2, {TILE_COLS}
        addi x4, x4, {pairs}
        blt x2, x8, columns
        addi x1, x1, {TILE_ROWS}
        addi x3, x3, {TILE_ROWS // 16}
        blt x1, x8, rows
        halt
    """
    return kernel_of(text, params, views)


COMPILED = """
@pl.program
class Quantise:
    @pl.function(type=pl.FunctionType.InCore)
    def quantise(self, x: pl.Tensor[[{size}, {size}], pl.{source}],
                 codes: pl.Out[pl.Tensor[[{size}, {size}], pl.{element}]],
                 scales: pl.Out[pl.Tensor[[{tiles}, {bytes}], pl.FP8E8M0]]):
        for i in pl.range(0, {size}, {rows}):
            for j in pl.range(0, {size}, {cols}):
                t = pl.load(x, [i, j], [{rows}, {cols}])
                e, s = pl.quant_mx(t, group_axis={axis}, dtype=pl.{element}, rule="{rule}")
                codes = pl.store(e, {at}, codes)
                tile = i // {rows} * {across} + j // {cols}
                scales = pl.store(s, [tile, 0], scales, [1, {bytes}])
        return codes, scales
"""


@dataclass(frozen=True)
class Compiled:
    """A quantise kernel of the language: dtypes by their names there, the scale's rule, the axis."""

    source: str
    element: str
    rule: str
    axis: int

    @property
    def executable(self) -> Executable:
        """What it is compiled to."""
        # A turned tile has its long side along N, so that what it stores are long rows too.
        rows, cols = (TILE_ROWS, TILE_COLS) if self.axis else (TILE_COLS, TILE_ROWS)
        across = SIZE // cols
        text = COMPILED.format(
            size=SIZE,
            rows=rows,
            cols=cols,
            source=self.source,
            element=self.element,
            rule=self.rule,
            axis=self.axis,
            at="[i, j]" if self.axis else "[j, i]",
            across=across,
            tiles=SIZE // rows * across,
            bytes=TILE_ROWS * TILE_COLS // 32,
        )
        program = scalebox.pl.parse(text)
        assert isinstance(program, Program)
        return scalebox.compile(program)


LANGUAGE = (
    Compiled("FP32", "FP8E4M3FN", "floor", 1),
    Compiled("FP32", "FP8E4M3FN", "floor", 0),
    Compiled("BF16", "FP8E4M3FN", "nv", 1),
    Compiled("BF16", "FP4", "floor", 1),
)


def instruction_kernel(text: str) -> Executable:
    """Return a kernel that fills UB with ones and then does an instruction REPEATS times."""
    return kernel_of(
        f"""
        movi x1, {0x3F803F80}
        v_fill ub[0], x1, type=fp32, dst_skip=0, rows=60, cols=1024, dst_pitch=128
        movi x2, 0
        movi x3, {REPEATS}
      again:
        {text}
        addi x2, x2, 1
        blt x2, x3, again
        halt
        """,
        [],
        [],
    )


def times(executable: Executable, buffers: dict[str, Bytes]) -> Times:
    """Return the times of a run of the machine."""
    target = load_target("a5")
    return Times.of(lambda: simulate(executable, buffers, target=target, timing=False), tries=TRIES)


def rate(taken: Times, name: str, target: float, count: int) -> Row:
    """Return the row of the rate at which `count` elements were done."""
    return taken.rate(
        name, count, unit="Mel/s", target=target, ns_per_element=taken.best / count * 1e9
    )


def quantise_rows() -> list[Row]:
    """Measure whole kernels."""
    draw = np.random.default_rng(0)
    numbers = draw.standard_normal((SIZE, SIZE), dtype=np.float32)
    images = {
        "fp32": numbers.view(np.uint8),
        "bf16": (numbers.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8),
        "fp16": numbers.astype(np.float16).view(np.uint8),
    }
    return [
        rate(
            times(quantise_kernel(kind), {"x": images[kind.source]}),
            f"{kind.source} to mx {kind.element}, {kind.rule}",
            QUANTISE_TARGET,
            SIZE * SIZE,
        )
        for kind in QUANTISERS
    ]


def compiled_rows() -> list[Row]:
    """Measure kernels of the language, from arrays to arrays."""
    numbers = np.random.default_rng(0).standard_normal((SIZE, SIZE), dtype=np.float32)
    arrays = {"FP32": numbers, "BF16": numbers.astype(ml_dtypes.bfloat16)}
    rows: list[Row] = []
    for kind in LANGUAGE:
        made, given = kind.executable, {"x": arrays[kind.source]}
        taken = Times.of(
            lambda made=made, given=given: scalebox.run(made, given, timing=False), tries=TRIES
        )
        name = f"compiled: {kind.source} to {kind.element}, {kind.rule}, axis {kind.axis}"
        rows.append(rate(taken, name.lower(), QUANTISE_TARGET, SIZE * SIZE))
    return rows


def instruction_rows() -> list[Row]:
    """Measure single instructions."""
    empty = times(instruction_kernel(""), {})
    return [
        rate(
            times(instruction_kernel(text), {}).less(empty),
            name,
            INSTRUCTION_TARGET,
            REPEATS * TILE_ROWS * TILE_COLS,
        )
        for name, text in INSTRUCTIONS.items()
    ]


def main() -> None:
    """Measure everything and report."""
    as_json = wants_json("Measure the vector core: whole quantise kernels and single instructions.")
    report([*compiled_rows(), *quantise_rows(), *instruction_rows()], as_json=as_json)


if __name__ == "__main__":
    main()
