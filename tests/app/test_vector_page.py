"""What docs/vector.md says of casts, of boxes of scales, and of what is refused."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import scalebox
from scalebox.app.result import Result
from scalebox.ir import numerics
from scalebox.ir.core import Program
from scalebox.ir.dtypes import DType
from scalebox.ir.errors import SimulationFault, UserError

from .oracle import E4M3, Array, assert_bits
from .vector_oracle import TARGETS, boxes_of_rows, quantised

Through = Callable[..., Result]

FP4: Any = ml_dtypes.float4_e2m1fn


def program(text: str) -> Program:
    made = scalebox.pl.parse("@pl.program\nclass P:\n" + text)
    assert isinstance(made, Program)
    return made


def casting(source: str, target: str, cast: str) -> Program:
    return program(f"""
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.{source}], y: pl.Out[pl.Tensor[[16, 64], pl.{target}]]):
        t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        y = pl.store({cast}, [0, 0], y)
        return y
""")


@pytest.mark.parametrize(
    ("cast", "made"),
    [
        ("pl.cast(t, pl.FP4)", 3.0),
        ("pl.cast(t, pl.FP4, mode='rint')", 3.0),
        ("pl.cast(pl.cast(t, pl.BF16), pl.FP4, mode='rint')", 2.0),
    ],
)
def test_casts_round_as_often_as_they_are_written(cast: str, made: float, through: Through) -> None:
    x = np.full((16, 64), 2.502, np.float16)
    (found,) = through(casting("FP16", "FP4", cast), {"x": x}).outputs.values()
    assert_bits(found, np.full((16, 64), made).astype(FP4))


@pytest.mark.parametrize(
    ("mode", "made"),
    [
        ("round", [3, -3, 1, 4]),
        ("rint", [2, -2, 1, 4]),
        ("floor", [2, -3, 1, 3]),
        ("ceil", [3, -2, 2, 4]),
        ("trunc", [2, -2, 1, 3]),
    ],
)
def test_casts_round_as_their_mode_says(mode: str, made: list[int], through: Through) -> None:
    x = np.tile(np.array([2.5, -2.5, 1.25, 3.75], np.float32), (16, 16))
    cast = f"pl.cast(t, pl.INT32, mode='{mode}')"
    (found,) = through(casting("FP32", "INT32", cast), {"x": x}).outputs.values()
    assert_bits(found, np.tile(np.array(made, np.int32), (16, 16)))


@pytest.mark.parametrize(
    ("target", "made"),
    [
        ("FP8E4M3FN", np.array([448, -448], E4M3)),
        ("FP16", np.array([np.inf, -np.inf], np.float16)),
        ("INT32", np.array([2**31 - 1, -(2**31)], np.int32)),
        ("FP4", np.array([6, -6], FP4)),
    ],
)
def test_a_cast_of_what_is_out_of_reach(target: str, made: Array, through: Through) -> None:
    x = np.tile(np.array([1e30, -1e30], np.float32), (16, 32))
    (found,) = through(
        casting("FP32", target, f"pl.cast(t, pl.{target})"), {"x": x}
    ).outputs.values()
    assert_bits(found, np.tile(made, (16, 32)))


def test_a_nan_has_no_code_in_fp4() -> None:
    x = np.full((16, 64), np.nan, np.float32)
    with pytest.raises(SimulationFault, match="must be given numbers only, not a NaN"):
        scalebox.run(casting("FP32", "FP4", "pl.cast(t, pl.FP4)"), {"x": x})


PORTIONS = """
    @pl.function(type=pl.FunctionType.InCore)
    def quantise(self, x: pl.Tensor[[96, 128], pl.FP32], y: pl.Tensor[[64, 128], pl.FP32],
                 a: pl.Out[pl.Tensor[[96, 128], pl.FP8E4M3FN]],
                 s: pl.Out[pl.Tensor[[6, 64], pl.FP8E8M0]],
                 b: pl.Out[pl.Tensor[[128, 64], pl.FP8E4M3FN]],
                 t: pl.Out[pl.Tensor[[2, 128], pl.FP8E8M0]]):
        for i in pl.range(6):
            e, c = pl.quant_mx(pl.load(x, [16 * i, 0], [16, 128]), group_axis=1)
            a = pl.store(e, [16 * i, 0], a)
            s = pl.store(c, [i, 0], s, [1, 64])
        for j in pl.range(2):
            f, d = pl.quant_mx(pl.load(y, [32 * j, 0], [32, 128]), group_axis=0)
            b = pl.store(f, [0, 32 * j], b)
            t = pl.store(d, [j, 0], t, [1, 128])
        return a, s, b, t

    @pl.function(type=pl.FunctionType.InCore)
    def multiply(self, a: pl.Tensor[[96, 128], pl.FP8E4M3FN], s: pl.Tensor[[6, 64], pl.FP8E8M0],
                 b: pl.Tensor[[128, 64], pl.FP8E4M3FN], t: pl.Tensor[[2, 128], pl.FP8E8M0],
                 c: pl.Out[pl.Tensor[[96, 64], pl.FP32]]):
        left = pl.tensor.view(s, shape=[96, 4], layout=pl.MX_A_ZZ)
        right = pl.tensor.view(t, shape=[4, 64], layout=pl.MX_B_NN)
        c = pl.store(
            pl.matmul_mx(pl.load(a, [0, 0], [96, 128]), pl.load(left, [0, 0], [96, 4]),
                         pl.load(b, [0, 0], [128, 64]), pl.load(right, [0, 0], [4, 64])),
            [0, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[96, 128], pl.FP32], y: pl.Tensor[[64, 128], pl.FP32],
             a: pl.Out[pl.Tensor[[96, 128], pl.FP8E4M3FN]],
             s: pl.Out[pl.Tensor[[6, 64], pl.FP8E8M0]],
             b: pl.Out[pl.Tensor[[128, 64], pl.FP8E4M3FN]],
             t: pl.Out[pl.Tensor[[2, 128], pl.FP8E8M0]],
             c: pl.Out[pl.Tensor[[96, 64], pl.FP32]]):
        a, s, b, t = self.quantise(x, y, a, s, b, t)
        c = self.multiply(a, s, b, t, c)
        return c
