"""Whole kernels on both kinds of core: machine and interpreter agree bit for bit, and with numpy."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox.codegen.isa.vocabulary import CoreKind
from scalebox.codegen.sync import hazards
from scalebox.ir.core import Program
from scalebox.ir.errors import IRValueError

from .mixed_kernels import agreed, chained, chained_inputs, compiled, judged, program
from .select.tails import boxed_a, boxed_b

Array = npt.NDArray[Any]

QUANTISED = (
    "x: pl.Tensor[[64, 256], pl.FP32], y: pl.Tensor[[64, 256], pl.BF16], "
    "bias: pl.Tensor[[1, 64], pl.FP32]"
)
QUANTISE = (
    "a, a_scale = pl.quant_mx(pl.load(x, [0, 0], [64, 256], target_memory=pl.Mem.Vec), group_axis=1)",
    "b, b_scale = pl.quant_mx(pl.load(y, [0, 0], [64, 256], target_memory=pl.Mem.Vec), group_axis=0)",
)
MOVES = (
    "a_left = pl.move(pl.move(a, pl.Mem.Mat), pl.Mem.Left)",
    "a_boxes = pl.move(a_scale, pl.Mem.Mat, blayout=pl.TileLayout.row_major, slayout=pl.TileLayout.row_major)",
    "b_right = pl.move(pl.move(b, pl.Mem.Mat), pl.Mem.Right)",
    "b_boxes = pl.move(b_scale, pl.Mem.Mat, blayout=pl.TileLayout.col_major, slayout=pl.TileLayout.col_major)",
    "acc = pl.matmul_mx(a_left, pl.move(a_boxes, pl.Mem.LeftScale), b_right, pl.move(b_boxes, pl.Mem.RightScale))",
    "sums = pl.move(acc, pl.Mem.Vec)",
)
EPILOGUE = (
    "row = pl.load(bias, [0, 0], [1, 64], target_memory=pl.Mem.Vec)",
    "positive = pl.relu(pl.col_expand_add(sums, row))",
    "out = pl.store(pl.cast(positive, pl.BF16, mode='rint'), [0, 0], out)",
)


def quantised(*, moved: bool) -> Program:
    middle = MOVES if moved else ["sums = pl.matmul_mx(a, a_scale, b, b_scale)"]
    return program(QUANTISED, (*QUANTISE, *middle, *EPILOGUE), "[64, 64], pl.BF16")


def operands() -> dict[str, Array]:
    """Small integers times a power of two of each row and group: MX holds them, and sums are exact."""
    rng = np.random.default_rng(7)

    def drawn(rows: int) -> Array:
        numbers = rng.integers(-4, 5, (rows, 8, 32)).astype(np.float32)
        return (numbers * np.exp2(rng.integers(-2, 3, (rows, 8, 1)))).reshape(rows, 256)

    bias = rng.integers(-99, 100, (1, 64)).astype(np.float32)
    y = drawn(64).astype(ml_dtypes.bfloat16)
    return {"x": drawn(64).astype(np.float32), "y": y, "bias": bias}


def as_bf16(x: Array) -> bytes:
    return x.astype(np.float32).astype(ml_dtypes.bfloat16).tobytes()


@pytest.mark.parametrize("moved", [True, False])
def test_a_kernel_quantises_multiplies_and_rounds(moved: bool):
    given = operands()
    found = agreed(quantised(moved=moved), given)
    x, y = given["x"].astype(np.float64), given["y"].astype(np.float64)
    assert found.tobytes() == as_bf16(np.maximum(x @ y.T + given["bias"], 0))


def test_a_kernel_quantises_numbers_that_have_to_be_rounded():
    rng = np.random.default_rng(8)
    x = (rng.standard_normal((64, 256)) * np.exp2(rng.integers(-9, 9, (64, 1)))).astype(np.float32)
    y = rng.standard_normal((64, 256)).astype(ml_dtypes.bfloat16)
    bias = rng.standard_normal((1, 64)).astype(np.float32)
    found = agreed(quantised(moved=False), {"x": x, "y": y, "bias": bias}).astype(np.float64)
    exact = np.maximum(x.astype(np.float64) @ y.astype(np.float64).T + bias, 0)
    size = np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64)).T + np.abs(bias)
    assert np.all(np.abs(found - exact) <= size / 8)


def test_every_flag_of_a_mixed_kernel_is_needed():
    lowered = compiled(quantised(moved=False))
    (kernel,) = lowered.executable.kernels
    pairs = judged(lowered).pairs
    assert len(pairs) > 6
    for pair in sorted(pairs):
        assert not judged(lowered, removed=pair).sound
    assert all(each.mnemonic != "pipe_barrier" for part in kernel.programs for each in part.program)


def test_each_program_has_instructions_of_its_own_core_only():
    (kernel,) = compiled(quantised(moved=False)).executable.kernels
    for part, kind in zip(kernel.programs, CoreKind, strict=True):
        assert part.core is kind
        assert {each.row.core for each in part.program} <= {kind, None}


def test_four_bit_elements_meet_eight_bit_ones_after_a_cast():
    """The cube has no FP4 x FP8 product: the vector core makes FP8 of FP4, which is exact."""
    made = program(
        "a: pl.Tensor[[32, 128], pl.FP4], a_scale: pl.Tensor[[32, 4], pl.FP8E8M0, pl.MX_A_ZZ], "
        "b: pl.Tensor[[128, 64], pl.FP8E4M3FN], b_scale: pl.Tensor[[4, 64], pl.FP8E8M0, pl.MX_B_NN]",
        (
            "wide = pl.cast(pl.load(a, [0, 0], [32, 128], target_memory=pl.Mem.Vec), pl.FP8E4M3FN)",
            "acc = pl.matmul_mx(wide, pl.load(a_scale, [0, 0], [32, 4]), pl.load(b, [0, 0], [128, 64]), "
            "pl.load(b_scale, [0, 0], [4, 64]))",
            "out = pl.store(acc, [0, 0], out)",
        ),
        "[32, 64], pl.FP32",
    )
    rng = np.random.default_rng(9)
    a = rng.choice([-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6], (32, 128))
    b = rng.integers(-8, 9, (128, 64)).astype(np.float64)
    scales = [np.exp2(rng.integers(-2, 3, shape)) for shape in ((32, 4), (4, 64))]
    given = {
        "a": a.astype(ml_dtypes.float4_e2m1fn),
        "a_scale": boxed_a(scales[0].astype(ml_dtypes.float8_e8m0fnu)),
        "b": b.astype(ml_dtypes.float8_e4m3fn),
        "b_scale": boxed_b(scales[1].astype(ml_dtypes.float8_e8m0fnu)),
    }
    exact = (a * np.repeat(scales[0], 32, 1)) @ (b * np.repeat(scales[1], 32, 0))
    assert agreed(made, given).tobytes() == exact.astype(np.float32).tobytes()


LOOP = (
    "for i in pl.range(0, n, 1):",
    "    x = pl.adds(pl.load(a, [i * 16, 0], [16, 64], target_memory=pl.Mem.Vec), 1.0)",
    "    y = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)",
    "    acc = pl.matmul(x, y)",
    "    out = pl.store(pl.relu(acc), [i * 16, 0], out)",
)
LOOPED = "a: pl.Tensor[[64, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX]"


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_a_loop_hands_tiles_to_the_cube_and_back(trips: int):
    made = program(LOOPED, LOOP, "[64, 32], pl.FP32")
    rng = np.random.default_rng(10)
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((64, 64), (64, 32)))
    found = agreed(made, {"a": a, "b": b, "n": trips, "out": np.zeros((64, 32), np.float32)})
    rows = 16 * trips
    assert np.array_equal(found[:rows], np.maximum((a + 1) @ b, 0)[:rows])


def test_every_flag_of_a_loop_on_both_cores_is_needed():
    lowered = compiled(program(LOOPED, LOOP, "[64, 32], pl.FP32"))
    pairs = judged(lowered, [4]).pairs
    assert judged(lowered, [4]).sound
    for pair in sorted(pairs):
        assert not judged(lowered, [4], removed=pair).sound


def test_a_function_for_one_kind_of_core_uses_no_other():
    for kind, other in (("AIC", "a vector core"), ("AIV", "the cube core")):
        made = program(LOOPED, LOOP, "[64, 32], pl.FP32", kind=kind)
        with pytest.raises(IRValueError, match=f"not {other}"):
            compiled(made)


def test_sums_of_integers_go_to_the_vector_core_as_they_are():
    made = program(
        "a: pl.Tensor[[32, 64], pl.INT8], b: pl.Tensor[[64, 32], pl.INT8]",
        (
            "acc = pl.matmul(pl.load(a, [0, 0], [32, 64]), pl.load(b, [0, 0], [64, 32]))",
            "out = pl.store(pl.muls(pl.move(acc, pl.Mem.Vec), 3), [0, 0], out)",
        ),
        "[32, 32], pl.INT32",
    )
    rng = np.random.default_rng(11)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((32, 64), (64, 32)))
    found = agreed(made, {"a": a, "b": b})
    assert np.array_equal(found, a.astype(np.int32) @ b.astype(np.int32) * 3)


def test_a_bias_that_the_vector_core_makes_is_added_by_the_cube():
    made = program(
        "a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 48], pl.FP16], c: pl.Tensor[[1, 48], pl.FP32]",
        (
            "row = pl.neg(pl.load(c, [0, 0], [1, 48], target_memory=pl.Mem.Vec))",
            "acc = pl.matmul_bias(pl.load(a, [0, 0], [32, 64]), pl.load(b, [0, 0], [64, 48]), row)",
            "out = pl.store(acc, [0, 0], out)",
        ),
        "[32, 48], pl.FP32",
    )
    rng = np.random.default_rng(12)
    a, b = (rng.integers(-9, 10, shape).astype(np.float16) for shape in ((32, 64), (64, 48)))
    c = rng.integers(-99, 100, (1, 48)).astype(np.float32)
    found = agreed(made, {"a": a, "b": b, "c": c})
    assert np.array_equal(found, a.astype(np.float32) @ b.astype(np.float32) - c)


def test_elements_of_four_bits_are_quantised_and_multiplied():
    made = program(
        "x: pl.Tensor[[32, 128], pl.BF16], y: pl.Tensor[[64, 128], pl.BF16]",
        (
            "a, p = pl.quant_mx(pl.load(x, [0, 0], [32, 128]), group_axis=1, dtype=pl.FP4)",
            "b, q = pl.quant_mx(pl.load(y, [0, 0], [64, 128]), group_axis=0, dtype=pl.FP4)",
            "out = pl.store(pl.matmul_mx(a, p, b, q), [0, 0], out)",
        ),
        "[32, 64], pl.FP32",
    )
    rng = np.random.default_rng(13)

    def drawn(rows: int) -> Array:
        # Every group holds a 4, so that its scale is 1 and its elements are what they are.
        numbers = rng.choice([-4, -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4], (rows, 4, 32))
        numbers[:, :, 0] = 4
        return numbers.reshape(rows, 128).astype(ml_dtypes.bfloat16)

    given = {"x": drawn(32), "y": drawn(64)}
    exact = given["x"].astype(np.float64) @ given["y"].astype(np.float64).T
    assert agreed(made, given).tobytes() == exact.astype(np.float32).tobytes()


@pytest.mark.parametrize("valid", [(17, 50, 23), (1, 16, 16), (32, 64, 1)])
def test_what_is_valid_of_a_tile_is_what_moves(valid: tuple[int, int, int], dirty: None):
    del dirty
    m, k, n = valid
    made = program(
        "a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16]",
        (
            f"x = pl.neg(pl.load(a, [0, 0], [32, 64], [{m}, {k}]))",
            f"y = pl.neg(pl.load(b, [0, 0], [64, 32], [{k}, {n}]))",
            "out = pl.store(pl.relu(pl.matmul(x, y)), [0, 0], out)",
        ),
        f"[{m}, {n}], pl.FP32",
    )
    rng = np.random.default_rng(14)
    a, b = (rng.integers(-9, 10, shape).astype(np.float16) for shape in ((32, 64), (64, 32)))
    found = agreed(made, {"a": a, "b": b})
    exact = a[:m, :k].astype(np.float32) @ b[:k, :n].astype(np.float32)
    assert np.array_equal(found, np.maximum(exact, 0))


def test_what_the_vector_core_hands_over_is_filled_up_along_k_once(dirty: None):
    """K of 72 ends in the first 32 bytes of a step of 64 elements: the cube multiplies up to 128."""
    del dirty
    made = program(
        "a: pl.Tensor[[32, 128], pl.FP16], a_scale: pl.Tensor[[32, 4], pl.FP8E8M0, pl.MX_A_ZZ], "
        "b: pl.Tensor[[128, 64], pl.FP16], b_scale: pl.Tensor[[4, 64], pl.FP8E8M0, pl.MX_B_NN]",
        (
            "x = pl.cast(pl.load(a, [0, 0], [32, 128], [32, 72]), pl.FP8E4M3FN)",
            "y = pl.cast(pl.load(b, [0, 0], [128, 64], [72, 64]), pl.FP8E4M3FN)",
            "acc = pl.matmul_mx(x, pl.load(a_scale, [0, 0], [32, 4], [32, 3]), "
            "y, pl.load(b_scale, [0, 0], [4, 64], [3, 64]))",
            "out = pl.store(acc, [0, 0], out)",
        ),
        "[32, 64], pl.FP32",
    )
    (kernel,) = compiled(made).executable.kernels
    fills = [each for each in kernel.program if each.mnemonic == "l1_fill"]
    # Columns 96 to 127 of 32 rows are a unit each; rows 72 to 127 stand in two columns of boxes.
    assert [(f["lines"], f["units"], f["pitch"]) for f in fills] == [(1, 32, 32), (2, 56, 128)]
    rng = np.random.default_rng(17)
    a, b = (rng.integers(-8, 9, shape).astype(np.float16) for shape in ((32, 128), (128, 64)))
    scales = {
        name: np.ones(shape).astype(ml_dtypes.float8_e8m0fnu)
        for name, shape in (("a_scale", (32, 4)), ("b_scale", (4, 64)))
    }
    exact = a[:, :72].astype(np.float32) @ b[:72].astype(np.float32)
    assert np.array_equal(agreed(made, {"a": a, "b": b, **scales}), exact)


def test_a_pipelined_loop_overlaps_the_cores():
    """With two buffers the vector core works on a tile while the cube core has the one before."""
    rng = np.random.default_rng(15)
    a, b = (rng.integers(-9, 10, shape).astype(np.float16) for shape in ((256, 128), (128, 128)))
    cycles: list[int] = []
    for stage in (1, 2):
        made = program(
            "a: pl.Tensor[[256, 128], pl.FP16], b: pl.Tensor[[128, 128], pl.FP16]",
            (
                "w = pl.load(b, [0, 0], [128, 128], target_memory=pl.Mem.Mat)",
                f"for i in pl.pipeline(0, 256, 32, stage={stage}):",
                "    x = pl.load(a, [i, 0], [32, 128], target_memory=pl.Mem.Vec)",
                "    out = pl.store(pl.matmul(pl.neg(x), w), [i, 0], out)",
            ),
            "[256, 128], pl.FP32",
        )
        found = agreed(made, {"a": a, "b": b})
        assert np.array_equal(found, -(a.astype(np.float32) @ b.astype(np.float32)))
        cycles.append(scalebox.run(compiled(made).executable, {"a": a, "b": b}).cycles)
    assert cycles[1] < 0.9 * cycles[0], cycles


def test_a_tensor_carries_what_one_core_stores_and_the_other_loads():
    made = program(
        "a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], "
        "sums: pl.InOut[pl.Tensor[[32, 32], pl.FP32]]",
        (
            "for i in pl.range(0, 2, 1):",
            "    acc = pl.matmul(pl.load(a, [0, 0], [32, 64]), pl.load(b, [0, 0], [64, 32]))",
            "    sums = pl.store(acc, [0, 0], sums)",
            "    back = pl.load(sums, [0, 0], [32, 32], target_memory=pl.Mem.Vec)",
            "    sums = pl.store(pl.neg(back), [0, 0], sums)",
            "out = pl.store(pl.load(sums, [0, 0], [32, 32], target_memory=pl.Mem.Vec), [0, 0], out)",
        ),
        "[32, 32], pl.FP32",
    )
    rng = np.random.default_rng(16)
    a, b = (rng.integers(-9, 10, shape).astype(np.float16) for shape in ((32, 64), (64, 32)))
    found = agreed(made, {"a": a, "b": b, "sums": np.zeros((32, 32), np.float32)})
    assert np.array_equal(found, -(a.astype(np.float32) @ b.astype(np.float32)))


def test_cores_that_join_for_want_of_flags_do_the_same(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hazards, "JOIN_ID", 0)
    made = quantised(moved=False)
    found = agreed(made, operands())
    (kernel,) = compiled(made).executable.kernels
    for part in kernel.programs:
        joins = [each for each in part.program if each.mnemonic == "pipe_barrier"]
        flags = [each for each in part.program if each.mnemonic == "set_core_flag"]
        assert len(joins) == len(flags) > 0
    given = operands()
    x, y = given["x"].astype(np.float64), given["y"].astype(np.float64)
    assert found.tobytes() == as_bf16(np.maximum(x @ y.T + given["bias"], 0))


@pytest.mark.parametrize("seed", range(5))
def test_random_kernels_agree_with_the_interpreter(seed: int):
    agreed_chain(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_more_random_kernels_agree_with_the_interpreter(part: int):
    for seed in range(100 + 15 * part, 115 + 15 * part):
        agreed_chain(seed)


def agreed_chain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = chained(rng)
    (kernel,) = compiled(made).executable.kernels
    agreed(made, chained_inputs(rng), pair=kernel.mate is not None)
