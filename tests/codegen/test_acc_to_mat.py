"""pl.move of sums from Acc to Mat or Vec: converted on their way, and chained into the next product."""

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox import ir
from scalebox.ir.core import Program
from scalebox.ir.errors import IRValueError, UserError

from .select.tails import NUMPY, Array, boxed_a, boxed_b, codes, parsed, small

pytestmark = pytest.mark.usefixtures("dirty")

DEPTH = 64
LIMIT = {"FP8E4M3FN": 448.0, "FP8E5M2": 57344.0}


def stored(sums: npt.NDArray[np.float32], dtype: str) -> Array:
    """Return sums as the fixpipe makes them: nearest even, FP8 saturated."""
    if dtype.startswith("FP8"):
        sums = np.clip(sums, -LIMIT[dtype], LIMIT[dtype])
    return sums.astype(NUMPY[dtype])


def both(program: Program, inputs: dict[str, Array]) -> tuple[Array, Array]:
    return scalebox.run(program, inputs).outputs["o"], scalebox.interpret(program, inputs)["o"]


def chained(valid: tuple[int, int, int, int], dtype: str, said: str) -> str:
    m, k, n, p = valid
    return f"""
    def tail(self, a: pl.Tensor[[32, {DEPTH}], pl.FP16], b: pl.Tensor[[{DEPTH}, 64], pl.FP16],
             d: pl.Tensor[[64, 32], pl.{dtype}], o: pl.Out[pl.Tensor[[{m}, {p}], pl.FP32]]):
        x = pl.load(a, [0, 0], [32, {DEPTH}], [{m}, {k}], target_memory=pl.Mem.Mat)
        y = pl.load(b, [0, 0], [{DEPTH}, 64], [{k}, {n}], target_memory=pl.Mem.Mat)
        z = pl.load(d, [0, 0], [64, 32], [{n}, {p}], target_memory=pl.Mem.Mat)
        h = pl.move(pl.matmul(x, y), target_memory=pl.Mem.Mat{said})
        o = pl.store(pl.matmul(h, z), [0, 0], o)
        return o
"""


def drawn(valid: tuple[int, int, int, int], dtype: str) -> tuple[dict[str, Array], list[Array]]:
    m, k, n, p = valid
    rng = np.random.default_rng(valid)
    values = [small(rng, m, k), small(rng, k, n), small(rng, n, p)]
    inputs = {
        "a": codes(values[0], "FP16", (32, DEPTH)),
        "b": codes(values[1], "FP16", (DEPTH, 64)),
        "d": codes(values[2], dtype, (64, 32)),
    }
    return inputs, values


@pytest.mark.parametrize(
    ("dtype", "said", "factor", "relu"),
    [
        ("FP16", ", dtype=pl.FP16", None, False),
        ("BF16", ", dtype=pl.BF16, pre_relu=True", None, True),
        ("FP32", "", None, False),
        ("FP8E4M3FN", ", dtype=pl.FP8E4M3FN, pre_quant=0.25", 0.25, False),
        ("FP8E5M2", ", dtype=pl.FP8E5M2, pre_quant=-3.0, pre_relu=True", -3.0, True),
    ],
)
@pytest.mark.parametrize(
    "valid", [(32, 64, 64, 32), (17, 50, 33, 31), (1, 64, 40, 5), (31, 1, 1, 1)]
)
def test_a_product_goes_into_the_next_one_without_a_way_through_global_memory(
    valid: tuple[int, int, int, int], dtype: str, said: str, factor: float | None, relu: bool
) -> None:
    program = parsed(chained(valid, dtype, said))
    inputs, (a, b, d) = drawn(valid, dtype)
    sums = (a @ b).astype(np.float32)
    if factor is not None:
        sums = sums * np.float32(factor)
    if relu:
        sums = np.maximum(sums, np.float32(0))
    # What enters the second product has few bits: all of its sums are exact.
    wanted = (stored(sums, dtype).astype(np.float64) @ d).astype(np.float32)
    for made in both(program, inputs):
        np.testing.assert_array_equal(made, wanted)


