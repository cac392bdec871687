"""Real kernels through every room: compiled, saved, loaded, run, against golden and against oracles
that are written here: float64 where sums are exact, integers and one rounding where they are not."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox.app.api import Result
from scalebox.ir.core import Program
from scalebox.ir.errors import InputError

Array = npt.NDArray[Any]
Gemm = Callable[..., Program]
Inputs = Callable[..., dict[str, Array]]
Through = Callable[..., Result]

E4M3 = ml_dtypes.float8_e4m3fn
E5M2 = ml_dtypes.float8_e5m2
# Values of the 16 codes of the 4-bit formats.
E2M1_VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
E1M2_VALUES = np.concatenate([np.arange(8) / 4, -np.arange(8) / 4])
NAN_SCALE = 255
UNIT_SCALE = 127
PLAIN_NAN = 0x7FC00000


def small(rng: np.random.Generator, *shape: int) -> Array:
    """Integers -2..2 and codes near 127 keep every sum of a matmul exact in float32."""
    return rng.integers(-2, 3, shape).astype(np.float64)


def near_one(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(126, 130, shape)


def in_float64(a: Array, sa: Array, b: Array, sb: Array) -> Array:
    left = a * np.repeat(2.0 ** (sa - 127.0), 32, axis=1)
    return left @ (b * np.repeat(2.0 ** (sb - 127.0), 32, axis=0))


def rounded_once(digits: int, exponent: int) -> float:
    """Return digits · 2^exponent as the nearest float32, ties to even."""
    if digits == 0:
        return 0.0
    last = max(exponent + abs(digits).bit_length() - 24, -149)
    if last > exponent:
        cut = last - exponent
        kept, rest = abs(digits) >> cut, abs(digits) & ((1 << cut) - 1)
        half = 1 << (cut - 1)
        kept += rest > half or (rest == half and kept & 1)
    else:
        kept, last = abs(digits), exponent
    size = math.inf if kept.bit_length() + last > 128 else math.ldexp(kept, last)
    return math.copysign(size, digits)


def group_by_group(
    a: Array, sa: Array, b: Array, sb: Array, *, unit: tuple[int, int], start: Array | None = None
) -> Array:
    """Return the product as the numbers of a matmul are defined, out of Python's integers.

    Args:
        unit: Exponents of the powers of two of which a and b hold whole multiples.
        start: What the accumulator starts from, float32 [n]; zero by default.
    """
    m, n = a.shape[0], b.shape[1]
    left = (a * 2.0 ** -unit[0]).astype(np.int64)
    right = (b * 2.0 ** -unit[1]).astype(np.int64)
    total = np.zeros((m, n), np.float32) if start is None else np.tile(start, (m, 1))
    for g in range(sa.shape[1]):
        dot = left[:, g * 32 : g * 32 + 32] @ right[g * 32 : g * 32 + 32]
        exponents = sa[:, g, None].astype(int) + sb[None, g].astype(int) - 254 + sum(unit)
        parts = [
            rounded_once(int(digits), int(exponent))
            for digits, exponent in zip(dot.flat, exponents.flat, strict=True)
        ]
        with np.errstate(over="ignore", invalid="ignore"):
            total = total + np.array(parts, np.float32).reshape(m, n)
    return total


def assert_bits(actual: Array, expected: Array) -> None:
    assert actual.dtype == expected.dtype
    verdict = scalebox.compare(actual, expected)
    assert verdict, str(verdict)


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
    message = re.escape("row")
    with pytest.raises(InputError, match=message):
        scalebox.run(program, {**inputs, "row": 8, "col": 128}, entry="tile")


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


def _nan_case() -> tuple[Array, Array, Array, Array]:
    ones = np.full((16, 64), 1.0).astype(E4M3), np.full((64, 32), 1.0).astype(E4M3)
    return ones[0], np.full((16, 2), UNIT_SCALE), ones[1], np.full((2, 32), UNIT_SCALE)


@pytest.mark.parametrize("other", [0x00, UNIT_SCALE, 0xFE])
def test_a_nan_scale_poisons_every_output_whatever_the_other_scale_is(
    other: int, gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    a, _, b, _ = _nan_case()
    inputs = mx_inputs(a, np.full((16, 2), NAN_SCALE), b, np.full((2, 32), other))
    found = through(gemm(16, 64, 32), inputs).outputs["c"]
    assert np.array_equal(found.view(np.uint32), np.full((16, 32), PLAIN_NAN))


def test_a_nan_scale_poisons_its_own_row_or_column_only(
    gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    program = gemm(16, 64, 32)
    for row in range(16):
        a, sa, b, sb = _nan_case()
        sa[row, row % 2] = NAN_SCALE
        found = through(program, mx_inputs(a, sa, b, sb)).outputs["c"]
        expected = np.full((16, 32), 64, np.float32)
        expected[row] = np.nan
        assert_bits(found, expected)
    for col in range(32):
        a, sa, b, sb = _nan_case()
        sb[col % 2, col] = NAN_SCALE
        a[:] = 0  # within valid K a NaN scale counts, even over zero data
        found = through(program, mx_inputs(a, sa, b, sb)).outputs["c"]
        expected = np.zeros((16, 32), np.float32)
        expected[:, col] = np.nan
        assert_bits(found, expected)


def test_every_scale_reaches_its_own_row_or_column(
    gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    rng = np.random.default_rng(29)
    a, b = small(rng, 32, 128), small(rng, 128, 32)
    a[a == 0], b[b == 0] = 1, -1
    sa, sb = near_one(rng, 32, 4), near_one(rng, 4, 32)
    program = gemm(32, 128, 32)
    executable = scalebox.compile(program)

    def check(sa: Array, sb: Array) -> Array:
        inputs = mx_inputs(a.astype(E4M3), sa, b.astype(E4M3), sb)
        found = scalebox.run(executable, inputs, timing=False).outputs["c"]
        assert_bits(found, in_float64(a, sa, b, sb).astype(np.float32))
        return found

    base = check(sa, sb)
    for row, group in np.ndindex(32, 4):
        changed = sa.copy()
        changed[row, group] += 3
        found = check(changed, sb)
        assert set(np.nonzero(found != base)[0].tolist()) <= {row}
    for group, col in np.ndindex(4, 32):
        changed = sb.copy()
        changed[group, col] += 3
        found = check(sa, changed)
        assert set(np.nonzero(found != base)[1].tolist()) <= {col}
    through(program, mx_inputs(a.astype(E4M3), sa, b.astype(E4M3), sb))


def test_two_scales_that_change_places_change_the_output(gemm: Gemm, mx_inputs: Inputs) -> None:
    rng = np.random.default_rng(31)
    a = rng.standard_normal((32, 128)).astype(E4M3)
    b = rng.standard_normal((128, 32)).astype(E4M3)
    # No two scales of a box are equal, nor two of one row.
    sa = 112 + (np.arange(128).reshape(32, 4) * 7) % 31
    sb = 112 + (np.arange(128).reshape(4, 32) * 5) % 29
    executable = scalebox.compile(gemm(32, 128, 32))
    inputs = mx_inputs(a, sa, b, sb)
    base = scalebox.run(executable, inputs, timing=False).outputs["c"]
    for name in ("sa", "sb"):
        flat = inputs[name].reshape(-1)
        for place in range(len(flat)):
            other = int(rng.integers(0, len(flat)))
            if flat[place] == flat[other]:
                continue
            swapped = flat.copy()
            swapped[[place, other]] = flat[[other, place]]
            changed = {**inputs, name: swapped}
            found = scalebox.run(executable, changed, timing=False).outputs["c"]
            assert not np.array_equal(found, base), (name, place, other)


@pytest.mark.parametrize("poison", [0x00, UNIT_SCALE, NAN_SCALE])
@pytest.mark.parametrize(
    "valid", [(32, 50, 64), (17, 64, 64), (32, 64, 33), (17, 50, 33), (1, 1, 1), (16, 20, 32)]
)
def test_what_lies_beyond_the_valid_part_changes_nothing(
    valid: tuple[int, int, int], poison: int, gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    rng = np.random.default_rng(37)
    vm, vk, vn = valid
    groups = -(-vk // 32)
    a, b = small(rng, 32, 64), small(rng, 64, 64)
    sa, sb = near_one(rng, 32, 2), near_one(rng, 2, 64)
    before = rng.standard_normal((32, 64)).astype(np.float32)
    dirty_a, dirty_b = a.astype(E4M3), b.astype(E4M3)
    dirty_a[vm:], dirty_a[:, vk:], dirty_b[vk:], dirty_b[:, vn:] = (np.nan,) * 4
    dirty_sa, dirty_sb = sa.copy(), sb.copy()
    dirty_sa[vm:], dirty_sa[:, groups:], dirty_sb[groups:], dirty_sb[:, vn:] = (poison,) * 4
    inputs = mx_inputs(dirty_a, dirty_sa, dirty_b, dirty_sb, c=before)
    found = through(gemm(32, 64, 64, valid=valid), inputs).outputs["c"]
    scaled = (a * np.repeat(2.0 ** (sa - 127), 32, 1), b * np.repeat(2.0 ** (sb - 127), 32, 0))
    expected = before.copy()
    expected[:vm, :vn] = scaled[0][:vm, :vk] @ scaled[1][:vk, :vn]
    assert_bits(found, expected)


@pytest.mark.parametrize("name", ["sa", "sb"])
def test_scales_may_come_in_their_logical_blocked_or_flat_shape(
    name: str, gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    rng = np.random.default_rng(41)
    a, b = small(rng, 32, 128).astype(E4M3), small(rng, 128, 64).astype(E4M3)
    inputs = mx_inputs(a, near_one(rng, 32, 4), b, near_one(rng, 4, 64))
    program = gemm(32, 128, 64)
    expected = through(program, inputs).outputs["c"]
    rows = {"sa": 2, "sb": 4}[name]
    scales = inputs[name]
    for shape in [(1, rows, 2, 16, 2), (rows, 2, 16, 2), (scales.size,)]:
        for kind in (np.uint8, ml_dtypes.float8_e8m0fnu):
            given: Mapping[str, Any] = {**inputs, name: scales.reshape(shape).view(kind)}
            assert_bits(through(program, given).outputs["c"], expected)


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
