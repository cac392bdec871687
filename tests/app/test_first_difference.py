"""A damaged executable: `compare` names output, index, tile, instruction, line, values and bits."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.app.origin import STORES, Store, pieces
from scalebox.codegen.executable import Executable
from scalebox.codegen.isa.asm import parse_program
from scalebox.codegen.isa.program import Instruction, make
from scalebox.codegen.isa.table import BY_MNEMONIC
from scalebox.codegen.isa.vocabulary import Space
from scalebox.codegen.tensors import Layout, View
from scalebox.ir.core import Program
from scalebox.ir.errors import SimulationFault
from scalebox.traces.compare import Difference, Origin

Array = npt.NDArray[Any]
Gemm = Callable[..., Program]
Inputs = Callable[..., dict[str, Array]]
Edit = Callable[[int, Instruction], Instruction]

E4M3 = ml_dtypes.float8_e4m3fn
UNIT = 127


def edited(executable: Executable, edit: Edit) -> Executable:
    """Return an executable whose only kernel has each instruction put through `edit`."""
    (kernel,) = executable.kernels
    program = tuple(edit(index, each) for index, each in enumerate(kernel.program))
    assert program != kernel.program, "the edit changes something"
    return dataclasses.replace(executable, kernels=(dataclasses.replace(kernel, program=program),))


def places(executable: Executable, mnemonic: str) -> list[int]:
    (kernel,) = executable.kernels
    return [index for index, each in enumerate(kernel.program) if each.mnemonic == mnemonic]


def drop(*indices: int) -> Edit:
    return lambda index, each: make("nop") if index in indices else each


def difference(executable: Executable, program: Program, inputs: Any, **options: Any) -> Difference:
    result = scalebox.run(executable, inputs, **options)
    verdict = scalebox.compare(result.outputs, scalebox.interpret(program, inputs))
    assert not verdict
    assert verdict.first is not None
    return verdict.first


def bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def test_a_wrong_address_in_l1(gemm: Gemm, mx_inputs: Inputs) -> None:
    # Row 20 of A is 1 in the first half of K and 3 in the second; all else is 1, all of B 0.5.
    a, b = np.ones((32, 256), E4M3), np.full((256, 32), 0.5).astype(E4M3)
    a[20, 128:] = 3
    inputs = mx_inputs(a, np.full((32, 8), UNIT), b, np.full((8, 32), UNIT))
    program = gemm(32, 256, 32, step=128)
    executable = scalebox.compile(program)
    first_half, second_half = places(executable, "l1_to_l0a")
    source = executable.kernels[0].program[first_half]["src"]

    def stale(index: int, each: Instruction) -> Instruction:
        return (
            make(each.mnemonic, **{**each.fields, "src": source}) if index == second_half else each
        )

    found = difference(edited(executable, stale), program, inputs)
    assert (found.output, found.index, found.tile) == ("c", (20, 0), (0, 0))
    assert (found.actual, found.golden) == (128.0, 64 + 192.0)
    assert (found.actual_bits, found.golden_bits) == (bits(128), bits(256))
    store = places(executable, "l0c_to_gm")[-1]
    kernel = executable.kernels[0]
    assert found.instruction is not None
    assert found.instruction.startswith("l0c_to_gm v4, x0, x0, l0c[0x0], rows=32, cols=32")
    assert found.source == str(kernel.span(store))
    assert str(found).splitlines() == [
        "first at [20, 0], tile [0, 0]",
        "  actual  128.0  0x43000000",
        "  golden  256.0  0x43800000",
        f"  {bits(256) - bits(128)} ulps apart",
        f"  written by {found.instruction}",
        f"  at {found.source}",
    ]


TWICE = """
@pl.program
class Twice:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[64, 128], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[128, 128], pl.FP8E4M3FN],
        sb: pl.Tensor[[4, 128], pl.FP8E8M0, pl.MX_B_NN],
        once: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
        twice: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
    ):
        at = pl.move(pl.load(a, [0, 0], [64, 128], target_memory=pl.Mem.Mat), pl.Mem.Left)
        pt = pl.move(pl.load(sa, [0, 0], [64, 4]), pl.Mem.LeftScale)
        bt = pl.move(pl.load(b, [0, 0], [128, 128], target_memory=pl.Mem.Mat), pl.Mem.Right)
        qt = pl.move(pl.load(sb, [0, 0], [4, 128]), pl.Mem.RightScale)
        acc = pl.matmul_mx(at, pt, bt, qt)
        once = pl.store(acc, [0, 0], once)
        acc2 = pl.matmul_mx_acc(acc, at, pt, bt, qt)
        twice = pl.store(acc2, [0, 0], twice)
        return once, twice
