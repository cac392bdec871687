"""Real kernels through every room: compiled, saved, loaded, run, against golden and the oracle."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import scalebox
from scalebox.app.result import Result
from scalebox.ir.core import Program
from scalebox.ir.errors import InputError

from .oracle import (
    E1M2_VALUES,
    E2M1_VALUES,
    E4M3,
    E5M2,
    PLAIN_NAN,
    UNIT_SCALE,
    Array,
    assert_bits,
    group_by_group,
    in_float64,
    near_one,
    small,
)

Gemm = Callable[..., Program]
Inputs = Callable[..., dict[str, Array]]
Through = Callable[..., Result]


def test_two_products_leave_one_accumulator_one_after_the_other(through: Through) -> None:
    program = scalebox.pl.parse("""
@pl.program
class Twice:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[64, 128], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[128, 128], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[4, 128], pl.FP8E8M0, pl.MX_B_NN],
        out: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
        out_acc: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
    ):
        at = pl.move(pl.load(a, [0, 0], [64, 128], target_memory=pl.Mem.Mat), pl.Mem.Left)
        pt = pl.move(pl.load(a_scale, [0, 0], [64, 4]), pl.Mem.LeftScale)
        bt = pl.move(pl.load(b, [0, 0], [128, 128], target_memory=pl.Mem.Mat), pl.Mem.Right)
        qt = pl.move(pl.load(b_scale, [0, 0], [4, 128]), pl.Mem.RightScale)
        base = pl.matmul_mx(at, pt, bt, qt)
        out = pl.store(base, [0, 0], out)
        accumulated = pl.matmul_mx_acc(base, at, pt, bt, qt)
        out_acc = pl.store(accumulated, [0, 0], out_acc)
        return out, out_acc

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[64, 128], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[128, 128], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[4, 128], pl.FP8E8M0, pl.MX_B_NN],
        out: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
        out_acc: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
    ):
        out, out_acc = self.kernel(a, a_scale, b, b_scale, out, out_acc)
        return out, out_acc
