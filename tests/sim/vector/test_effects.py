"""The vector core against ml_dtypes, numpy and hand-made layouts; every address is written out."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.isa.asm import parse_program
from scalebox.codegen.isa.vocabulary import CoreKind, Space
from scalebox.ir import numerics
from scalebox.ir.dtypes import BlockScaledDType, DType
from scalebox.ir.errors import ExecutableError, SimulationFault
from scalebox.sim.costs import occupancy
from scalebox.sim.faultcodes import FaultCode

Array = npt.NDArray[Any]
NUMPY = {
    "fp32": np.dtype(np.float32),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "int32": np.dtype(np.int32),
    "int8": np.dtype(np.int8),
}


def laid_out(values: Array, pitch: int) -> Array:
    """Return the bytes of a tile whose rows stand `pitch` units of 32 bytes apart."""
    rows = np.zeros((len(values), pitch * 32), np.uint8)
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
    rows[:, : raw.shape[1]] = raw
    return rows.reshape(-1)


def ub(bench: Any, text: str, *tiles: tuple[int, Array], **options: Any) -> Any:
    """Return the bytes of UB after `text`, on tiles at byte addresses."""
    size = max(place + len(data) for place, data in tiles)
    image = np.full(size, 0xEE, np.uint8)
    for place, data in tiles:
        image[place : place + len(data)] = data
    core, _, found = bench.apply(text, preset={Space.UB: image}, core=CoreKind.AIV, **options)
    assert not found
    return core.local.view(Space.UB)


def taken(memory: Array, place: int, rows: int, cols: int, pitch: int, kind: Any) -> Array:
    width = np.dtype(kind).itemsize
    lines = [memory[place + row * pitch * 32 :][: cols * width] for row in range(rows)]
    return np.stack(lines).copy().view(kind)


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "maximum", "minimum"])
def test_two_tiles_of_different_pitches_meet_element_by_element(
    bench: Any, rng: np.random.Generator, name: str, op: str
) -> None:
    kind = NUMPY[name]
    if kind.kind == "i":
        a, b = (rng.integers(-100, 100, (5, 7)).astype(kind) for _ in range(2))
    else:
        a, b = (rng.normal(size=(5, 7)).astype(np.float32).astype(kind) for _ in range(2))
    memory = ub(
        bench,
        f"v_binary ub[0], ub[1024], ub[2048], op={op}, type={name}, rows=5, cols=7, "
        "dst_pitch=3, a_pitch=1, b_pitch=2",
        (1024, laid_out(a, 1)),
        (2048, laid_out(b, 2)),
    )
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply}.get(op) or getattr(np, op)
    with np.errstate(over="ignore"):
        if kind.kind == "i":
            wanted = function(a, b).astype(kind)
        else:
            wanted = function(a.astype(np.float32), b.astype(np.float32)).astype(kind)
    found = taken(memory, 0, 5, 7, 3, kind)
    np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))
    assert (memory[7 * kind.itemsize : 96] == 0xEE).all()


def test_a_number_in_a_register_is_either_operand(bench: Any) -> None:
    x = np.array([[1.5, -2.0, 4.0]], np.float32)
    code = int(np.float32(3.0).view(np.uint32))
    memory = ub(
        bench,
        f"movi x4, {code}\n"
        "v_scalar ub[64], ub[0], x4, op=sub, type=fp32, swap=0, rows=1, cols=3, dst_pitch=1, a_pitch=1\n"
        "v_scalar ub[128], ub[0], x4, op=div, type=fp32, swap=1, rows=1, cols=3, dst_pitch=1, a_pitch=1",
        (0, laid_out(x, 1)),
    )
    assert taken(memory, 64, 1, 3, 1, np.float32).tolist() == [[-1.5, -5.0, 1.0]]
    assert taken(memory, 128, 1, 3, 1, np.float32).tolist() == [[2.0, -1.5, 0.75]]


def test_a_mask_of_bytes_selects(bench: Any) -> None:
    a = np.array([[1.0, np.nan, 3.0, -0.0]], np.float32)
    b = np.array([[2.0, 2.0, 2.0, 0.0]], np.float32)
    memory = ub(
        bench,
        "v_compare ub[64], ub[0], ub[32], op=lt, type=fp32, rows=1, cols=4, dst_pitch=1, "
        "a_pitch=1, b_pitch=1\n"
        "v_move ub[96], ub[0], type=fp32, dst_skip=0, src_skip=0, rows=1, cols=4, dst_pitch=1, "
        "src_pitch=1\n"
        "v_select ub[96], ub[32], ub[64], invert=0, type=fp32, rows=1, cols=4, dst_pitch=1, "
        "src_pitch=1, mask_pitch=1",
        (0, laid_out(a, 1)),
        (32, laid_out(b, 1)),
    )
    assert memory[64:68].tolist() == [1, 0, 0, 0]
    np.testing.assert_array_equal(taken(memory, 96, 1, 4, 1, np.float32), [[2.0, np.nan, 3.0, 0.0]])


def test_rows_become_a_packed_column_and_columns_a_row(bench: Any, rng: Any) -> None:
    x = rng.normal(size=(6, 9)).astype(np.float32)
    shape = "type=fp32, rows=6, cols=9"
    memory = ub(
        bench,
        f"v_reduce ub[1024], ub[0], op=sum, axis=row, {shape}, src_pitch=2\n"
        f"v_reduce ub[1088], ub[0], op=max, axis=col, {shape}, src_pitch=2\n"
        f"v_expand ub[2048], ub[0], ub[1024], op=sub, {shape}, dst_pitch=2, a_pitch=2, axis=row\n"
        f"v_expand ub[3072], ub[0], ub[1088], op=second, {shape}, dst_pitch=2, a_pitch=2, axis=col",
        (0, laid_out(x, 2)),
    )
    sums = np.array([sum(row[1:], start=row[0]) for row in x], np.float32)
    np.testing.assert_array_equal(memory[1024:1048].view(np.float32), sums)
    np.testing.assert_array_equal(memory[1088 : 1088 + 36].view(np.float32), x.max(axis=0))
    np.testing.assert_array_equal(taken(memory, 2048, 6, 9, 2, np.float32), x - sums[:, None])
    wanted = np.broadcast_to(x.max(axis=0), x.shape)
    np.testing.assert_array_equal(taken(memory, 3072, 6, 9, 2, np.float32), wanted)


def test_casts_of_the_native_chain_from_fp4_to_fp8_are_exact(bench: Any) -> None:
    codes = np.arange(16, dtype=np.uint8)
    packed = (codes[0::2] | codes[1::2] << 4).reshape(1, 8)
    shape = "rows=1, cols=16, dst_pitch=4, src_pitch=4"
    memory = ub(
        bench,
        f"v_cast ub[128], ub[0], type=e2m1, to=bf16, mode=none, {shape}\n"
        f"v_cast ub[256], ub[128], type=bf16, to=fp32, mode=none, {shape}\n"
        f"v_cast ub[384], ub[256], type=fp32, to=e4m3, mode=rint, {shape}",
        (0, laid_out(packed, 4)),
    )
    values = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    wanted = values.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    np.testing.assert_array_equal(memory[384:400], wanted)


@pytest.mark.parametrize("mode", ["rint", "floor", "ceil", "trunc"])
def test_a_cast_rounds_as_its_mode_says(bench: Any, mode: str) -> None:
    x = np.array([[2.5, -2.5, 3.5, 1e9, -0.4]], np.float32)
    memory = ub(
        bench,
        f"v_cast ub[32], ub[0], type=fp32, to=int16, mode={mode}, rows=1, cols=5, dst_pitch=1, "
        "src_pitch=1",
        (0, laid_out(x, 1)),
    )
    wanted = np.clip(getattr(np, mode)(x.astype(np.float64)), -32768, 32767).astype(np.int16)
    np.testing.assert_array_equal(memory[32:42].view(np.int16), wanted[0])


def test_transposing_and_moving_between_tiles(bench: Any, rng: Any) -> None:
    x = rng.integers(0, 1 << 16, (3, 5)).astype(np.uint16)
    memory = ub(
        bench,
        "v_transpose ub[256], ub[0], type=uint16, rows=3, cols=5, dst_pitch=1, src_pitch=1\n"
        "movi x1, 34\nmovi x2, 66\n"
        "v_move_at ub[512], ub[0], type=uint16, dst_skip=3, src_skip=1, rows=2, cols=2, "
        "dst_pitch=1, src_pitch=1, x1, x2",
        (0, laid_out(x, 1)),
    )
    np.testing.assert_array_equal(taken(memory, 256, 5, 3, 1, np.uint16), x.T)
    moved = taken(memory, 512 + 66 + 6, 2, 2, 1, np.uint16)
    np.testing.assert_array_equal(moved, x[1:3, 2:4])


def test_fill_writes_the_code_that_the_register_holds(bench: Any) -> None:
    memory = ub(
        bench,
        "movi x3, -1\nv_fill ub[0], x3, type=fp16, dst_skip=2, rows=2, cols=3, dst_pitch=1",
        (0, np.zeros(64, np.uint8)),
    )
    row = [0, 0, 0xFFFF, 0xFFFF, 0xFFFF, *[0] * 11]
    assert memory[:64].view(np.uint16).tolist() == [*row, *row]


@pytest.mark.parametrize("rule", ["floor", "nv"])
@pytest.mark.parametrize(
    ("source", "element", "dtype"),
    [
        ("fp32", "e4m3", DType.MXFP8_E4M3),
        ("bf16", "e5m2", DType.MXFP8_E5M2),
        ("fp16", "e2m1", DType.MXFP4),
        ("bf16", "e2m1", DType.MXFP4),
    ],
)
def test_quantising_equals_numerics_quantize(
    bench: Any, rng: Any, source: str, element: str, dtype: BlockScaledDType, rule: str
) -> None:
    kind = NUMPY[source]
    wide = rng.normal(size=(17, 64)) * np.exp2(rng.integers(-20, 10, (17, 64)))
    wide[3, :32] = 0
    wide[4, 5], wide[5, 40] = np.nan, np.inf
    x = wide.astype(np.float32).astype(kind)
    pitch = 64 * kind.itemsize // 32
    memory = ub(
        bench,
        f"v_quant_mx ub[8192], ub[0], ub[16384], type={source}, element={element}, rule={rule}, "
        f"rows=17, cols=64, dst_pitch=2, src_pitch={pitch}, scale_pitch=1\n"
        "v_scale_boxes ub[32768], ub[16384], rows=17, cols=2, src_pitch=1",
        (0, laid_out(x, pitch)),
    )
    wanted = numerics.quantize(x, dtype, axis=1, rule=rule)
    codes = wanted.elements
    if element == "e2m1":
        codes = codes[:, 0::2] | codes[:, 1::2] << 4
    found = taken(memory, 8192, 17, codes.shape[1], 2, np.uint8)
    np.testing.assert_array_equal(found, codes)
    np.testing.assert_array_equal(taken(memory, 16384, 17, 2, 1, np.uint8), wanted.scales)
    whole = np.zeros((32, 2), np.uint8)
    whole[:17] = wanted.scales
    boxes = numerics.pack_scales_a(whole).view(np.uint8).reshape(-1)
    np.testing.assert_array_equal(memory[32768 : 32768 + 64], boxes)


def test_what_leaves_ub_is_refused_before_anything_moves(bench: Any) -> None:
    size = bench.target.ub_bytes
    _, _, found = bench.apply(
        f"v_unary ub[0], ub[{size - 32}], op=abs, type=fp32, rows=2, cols=8, dst_pitch=1, "
        "src_pitch=1",
        core=CoreKind.AIV,
    )
    assert found[0].fault[:5] == (FaultCode.LOCAL_RANGE, Space.UB, size - 32, 64, size)


def test_a_never_written_operand_is_named_by_row_and_column(bench: Any) -> None:
    image = np.zeros(128, np.uint8)
    _, _, found = bench.apply(
        "v_unary ub[1024], ub[0], op=abs, type=fp32, rows=2, cols=8, dst_pitch=1, src_pitch=2",
        preset={Space.UB: image},
        hole=(Space.UB, 64 + 12),
        core=CoreKind.AIV,
    )
    assert found[0].fault[:5] == (FaultCode.UNWRITTEN, Space.UB, 64 + 12, 1, 3)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("v_binary ub[0], ub[0], ub[0], op=rem, type=int32, rows=1, cols=8, dst_pitch=1, "
         "a_pitch=1, b_pitch=1", "divisors other than zero"),
        ("movi x1, 0x7fc0\nv_fill ub[0], x1, type=bf16, dst_skip=0, rows=1, cols=8, dst_pitch=1\n"
         "v_cast ub[64], ub[0], type=bf16, to=e2m1, mode=rint, rows=1, cols=8, dst_pitch=1, "
         "src_pitch=1", "not a NaN"),
    ],
)  # fmt: skip
def test_what_has_no_result_is_a_fault(bench: Any, text: str, wanted: str) -> None:
    fill = "v_fill ub[0], x0, type=int32, dst_skip=0, rows=1, cols=8, dst_pitch=1\n"
    kernel = bench.kernel(fill + text, core=CoreKind.AIV)
    with pytest.raises(SimulationFault, match=wanted):
        bench.run(kernel, checks="off")


def test_a_tile_goes_from_gm_through_ub_and_back(bench: Any, rng: Any) -> None:
    x = rng.normal(size=(8, 24)).astype(np.float32)
    kernel = bench.kernel(
        "movi x1, 2\nmovi x2, 3\n"
        "gm_to_ub v0, x1, x2, ub[64], rows=4, cols=10, pitch=2\n"
        "set_flag src=mte2, dst=v, id=0\nwait_flag src=mte2, dst=v, id=0\n"
        "v_unary ub[1024], ub[64], op=neg, type=fp32, rows=4, cols=10, dst_pitch=3, src_pitch=2\n"
        "set_flag src=v, dst=mte3, id=0\nwait_flag src=v, dst=mte3, id=0\n"
        "ub_to_gm v1, x0, x0, ub[1024], rows=4, cols=10, pitch=3",
        [bench.tensor("a", "FP32", (8, 24)), bench.tensor("c", "FP32", (4, 10), "out")],
        [bench.plain(0, 32, 8, 24), bench.plain(1, 32, 4, 10)],
        core=CoreKind.AIV,
    )
    result = bench.run(kernel, {"a": x.view(np.uint8)})
    found = result.outputs["c"].view(np.float32).reshape(4, 10)
    np.testing.assert_array_equal(found, -x[2:6, 3:13])
    assert result.moved == {"GM->UB": 160, "UB->GM": 160}


def test_a_store_of_what_was_never_written_is_a_fault(bench: Any) -> None:
    kernel = bench.kernel(
        "ub_to_gm v0, x0, x0, ub[0], rows=1, cols=8, pitch=1",
        [bench.tensor("c", "FP32", (1, 8), "out")],
        [bench.plain(0, 32, 1, 8)],
        core=CoreKind.AIV,
    )
    with pytest.raises(SimulationFault, match=r"byte 0 of UB \(row 0, column 0\)"):
        bench.run(kernel, {})


def test_boxes_reach_l1_and_a_rank_5_view(bench: Any) -> None:
    image = np.arange(2048, dtype=np.uint32).astype(np.uint8)
    core, gm, found = bench.apply(
        "ub_to_l1 ub[32], l1[64], lines=2, units=1, ub_pitch=3, l1_pitch=2\n"
        "ub_to_l1_nz ub[0], l1[4096], bits=b8, rows=3, cols=40, l1_rows=16, pitch=2\n"
        "ub_to_gm_boxes v0, x0, x0, ub[0], ni=2, nj=1, ub_nj=2",
        [bench.tensor("s", "E8M0", (32, 4), "out")],
        [bench.boxes(0, 32, 4)],
        preset={Space.UB: image},
        core=CoreKind.AIV,
    )
    assert not found
    l1 = core.local.view(Space.L1)
    np.testing.assert_array_equal(l1[64:96], image[32:64])
    np.testing.assert_array_equal(l1[128:160], image[128:160])
    for row in range(3):
        line = 4096 + row * 32
        np.testing.assert_array_equal(l1[line : line + 32], image[row * 64 : row * 64 + 32])
        tail = line + 512
        np.testing.assert_array_equal(l1[tail : tail + 8], image[row * 64 + 32 : row * 64 + 40])
        assert not l1[tail + 8 : tail + 32].any()
    out = gm.view("s").reshape(2, 2, 32)
    np.testing.assert_array_equal(out[0, 0], image[:32])
    np.testing.assert_array_equal(out[1, 0], image[64:96])


def test_an_instruction_of_the_other_kind_of_core_is_refused(bench: Any) -> None:
    kernel = bench.kernel("v_fill ub[0], x0, type=fp32, dst_skip=0, rows=1, cols=8, dst_pitch=1")
    message = r"Instruction 0 \(v_fill\) .* core that has it \(aiv\), not of aic"
    with pytest.raises(ExecutableError, match=message):
        bench.run(kernel, {})


COSTS = (
    ("v_unary ub[0], ub[0], op=exp, type=fp32, rows=16, cols=64, dst_pitch=8, src_pitch=8", 16, 16),
    ("v_unary ub[0], ub[0], op=abs, type=fp16, rows=1, cols=129, dst_pitch=9, src_pitch=9", 2, 7),
    ("v_scalar ub[0], ub[0], x0, op=div, type=fp32, swap=0, rows=1, cols=1, dst_pitch=0, a_pitch=0",
     1, 17),
    ("v_scalar ub[0], ub[0], x0, op=mul, type=bf16, swap=0, rows=2, cols=128, dst_pitch=8, a_pitch=8",
     2, 8),
    ("v_cast ub[0], ub[512], type=bf16, to=fp32, mode=none, rows=1, cols=128, dst_pitch=16, "
     "src_pitch=8", 2, 7),
    ("v_fill ub[0], x0, type=int8, dst_skip=0, rows=1, cols=256, dst_pitch=8", 1, 9),
)  # fmt: skip


@pytest.mark.parametrize(("text", "steps", "latency"), COSTS)
def test_a_vector_instruction_takes_start_steps_latency_and_drain(
    bench: Any, text: str, steps: int, latency: int
) -> None:
    kernel = bench.kernel(text, core=CoreKind.AIV)
    assert occupancy(kernel, bench.target)[0] == 23 + steps + latency + 12
    assert len(parse_program(text)) == 1