"""


def test_the_bytes_of_some_rows_after_those_of_others_are_the_boxes_of_all(
    through: Through,
) -> None:
    rng = np.random.default_rng(96)
    x, y = (
        (rng.integers(-4, 5, (rows, 4, 32)) * np.exp2(rng.integers(-3, 4, (rows, 4, 1))))
        .reshape(rows, 128)
        .astype(np.float32)
        for rows in (96, 64)
    )
    found = through(program(PORTIONS), {"x": x, "y": y}).outputs
    for name, given in (("s", x), ("t", y)):
        _, scales = quantised(given, TARGETS["FP8E4M3FN"], "floor")
        assert np.array_equal(found[name].view(np.uint8).reshape(-1), boxes_of_rows(scales))
    assert_bits(found["c"], (x.astype(np.float64) @ y.astype(np.float64).T).astype(np.float32))


def test_a_tile_that_is_valid_in_part_is_filled_up_before_it_is_quantised(through: Through) -> None:
    text = """
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[9, 50], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP8E4M3FN]]):
        t = pl.load(x, [0, 0], [16, 64], [9, 50], target_memory=pl.Mem.Vec)
        e, s = pl.quant_mx({tile}, group_axis=1)
        y = pl.store(e, [0, 0], y)
        return y
"""
    with pytest.raises(UserError) as caught:
        program(text.format(tile="t"))
    assert caught.value.hint == "pl.fillpad fills the rest of a tile up with zeros"
    x = np.random.default_rng(9).standard_normal((9, 50)).astype(np.float32)
    whole = np.pad(x, ((0, 7), (0, 14)))
    (found,) = through(program(text.format(tile="pl.fillpad(t)")), {"x": x}).outputs.values()
    wanted = numerics.quantize(whole, DType.MXFP8_E4M3, axis=1).elements
    assert np.array_equal(found.view(np.uint8), wanted.view(np.uint8))


def test_a_product_of_fp4_and_fp8_names_the_way_out() -> None:
    with pytest.raises(UserError) as caught:
        program("""
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[16, 64], pl.FP4], s: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
          b: pl.Tensor[[64, 32], pl.FP8E4M3FN], t: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
          c: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        p = pl.matmul_mx(pl.load(a, [0, 0], [16, 64]), pl.load(s, [0, 0], [16, 2]),
                         pl.load(b, [0, 0], [64, 32]), pl.load(t, [0, 0], [2, 32]))
        c = pl.store(p, [0, 0], c)
        return c
""")
    assert caught.value.hint == (
        "cast the 4-bit operand to E4M3 first (pl.cast): the cube has no FP8 x FP4 product"
    )
