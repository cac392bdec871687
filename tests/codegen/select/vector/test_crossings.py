"""Moves between UB and the cube core: which instructions they become, and which moves appear."""

from typing import cast

import numpy as np
import pytest

from scalebox import pl
from scalebox.codegen.executable import Executable
from scalebox.codegen.isa.program import Instruction
from scalebox.codegen.isa.vocabulary import FixConvert
from scalebox.ir.core import Program
from scalebox.ir.errors import UserError

from .vector_kernels import agreed, compiled, kernel

VEC, MAT = "target_memory=pl.Mem.Vec", "pl.Mem.Mat"


def product(m: int, k: int, n: int, left: str, *after: str) -> Program:
    """Return a kernel of one product whose left operand is made by the line `left` of `a0`.

    `after` makes `u`, which is stored, of the sums `s`; by default they are `u`.
    """
    depth, wide = -(-k // 64) * 64, -(-n // 32) * 32
    lines = after or ("u = s",)
    text = f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[{m}, {k}], pl.FP32], b: pl.Tensor[[{k}, {n}], pl.FP8E4M3FN],
          sa: pl.Tensor[[16, {depth // 32}], pl.FP8E8M0, pl.MX_A_ZZ],
          sb: pl.Tensor[[{depth // 32}, {wide}], pl.FP8E8M0, pl.MX_B_NN],
          out: pl.Out[pl.Tensor[[{m}, {n}], pl.FP32]]):
        a0 = pl.load(a, [0, 0], [16, {depth}], [{m}, {k}])
        {left}
        b0 = pl.load(b, [0, 0], [{depth}, {wide}], [{k}, {n}])
        sa0 = pl.load(sa, [0, 0], [16, {depth // 32}])
        sb0 = pl.load(sb, [0, 0], [{depth // 32}, {wide}])
        s = pl.matmul_mx(t, sa0, b0, sb0)
        {(chr(10) + " " * 8).join(lines)}
        out = pl.store(u, [0, 0], out)
        return out
"""
    made = pl.parse(text)
    assert isinstance(made, Program)
    return made


def found(made: Executable, mnemonic: str) -> list[Instruction]:
    """Return the instructions of that name on either core."""
    (outer,) = made.kernels
    programs = [each.program for each in (outer, outer.mate) if each is not None]
    return [each for program in programs for each in program if each.mnemonic == mnemonic]


CAST = "t = pl.cast(a0, pl.FP8E4M3FN)"


def test_what_the_vector_core_makes_goes_to_boxes_in_l1():
    (move,) = found(compiled(product(16, 64, 32, CAST)), "ub_to_l1_nz")
    assert (move["bits"], move["rows"], move["cols"]) == (8, 16, 64)
    # 64 bytes a row are 2 units; one box of rows holds them in L1.
    assert (move["pitch"], move["l1_rows"]) == (2, 16)


def test_only_what_is_valid_goes_there():
    (move,) = found(compiled(product(9, 50, 32, CAST)), "ub_to_l1_nz")
    assert (move["rows"], move["cols"], move["pitch"], move["l1_rows"]) == (9, 50, 2, 16)


def test_sums_go_to_ub_as_the_product_left_them():
    program = product(9, 64, 17, CAST, "u = pl.relu(s)")
    (move,) = found(compiled(program), "l0c_to_ub")
    assert (move["rows"], move["cols"], move["src_boxes"]) == (9, 17, 1)
    # 32 columns of FP32 are 4 units a row.
    assert (move["pitch"], move["convert"], move["relu"], move["core"]) == (
        4,
        FixConvert.FP32,
        0,
        0,
    )


@pytest.mark.parametrize(("m", "k", "n"), [(16, 64, 32), (1, 64, 32), (9, 30, 5), (15, 110, 17)])
def test_numbers_go_to_the_cube_core_and_back(m: int, k: int, n: int):
    rng = np.random.default_rng(31)
    depth, wide = -(-k // 64) * 2, -(-n // 32) * 32
    inputs = {
        "a": rng.standard_normal((m, k)).astype(np.float32),
        "b": rng.integers(0, 120, (k, n)).astype(np.uint8),
        "sa": rng.integers(120, 130, (16, depth)).astype(np.uint8),
        "sb": rng.integers(120, 130, (depth, wide)).astype(np.uint8),
    }
    agreed(product(m, k, n, CAST, "u = pl.relu(pl.add(s, 0.5))"), inputs)


def test_moves_may_be_written_out():
    left = f"t = pl.move(pl.move(pl.cast(a0, pl.FP8E4M3FN), {MAT}), pl.Mem.Left)"
    written, made = (compiled(product(16, 64, 32, each)) for each in (left, CAST))
    mnemonics = [[each.mnemonic for each in one.kernels[0].program] for one in (written, made)]
    assert mnemonics[0] == mnemonics[1]


def test_a_row_goes_to_l1_as_it_lies():
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[16, 64], pl.FP8E4M3FN], b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
          sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ], sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
          bias: pl.Tensor[[1, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        row = pl.mul(pl.load(bias, [0, 0], [1, 32]), 2.0)
        s = pl.matmul_mx_bias(pl.load(a, [0, 0], [16, 64]), pl.load(sa, [0, 0], [16, 2]),
                              pl.load(b, [0, 0], [64, 32]), pl.load(sb, [0, 0], [2, 32]), row)
        out = pl.store(s, [0, 0], out)
        return out
"""
    program = cast("Program", pl.parse(text))
    (move,) = found(compiled(program), "ub_to_l1")
    # 32 numbers of 4 bytes are 4 units of 32 bytes.
    assert (move["lines"], move["units"]) == (1, 4)
    rng = np.random.default_rng(32)
    agreed(
        program,
        {
            "a": rng.integers(0, 120, (16, 64)).astype(np.uint8),
            "b": rng.integers(0, 120, (64, 32)).astype(np.uint8),
            "sa": rng.integers(120, 130, (16, 2)).astype(np.uint8),
            "sb": rng.integers(120, 130, (2, 32)).astype(np.uint8),
            "bias": rng.standard_normal((1, 32)).astype(np.float32),
        },
    )


def test_a_column_cannot_go_to_the_cube_core():
    body = [f"t = pl.load(a, [0, 0], [16, 1], {VEC})", f"m = pl.move(t, {MAT})"]
    with pytest.raises(UserError) as caught:
        compiled(kernel({"a": "[[16, 64], pl.FP32]"}, body, "[[16, 64], pl.FP32]"))
    assert caught.value.message == (
        "A tile that moves between Vec and the cube core must have rows of 32 bytes or more, not be a "
        "column"
    )
