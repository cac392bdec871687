"""The cube without scales and the whole fixpipe, on hand-made boxes, against exact arithmetic."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.isa.cluster import PLAIN_PAIRS
from scalebox.codegen.isa.vocabulary import CoreKind, PlainType, Space, VectorType
from scalebox.ir.dtypes import SimpleDType
from scalebox.ir.errors import SimulationFault
from scalebox.ir.numerics.plain_matmul import PAIRS
from scalebox.sim.costs import occupancy
from scalebox.sim.faultcodes import FaultCode
from scalebox.sim.vector.plan import DTYPES

Array = npt.NDArray[Any]
OPERANDS: dict[str, tuple[np.dtype[Any], int]] = {
    "fp16": (np.dtype(np.float16), 16),
    "bf16": (np.dtype(ml_dtypes.bfloat16), 16),
    "fp32": (np.dtype(np.float32), 8),
    "e4m3": (np.dtype(ml_dtypes.float8_e4m3fn), 32),
    "e5m2": (np.dtype(ml_dtypes.float8_e5m2), 32),
    "int8": (np.dtype(np.int8), 32),
}


def test_instruction_and_numerics_multiply_the_same_pairs() -> None:
    def dtype_of(kind: PlainType) -> SimpleDType:
        return DTYPES[VectorType[kind.name]]

    assert {(dtype_of(a), dtype_of(b)) for a, b in PLAIN_PAIRS} == {
        (a, b) for each in PAIRS for a in each for b in each
    }


def boxed(matrix: Array, line_bytes: int = 32) -> Array:
    """Return the bytes of [rows, cols] as boxes of 16 rows, column of boxes by column."""
    width = matrix.dtype.itemsize
    wide = line_bytes // width
    rows, cols = -(-matrix.shape[0] // 16) * 16, -(-matrix.shape[1] // wide) * wide
    whole = np.zeros((rows, cols), matrix.dtype)
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    pieces = [whole[:, first : first + wide] for first in range(0, cols, wide)]
    return np.concatenate([np.ascontiguousarray(p).view(np.uint8).reshape(-1) for p in pieces])


def unboxed(memory: Array, rows: int, cols: int, kind: Any) -> Array:
    """Return the first rows x cols accumulators of boxes of 16 x 16."""
    tall = -(-rows // 16) * 16
    boxes = memory[: -(-cols // 16) * tall * 64].view(kind).reshape(-1, tall, 16)
    return boxes.transpose(1, 0, 2).reshape(tall, -1)[:rows, :cols]


def in_steps(a: Array, b: Array, start: Array, step: int) -> Array:
    """Return start + a · b: every step's products exact, rounded once, then added in float32."""
    out = np.array(np.broadcast_to(start, (a.shape[0], b.shape[1])), np.float32)
    for m in range(a.shape[0]):
        for n in range(b.shape[1]):
            for first in range(0, a.shape[1], step):
                pairs = zip(a[m, first : first + step], b[first : first + step, n], strict=True)
                total = sum(
                    (Fraction(float(x)) * Fraction(float(y)) for x, y in pairs), Fraction(0)
                )
                # Fractions round to float64 first; these sums have fewer than 53 bits.
                out[m, n] += np.float32(float(total))
    return out


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize("init", ["zero", "acc", "bias"])
def test_mad_adds_exact_steps_in_ascending_order(
    bench: Any, rng: np.random.Generator, name: str, init: str
) -> None:
    kind, step = OPERANDS[name]
    m, k, n = 5, 2 * step + 3, 18
    a, b = (rng.integers(-9, 9, shape).astype(kind) for shape in ((m, k), (k, n)))
    number = np.int32 if name == "int8" else np.float32
    held = rng.integers(-99, 99, (m, n)).astype(number)
    bias = rng.integers(-99, 99, (1, n)).astype(number)
    core, _, found = bench.apply(
        f"mad l0c[0], l0a[0], l0b[0], bias[0], m={m}, k={k}, n={n}, a_type={name}, "
        f"b_type={name}, init={init}",
        preset={
            Space.L0A: boxed(a),
            Space.L0B: boxed(np.ascontiguousarray(b.T)),
            Space.L0C: boxed(held, 64),
            Space.BIAS: bias.view(np.uint8).reshape(-1),
        },
    )
    assert not found
    start = {"zero": np.zeros((1, n), number), "acc": held, "bias": bias}[init]
    wanted = in_steps(a, b, start, step)
    if name == "int8":
        wanted = a.astype(np.int32) @ b.astype(np.int32) + start
    got = unboxed(core.local.view(Space.L0C), m, n, number)
    np.testing.assert_array_equal(got, wanted)