""")
    rng = np.random.default_rng(23)
    a, b = small(rng, 64, 128), small(rng, 128, 128)
    sa, sb = near_one(rng, 64, 4), near_one(rng, 4, 128)
    inputs = {
        "a": a.astype(E4M3),
        "b": b.astype(E4M3),
        "a_scale": sa.reshape(4, 16, 2, 2).transpose(0, 2, 1, 3).astype(np.uint8).reshape(64, 4),
        "b_scale": sb.reshape(2, 2, 8, 16).transpose(2, 0, 3, 1).astype(np.uint8).reshape(4, 128),
    }
    outputs = through(program, inputs).outputs
    base = in_float64(a, sa, b, sb).astype(np.float32)
    assert list(outputs) == ["out", "out_acc"]
    assert_bits(outputs["out"], base)
    assert_bits(outputs["out_acc"], 2 * base)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("c", "kind"), [("FP32", np.float32), ("BF16", ml_dtypes.bfloat16)])
def test_the_double_buffered_k_loop(
    c: str, kind: Any, bias: bool, gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    rng = np.random.default_rng(7)
    a, b = small(rng, 64, 1024), small(rng, 1024, 128)
    sa, sb = near_one(rng, 64, 32), near_one(rng, 32, 128)
    row = rng.integers(-1000, 1000, (1, 128)).astype(np.float32)
    inputs = mx_inputs(a.astype(E4M3), sa, b.astype(E4M3), sb, **({"bias": row} if bias else {}))
    result = through(gemm(64, 1024, 128, step=256, c=c, bias=bias), inputs)
    expected = in_float64(a, sa, b, sb) + (row if bias else 0)
    assert np.array_equal(expected, expected.astype(np.float32)), "the oracle is exact"
    assert_bits(result.outputs["c"], expected.astype(np.float32).astype(kind))


def test_the_k_loop_overlaps_loads_with_the_cube(
    gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    ones, scales = np.ones((64, 1024), E4M3), np.full((64, 32), UNIT_SCALE)
    inputs = mx_inputs(ones, scales, np.ones((1024, 128), E4M3), np.full((32, 128), UNIT_SCALE))
    result = through(gemm(64, 1024, 128, step=256), inputs)
    spans = {
        name: [(e.start, e.end) for e in result.timeline if e.name == name]
        for name in ("mad_mx", "gm_to_l1_nz")
    }
    overlaps = [
        (mad, load)
        for mad in spans["mad_mx"]
        for load in spans["gm_to_l1_nz"]
        if mad[0] < load[1] and load[0] < mad[1]
    ]
    assert len(spans["mad_mx"]) == 4
    assert overlaps


def test_half_precision_rounds_once_and_overflows_to_infinity(
    gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    # Row r of A is r + 1 in one place, column j of B is 2^(j-16): products are exact in float32.
    a, b = np.zeros((32, 64)), np.zeros((64, 32))
    a[:, 0], b[0] = np.minimum(np.arange(32) + 1.0, 16), 1.0
    a[:, 1], b[1] = 1.0, 0.5
    sa = np.full((32, 2), UNIT_SCALE)
    sb = np.tile(127 - 26 + np.arange(32) * 2 - 1, (2, 1))
    inputs = mx_inputs(a.astype(E4M3), sa, b.astype(E4M3), sb)
    outputs = through(gemm(32, 64, 32, c="FP16"), inputs).outputs
    with np.errstate(over="ignore"):
        expected = in_float64(a, sa, b, sb).astype(np.float16)
    assert np.isinf(expected).any()
    assert (np.abs(expected[expected > 0]) < 2.0**-14).any(), "some results are subnormal"
    assert_bits(outputs["c"], expected)


TILED = """
@pl.program
class Tiled:
    @pl.function(type=pl.FunctionType.InCore)
    def tile(
        self,
        a: pl.Tensor[[256, 512], pl.FP8E4M3FN],
        sa: pl.Tensor[[256, 16], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[512, 256], pl.FP8E4M3FN],
        sb: pl.Tensor[[16, 256], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[256, 256], pl.FP32]],
        row: pl.Scalar[pl.INDEX],
        col: pl.Scalar[pl.INDEX],
    ):
        a0 = pl.move(pl.load(a, [row, 0], [64, 128], target_memory=pl.Mem.Mat), pl.Mem.Left)
        p0 = pl.move(pl.load(sa, [row, 0], [64, 4]), pl.Mem.LeftScale)
        b0 = pl.move(pl.load(b, [0, col], [128, 128], target_memory=pl.Mem.Mat), pl.Mem.Right)
        q0 = pl.move(pl.load(sb, [0, col], [4, 128]), pl.Mem.RightScale)
        acc = pl.matmul_mx(a0, p0, b0, q0)
        for k in pl.range(128, 512, 128):
            ak = pl.move(pl.load(a, [row, k], [64, 128], target_memory=pl.Mem.Mat), pl.Mem.Left)
            pk = pl.move(pl.load(sa, [row, k // 32], [64, 4]), pl.Mem.LeftScale)
            bk = pl.move(pl.load(b, [k, col], [128, 128], target_memory=pl.Mem.Mat), pl.Mem.Right)
            qk = pl.move(pl.load(sb, [k // 32, col], [4, 128]), pl.Mem.RightScale)
            acc = pl.matmul_mx_acc(acc, ak, pk, bk, qk)
        c = pl.store(acc, [row, col], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[256, 512], pl.FP8E4M3FN],
        sa: pl.Tensor[[256, 16], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[512, 256], pl.FP8E4M3FN],
        sb: pl.Tensor[[16, 256], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[256, 256], pl.FP32]],
    ):
        for i in pl.range(4):
            for j in pl.range(2):
                c = self.tile(a, sa, b, sb, c, i * 64, j * 128)
        return c
"""


def tiled_case() -> tuple[dict[str, Array], Array]:
    """Return launch inputs of TILED, and what it computes."""
    rng = np.random.default_rng(1)
    a, b = small(rng, 256, 512), small(rng, 512, 256)
    sa, sb = near_one(rng, 256, 16), near_one(rng, 16, 256)
    boxed_a = sa.reshape(16, 16, 8, 2).transpose(0, 2, 1, 3)
    boxed_b = sb.reshape(8, 2, 16, 16).transpose(2, 0, 3, 1)
    inputs = {
        "a": a.astype(E4M3),
        "b": b.astype(E4M3),
        "sa": boxed_a.astype(np.uint8).reshape(-1),
        "sb": boxed_b.astype(np.uint8).reshape(-1),
    }
    return inputs, in_float64(a, sa, b, sb).astype(np.float32)


def test_a_grid_of_calls_makes_a_large_matmul(through: Through) -> None:
    inputs, expected = tiled_case()
    result = through(scalebox.pl.parse(TILED), inputs)
    assert_bits(result.outputs["c"], expected)
    assert len(result.simulation.tasks) == 8
    assert result.simulation.macs == 256 * 512 * 256


def test_one_tile_of_the_grid_runs_alone(through: Through) -> None:
    inputs, expected = tiled_case()
    program, place = scalebox.pl.parse(TILED), {"row": 64, "col": 128}
    assert isinstance(program, Program)
    result = scalebox.run(program, {**inputs, **place}, entry="tile")
    golden = scalebox.interpret(program, {**inputs, **place}, entry="tile")
    tile = np.zeros((256, 256), np.float32)
    tile[64:128, 128:] = expected[64:128, 128:]
    assert_bits(result.outputs["c"], tile)
    assert_bits(golden["c"], tile)
    # That rows are whole boxes was proved from the grid's own calls: nothing else may be given.
    with pytest.raises(InputError) as caught:
        scalebox.run(program, {**inputs, "row": 8, "col": 128}, entry="tile")
    assert caught.value.message == (
        "The scalar 'row' of 'tile' must be a multiple of 16, as every call in the program has it"
    )


@pytest.mark.parametrize(
    ("left", "right", "unit"),
    [
        ((E4M3, "FP8E4M3FN"), (E4M3, "FP8E4M3FN"), (-9, -9)),
        ((E5M2, "FP8E5M2"), (E4M3, "FP8E4M3FN"), (-16, -9)),
        ((E4M3, "FP8E4M3FN"), (E5M2, "FP8E5M2"), (-9, -16)),
    ],
)
def test_pairs_of_8_bit_operands(
    left: tuple[Any, str],
    right: tuple[Any, str],
    unit: tuple[int, int],
    gemm: Gemm,
    mx_inputs: Inputs,
    through: Through,
) -> None:
    rng = np.random.default_rng(11)
    a = rng.integers(0, 256, (32, 128)).astype(np.uint8).view(left[0])
    b = rng.integers(0, 256, (128, 32)).astype(np.uint8).view(right[0])
    a = np.where(np.isfinite(a.astype(np.float32)), a, np.zeros_like(a))
    b = np.where(np.isfinite(b.astype(np.float32)), b, np.zeros_like(b))
    sa, sb = rng.integers(120, 135, (32, 4)), rng.integers(120, 135, (4, 32))
    outputs = through(gemm(32, 128, 32, a=left[1], b=right[1]), mx_inputs(a, sa, b, sb)).outputs
    values = (a.astype(np.float64), b.astype(np.float64))
    assert_bits(outputs["c"], group_by_group(values[0], sa, values[1], sb, unit=unit))


@pytest.mark.parametrize(
    ("left", "right"), [("FP4", "FP4"), ("FP4", "FP4E1M2"), ("FP4E1M2", "FP4"), ("FP4E1M2",) * 2]
)
def test_pairs_of_4_bit_operands(
    left: str, right: str, gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    values = {"FP4": E2M1_VALUES, "FP4E1M2": E1M2_VALUES}
    rng = np.random.default_rng(13)
    a = rng.integers(0, 16, (32, 256)).astype(np.uint8)
    b = rng.integers(0, 16, (256, 64)).astype(np.uint8)
    a[0, :16] = b[:16, 0] = np.arange(16)
    sa, sb = rng.integers(120, 135, (32, 8)), rng.integers(120, 135, (8, 64))
    program = gemm(32, 256, 64, step=128, a=left, b=right)
    outputs = through(program, mx_inputs(a, sa, b, sb)).outputs
    assert_bits(
        outputs["c"], group_by_group(values[left][a], sa, values[right][b], sb, unit=(-2, -2))
    )


def test_bias_and_k_loop_round_as_defined(gemm: Gemm, mx_inputs: Inputs, through: Through) -> None:
    rng = np.random.default_rng(17)
    a = rng.standard_normal((16, 256)).astype(E4M3)
    b = rng.standard_normal((256, 32)).astype(E4M3)
    sa, sb = rng.integers(118, 137, (16, 8)), rng.integers(118, 137, (8, 32))
    row = rng.standard_normal((1, 32)).astype(np.float32)
    program = gemm(16, 256, 32, step=64, bias=True)
    outputs = through(program, mx_inputs(a, sa, b, sb, bias=row)).outputs
    values = (a.astype(np.float64), b.astype(np.float64))
    expected = group_by_group(values[0], sa, values[1], sb, unit=(-9, -9), start=row[0])
    assert_bits(outputs["c"], expected)
    assert not np.array_equal(expected, in_float64(values[0], sa, values[1], sb) + row)


def test_results_beyond_float32_and_below_its_normal_range(
    gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    rng = np.random.default_rng(19)
    a = rng.standard_normal((16, 64)).astype(E4M3)
    b = rng.standard_normal((64, 32)).astype(E4M3)
    sa = np.tile(np.arange(16)[:, None] * 17, (1, 2))  # 2^-127 to 2^128
    sa[15] = 254
    sb = np.tile(np.concatenate([np.zeros(16), np.full(16, 254)]), (2, 1)).astype(int)
    outputs = through(gemm(16, 64, 32), mx_inputs(a, sa, b, sb)).outputs
    values = (a.astype(np.float64), b.astype(np.float64))
    expected = group_by_group(values[0], sa, values[1], sb, unit=(-9, -9))
    sizes = np.abs(expected)
    assert np.isinf(sizes).any()
    assert ((sizes > 0) & (sizes < 2.0**-126)).any(), "some results are subnormal"
    assert (expected == 0).any(), "some vanish"
    assert_bits(outputs["c"], expected)


def test_infinities_of_e5m2_follow_ieee(gemm: Gemm, mx_inputs: Inputs, through: Through) -> None:
    a, b = np.ones((16, 64), E5M2), np.ones((64, 32), E5M2)
    a[1, 5], a[2, [5, 40]], a[3, 5] = np.inf, [np.inf, -np.inf], np.inf
    b[5, 1] = 0
    scales = (np.full((16, 2), UNIT_SCALE), np.full((2, 32), UNIT_SCALE))
    inputs = mx_inputs(a, scales[0], b, scales[1])
    found = through(gemm(16, 64, 32, a="FP8E5M2", b="FP8E5M2"), inputs).outputs["c"]
    expected = np.full((16, 32), 64, np.float32)
    expected[:, 1] = 63
    expected[[1, 3]] = np.inf
    expected[2] = np.nan
    expected[1:4, 1] = np.nan  # infinity by zero
    assert_bits(found, expected)
    assert set(found.view(np.uint32)[np.isnan(found)].tolist()) == {PLAIN_NAN}


def test_a_product_may_be_summed_in_the_order_of_k(gemm: Gemm, mx_inputs: Inputs) -> None:
    # 1 + 3 * 2^-25: at once it rounds up to the next float32, one by one each is lost.
    a, b = np.zeros((16, 64), E5M2), np.ones((64, 32), E5M2)
    a[:, 0], a[:, 1:4], b[1:4] = 1, 2.0**-12, 2.0**-13
    inputs = mx_inputs(a, np.full((16, 2), UNIT_SCALE), b, np.full((2, 32), UNIT_SCALE))
    program = gemm(16, 64, 32, a="FP8E5M2", b="FP8E5M2")
    for order, expected in (("group", 1 + 2.0**-23), ("sequential", 1.0)):
        result = scalebox.run(program, inputs, sum=order)
        assert_bits(result.outputs["c"], np.full((16, 32), expected, np.float32))
        assert scalebox.compare(result.outputs, scalebox.interpret(program, inputs, sum=order))
        assert result.options["sum"] == order