"""


@pytest.fixture
def twice() -> tuple[Program, dict[str, Array]]:
    program = scalebox.pl.parse(TWICE)
    assert isinstance(program, Program)
    inputs = {
        "a": np.ones((64, 128), E4M3),
        "b": np.tile(np.arange(1, 9), (128, 16)).astype(E4M3),
        "sa": np.full((64, 4), UNIT, np.uint8),
        "sb": np.full((4, 128), UNIT, np.uint8),
    }
    return program, inputs


def test_a_dropped_flag_between_store_and_cube(twice: tuple[Program, dict[str, Array]]) -> None:
    program, inputs = twice
    executable = scalebox.compile(program)
    (kernel,) = executable.kernels
    first_store = places(executable, "l0c_to_gm")[0]
    second_mad = places(executable, "mad_mx")[1]
    flags = range(first_store + 1, second_mad)
    assert {kernel.program[each].mnemonic for each in flags} == {"set_flag", "wait_flag"}

    # Without it the cube adds to the accumulator before the store has read it.
    found = difference(edited(executable, drop(*flags)), program, inputs, checks="warn")
    assert (found.output, found.index) == ("once", (0, 0))
    assert (found.actual, found.golden) == (256.0, 128.0)
    assert found.source == str(kernel.span(first_store))
    assert found.source is not None
    line = TWICE.splitlines().index("        once = pl.store(acc, [0, 0], once)") + 1
    assert f":{line}:" in found.source


def test_a_flag_that_nobody_sets_is_diagnosed(twice: tuple[Program, dict[str, Array]]) -> None:
    program, inputs = twice
    executable = scalebox.compile(program)
    (kernel,) = executable.kernels
    setter = next(
        index
        for index, each in enumerate(kernel.program)
        if each.mnemonic == "set_flag" and index > places(executable, "mad_mx")[0]
    )
    with pytest.raises(SimulationFault) as caught:
        scalebox.run(edited(executable, drop(setter)), inputs)
    message = caught.value.message
    assert "'kernel'" in message
    assert "FIX waits at instruction" in message
    assert "flag 0 from M to FIX" in message
    assert caught.value.span is not None


def test_a_flag_that_nobody_waits_for_is_an_error_a_warning_or_nothing(
    twice: tuple[Program, dict[str, Array]],
) -> None:
    program, inputs = twice
    executable = scalebox.compile(program)
    last = max(places(executable, "wait_flag"))
    damaged = edited(executable, drop(last))
    with pytest.raises(SimulationFault, match="Every flag that is set must be waited for"):
        scalebox.run(damaged, inputs)
    assert scalebox.run(damaged, inputs, checks="warn").simulation.warnings
    assert not scalebox.run(damaged, inputs, checks="off").simulation.warnings


def test_the_tile_of_a_grid_is_named() -> None:
    text = """