def test_mad_rounds_at_every_step(bench: Any) -> None:
    a = np.array([[2.0**12, 0, 0, 0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 0, 0, 0, -(2.0**12)]], np.float32)
    b = np.full((17, 1), 2.0**12, np.float32)
    b[8] = 1.0
    core, _, _ = bench.apply(
        "mad l0c[0], l0a[0], l0b[0], bias[0], m=1, k=17, n=1, a_type=fp32, b_type=fp32, init=zero",
        preset={Space.L0A: boxed(a), Space.L0B: boxed(np.ascontiguousarray(b.T))},
    )
    # 2^24, then 2^24 + 1 = 2^24 in float32, then 0: the 1 of the second step is lost.
    assert core.local.view(Space.L0C)[:4].view(np.float32)[0] == 0


@pytest.mark.parametrize("bits", [16, 32])
def test_l0b_takes_wide_elements_transposed(bench: Any, rng: Any, bits: int) -> None:
    k, n = 21, 19
    kind = np.dtype(f"u{bits // 8}")
    tile = rng.integers(0, 1 << bits, (k, n), dtype=np.uint64).astype(kind)
    core, _, found = bench.apply(
        f"l1_to_l0b l1[0], l0b[512], bits=b{bits}, k={k}, n={n}, src_k=32",
        preset={Space.L1: boxed(tile)},
    )
    assert not found
    wanted = boxed(np.ascontiguousarray(tile.T))
    np.testing.assert_array_equal(core.local.view(Space.L0B)[512 : 512 + len(wanted)], wanted)


FIX: dict[str, Callable[[Array], Array]] = {
    "bf16": lambda x: x.astype(ml_dtypes.bfloat16).view(np.uint16),
    "fp16": lambda x: x.astype(np.float16).view(np.uint16),
    "e4m3": lambda x: np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8),
    "int8": lambda x: np.clip(np.rint(x), -128, 127).astype(np.int8).view(np.uint8),
    "fp32": lambda x: x.view(np.uint32),
}


