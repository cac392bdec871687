"""The fixpipe with multipliers of columns, into L1, into boxes in GM: against plain numpy."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.executable import Layout, View
from scalebox.codegen.isa.asm import parse_program
from scalebox.codegen.isa.vocabulary import Space
from scalebox.ir.errors import ExecutableError
from scalebox.sim import decode
from scalebox.sim.costs import drain_cycles, moved_bytes, occupancy
from scalebox.sim.faultcodes import FaultCode

Array = npt.NDArray[Any]
STALE = 0xA5
KINDS: dict[str, Any] = {
    "fp32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "int8": np.int8,
    "uint8": np.uint8,
}
LIMIT = {"e4m3": 448.0, "e5m2": 57344.0}


def accumulator(sums: Array, boxes: int) -> Array:
    """Return the bytes of [rows, cols] sums in boxes of 16 x 16, `boxes` of them a column."""
    rows, cols = sums.shape
    out = np.zeros((-(-cols // 16), boxes * 16, 16), sums.dtype)
    for column in range(len(out)):
        part = sums[:, column * 16 : column * 16 + 16]
        out[column, :rows, : part.shape[1]] = part
    return out.reshape(-1).view(np.uint8)


def converted(sums: Array, name: str, factor: Any = None, *, relu: bool = False) -> Array:
    """Return sums as the fixpipe stores them: times a factor, ReLU, to nearest even, 8 bits saturate."""
    numbers = sums.astype(np.float32)
    if factor is not None:
        numbers = numbers * np.asarray(factor, np.float32)
    if relu:
        numbers = np.where(numbers > 0, numbers, np.float32(0))
    kind = KINDS[name]
    if name in LIMIT:
        return np.clip(numbers, -LIMIT[name], LIMIT[name]).astype(kind)
    if name in ("int8", "uint8"):
        info = np.iinfo(kind)
        return np.clip(np.rint(numbers), info.min, info.max).astype(kind)
    return numbers.astype(kind)


def code(number: float) -> int:
    return int(np.float32(number).view(np.uint32))


@pytest.fixture
def sums(rng: np.random.Generator) -> Array:
    return (rng.standard_normal((35, 45)) * 300).astype(np.float32)


def in_l1(memory: Array, address: int, shape: tuple[int, int], boxes: int, name: str) -> Array:
    """Return a tile [rows, cols] of boxes of 16 rows by 32 bytes."""
    kind = np.dtype(KINDS[name])
    wide = 32 // kind.itemsize
    rows, cols = shape
    out = np.zeros(shape, kind)
    for r, c in np.ndindex(rows, cols):
        at = (
            address + ((c // wide) * boxes + r // 16) * 512 + r % 16 * 32 + c % wide * kind.itemsize
        )
        out[r, c] = memory[at : at + kind.itemsize].view(kind)[0]
    return out


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("relu", [0, 1])
def test_sums_go_to_l1_as_the_boxes_of_an_operand(
    bench: Any, sums: Array, name: str, relu: int
) -> None:
    core, _, found = bench.apply(
        "l0c_to_l1 l0c[1024], l1[512], rows=35, cols=45, src_boxes=4, "
        f"convert={name}, relu={relu}, l1_boxes=5",
        preset={
            Space.L0C: np.concatenate([np.zeros(1024, np.uint8), accumulator(sums, 4)]),
            Space.L1: np.full(65536, STALE, np.uint8),
        },
    )
    assert not found
    memory = core.local.view(Space.L1)
    got = in_l1(memory, 512, (35, 45), 5, name)
    np.testing.assert_array_equal(
        got.view(np.uint8), converted(sums, name, relu=bool(relu)).view(np.uint8)
    )
    # The last line of a row is filled up with zeros; all other bytes stay.
    width = np.dtype(KINDS[name]).itemsize
    touched = np.zeros(65536, bool)
    for column in range(-(-45 * width // 32)):
        first = 512 + column * 5 * 512
        touched[first : first + 35 * 32] = True
        size = min(32, 45 * width - column * 32)
        lines = memory[first : first + 35 * 32].reshape(35, 32)
        assert not lines[:, size:].any()
    assert (memory[:65536][~touched] == STALE).all()


@pytest.mark.parametrize("name", ["bf16", "e4m3", "int8"])
def test_a_register_holds_what_sums_on_their_way_to_l1_are_multiplied_by(
    bench: Any, sums: Array, name: str
) -> None:
    core, _, found = bench.apply(
        f"movi x7, {code(-0.37)}\n"
        "l0c_to_l1_quant l0c[0], l1[0], quant=number, x7, sums=fp32, rows=35, cols=45, src_boxes=3, "
        f"convert={name}, relu=0, fixp[0], l1_boxes=3",
        preset={Space.L0C: accumulator(sums, 3)},
    )
    assert not found
    got = in_l1(core.local.view(Space.L1), 0, (35, 45), 3, name)
    np.testing.assert_array_equal(got.view(np.uint8), converted(sums, name, -0.37).view(np.uint8))


@pytest.mark.parametrize("name", KINDS)
def test_every_column_has_a_multiplier_of_its_own(
    bench: Any, rng: np.random.Generator, sums: Array, name: str
) -> None:
    factors = rng.standard_normal(45).astype(np.float32)
    factors[3], factors[4] = 0, 2.0**-130
    core, gm, found = bench.apply(
        "l1_to_fixp l1[0x8000], fixp[64], bytes=180\n"
        "l0c_to_l1_quant l0c[0], l1[0], quant=columns, x0, sums=fp32, rows=35, cols=45, src_boxes=3, "
        f"convert={name}, relu=1, fixp[64], l1_boxes=3\n"
        f"l0c_to_gm_columns v0, x0, x0, l0c[0], fixp[64], rows=35, cols=45, src_boxes=3, "
        f"convert={name}, relu=1, sums=fp32",
        [
            bench.tensor(
                "o",
                {"fp32": "FP32", "bf16": "BF16", "fp16": "FP16"}.get(name, "INT8"),
                (35, 45),
                "out",
            )
        ],
        [bench.plain(0, np.dtype(KINDS[name]).itemsize * 8, 35, 45)],
        preset={
            Space.L0C: accumulator(sums, 3),
            Space.L1: np.concatenate([np.zeros(0x8000, np.uint8), factors.view(np.uint8)]),
        },
    )
    assert not found
    wanted = converted(sums, name, factors, relu=True)
    got = in_l1(core.local.view(Space.L1), 0, (35, 45), 3, name)
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))
    stored = gm.view("o").view(np.uint8)
    np.testing.assert_array_equal(stored, wanted.reshape(-1).view(np.uint8))


def test_integer_sums_are_rounded_before_they_are_multiplied(
    bench: Any, rng: np.random.Generator
) -> None:
    sums = rng.integers(-(2**31), 2**31, (16, 16)).astype(np.int32)
    sums[0, :3] = [2**24 + 1, -(2**24) - 1, 2**31 - 1]
    factors = (2.0 ** -rng.integers(16, 24, 16)).astype(np.float32)
    core, gm, found = bench.apply(
        "l0c_to_ub_quant l0c[0], ub[0], core=0, quant=columns, x0, sums=int32, fixp[0], rows=16, "
        "cols=16, src_boxes=1, convert=fp32, relu=0, pitch=2\n"
        f"movi x3, {code(0.5)}\n"
        "l0c_to_ub_quant l0c[0], ub[2048], core=1, quant=number, x3, sums=int32, fixp[0], rows=16, "
        "cols=16, src_boxes=1, convert=int8, relu=0, pitch=1\n"
        "l0c_to_gm_columns v0, x0, x0, l0c[0], fixp[0], rows=16, cols=16, src_boxes=1, convert=fp16, "
        "relu=0, sums=int32",
        [bench.tensor("o", "FP16", (16, 16), "out")],
        [bench.plain(0, 16, 16, 16)],
        preset={Space.L0C: accumulator(sums, 1), Space.FIXP: factors.view(np.uint8)},
    )
    assert not found
    numbers = sums.astype(np.float32)
    ub = core.local.view(Space.UB)[:1024].view(np.float32).reshape(16, 16)
    np.testing.assert_array_equal(ub, numbers * factors)
    second = int(core.local.bases[Space.UB + 1]) + 2048
    bytes_ = core.local.data[second : second + 512].reshape(16, 32)[:, :16].view(np.int8)
    np.testing.assert_array_equal(bytes_, converted(sums, "int8", 0.5))
    np.testing.assert_array_equal(
        gm.view("o").view(np.uint16),
        (numbers * factors).astype(np.float16).reshape(-1).view(np.uint16),
    )


@pytest.mark.parametrize(("name", "dtype"), [("fp32", "FP32"), ("bf16", "BF16"), ("int8", "INT8")])
@pytest.mark.parametrize("quant", ["none", "columns"])
def test_sums_go_to_boxes_in_global_memory(
    bench: Any, rng: np.random.Generator, sums: Array, name: str, dtype: str, quant: str
) -> None:
    kind = np.dtype(KINDS[name])
    wide, rows, cols = 32 // kind.itemsize, 35, 48
    full = np.zeros((64, 64), kind)
    sums = np.concatenate([sums, sums[:, :3]], axis=1)
    factors = rng.standard_normal(cols).astype(np.float32)
    dims = (1, 64 // wide, 4, 16, wide)
    view = View(0, Layout.NZ, kind.itemsize * 8, dims, (4096, 64 * wide, 16 * wide, wide, 1))
    _, gm, found = bench.apply(
        f"movi x1, {32 // wide if name == 'int8' else 16 // wide}\nmovi x2, 1\n"
        f"l0c_to_gm_nz v0, x1, x2, l0c[0], fixp[0], quant={quant}, rows={rows}, "
        f"cols={32 if name == 'int8' else cols}, src_boxes=3, convert={name}, relu=0, sums=fp32",
        [bench.tensor("o", dtype, (64, 64), "inout")],
        [view],
        images={"o": full.reshape(-1).view(np.uint8)},
        preset={Space.L0C: accumulator(sums, 3), Space.FIXP: factors.view(np.uint8)},
    )
    assert not found
    made = converted(sums, name, factors if quant == "columns" else None)
    first = 32 if name == "int8" else 16
    made = made[:, :32] if name == "int8" else made
    full[16 : 16 + rows, first : first + made.shape[1]] = made
    boxes = full.reshape(4, 16, 64 // wide, wide).transpose(2, 0, 1, 3)
    np.testing.assert_array_equal(
        gm.view("o"), np.ascontiguousarray(boxes).reshape(-1).view(np.uint8)
    )


def test_half_a_box_of_bytes_leaves_the_other_half(bench: Any, sums: Array) -> None:
    view = View(0, Layout.NZ, 8, (1, 1, 1, 16, 32), (512, 512, 512, 32, 1))
    _, gm, found = bench.apply(
        "l0c_to_gm_nz v0, x0, x0, l0c[0], fixp[0], quant=none, rows=3, cols=16, src_boxes=1, "
        "convert=int8, relu=0, sums=fp32",
        [bench.tensor("o", "INT8", (16, 32), "inout")],
        [view],
        images={"o": np.full(512, STALE, np.uint8)},
        preset={Space.L0C: accumulator(sums[:16, :16], 1)},
    )
    assert not found
    wanted = np.full((16, 32), STALE, np.uint8)
    wanted[:3, :16] = converted(sums[:3, :16], "int8").view(np.uint8)
    np.testing.assert_array_equal(gm.view("o"), wanted.reshape(-1))


def test_a_multiplier_that_was_never_written_is_reported(bench: Any, sums: Array) -> None:
    _, _, found = bench.apply(
        "l0c_to_l1_quant l0c[0], l1[0], quant=columns, x0, sums=fp32, rows=4, cols=10, src_boxes=3, "
        "convert=bf16, relu=0, fixp[32], l1_boxes=1",
        preset={Space.L0C: accumulator(sums, 3), Space.FIXP: np.zeros(64, np.uint8)},
    )
    assert found[0].fault[:5] == (FaultCode.UNWRITTEN, Space.FIXP, 64, 0, 8)


def test_what_the_fixpipe_writes_counts_as_written(bench: Any, sums: Array) -> None:
    core, _, _ = bench.apply(
        "l0c_to_l1_quant l0c[0], l1[0], quant=none, x0, sums=fp32, rows=4, cols=20, src_boxes=3, "
        "convert=bf16, relu=0, fixp[0], l1_boxes=1",
        preset={Space.L0C: accumulator(sums, 3)},
    )
    written = np.flatnonzero(core.local.written_view(Space.L1))
    assert written.tolist() == [*range(128), *range(512, 640)]


_L1 = "l0c_to_l1_quant l0c[{}], l1[{}], quant={}, x0, sums=fp32, rows=16, cols=32, src_boxes=1, convert=bf16, relu=0, fixp[{}], l1_boxes=1"


@pytest.mark.parametrize(
    ("text", "space"),
    [
        (_L1.format(261120, 0, "none", 0), Space.L0C),
        (_L1.format(0, 524288 - 512, "none", 0), Space.L1),
        (_L1.format(0, 0, "columns", 4096 - 96), Space.FIXP),
    ],
)
def test_every_memory_of_the_fixpipe_has_an_end(bench: Any, text: str, space: Space) -> None:
    _, _, found = bench.apply(text)
    assert found[0].fault[:2] == (FaultCode.LOCAL_RANGE, space)


def test_boxes_beyond_the_view_are_out_of_bounds(bench: Any) -> None:
    view = View(0, Layout.NZ, 16, (1, 2, 2, 16, 16), (1024, 512, 256, 16, 1))
    text = (
        "movi x1, 1\nl0c_to_gm_nz v0, {}, l0c[0], fixp[0], quant=none, rows=17, cols={}, src_boxes=2, "
        "convert=bf16, relu=0, sums=fp32"
    )
    params = [bench.tensor("o", "BF16", (32, 32), "out")]
    _, _, found = bench.apply(text.format("x0, x1", 16), params, [view])
    assert found[0].fault[:5] == (FaultCode.VIEW_RANGE, 2, 1, 2, 2)
    _, _, found = bench.apply(text.format("x1, x0", 32), params, [view])
    assert found[0].fault[:5] == (FaultCode.VIEW_RANGE, 1, 1, 2, 2)


def test_an_nz_store_needs_a_view_of_boxes(bench: Any) -> None:
    view = View(0, Layout.NZ, 16, (1, 2, 2, 16, 16), (1024, 512, 256, 1, 16))
    kernel = bench.kernel(
        "l0c_to_gm_nz v0, x0, x0, l0c[0], fixp[0], quant=none, rows=16, cols=16, src_boxes=1, "
        "convert=bf16, relu=0, sums=fp32",
        [bench.tensor("o", "BF16", (32, 32), "out")],
        [view],
    )
    with pytest.raises(ExecutableError) as caught:
        decode.decode(kernel)
    assert "last two dimensions are 16 x c0 with strides c0 and 1" in caught.value.message


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        (
            "l0c_to_l1_quant l0c[0], l1[0], quant=none, x0, sums=fp32, rows=17, cols=16, src_boxes=2, "
            "convert=bf16, relu=0, fixp[0], l1_boxes=1",
            "rows must be at most 16, not 17",
        ),
        (
            "l0c_to_l1_quant l0c[0], l1[0], quant=none, x3, sums=fp32, rows=16, cols=16, src_boxes=2, "
            "convert=bf16, relu=0, fixp[0], l1_boxes=1",
            "xs must be 0 where quant is not number, not 3",
        ),
        (
            "l0c_to_l1_quant l0c[0], l1[0], quant=number, x3, sums=fp32, rows=16, cols=16, src_boxes=2, "
            "convert=bf16, relu=0, fixp[32], l1_boxes=1",
            "scales must be 0 where quant is not columns, not 32",
        ),
        (
            "l0c_to_l1_quant l0c[0], l1[0], quant=none, x0, sums=int32, rows=16, cols=16, src_boxes=2, "
            "convert=bf16, relu=0, fixp[0], l1_boxes=1",
            "convert must be int32 of int32 sums that nothing multiplies, not bf16",
        ),
        (
            "l0c_to_l1_quant l0c[0], l1[0], quant=none, x0, sums=fp32, rows=16, cols=16, src_boxes=2, "
            "convert=int32, relu=0, fixp[0], l1_boxes=1",
            "convert must be of numbers, not int32, unless sums is int32 and quant none",
        ),
        (
            "l0c_to_gm_nz v0, x0, x0, l0c[0], fixp[0], quant=none, rows=16, cols=24, src_boxes=1, "
            "convert=bf16, relu=0, sums=fp32",
            "cols must be a multiple of 16, not 24",
        ),
        (
            "l0c_to_gm_nz v0, x0, x0, l0c[0], fixp[0], quant=number, rows=16, cols=16, src_boxes=1, "
            "convert=bf16, relu=0, sums=fp32",
            "quant must be none or columns, not number",
        ),
        (
            "l0c_to_gm_columns v0, x0, x0, l0c[0], fixp[0], rows=8193, cols=16, src_boxes=600, "
            "convert=bf16, relu=0, sums=fp32",
            "rows must be 1 to 8192, not 8193",
        ),
        (
            "l0c_to_gm_columns v0, x0, x0, l0c[0], fixp[0], rows=16, cols=4096, src_boxes=1, "
            "convert=bf16, relu=0, sums=fp32",
            "cols must be 1 to 4095, not 4096",
        ),
    ],
)
def test_what_the_fixpipe_does_not_do_is_refused(text: str, clause: str) -> None:
    with pytest.raises(ExecutableError) as caught:
        parse_program(text)
    assert caught.value.message == f"In line 1, in {text.split()[0]}, {clause}."


def test_a_drain_costs_the_same_wherever_it_goes(bench: Any) -> None:
    kernel = bench.kernel(
        "l0c_to_l1_quant l0c[0], l1[0], quant=none, x0, sums=fp32, rows=35, cols=48, src_boxes=3, "
        "convert=bf16, relu=0, fixp[0], l1_boxes=3\n"
        "l0c_to_ub_quant l0c[0], ub[0], core=0, quant=none, x0, sums=fp32, fixp[0], rows=35, "
        "cols=48, src_boxes=3, convert=e4m3, relu=0, pitch=2\n"
        "l1_to_fixp l1[0], fixp[0], bytes=192\nl1_to_bias l1[0], bias[0], bytes=192"
    )
    cycles = occupancy(kernel, bench.target)
    assert cycles[0] == cycles[1] == drain_cycles(bench.target, rows=35, cols=48)
    assert cycles[2] == cycles[3] > 0
    assert moved_bytes(kernel).tolist() == [35 * 48 * 2, 35 * 48, 192, 192, 0]
