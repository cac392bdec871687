"""Faults that public tools of this kind have had, each on the whole path, with its neighbours."""

import itertools
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.app.result import Result
from scalebox.ir import language as pl
from scalebox.ir import numerics
from scalebox.ir.core import Program
from scalebox.ir.dtypes import BlockScaledDType
from scalebox.ir.errors import IRValueError, SimulationFault
from scalebox.traces.arrays import save_arrays
from scalebox.traces.timeline import Timeline

from .oracle import E4M3, E5M2, Array, assert_bits, in_float64, near_one, small

Gemm = Callable[..., Program]
Inputs = Callable[..., dict[str, Array]]
Text = Callable[..., str]
Through = Callable[..., Result]


def filled(value: float, kind: Any, a_scale: int, b_scale: int) -> tuple[Array, ...]:
    """Operands of a 16 x 64 x 32 product that hold one value and one scale a side."""
    a, b = np.full((16, 64), value).astype(kind), np.full((64, 32), value).astype(kind)
    return a, np.full((16, 2), a_scale), b, np.full((2, 32), b_scale)


# --------------------------------------------------------------------------- scales


@pytest.mark.parametrize(("c", "bits"), [("FP32", 0x7FC00000), ("BF16", 0x7FC0), ("FP16", 0x7E00)])
@pytest.mark.parametrize("side", [0, 1])
def test_a_nan_scale_leaves_as_a_nan_in_every_output_format(
    c: str, bits: int, side: int, gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    a, sa, b, sb = filled(1.0, E4M3, 127, 127)
    (sa, sb)[side][:] = 255
    found = through(gemm(16, 64, 32, c=c), mx_inputs(a, sa, b, sb)).outputs["c"]
    assert np.unique(found.view(f"u{found.itemsize}")).tolist() == [bits]


@pytest.mark.parametrize(
    ("a_scale", "b_scale", "exponent"),
    [(0, 127, -127), (127, 0, -127), (1, 127, -126), (0, 254, 0), (254, 0, 0), (1, 254, 1)],
)
def test_the_smallest_scales_are_powers_of_two_and_not_zero(
    a_scale: int, b_scale: int, exponent: int, gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    inputs = mx_inputs(*filled(1.0, E4M3, a_scale, b_scale))
    found = through(gemm(16, 64, 32), inputs).outputs["c"]
    assert_bits(found, np.full((16, 32), 2.0 ** (exponent + 6), np.float32))  # 64 products


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (2.0**-16, 200, 2.0**120),  # 64 products of 2^-32 under 2^146
        (2.0**-16, 254, np.inf),
        (-(2.0**-16), 200, 2.0**120),
        (2.0**15, 0, 0.0),  # 2^(36 - 254) is below every float32
        (2.0**15, 74, 2.0**-70),
        (1.0, 255, np.nan),
    ],
)
def test_scale_exponents_add_without_wrapping(
    value: float, code: int, expected: float, gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    inputs = mx_inputs(*filled(value, E5M2, code, code))
    found = through(gemm(16, 64, 32, a="FP8E5M2", b="FP8E5M2"), inputs).outputs["c"]
    assert_bits(found, np.full((16, 32), expected, np.float32))


def test_a_product_that_underflows_keeps_its_sign(
    gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    a, sa, b, sb = filled(1.0, E4M3, 0, 0)
    a[::2] = -1.0
    program = gemm(16, 64, 32, bias=True)
    for start, rows in ((-0.0, slice(0, None, 2)), (-0.0, slice(1, None, 2))):
        bias = np.full((1, 32), start, np.float32)
        found = through(program, mx_inputs(a, sa, b, sb, bias=bias)).outputs["c"]
        # -0 + -0 is -0, -0 + +0 is +0
        assert np.signbit(found[rows]).all() == (rows.start == 0)
        assert not found.any()


TWO_HALVES = """from scalebox.ir import language as pl

@pl.program
class TwoHalves:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[128, 512], pl.FP8E4M3FN],
        sa: pl.Tensor[[128, 16], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[512, 128], pl.FP8E4M3FN],
        sb: pl.Tensor[[16, 128], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[128, 128], pl.FP32]],
    ):
        a0 = pl.move(pl.load(a, [0, 0], [128, 256], target_memory=pl.Mem.Mat), pl.Mem.Left)
        p0 = pl.move(pl.load(sa, [0, 0], [128, 8]), pl.Mem.LeftScale)
        a1 = pl.move(pl.load(a, [0, 256], [128, 256], target_memory=pl.Mem.Mat), pl.Mem.Left)
        p1 = pl.move(pl.load(sa, [0, 8], [128, 8]), pl.Mem.LeftScale)
        b0 = pl.move(pl.load(b, [0, 0], [256, 128], target_memory=pl.Mem.Mat), pl.Mem.Right)
        q0 = pl.move(pl.load(sb, [0, 0], [8, 128]), pl.Mem.RightScale)
        b1 = pl.move(pl.load(b, [256, 0], [256, 128], target_memory=pl.Mem.Mat), pl.Mem.Right)
        q1 = pl.move(pl.load(sb, [8, 0], [8, 128]), pl.Mem.RightScale)
        acc = pl.matmul_mx(a0, p0, b0, q0)
        acc = pl.matmul_mx_acc(acc, a1, p1, b1, q1)
        c = pl.store(acc, [0, 0], c)
        return c
"""


def test_a_scale_address_is_that_of_the_data_divided_by_16_once(
    mx_inputs: Inputs, through: Through
) -> None:
    program = pl.parse(TWO_HALVES)
    assert isinstance(program, Program)
    (kernel,) = scalebox.compile(program).kernels
    for data, scale in (("l1_to_l0a", "l1_to_scale_a"), ("l1_to_l0b", "l1_to_scale_b")):
        places = {
            mnemonic: sorted(i.fields["dst"] for i in kernel.program if i.mnemonic == mnemonic)
            for mnemonic in (data, scale)
        }
        assert places == {data: [0, 32768], scale: [0, 2048]}
    rng = np.random.default_rng(5)
    a, b = small(rng, 128, 512), small(rng, 512, 128)
    sa, sb = near_one(rng, 128, 16), near_one(rng, 16, 128)
    found = through(program, mx_inputs(a.astype(E4M3), sa, b.astype(E4M3), sb)).outputs["c"]
    assert_bits(found, in_float64(a, sa, b, sb).astype(np.float32))


# --------------------------------------------------------------------------- tails

ODD_GROUPS = """from scalebox.ir import language as pl

@pl.program
class OddGroups:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 1504], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 48], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[1504, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[48, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        acc = pl.matmul_mx(
            pl.load(a, [0, 1472], [16, 64], [16, 32]), pl.load(sa, [0, 46], [16, 2], [16, 1]),
            pl.load(b, [1472, 0], [64, 32], [32, 32]), pl.load(sb, [46, 0], [2, 32], [1, 32]),
        )
        for k in pl.pipeline(0, 1472, 64, stage=2):
            g = k // 32
            acc = pl.matmul_mx_acc(
                acc, pl.load(a, [0, k], [16, 64]), pl.load(sa, [0, g], [16, 2]),
                pl.load(b, [k, 0], [64, 32]), pl.load(sb, [g, 0], [2, 32]),
            )
        c = pl.store(acc, [0, 0], c)
        return c
"""


def test_the_scales_of_a_group_that_is_padding_are_never_used(
    mx_inputs: Inputs, through: Through
) -> None:
    rng = np.random.default_rng(7)
    a, b = small(rng, 16, 1504), small(rng, 1504, 32)
    sa, sb = near_one(rng, 16, 48), near_one(rng, 48, 32)
    expected = in_float64(a, sa[:, :47], b, sb[:47]).astype(np.float32)
    program = pl.parse(ODD_GROUPS)
    assert isinstance(program, Program)
    for left, right in itertools.product((0x00, 0x7F, 0xFF), repeat=2):
        sa[:, 47], sb[47] = left, right
        inputs = mx_inputs(a.astype(E4M3), sa, b.astype(E4M3), sb)
        assert_bits(through(program, inputs).outputs["c"], expected)


@pytest.mark.parametrize("code", [0x00, 0x7F, 0xFE])
def test_groups_of_zeros_change_nothing_under_any_finite_scale(
    code: int, gemm: Gemm, mx_inputs: Inputs, through: Through
) -> None:
    rng = np.random.default_rng(11)
    a, b = small(rng, 16, 128), small(rng, 128, 32)
    sa, sb = near_one(rng, 16, 4), near_one(rng, 4, 32)
    a[:, 96:], b[96:] = 0, 0
    expected = in_float64(a, sa, b, sb).astype(np.float32)
    sa[:, 3], sb[3] = code, 254 - code
    inputs = mx_inputs(a.astype(E4M3), sa, b.astype(E4M3), sb)
    assert_bits(through(gemm(16, 128, 32), inputs).outputs["c"], expected)


# --------------------------------------------------------------------------- quantising


@pytest.mark.parametrize(
    ("dtype", "emax", "largest"),
    [
        (pl.MXFP8_E4M3, 8, 448.0),
        (pl.MXFP8_E5M2, 15, 57344.0),
        (pl.MXFP6_E3M2, 4, 28.0),
        (pl.MXFP6_E2M3, 2, 7.5),
        (pl.MXFP4, 2, 6.0),
    ],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_just_below_a_power_of_two_the_exponent_is_the_lower_one(
    dtype: BlockScaledDType, emax: int, largest: float, kind: Any
) -> None:
    for exponent in range(-100, 128):
        below = np.nextafter(kind(2.0**exponent), kind(0))
        mx = numerics.quantize(np.full(32, below, kind), dtype)
        assert mx.scales.tolist() == [max(0, exponent - 1 - emax + 127)]
        clamped = exponent - 1 - emax < -127
        value = 2.0**exponent if clamped else largest * 2.0 ** (exponent - 1 - emax)
        assert set(numerics.dequantize(mx).tolist()) == {value}


@pytest.mark.parametrize("rule", ["floor", "ceil", "even", "rceil", "nv"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_data_below_the_smallest_scale_are_divided_by_the_scale_that_is_stored(
    rule: str, kind: Any
) -> None:
    for exponent in range(-136, -118):  # E4M3 goes down to 2^-9 under the scale 2^-127
        mx = numerics.quantize(np.full(32, 2.0**exponent, kind), pl.MXFP8_E4M3, rule=rule)
        assert mx.scales.tolist() == [0]
        assert set(numerics.dequantize(mx).tolist()) == {2.0**exponent}


@pytest.mark.parametrize(
    "dtype",
    [pl.MXFP8_E4M3, pl.MXFP8_E5M2, pl.MXFP6_E3M2, pl.MXFP6_E2M3, pl.MXFP4, pl.NVFP4],
)
def test_a_group_of_zeros_among_others_is_exact_zeros(dtype: BlockScaledDType) -> None:
    x = np.ones((2, 96), np.float32)
    x[0, 32:64], x[1, 32:64] = 0.0, -0.0
    mx = numerics.quantize(x, dtype)
    groups = mx.scales[:, 1] if dtype is not pl.NVFP4 else mx.scales[:, 2:4]
    assert not groups.any()
    found = numerics.dequantize(mx)
    assert_bits(found[:, 32:64], x[:, 32:64])
    if dtype is not pl.NVFP4:
        assert_bits(found, x)


# --------------------------------------------------------------------------- offsets

PLACED = """from scalebox.ir import language as pl

@pl.program
class Placed:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[32, 128], pl.FP8E4M3FN],
        sa: pl.Tensor[[32, 4], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[128, 64], pl.FP8E4M3FN],
        sb: pl.Tensor[[4, 64], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
        row: pl.Scalar[pl.INDEX],
        k: pl.Scalar[pl.INDEX],
        col: pl.Scalar[pl.INDEX],
        out: pl.Scalar[pl.INDEX],
    ):
        acc = pl.matmul_mx(
            pl.load(a, [row, k], [16, 64]), pl.load(sa, [0, 0], [16, 2]),
            pl.load(b, [k, col], [64, 32]), pl.load(sb, [0, 0], [2, 32]),
        )
        c = pl.store(acc, [out, col], c)
        return c
"""


@pytest.mark.parametrize(
    "moved",
    [
        {"row": -16},
        {"row": -1},
        {"row": 17},
        {"row": 2**63 - 1},
        {"k": -64},
        {"k": 65},
        {"col": -1},
        {"col": 33},
        {"out": -16},
        {"out": -1},
        {"out": 17},
        {"out": -(2**63)},
    ],
    ids=str,
)
def test_a_tile_beyond_its_tensor_is_diagnosed_on_every_side(
    moved: dict[str, int], mx_inputs: Inputs
) -> None:
    program = pl.parse(PLACED)
    assert isinstance(program, Program)
    ones = (np.ones((32, 128), E4M3), np.full((32, 4), 127))
    operands = mx_inputs(*ones, np.ones((128, 64), E4M3), np.full((4, 64), 127))
    inside: dict[str, Any] = {**operands, "row": 16, "k": 64, "col": 32, "out": 16}
    found = scalebox.run(program, inside).outputs["c"]
    assert np.array_equal(found != 0, np.pad(np.ones((16, 32), bool), ((16, 0), (32, 0))))
    with pytest.raises(SimulationFault) as fault:
        scalebox.run(program, {**inside, **moved})
    assert "must stay inside its view" in fault.value.message
    with pytest.raises(IRValueError) as refused:
        scalebox.interpret(program, {**inside, **moved})
    assert "must lie within the tensor" in refused.value.message
    (name,) = moved
    place = {"col": "pl.load(b", "out": "pl.store("}.get(name, "pl.load(a")
    for error in (fault.value, refused.value):
        assert error.span is not None
        assert place in PLACED.splitlines()[error.span.line - 1]


@pytest.mark.parametrize("offset", [-16, -1])
def test_a_constant_negative_offset_is_refused_by_the_language(offset: int) -> None:
    for old, new in (("[row, k]", f"[{offset}, k]"), ("[out, col]", f"[{offset}, col]")):
        with pytest.raises(scalebox.ir.UserError) as caught:
            pl.parse(PLACED.replace(old, new))
        assert f"must not be negative, but is {offset}" in caught.value.message


# --------------------------------------------------------------------------- reports


def test_a_run_whose_scales_all_underflow_is_said_to_prove_nothing(
    kernel: Callable[..., str], mx_inputs: Inputs, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(13)
    a, b = rng.standard_normal((32, 128)).astype(E4M3), rng.standard_normal((128, 64)).astype(E4M3)
    scales = rng.integers(10, 20, (32, 4)), rng.integers(10, 20, (4, 64))
    save_arrays(Path("in.npz"), mx_inputs(a, scales[0], b, scales[1]))
    assert main(["run", kernel(), "--inputs", "in.npz", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"]
    assert any("'c' is all zero" in warning for warning in answer["warnings"])


def test_the_timeline_of_a_pipelined_run_has_slices_that_viewers_can_nest(
    gemm: Gemm, mx_inputs: Inputs
) -> None:
    rng = np.random.default_rng(17)
    a, b = rng.standard_normal((32, 512)).astype(E4M3), rng.standard_normal((512, 64)).astype(E4M3)
    inputs = mx_inputs(a, near_one(rng, 32, 16), b, near_one(rng, 16, 64))
    timeline = scalebox.run(gemm(32, 512, 64, step=64), inputs).bundle().timeline
    assert isinstance(timeline, Timeline)
    events: list[dict[str, Any]] = timeline.as_trace()["traceEvents"]
    lanes: defaultdict[Any, list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            cycles = event["args"]["start_cycle"], event["args"]["end_cycle"]
            lanes[event["pid"], event["tid"]].append(cycles)
    assert len(lanes) >= 4
    for slices in lanes.values():
        open_ends: list[int] = []
        for start, end in sorted(slices, key=lambda s: (s[0], -s[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)
    starts = sorted(e["id"] for e in events if e["ph"] == "s")
    ends = sorted(e["id"] for e in events if e["ph"] == "f")
    assert starts == ends
    assert starts


def test_both_nibbles_of_a_byte_find_their_element(gemm: Gemm, through: Through) -> None:
    code = 0x1, 0x2  # 0.5 in the low half of byte 0x21, 1.0 in the high one
    a, b = np.zeros((16, 64), np.uint8), np.zeros((64, 32), np.uint8)
    a[:, :2] = code
    b[0, 0], b[1, 1] = 0x2, 0x2
    scales = {"sa": np.full(32, 127, np.uint8), "sb": np.full(64, 127, np.uint8)}
    found = through(gemm(16, 64, 32, a="FP4", b="FP4"), {"a": a, "b": b, **scales}).outputs["c"]
    expected = np.zeros((16, 32), np.float32)
    expected[:, :2] = 0.5, 1.0
    assert_bits(found, expected)
    given = {"a": a.view(ml_dtypes.float4_e2m1fn), "b": b.view(ml_dtypes.float4_e2m1fn), **scales}
    assert_bits(through(gemm(16, 64, 32, a="FP4", b="FP4"), given).outputs["c"], expected)
