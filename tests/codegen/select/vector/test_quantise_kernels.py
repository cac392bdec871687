"""Quantising on the vector core, in whole kernels: bit for bit what `numerics.quantize` says.

Scales leave as rows of bytes, box after box, or into MX tensors.
"""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox import pl
from scalebox.codegen.executable import Executable
from scalebox.codegen.isa.vocabulary import ElementType, FloatType, QuantRule
from scalebox.ir import numerics
from scalebox.ir.core import Program
from scalebox.ir.dtypes import DType
from scalebox.ir.errors import InvalidOperationError, IRValueError, UserError

Array = npt.NDArray[Any]

SOURCES: dict[str, Any] = {"FP32": np.float32, "BF16": ml_dtypes.bfloat16, "FP16": np.float16}
#: The smallest and the largest positive number of each.
EXTREMES = {
    "FP32": (2.0**-149, (2 - 2.0**-23) * 2.0**127),
    "BF16": (2.0**-133, (2 - 2.0**-7) * 2.0**127),
    "FP16": (2.0**-24, 65504.0),
}
TARGETS = {"FP8E4M3FN": (DType.MXFP8_E4M3, "e4m3"), "FP4": (DType.MXFP4, "e2m1")}
PAIRS = [
    ("FP32", "FP8E4M3FN"),
    ("BF16", "FP8E4M3FN"),
    ("FP16", "FP8E4M3FN"),
    ("BF16", "FP4"),
    ("FP16", "FP4"),
]