def test_the_cube_core_does_it_alone_by_one_instruction() -> None:
    executable = scalebox.compile(parsed(chained((32, 64, 64, 32), "FP16", ", dtype=pl.FP16")))
    (kernel,) = executable.kernels
    assert kernel.mate is None
    names = [each.mnemonic for each in kernel.program]
    assert names.count("l0c_to_l1") == 1
    assert names.count("l0c_to_gm") == 1


def test_a_block_scaled_product_takes_sums_that_became_fp8() -> None:
    program = parsed("""
    def tail(self, a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 96], pl.FP16],
             sa: pl.Tensor[[32, 4], pl.FP8E8M0, pl.MX_A_ZZ], d: pl.Tensor[[128, 32], pl.FP8E4M3FN],
             sd: pl.Tensor[[4, 32], pl.FP8E8M0, pl.MX_B_NN], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        x = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        y = pl.load(b, [0, 0], [64, 128], [64, 72], target_memory=pl.Mem.Mat)
        z = pl.load(d, [0, 0], [128, 32], [72, 32], target_memory=pl.Mem.Mat)
        s = pl.load(sa, [0, 0], [32, 4], [32, 3], target_memory=pl.Mem.Mat)
        t = pl.load(sd, [0, 0], [4, 32], [3, 32], target_memory=pl.Mem.Mat)
        h = pl.move(pl.matmul(x, y), target_memory=pl.Mem.Mat, dtype=pl.FP8E4M3FN, pre_quant=0.5)
        o = pl.store(pl.matmul_mx(h, s, z, t), [0, 0], o)
        return o
""")
    rng = np.random.default_rng(11)
    a, b, d = small(rng, 32, 64), small(rng, 64, 72), small(rng, 72, 32)
    sa = rng.integers(126, 130, (32, 4)).astype(np.uint8)
    sd = rng.integers(126, 130, (4, 32)).astype(np.uint8)
    inputs = {
        "a": codes(a, "FP16", (32, 64)),
        "b": codes(b, "FP16", (64, 96)),
        "sa": boxed_a(sa),
        "d": codes(d, "FP8E4M3FN", (128, 32)),
        "sd": boxed_b(sd),
    }
    h = stored((a @ b).astype(np.float32) * np.float32(0.5), "FP8E4M3FN").astype(np.float64)
    left = h * np.repeat(2.0 ** (sa.astype(float) - 127), 32, 1)[:, :72]
    right = d * np.repeat(2.0 ** (sd.astype(float) - 127), 32, 0)[:72]
    for made in both(program, inputs):
        np.testing.assert_array_equal(made, (left @ right).astype(np.float32))


def test_sums_in_mat_are_filled_up_as_a_loaded_tile() -> None:
    text = chained((17, 50, 33, 31), "FP16", ", dtype=pl.FP16")
    text = text.replace("[64, 32], [33, 31]", "[64, 32], [64, 31]").replace(
        "matmul(h, z)", "matmul(pl.fillpad(h), z)"
    )
    text = text.replace("[[17, 31]", "[[32, 31]")
    inputs, (a, b, d) = drawn((17, 50, 33, 31), "FP16")
    inputs["d"] = codes(np.concatenate([d, np.ones((31, 31))]), "FP16", (64, 32))
    wanted = np.zeros((32, 31), np.float32)
    wanted[:17] = stored((a @ b).astype(np.float32), "FP16").astype(np.float64) @ d
    for made in both(parsed(text), inputs):
        np.testing.assert_array_equal(made, wanted)


def test_sums_go_to_a_vector_core_as_another_dtype() -> None:
    program = parsed("""
    def tail(self, a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16],
             o: pl.Out[pl.Tensor[[32, 32], pl.BF16]]):
        x = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        y = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        v = pl.move(pl.matmul(x, y), target_memory=pl.Mem.Vec, dtype=pl.BF16, pre_quant=0.3, pre_relu=True)
        o = pl.store(pl.neg(v), [0, 0], o)
        return o
""")
    rng = np.random.default_rng(12)
    a, b = small(rng, 32, 64), small(rng, 64, 32)
    inputs: dict[str, Array] = {"a": codes(a, "FP16", (32, 64)), "b": codes(b, "FP16", (64, 32))}
    sums = np.maximum((a @ b).astype(np.float32) * np.float32(0.3), np.float32(0))
    for made in both(program, inputs):
        np.testing.assert_array_equal(made, (-sums).astype(ml_dtypes.bfloat16))