@pl.program
class Grid:
    @pl.function(type=pl.FunctionType.InCore)
    def tile(
        self,
        a: pl.Tensor[[64, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 128], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 128], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
        row: pl.Scalar[pl.INDEX],
        col: pl.Scalar[pl.INDEX],
    ):
        at = pl.move(pl.load(a, [row, 0], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
        pt = pl.move(pl.load(sa, [row, 0], [16, 2]), pl.Mem.LeftScale)
        bt = pl.move(pl.load(b, [0, col], [64, 32], target_memory=pl.Mem.Mat), pl.Mem.Right)
        qt = pl.move(pl.load(sb, [0, col], [2, 32]), pl.Mem.RightScale)
        c = pl.store(pl.matmul_mx(at, pt, bt, qt), [row, col], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[64, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 128], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 128], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
    ):
        for i in pl.range(0, 64, 16):
            for j in pl.range(0, 128, 32):
                c = self.tile(a, sa, b, sb, c, i, j)
        return c
"""
    program = scalebox.pl.parse(text)
    assert isinstance(program, Program)
    inputs = {
        "a": np.ones((64, 64), E4M3),
        "b": np.ones((64, 128), E4M3),
        "sa": np.full((64, 2), UNIT, np.uint8),
        "sb": np.full((2, 128), UNIT, np.uint8),
    }
    result = scalebox.run(program, inputs)
    golden = scalebox.interpret(program, inputs)
    assert scalebox.compare(result.outputs, golden)
    result.outputs["c"][40, 100] = np.nan
    first = scalebox.compare(result.outputs, golden).first
    assert first is not None
    assert (first.index, first.tile) == ((40, 100), (2, 3))
    assert first.source is not None
    line = text.splitlines().index(
        "        c = pl.store(pl.matmul_mx(at, pt, bt, qt), [row, col], c)"
    )
    assert f":{line + 1}:" in first.source


def test_the_command_line_prints_the_difference_and_returns_1(
    kernel_text: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").write_text(kernel_text(32, 128, 32))
    compile_right = scalebox.compile

    def compile_wrong(program: Program, **options: Any) -> Executable:
        def wrong_type(_: int, each: Instruction) -> Instruction:
            if each.mnemonic != "mad_mx":
                return each
            return make("mad_mx", **{**each.fields, "a_type": 1})

        return edited(compile_right(program, **options), wrong_type)

    monkeypatch.setattr("scalebox.app.commands.run.compile_program", compile_wrong)
    assert main(["run", "kernel.py"]) == 1
    shown = capsys.readouterr().out
    line = Path("kernel.py").read_text().splitlines().index("        c = pl.store(acc, [0, 0], c)")
    assert "golden   DIFFERENT" in shown
    assert "of 1024 elements differ (rule exact)" in shown
    assert "first at [0, 0], tile [0, 0]" in shown
    assert f"at kernel.py:{line + 1}:" in shown

    assert main(["run", "kernel.py", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    first = answer["first_difference"]
    assert answer["ok"] is False
    assert answer["outputs"]["c"]["equal"] is False
    assert (first["output"], first["index"], first["tile"]) == ("c", [0, 0], [0, 0])
    assert first["instruction"].startswith("l0c_to_gm ")
    assert first["source"].startswith(f"kernel.py:{line + 1}:")
    assert int(first["actual_bits"], 16) == bits(first["actual"])
    assert int(first["golden_bits"], 16) == bits(first["golden"])

    # The bundle keeps both, so that the difference can be looked at again.
    runs = Path("scalebox-runs") / "kernel"
    assert main(["compare", str(runs / "outputs.npz"), str(runs / "golden.npz")]) == 1
    assert "first at [0, 0]" in capsys.readouterr().out


TILES = """
from scalebox.ir import language as pl

X = pl.Tensor[[64, 128], pl.BF16]
C = pl.Tensor[[64, 64], pl.BF16]
D = pl.Tensor[[64, 64], pl.INT8]


@pl.jit.incore
def kern(x: X, w: pl.Tensor[[128, 64], pl.BF16], y: pl.Out[X], c: pl.Out[C], d: pl.Out[D]):
    for i in pl.range(0, 64, 16):
        part = pl.load(x, [i, 0], [16, 128])
        y = pl.store(pl.add(part, part), [i, 0], y)
    left = pl.move(pl.load(x, [0, 0], [64, 128], target_memory=pl.Mem.Mat), pl.Mem.Left)
    right = pl.move(pl.load(w, [0, 0], [128, 64], target_memory=pl.Mem.Mat), pl.Mem.Right)
    acc = pl.matmul(left, right)
    c = pl.store(acc, [0, 0], c, pre_relu=True)
    d = pl.store(acc, [0, 0], d, pre_quant=2.0)
    return y, c, d
"""

QUANTISED = """
from scalebox.ir import language as pl

@pl.jit.incore
def kern(x: pl.Tensor[[64, 128], pl.BF16]):
    a, s = pl.quant_mx(x, group_axis=1)
    return a, s
"""

BOXED = """
from scalebox.ir import language as pl

@pl.jit.incore
def kern(
    x: pl.Tensor[[64, 128], pl.BF16],
    s: pl.Out[pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ]],
    t: pl.Out[pl.Tensor[[4, 64], pl.FP8E8M0, pl.MX_B_NN]],
):
    for i in pl.range(0, 64, 32):
        part = pl.load(x, [i, 0], [32, 128])
        a, scale = pl.quant_mx(part, group_axis=1)
        s = pl.store(scale, [i, 0], s)
        b, other = pl.quant_mx(part, group_axis=0)
        t = pl.store(other, [0, i], t)
    return s, t