IN_LOOPS = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[{rows}, {depth}], pl.{source}],
          q: pl.Out[pl.Tensor[{elements}, pl.{target}]],
          s: pl.Out[pl.Tensor[[{tiles}, {bytes}], pl.FP8E8M0]]):
        for i in pl.range(0, {rows}, 64):
            for j in pl.range(0, {depth}, 128):
                t = pl.load(x, [i, j], [64, 128], target_memory=pl.Mem.Vec)
                e, c = pl.quant_mx(t, group_axis={axis}, dtype=pl.{target}, rule="{rule}")
                q = pl.store(e, {at}, q)
                s = pl.store(c, [i // 64 * {across} + j // 128, 0], s, [1, {bytes}])
        return q, s
"""


def parsed(text: str) -> Program:
    made = pl.parse(text)
    assert isinstance(made, Program)
    return made


def program(source: str, target: str, axis: int, rule: str, rows: int, depth: int) -> Program:
    text = IN_LOOPS.format(
        source=source,
        target=target,
        axis=axis,
        rule=rule,
        rows=rows,
        depth=depth,
        elements=[rows, depth] if axis == 1 else [depth, rows],
        at="[i, j]" if axis == 1 else "[j, i]",
        tiles=(rows // 64) * (depth // 128),
        across=depth // 128,
        bytes=64 * 4,
    )
    return parsed(text)


def drawn(source: str, rows: int, depth: int) -> Array:
    """Numbers of many sizes, with groups of zeros, of subnormals, a NaN, infinities and the largest."""
    rng = np.random.default_rng(8)
    spread = np.exp2(rng.integers(-14, 12, (rows, depth // 32)).astype(np.float64))
    wide = rng.standard_normal((rows, depth)) * np.repeat(spread, 32, axis=1)
    x = wide.astype(np.float32).astype(SOURCES[source])
    x[0, :32], x[1, 32:64] = 0, -0.0
    x[2, 40], x[3, 70], x[4, 71] = np.nan, np.inf, -np.inf
    x[5, 64:96], x[6, 64:96] = EXTREMES[source]
    return x


def same_bits(one: Array, other: Array) -> bool:
    return one.view(np.uint8).tobytes() == other.view(np.uint8).tobytes()


@pytest.mark.parametrize("rule", ["floor", "nv"])
@pytest.mark.parametrize("axis", [1, 0])
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_larger_tensor_is_quantised_tile_by_tile(
    source: str, target: str, axis: int, rule: str
) -> None:
    made = program(source, target, axis, rule, 128, 256)
    x = drawn(source, 128, 256)
    found = scalebox.run(made, {"x": x}, timing=False).outputs
    golden = scalebox.interpret(made, {"x": x})
    wanted = numerics.quantize(x, TARGETS[target][0], axis=1, rule=rule)
    codes, scales = wanted.elements, wanted.scales
    assert same_bits(found["q"], np.ascontiguousarray(codes if axis == 1 else codes.T))
    for number in range(4):
        row, col = divmod(number, 2)
        part = scales[64 * row : 64 * row + 64, 4 * col : 4 * col + 4]
        boxes = numerics.pack_scales_a(part) if axis == 1 else numerics.pack_scales_b(part.T)
        assert same_bits(found["s"][number], boxes.reshape(-1)), number
    assert all(same_bits(found[name], golden[name]) for name in "qs")


@pytest.mark.parametrize("axis", [1, 0])
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_the_instructions_of_a_quantisation(source: str, target: str, axis: int) -> None:
    """64 x 128 elements: scales as 64 rows of 32 bytes, of which 4 hold codes, then 4 x 2 boxes."""
    made = scalebox.compile(program(source, target, axis, "nv", 64, 128))
    (kernel,) = made.kernels
    vector = [each for each in kernel.program if each.mnemonic.startswith("v_")]
    names = ["v_quant_mx", "v_transpose", "v_scale_boxes"]
    assert [each.mnemonic for each in vector] == (names if axis == 0 else [names[0], names[2]])
    quant, boxes = vector[0], vector[-1]
    size = np.dtype(SOURCES[source]).itemsize
    bits = 8 if target == "FP8E4M3FN" else 4
    assert quant.fields == {
        "dst": quant["dst"],
        "src": 0,
        "scales": quant["scales"],
        "type": FloatType[source],
        "element": ElementType[TARGETS[target][1].upper()],
        "rule": QuantRule.NV,
        "rows": 64,
        "cols": 128,
        "dst_pitch": 128 * bits // 8 // 32,
        "src_pitch": 128 * size // 32,
        "scale_pitch": 1,
    }
    places = {"src": quant["scales"], "dst": boxes["dst"]}
    assert boxes.fields == {**places, "rows": 64, "cols": 4, "src_pitch": 1}
    if axis == 0:
        assert vector[1].fields == {
            "dst": vector[1]["dst"],
            "src": quant["dst"],
            "type": vector[1]["type"],
            "rows": 64,
            "cols": 128,
            "dst_pitch": 64 * bits // 8 // 32,
            "src_pitch": 128 * bits // 8 // 32,
        }
    store = [each for each in kernel.program if each.mnemonic == "ub_to_gm"][-1]
    assert (store["ub"], store["rows"], store["cols"]) == (boxes["dst"], 1, 256)


@pytest.mark.parametrize("axis", [1, 0])
@pytest.mark.parametrize(("rows", "depth"), [(32, 64), (32, 1024), (64, 1088), (96, 192)])
def test_tiles_of_many_shapes(rows: int, depth: int, axis: int) -> None:
    """From 1056 columns on a row of scale codes takes two units of 32 bytes."""
    shape = [rows, depth] if axis == 1 else [depth, rows]
    size = rows * depth // 32
    made = parsed(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[{rows}, {depth}], pl.FP16], q: pl.Out[pl.Tensor[{shape}, pl.FP8E4M3FN]],
          s: pl.Out[pl.Tensor[[{rows // 16}, {size // (rows // 16)}], pl.FP8E8M0]]):
        t = pl.load(x, [0, 0], [{rows}, {depth}], target_memory=pl.Mem.Vec)
        e, c = pl.quant_mx(t, group_axis={axis})
        q = pl.store(e, [0, 0], q)
        s = pl.store(c, [0, 0], s, [{rows // 16}, {size // (rows // 16)}])
        return q, s
""")
    x = drawn("FP16", rows, max(depth, 96))[:, :depth].copy()
    found = scalebox.run(made, {"x": x}, timing=False).outputs
    golden = scalebox.interpret(made, {"x": x})
    wanted = numerics.quantize(x, DType.MXFP8_E4M3, axis=1)
    elements = wanted.elements if axis == 1 else np.ascontiguousarray(wanted.elements.T)
    assert same_bits(found["q"], elements)
    assert same_bits(found["s"], numerics.pack_scales_a(wanted.scales))
    assert all(same_bits(found[name], golden[name]) for name in "qs")


MX_STORE = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 256], pl.FP32], a: pl.Out[pl.Tensor[[64, 256], pl.FP8E4M3FN]],
          sa: pl.Out[pl.Tensor[[64, 8], pl.FP8E8M0, pl.MX_A_ZZ]],
          b: pl.Out[pl.Tensor[[256, 64], pl.FP8E4M3FN]],
          sb: pl.Out[pl.Tensor[[8, 64], pl.FP8E8M0, pl.MX_B_NN]]):
        for i in pl.range(0, 64, 32):
            for j in pl.range(0, 256, 64):
                t = pl.load(x, [i, j], [32, 64], target_memory=pl.Mem.Vec)
                e, c = pl.quant_mx(t, group_axis=1)
                a = pl.store(e, [i, j], a)
                sa = pl.store(c, [i, j // 32], sa)
                turned, d = pl.quant_mx(t, group_axis=0)
                b = pl.store(turned, [j, i], b)
                sb = pl.store(d, [j // 32, i], sb)
        return a, sa, b, sb
"""


def test_scales_go_into_the_boxes_of_an_mx_tensor_where_that_is_allowed() -> None:
    made = parsed(MX_STORE)
    x = drawn("FP32", 64, 256)
    executable = scalebox.compile(made, allow_mx_store=True)
    (kernel,) = executable.kernels
    stores = [each for each in kernel.program if each.mnemonic == "ub_to_gm_boxes"]
    assert [(s["ni"], s["nj"], s["ub_nj"]) for s in stores] == [(2, 1, 1), (2, 1, 1)]
    found = scalebox.run(executable, {"x": x}, timing=False).outputs
    golden = scalebox.interpret(made, {"x": x})
    wanted = numerics.quantize(x, DType.MXFP8_E4M3, axis=1)
    assert same_bits(found["a"], wanted.elements)
    assert same_bits(found["b"], np.ascontiguousarray(wanted.elements.T))
    assert same_bits(found["sa"], numerics.pack_scales_a(wanted.scales))
    assert same_bits(found["sb"], numerics.pack_scales_b(wanted.scales.T))
    assert all(same_bits(found[name], golden[name]) for name in found)


def test_scales_go_into_no_mx_tensor_otherwise() -> None:
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(parsed(MX_STORE))
    assert caught.value.message == (
        "A tile must not be stored into an MX_A_ZZ tensor: store its bytes into an ND tensor and view "
        "that as MX in the next kernel"
    )


def quantising(call: str, source: str, load: str = "[16, 64]") -> str:
    return f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 128], pl.{source}], q: pl.Out[pl.Tensor[[64, 128], pl.FP8E4M3FN]],
          s: pl.Out[pl.Tensor[[1, 32], pl.FP8E8M0]], m: pl.Scalar[pl.INDEX]):
        t = pl.load(x, [0, 0], {load}, target_memory=pl.Mem.Vec)
        e, c = {call}
        s = pl.store(c, [0, 0], s, [1, 32])
        return s
"""


CAST = "pl.cast converts it to one of them before"
FILL = "pl.fillpad fills the rest of a tile up with zeros"
TILES = "quantise tiles of constant extents, one after another"
ZEROS = "fill up with zeros"
NUMERICS = "the device's quantiser makes no other elements; scalebox.numerics.quantize does"
SIDES = (
    "1 makes a left operand, 0 a right one, transposed; layout=pl.MX_A_ZZ and pl.MX_B_NN are the older "
    "names of the two"
)
REFUSED = [
    (quantising("pl.quant_mx(t, group_axis=1, dtype=pl.FP4)", "FP32"),
     "src must be one of BFloat16, Float16 to become E2M1, not Float32", CAST),
    (quantising("pl.quant_mx(t, group_axis=2)", "FP32"),
     "group_axis must be 0 or 1, not 2", SIDES),
    (quantising("pl.quant_mx(t, group_axis=1)", "FP32", "[16, 64], [9, 64]"),
     "src must be valid as a whole, not only [9, 64] of [16, 64]", FILL),
    (quantising("pl.quant_mx(t, group_axis=1)", "FP32", "[16, 64], [m, 64]"),
     "src must be valid as a whole, not only [m, 64] of [16, 64]", FILL),
    (quantising("pl.quant_mx(t, group_axis=1)", "FP32", "[m, 64]"),
     "src must have constant dimensions, not [m, 64]", TILES),
    (quantising("pl.quant_mx(t, group_axis=1)", "FP32", "[8, 64]"),
     "M must be a multiple of 16, not 8", ZEROS),
    (quantising("pl.quant_mx(t, group_axis=1)", "FP32", "[16, 96]"),
     "K must be a multiple of 64, not 96", ZEROS),
    (quantising("pl.quant_mx(t, group_axis=0)", "FP32"),
     "N must be a multiple of 32, not 16", ZEROS),
    (quantising("pl.quant_mx(t, group_axis=0, dtype=pl.FP4)", "FP16", "[32, 64]"),
     "N must be a multiple of 64, not 32", ZEROS),
    (quantising("pl.quant_mx(t, group_axis=1, dtype=pl.FP8E5M2)", "FP32"),
     "dtype must be E4M3 or E2M1, not E5M2", NUMERICS),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message", "hint"), REFUSED, ids=[message for _, message, _ in REFUSED]
)
def test_what_the_device_cannot_quantise_is_refused_with_a_way_out(
    text: str, message: str, hint: str
) -> None:
    with pytest.raises(InvalidOperationError) as caught:
        scalebox.compile(parsed(text))
    assert message in caught.value.message
    assert caught.value.hint == hint


def test_fp4_that_is_turned_needs_rows_of_whole_32_bytes() -> None:
    text = quantising("pl.quant_mx(t, group_axis=0, dtype=pl.FP4)", "BF16", "[32, 64]")
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(parsed(text.replace("[1, 32]", "[1, 64]")))
    assert caught.value.message == (
        "tile.quant_mx: N must be a multiple of 64 to be compiled, since a row of E2M1 must take whole "
        "32 bytes, not 32"
    )
    assert caught.value.hint == "quantise more rows at once, or fill up with zeros"


def test_an_odd_number_of_columns_of_fp4_is_refused() -> None:
    text = quantising("pl.quant_mx(t, group_axis=1, dtype=pl.FP4)", "BF16").replace(
        "q: pl.Out[pl.Tensor[[64, 128], pl.FP8E4M3FN]]", "q: pl.Out[pl.Tensor[[64, 127], pl.FP4]]"
    )
    with pytest.raises(UserError, match="even"):
        scalebox.compile(parsed(text))


def test_a_result_may_be_taken_apart_where_it_is_used() -> None:
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 128], pl.FP32], q: pl.Out[pl.Tensor[[64, 128], pl.FP8E4M3FN]],
          s: pl.Out[pl.Tensor[[1, 32], pl.FP8E8M0]]):
        t = pl.load(x, [0, 0], [64, 128], target_memory=pl.Mem.Vec)
        both = pl.quant_mx(t, group_axis=1)
        q = pl.store(both[0], [0, 0], q)
        return q
"""
    x = drawn("FP32", 64, 128)
    found = scalebox.run(parsed(text), {"x": x}, timing=False).outputs["q"]
    assert same_bits(found, numerics.quantize(x, DType.MXFP8_E4M3, axis=1).elements)


def test_scales_are_told_the_shapes_in_which_they_are_stored() -> None:
    text = quantising("pl.quant_mx(t, group_axis=1)", "FP32").replace(", [1, 32])", ")")
    text = text.replace("s: pl.Out[pl.Tensor[[1, 32]", "s: pl.Out[pl.Tensor[[64, 32]")
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(parsed(text))
    assert "must be told the shapes" in caught.value.message
    assert caught.value.hint == "pl.store(scales, [0, 0], out, [1, 32])"


def test_scales_in_boxes_are_not_cut() -> None:
    text = quantising("pl.quant_mx(t, group_axis=1)", "FP32", "[32, 64]").replace(
        "s = pl.store(c, [0, 0], s, [1, 32])",
        "s = pl.store(pl.slice(c, [16, 2], [0, 0]), [0, 0], s, [1, 32])",
    )
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(parsed(text))
    assert caught.value.message == (
        "A tile of scales in boxes must be stored or moved as it is, not cut, joined or turned"
    )


def timed(executable: Executable, x: Array) -> int:
    cycles = scalebox.run(executable, {"x": x}).cycles
    assert cycles is not None
    return cycles


def test_quantising_costs_cycles() -> None:
    x = drawn("FP32", 128, 256)
    one, four = (
        timed(
            scalebox.compile(program("FP32", "FP8E4M3FN", 1, "floor", rows, depth)),
            x[:rows, :depth],
        )
        for rows, depth in ((64, 128), (128, 256))
    )
    assert 0 < one < four
