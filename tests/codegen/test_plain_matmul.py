"""Products without scales, from kernel text to numbers, against exact arithmetic of numpy."""

import ml_dtypes
import numpy as np
import pytest

import scalebox
from scalebox.ir.core import Program
from scalebox.ir.errors import IRValueError

from .select.tails import NUMPY, Array, Extents, check, codes, parsed, round_up, small

pytestmark = pytest.mark.usefixtures("dirty")

DTYPES = ("FP16", "BF16", "FP32", "FP8E4M3FN", "FP8E5M2", "INT8")
BITS = {"FP16": 16, "BF16": 16, "FP32": 32}


def out_of(dtype: str) -> str:
    return "INT32" if dtype == "INT8" else "FP32"


def product(
    body: str, valid: Extents, dtype: str, *, physical: Extents | None = None, other: str = ""
) -> tuple[Program, dict[str, Array]]:
    """Return a kernel around a body, and its inputs with poison around what is valid."""
    m, k, n = valid
    c0 = 256 // BITS.get(dtype, 8)
    rows, depth, columns = physical or (round_up(m, 16), round_up(k, max(16, c0)), round_up(n, 16))
    out = out_of(dtype)
    text = f"""
    def tail(self, a: pl.Tensor[[{rows}, {depth}], pl.{dtype}],
             b: pl.Tensor[[{depth}, {columns}], pl.{other or dtype}],
             z: pl.Tensor[[1, {columns}], pl.{out}],
             c: pl.Out[pl.Tensor[[{m}, {n}], pl.{out}]]):
        al = pl.load(a, [0, 0], [{rows}, {depth}], [{m}, {k}])
        bl = pl.load(b, [0, 0], [{depth}, {columns}], [{k}, {n}])
        zl = pl.load(z, [0, 0], [1, {columns}], [1, {n}])
{body}        c = pl.store(acc, [0, 0], c)
        return c
"""
    rng = np.random.default_rng((m, k, n))
    return parsed(text), {
        "a": codes(small(rng, m, k), dtype, (rows, depth)),
        "b": codes(small(rng, k, n), other or dtype, (depth, columns)),
        "z": codes(small(rng, 1, n), out, (1, columns)),
    }


def exact(inputs: dict[str, Array], valid: Extents, dtype: str, *, times: int, bias: bool) -> Array:
    m, k, n = valid
    a, b, z = (inputs[name].astype(np.float64) for name in ("a", "b", "z"))
    total = times * (a[:m, :k] @ b[:k, :n]) + (z[:, :n] if bias else 0)
    return total.astype(NUMPY[out_of(dtype)])


TAILS: tuple[Extents, ...] = ((16, 32, 16), (1, 1, 1), (17, 70, 33), (47, 100, 127), (128, 128, 64))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("valid", TAILS, ids=str)
def test_products_of_every_type_and_extent_are_exact(dtype: str, valid: Extents) -> None:
    program, inputs = product("        acc = pl.matmul(al, bl)\n", valid, dtype)
    check(program, inputs, exact(inputs, valid, dtype, times=1, bias=False))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("valid", [(17, 70, 33), (1, 64, 16)], ids=str)
def test_sums_start_from_biases_and_go_on(dtype: str, valid: Extents) -> None:
    body = "        acc = pl.matmul_bias(al, bl, zl)\n        acc = pl.matmul_acc(acc, al, bl)\n"
    program, inputs = product(body, valid, dtype)
    check(program, inputs, exact(inputs, valid, dtype, times=2, bias=True))


@pytest.mark.parametrize("pair", [("FP8E4M3FN", "FP8E5M2"), ("FP8E5M2", "FP8E4M3FN")])
def test_both_formats_of_8_bits_meet(pair: tuple[str, str]) -> None:
    valid = (17, 70, 33)
    program, inputs = product("        acc = pl.matmul(al, bl)\n", valid, pair[0], other=pair[1])
    check(program, inputs, exact(inputs, valid, pair[0], times=1, bias=False))