"""


@pytest.mark.parametrize(
    ("text", "output", "index", "tile", "mnemonic", "line"),
    [
        (TILES, "y", (37, 5), (2, 0), "ub_to_gm", "y = pl.store("),
        (TILES, "c", (63, 63), (0, 0), "l0c_to_gm_fix", "c = pl.store("),
        (TILES, "d", (1, 2), (0, 0), "l0c_to_gm_quant", "d = pl.store("),
        (QUANTISED, "a", (63, 127), (0, 0), "ub_to_gm", "a, s = pl.quant_mx("),
        (QUANTISED, "s", (63, 3), None, "ub_to_gm", "a, s = pl.quant_mx("),
        (BOXED, "s", (63, 3), None, "ub_to_gm_boxes", "s = pl.store(scale"),
        (BOXED, "t", (1, 9), None, "ub_to_gm_boxes", "t = pl.store(other"),
    ],
)
def test_every_instruction_that_writes_an_output_is_named(
    text: str,
    output: str,
    index: tuple[int, ...],
    tile: tuple[int, ...] | None,
    mnemonic: str,
    line: str,
) -> None:
    program = scalebox.pl.parse(text)
    assert isinstance(program, Program)
    rng = np.random.default_rng(3)
    inputs = {"x": rng.standard_normal((64, 128)).astype(ml_dtypes.bfloat16)}
    if text is TILES:
        inputs["w"] = rng.standard_normal((128, 64)).astype(ml_dtypes.bfloat16)
    result = scalebox.run(scalebox.compile(program, allow_mx_store=text is BOXED), inputs)
    golden = scalebox.interpret(program, inputs)
    assert scalebox.compare(result.outputs, golden)
    wrong = result.outputs[output]
    wrong.view(np.uint8 if wrong.itemsize == 1 else np.uint16)[index] ^= 1
    first = scalebox.compare(result.outputs, golden).first
    assert first is not None
    assert (first.output, first.index, first.tile) == (output, index, tile)
    assert first.instruction is not None
    assert first.instruction.split()[0] == mnemonic
    number = next(n for n, row in enumerate(text.splitlines(), 1) if line in row)
    assert first.source is not None
    assert f":{number}:" in first.source


def test_whatever_writes_to_global_memory_is_asked_for_its_outputs() -> None:
    writers = {each.mnemonic for each in BY_MNEMONIC.values() if Space.GM in each.writes}
    assert writers == STORES.keys()


@pytest.mark.parametrize(("rows", "cols"), [(35, 48), (16, 16), (3, 32), (64, 64)])
def test_boxes_are_found_where_rows_and_columns_lie_in_them(rows: int, cols: int) -> None:
    view = View(0, Layout.NZ, 8, (1, 3, 5, 16, 32), (3000, 5 * 600, 600, 32, 1), offset=7)
    text = (
        f"l0c_to_gm_nz v0, x1, x2, l0c[0], fixp[0], quant=none, rows={rows}, cols={cols}, "
        "src_boxes=4, convert=int8, relu=0, sums=fp32"
    )
    (store,) = parse_program(text)
    written = np.zeros(7 + 3 * 3000, np.bool_)
    made = [
        Store("o", view, begin, strides, *shape, Origin(text, None))
        for begin, strides, shape in pieces(store, view, 1, 1)
    ]
    for piece in made:
        piece.mark(written)
    places = {
        7 + (1 + c // 32) * 3000 + (1 + r // 16) * 600 + r % 16 * 32 + c % 32
        for r in range(rows)
        for c in range(cols)
    }
    assert set(np.flatnonzero(written).tolist()) == places
    for at in range(len(written)):
        assert any(piece.covers(at) for piece in made) == (at in places)