def test_sums_of_int8_stand_in_mat_as_they_are() -> None:
    program = parsed("""
    def tail(self, a: pl.Tensor[[16, 32], pl.INT8], b: pl.Tensor[[32, 16], pl.INT8],
             o: pl.Out[pl.Tensor[[16, 16], pl.INT32]]):
        x = pl.load(a, [0, 0], [16, 32], target_memory=pl.Mem.Mat)
        y = pl.load(b, [0, 0], [32, 16], target_memory=pl.Mem.Mat)
        r = pl.matmul(x, y)
        h = pl.move(r, target_memory=pl.Mem.Mat)
        o = pl.store(r, [0, 0], o)
        return o
""")
    (kernel,) = scalebox.compile(program).kernels
    (move,) = (each for each in kernel.program if each.mnemonic == "l0c_to_l1")
    assert move["convert"] == 3


def test_it_prints_as_it_parses_after_every_pass() -> None:
    program = parsed(chained((17, 50, 33, 31), "FP8E4M3FN", ", dtype=pl.FP8E4M3FN, pre_quant=0.25"))
    for each in ir.passes.default_pipeline():
        program = each(program)
        ir.assert_structural_equal(scalebox.pl.parse(ir.python_print(program)), program)


BODY = """
    def tail(self, a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16],
             o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        x = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        y = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        r = pl.matmul(x, y)
        h = {move}
        o = pl.store(r, [0, 0], o)
        return o
"""


@pytest.mark.parametrize(
    ("move", "clause"),
    [
        (
            "pl.move(r, target_memory=pl.Mem.Mat, dtype=pl.FP8E4M3FN)",
            "a tile of Float32 in Acc must be moved as Float32, BFloat16, Float16, not as E4M3",
        ),
        (
            "pl.move(r, target_memory=pl.Mem.Mat, dtype=pl.INT32)",
            "a tile of Float32 in Acc must be moved as Float32, BFloat16, Float16, not as Int32",
        ),
        (
            "pl.move(x, target_memory=pl.Mem.Left, dtype=pl.BF16)",
            "dtype must be for a move out of Acc to Mat or Vec, not from Mat to Left",
        ),
        (
            "pl.move(x, target_memory=pl.Mem.Left, pre_relu=True)",
            "pre_relu must be for a move out of Acc to Mat or Vec, not from Mat to Left",
        ),
        (
            "pl.move(r, target_memory=pl.Mem.Mat, blayout=pl.TileLayout.row_major)",
            "a move from Acc to Mat must leave blayout and slayout alone",
        ),
    ],
)
def test_what_the_fixpipe_does_not_do_is_refused(move: str, clause: str) -> None:
    with pytest.raises(UserError) as caught:
        parsed(BODY.format(move=move))
    assert caught.value.message == f"pl operation 'move': {clause}"


@pytest.mark.parametrize("by_vec", [True, False])
def test_a_row_of_sums_becomes_a_bias_by_way_of_vec_only(by_vec: bool) -> None:
    move = "pl.move(r, target_memory=pl.Mem.Vec)" if by_vec else "r"
    program = parsed(f"""
    def tail(self, a: pl.Tensor[[1, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16],
             d: pl.Tensor[[16, 64], pl.FP16], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        x = pl.load(a, [0, 0], [1, 64], target_memory=pl.Mem.Mat)
        y = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        z = pl.load(d, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        r = pl.gemv(x, y)
        s = pl.move(pl.move({move}, target_memory=pl.Mem.Mat), target_memory=pl.Mem.Bias)
        o = pl.store(pl.matmul_bias(z, y, s), [0, 0], o)
        return o
""")
    if not by_vec:
        with pytest.raises(IRValueError) as caught:
            scalebox.compile(program)
        wanted = "A tile must move to Bias as a plain row, not from boxes in Mat"
        assert caught.value.message == wanted
        return
    rng = np.random.default_rng(13)
    a, b, d = small(rng, 1, 64), small(rng, 64, 32), small(rng, 16, 64)
    names = (("a", a), ("b", b), ("d", d))
    inputs: dict[str, Array] = {name: codes(each, "FP16", each.shape) for name, each in names}
    for made in both(program, inputs):
        np.testing.assert_array_equal(made, (d @ b + a @ b).astype(np.float32))