@pytest.mark.parametrize("dtype", ["FP16", "INT8"])
@pytest.mark.parametrize("rows", [1, 16, 17, 47])
def test_fewer_valid_rows_than_boxes_are_stored_and_added_to_in_their_place(
    dtype: str, rows: int
) -> None:
    """64 rows of which 16 are valid are the classic wrong answer: written 16 rows apart, read 64."""
    body = "        acc = pl.matmul_bias(al, bl, zl)\n        acc = pl.matmul_acc(acc, al, bl)\n"
    valid = (rows, 64, 40)
    program, inputs = product(body, valid, dtype, physical=(64, 64, 48))
    check(program, inputs, exact(inputs, valid, dtype, times=2, bias=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("depth", [1, 30, 64, 200])
def test_a_row_times_a_matrix_is_exact(dtype: str, depth: int) -> None:
    body = (
        "        acc = pl.gemv_bias(al, bl, zl)\n"
        "        acc = pl.gemv_acc(acc, al, bl, acc_phase=pl.AccPhase.final)\n"
    )
    valid, deep = (1, depth, 40), round_up(depth, 32)
    program, inputs = product(body, valid, dtype, physical=(1, deep, 48))
    check(program, inputs, exact(inputs, valid, dtype, times=2, bias=True))


STEPS = """
    def steps(self, a: pl.Tensor[[32, 256], pl.{dtype}], b: pl.Tensor[[256, 48], pl.{dtype}],
              c: pl.Out[pl.Tensor[[32, 48], pl.{out}]]):
        acc = pl.create_tile([32, 48], pl.{out}, target_memory=pl.Mem.Acc)
        for k in pl.{loop}:
            al = pl.load(a, [0, k], [32, 64])
            bl = pl.load(b, [k, 0], [64, 48])
            acc = pl.matmul_acc(acc, al, bl, init_cond=(k {when}))
        c = pl.store(acc, [0, 0], c)
        return c
"""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("loop", ["range(0, 256, 64)", "pipeline(0, 256, 64, stage=2)"])
def test_the_first_step_of_a_loop_overwrites_and_the_others_add(dtype: str, loop: str) -> None:
    rng = np.random.default_rng(7)
    program = parsed(STEPS.format(dtype=dtype, out=out_of(dtype), loop=loop, when="== 0"))
    a, b = small(rng, 32, 256), small(rng, 256, 48)
    inputs = {"a": a.astype(NUMPY[dtype]), "b": b.astype(NUMPY[dtype])}
    check(program, inputs, (a @ b).astype(NUMPY[out_of(dtype)]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("loop", ["range(0, 192, 64)", "pipeline(0, 192, 64, stage=2)"])
def test_a_sum_of_fewer_rows_and_columns_begins_in_a_loop_too(dtype: str, loop: str) -> None:
    out = out_of(dtype)
    program = parsed(f"""
    def steps(self, a: pl.Tensor[[20, 192], pl.{dtype}], b: pl.Tensor[[192, 40], pl.{dtype}],
              c: pl.Out[pl.Tensor[[13, 27], pl.{out}]]):
        whole = pl.create_tile([16, 32], pl.{out}, target_memory=pl.Mem.Acc)
        acc = pl.set_validshape(whole, 13, 27)
        for k in pl.{loop}:
            al = pl.load(a, [0, k], [16, 64], [13, 64])
            bl = pl.load(b, [k, 0], [64, 32], [64, 27])
            acc = pl.matmul_acc(acc, al, bl, init_cond=(k == 0))
        c = pl.store(acc, [0, 0], c)
        return c
""")
    rng = np.random.default_rng(10)
    a, b = small(rng, 13, 192), small(rng, 192, 27)
    inputs = {"a": codes(a, dtype, (20, 192)), "b": codes(b, dtype, (192, 40))}
    check(program, inputs, (a @ b).astype(NUMPY[out]))


@pytest.mark.parametrize("dtype", ["FP16", "INT8"])
@pytest.mark.parametrize("loop", ["range(0, 64, 16)", "pipeline(0, 64, 16, stage=2)"])
def test_a_sum_of_whole_tensors_begins_in_a_loop_too(dtype: str, loop: str) -> None:
    out = out_of(dtype)
    program = parsed(f"""
    def sum(self, a: pl.Tensor[[20, 64], pl.{dtype}], b: pl.Tensor[[64, 30], pl.{dtype}]):
        c = pl.create_tensor([20, 30], dtype=pl.{out})
        for k in pl.{loop}:
            c = pl.matmul_acc(c, a[:, k : k + 16], b[k : k + 16, :], init_cond=(k == 0))
        return c
""")
    rng = np.random.default_rng(12)
    a, b = small(rng, 20, 64), small(rng, 64, 30)
    inputs = {"a": a.astype(NUMPY[dtype]), "b": b.astype(NUMPY[dtype])}
    check(program, inputs, (a @ b).astype(NUMPY[out]))


NARROWED = """
    def narrowed(self, a: pl.Tensor[[64, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16],
                 c: pl.Out[pl.Tensor[[13, 32], pl.FP32]]):
        al = pl.load(a, [0, 0], [64, 64], [{rows}, 64])
        few = pl.load(a, [0, 0], [64, 64], [13, 64])
        bl = pl.load(b, [0, 0], [64, 32])
        acc = pl.matmul(al, bl)
        less = pl.set_validshape(acc, 13, 32){more}
        c = pl.store({stored}, [0, 0], c, pre_relu={relu})
        return c
"""


@pytest.mark.parametrize("relu", [False, True])
def test_the_first_rows_of_a_whole_accumulator_are_read_where_they_stand(relu: bool) -> None:
    """64 rows were written 64 apart, so the 13 that are left of them are read so."""
    text = NARROWED.format(rows=64, more="", stored="less", relu=relu)
    rng = np.random.default_rng(11)
    a, b = small(rng, 64, 64), small(rng, 64, 32)
    wanted = (a @ b)[:13].astype(np.float32)
    inputs = {"a": a.astype(np.float16), "b": b.astype(np.float16)}
    check(parsed(text), inputs, np.maximum(wanted, 0) if relu else wanted)


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        (40, "", "must fill as many boxes of 16 rows as before, 3, since"),
        (64, "more", "must have its boxes 16 rows apart, not 64"),
    ],
)
def test_an_accumulator_that_would_be_read_elsewhere_than_written_is_refused(
    rows: int, more: str, message: str
) -> None:
    lines = "\n        more = pl.matmul_acc(less, few, bl)" if more else ""
    text = NARROWED.format(rows=rows, more=lines, stored=more or "less", relu=False)
    with pytest.raises(IRValueError, match=message):
        scalebox.compile(parsed(text))


def test_a_sum_may_begin_anew_in_the_middle() -> None:
    rng = np.random.default_rng(8)
    text = STEPS.format(dtype="BF16", out="FP32", loop="range(0, 256, 64)", when="% 128 == 0")
    a, b = small(rng, 32, 256), small(rng, 256, 48)
    inputs = {"a": a.astype(NUMPY["BF16"]), "b": b.astype(NUMPY["BF16"])}
    check(parsed(text), inputs, (a[:, 128:] @ b[128:]).astype(np.float32))


def test_a_sum_that_never_began_is_a_fault_of_the_kernel() -> None:
    rng = np.random.default_rng(9)
    program = parsed(STEPS.format(dtype="BF16", out="FP32", loop="range(0, 256, 64)", when="== 64"))
    inputs = {"a": small(rng, 32, 256), "b": small(rng, 256, 48)}
    inputs = {name: values.astype(NUMPY["BF16"]) for name, values in inputs.items()}
    with pytest.raises(scalebox.ir.errors.SimulationFault, match="must use only what was written"):
        scalebox.run(program, inputs)


@pytest.mark.parametrize("dtype", ["FP16", "FP32", "FP8E5M2"])
def test_numbers_of_every_size_are_rounded_step_by_step_alike(dtype: str) -> None:
    """Sums that are not exact: machine and interpreter agree bit for bit."""
    rng = np.random.default_rng(10)
    program, inputs = product("        acc = pl.matmul_bias(al, bl, zl)\n", (31, 100, 47), dtype)
    for name in ("a", "b"):
        wide = rng.standard_normal(inputs[name].shape) * 2.0 ** rng.integers(
            -9, 9, inputs[name].shape
        )
        inputs[name] = wide.astype(NUMPY[dtype])
    ran = scalebox.run(program, inputs)
    assert scalebox.compare(ran.outputs, scalebox.interpret(program, inputs))


def test_integers_wrap_in_32_bits() -> None:
    program, inputs = product("        acc = pl.matmul_bias(al, bl, zl)\n", (16, 32, 16), "INT8")
    inputs["a"][:], inputs["b"][:], inputs["z"][:] = -128, -128, 2**31 - 1
    expected = np.full((16, 16), 2**31 - 1 + 32 * 2**14 - 2**32, np.int32)
    check(program, inputs, expected)


def saturated(values: Array, out: str) -> Array:
    """Return Float32 numbers as elements of 8 bits, to nearest even and no further than these reach."""
    if out == "FP8E4M3FN":
        return np.clip(values, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    if out == "FP8E5M2":
        return np.clip(values, -57344, 57344).astype(ml_dtypes.float8_e5m2)
    kind = NUMPY[out]
    least, most = (0, 255) if out == "UINT8" else (-128, 127)
    return np.clip(np.rint(values), least, most).astype(kind)


@pytest.mark.parametrize("out", ["FP8E4M3FN", "FP8E5M2", "INT8", "UINT8", "BF16", "FP32"])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("scale", [0.3, -40])
def test_sums_are_multiplied_by_a_number_on_their_way_out(
    out: str, relu: bool, scale: float
) -> None:
    rng = np.random.default_rng(11)
    program = parsed(f"""
    def scaled(self, a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 48], pl.FP16],
               c: pl.Out[pl.Tensor[[17, 33], pl.{out}]]):
        al = pl.load(a, [0, 0], [32, 64], [17, 64])
        bl = pl.load(b, [0, 0], [64, 48], [64, 33])
        acc = pl.matmul(al, bl)
        c = pl.store(acc, [0, 0], c, pre_quant={scale}, pre_relu={relu})
        return c
""")
    a, b = small(rng, 32, 64), small(rng, 64, 48)
    inputs = {"a": a.astype(np.float16), "b": b.astype(np.float16)}
    scaled = (a[:17] @ b[:, :33]).astype(np.float32) * np.float32(scale)
    if relu:
        scaled = np.where(scaled > 0, scaled, np.float32(0))
    check(
        program,
        inputs,
        scaled.astype(NUMPY[out]) if out[-2:] in ("16", "32") else saturated(scaled, out),
    )


@pytest.mark.parametrize("out", ["FP32", "BF16", "FP16"])
def test_negative_sums_become_zero_on_their_way_out(out: str) -> None:
    rng = np.random.default_rng(11)
    program = parsed(f"""
    def relu(self, a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 48], pl.FP16],
             c: pl.Out[pl.Tensor[[17, 33], pl.{out}]]):
        al = pl.load(a, [0, 0], [32, 64], [17, 64])
        bl = pl.load(b, [0, 0], [64, 48], [64, 33])
        acc = pl.matmul(al, bl)
        c = pl.store(acc, [0, 0], c, pre_relu=True)
        return c
""")
    a, b = small(rng, 32, 64), small(rng, 64, 48)
    a[3, 0], a[3, 1:], b[0, 5] = np.nan, 0, 0
    inputs = {"a": a.astype(np.float16), "b": b.astype(np.float16)}
    sums = a[:17] @ b[:, :33]
    expected = np.where(sums > 0, sums, np.where(np.isnan(sums), np.nan, 0.0))
    assert (sums < 0).any()
    assert np.isnan(expected[3]).all()
    check(program, inputs, expected.astype(NUMPY[out]))


def test_a_product_that_the_compiler_cuts_is_scaled_in_every_piece() -> None:
    """256 x 512 and 512 x 256 elements of 16 bits do not fit into L0A and L0B."""
    rng = np.random.default_rng(12)
    program = parsed("""
    def cut(self, a: pl.Tensor[[256, 512], pl.FP16], b: pl.Tensor[[512, 256], pl.FP16],
            c: pl.Out[pl.Tensor[[256, 256], pl.INT8]]):
        acc = pl.matmul(pl.load(a, [0, 0], [256, 512]), pl.load(b, [0, 0], [512, 256]))
        c = pl.store(acc, [0, 0], c, pre_quant=0.75, pre_relu=True)
        return c
""")
    a, b = small(rng, 256, 512), small(rng, 512, 256)
    sums = np.maximum(a @ b * 0.75, 0.0)
    assert (sums > 127).any()
    inputs = {"a": a.astype(np.float16), "b": b.astype(np.float16)}
    check(program, inputs, saturated(sums, "INT8"))