@pytest.mark.parametrize("convert", FIX)
@pytest.mark.parametrize("relu", [0, 1])
def test_the_fixpipe_converts_on_its_way_to_gm_and_to_ub(
    bench: Any, rng: Any, convert: str, relu: int
) -> None:
    x = (rng.normal(size=(18, 20)) * 200).astype(np.float32)
    x[0, 0], x[1, 1] = -0.0, 0.5
    wanted = FIX[convert](np.where(x <= 0, np.float32(0), x) if relu else x)
    bits = wanted.dtype.itemsize * 8
    fields = f"rows=18, cols=20, src_boxes=2, convert={convert}, relu={relu}"
    core, gm, found = bench.apply(
        f"l0c_to_gm_fix v0, x0, x0, l0c[0], {fields}\n"
        f"l0c_to_ub l0c[0], ub[64], core=1, {fields}, pitch=3",
        [bench.tensor("c", {8: "INT8", 16: "FP16", 32: "FP32"}[bits], (18, 20), "out")],
        [bench.plain(0, bits, 18, 20)],
        preset={Space.L0C: boxed(x, 64)},
    )
    assert not found
    np.testing.assert_array_equal(gm.view("c").view(wanted.dtype).reshape(18, 20), wanted)
    second = int(core.local.bases[Space.UB + 1]) + 64
    for row in range(18):
        line = core.local.data[second + row * 96 :][: 20 * bits // 8].copy()
        np.testing.assert_array_equal(line.view(wanted.dtype), wanted[row])
    assert not core.local.view(Space.UB).any()


@pytest.mark.parametrize("convert", [*FIX, "e5m2", "uint8"])
@pytest.mark.parametrize("relu", [0, 1])
def test_the_fixpipe_multiplies_by_a_number_before_it_converts(
    bench: Any, rng: Any, convert: str, relu: int
) -> None:
    """0x3EAAAAAB is the FP32 number next to a third; a product is rounded to FP32 once."""
    third = np.array(0x3EAAAAAB, np.uint32).view(np.float32)
    more: dict[str, Callable[[Array], Array]] = {
        "e5m2": lambda x: x.astype(ml_dtypes.float8_e5m2).view(np.uint8),
        "uint8": lambda x: np.clip(np.rint(x), 0, 255).astype(np.uint8),
    }
    x = (rng.normal(size=(18, 20)) * 900).astype(np.float32)
    x[0, 0], x[1, 1] = -0.0, 1.5
    scaled = (x * third).astype(np.float32)
    wanted = (FIX | more)[convert](np.where(scaled <= 0, np.float32(0), scaled) if relu else scaled)
    bits = wanted.dtype.itemsize * 8
    fields = f"rows=18, cols=20, src_boxes=2, convert={convert}, relu={relu}, scale={0x3EAAAAAB}"
    _, gm, found = bench.apply(
        f"l0c_to_gm_quant v0, x0, x0, l0c[0], {fields}",
        [bench.tensor("c", {8: "INT8", 16: "FP16", 32: "FP32"}[bits], (18, 20), "out")],
        [bench.plain(0, bits, 18, 20)],
        preset={Space.L0C: boxed(x, 64)},
    )
    assert not found
    np.testing.assert_array_equal(gm.view("c").view(wanted.dtype).reshape(18, 20), wanted)


def test_scaled_specials_in_eight_bits(bench: Any) -> None:
    """NaN, both infinities, what overflows by the product, and halves beside even numbers."""
    x = np.array([[np.nan, np.inf, -np.inf, 3e38, 1.25, 1.75, -128.5, 63.75]], np.float32)
    wanted = {
        "int8": [0, 127, -128, 127, 2, 4, -128, 127],
        "uint8": [0, 255, 0, 255, 2, 4, 0, 128],
    }
    for convert, numbers in wanted.items():
        _, gm, _ = bench.apply(
            "l0c_to_gm_quant v0, x0, x0, l0c[0], rows=1, cols=8, src_boxes=1, "
            f"convert={convert}, relu=0, scale={0x40000000}",
            [bench.tensor("c", "INT8", (1, 8), "out")],
            [bench.plain(0, 8, 1, 8)],
            preset={Space.L0C: boxed(x, 64)},
        )
        made = gm.view("c").view(convert)
        np.testing.assert_array_equal(made, np.array(numbers, convert))


def test_int32_accumulators_leave_as_they_stand(bench: Any) -> None:
    x = np.array([[-1, 2**31 - 1, 0x7F800001, 5]], np.int32)
    _, gm, _ = bench.apply(
        "l0c_to_gm_fix v0, x0, x0, l0c[0], rows=1, cols=4, src_boxes=1, convert=int32, relu=0",
        [bench.tensor("c", "INT32", (1, 4), "out")],
        [bench.plain(0, 32, 1, 4)],
        preset={Space.L0C: boxed(x, 64)},
    )
    np.testing.assert_array_equal(gm.view("c").view(np.int32), x[0])


def test_a_never_written_operand_of_mad_is_named(bench: Any) -> None:
    a = np.ones((17, 20), np.float16)
    _, _, found = bench.apply(
        "mad l0c[0], l0a[0], l0b[0], bias[0], m=17, k=20, n=1, a_type=fp16, b_type=fp16, init=zero",
        preset={Space.L0A: boxed(a), Space.L0B: boxed(np.ones((1, 20), np.float16))},
        hole=(Space.L0A, (32 + 16) * 32 + 4),
    )
    assert found[0].fault[:5] == (FaultCode.UNWRITTEN, Space.L0A, 48 * 32 + 4, 16, 18)


@pytest.mark.parametrize(
    ("name", "steps"), [("fp16", 3), ("fp32", 8 * 5), ("e4m3", 2), ("int8", 2)]
)
def test_mad_takes_a_step_of_32_bytes_a_cycle_and_eight_passes_of_fp32(
    bench: Any, name: str, steps: int
) -> None:
    kernel = bench.kernel(
        f"mad l0c[0], l0a[0], l0b[0], bias[0], m=17, k=33, n=16, a_type={name}, b_type={name}, "
        "init=zero"
    )
    assert occupancy(kernel, bench.target)[0] == 25 + 2 * steps


def test_a_core_flag_of_a_lone_kernel_is_named(bench: Any) -> None:
    with pytest.raises(SimulationFault, match="core flag 3 from AIC to AIV0 is still set once"):
        bench.run(bench.kernel("set_core_flag pipe=fix, to=aiv0, id=3"), {})
    waiting = bench.kernel("wait_core_flag pipe=v, of=aic, id=0", core=CoreKind.AIV)
    with pytest.raises(SimulationFault, match=r"core flag 0 from AIC to AIV0.*nothing runs on AIC"):
        bench.run(waiting, {})
