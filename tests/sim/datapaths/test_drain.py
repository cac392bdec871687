"""The store from the accumulator: where each number goes, and what its bits become."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.codegen.executable import Layout, View
from scalebox.codegen.isa.vocabulary import Space
from scalebox.sim.faultcodes import FaultCode

NUMPY = {"fp32": np.float32, "bf16": ml_dtypes.bfloat16, "fp16": np.float16}
BITS = {"fp32": 32, "bf16": 16, "fp16": 16}


def store(bench: Any, patterns: np.ndarray, convert: str) -> np.ndarray:
    """Store 65536 FP32 patterns as one 256 x 256 tile; return the stored patterns."""
    boxes = patterns.reshape(16, 16, 16, 16).transpose(2, 0, 1, 3)
    width = BITS[convert]
    _, gm, found = bench.apply(
        f"l0c_to_gm v0, x0, x0, l0c[0], rows=256, cols=256, src_rows=256, convert={convert}",
        [bench.tensor("c", convert.upper(), (256, 256), "out")],
        [bench.plain(0, width, 256, 256)],
        preset={Space.L0C: np.ascontiguousarray(boxes).view(np.uint8).reshape(-1)},
    )
    assert not found
    return gm.view("c").view(f"u{width // 8}")


def patterns_around_every_exponent(rng: Any) -> np.ndarray:
    """65536 FP32 patterns: per sign and exponent, edges of every rounding and random numbers."""
    edges = [0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x3000, 0x7FFF, 0x8000, 0x8001, 0x18000]
    edges += [0x7FFFFF, 0x7FF000, 0x7FEFFF, 0x7F8000, 0x400000, 0x3FFFFF]
    mantissas = np.array(edges + rng.integers(0, 1 << 23, 128 - len(edges)).tolist(), np.uint32)
    heads = np.arange(512, dtype=np.uint32) << 23
    return (heads[:, None] | mantissas).reshape(-1)


@pytest.mark.parametrize("convert", ["fp32", "bf16", "fp16"])
def test_conversion_rounds_to_nearest_even_as_ml_dtypes_does(
    bench: Any, rng: Any, convert: str
) -> None:
    patterns = patterns_around_every_exponent(rng)
    values = patterns.view(np.float32)
    got = store(bench, patterns, convert)
    with np.errstate(over="ignore", invalid="ignore"):
        want = values.astype(NUMPY[convert]).view(got.dtype)
    canonical = {"fp32": 0x7FC00000, "bf16": 0x7FC0, "fp16": 0x7E00}[convert]
    want = np.where(np.isnan(values), got.dtype.type(canonical), want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("convert", "pattern", "stored"),
    [
        ("bf16", 0x7F7F8000, 0x7F80),  # the tie above the largest BF16 is infinite
        ("bf16", 0x7F7F7FFF, 0x7F7F),
        ("fp16", 0x477FEFFF, 0x7BFF),  # 65519.99…
        ("fp16", 0x477FF000, 0x7C00),  # 65520
        ("fp16", 0x33000000, 0x0000),  # 2^-25 ties to zero
        ("fp16", 0xB3000001, 0x8001),
        ("fp16", 0x387FF000, 0x0400),  # rounds up into the normal numbers
        ("fp32", 0xFFC12345, 0x7FC00000),
    ],
)
def test_a_sum_at_the_edge_of_a_type_is_converted_once_and_to_even(
    bench: Any, convert: str, pattern: int, stored: int
) -> None:
    got = store(bench, np.full(65536, pattern, np.uint32), convert)
    assert set(got.tolist()) == {stored}


def test_a_window_of_the_accumulator_goes_to_a_window_of_the_view(bench: Any, rng: Any) -> None:
    rows, cols, tile_rows, address = 19, 37, 48, 2048
    l0c = rng.integers(0, 256, 16384).astype(np.uint8)
    l0c[3::4] &= 0x3F  # no NaN
    _, gm, found = bench.apply(
        "movi x1, 4\n movi x2, 3\n"
        f"l0c_to_gm v0, x1, x2, l0c[{address}], rows={rows}, cols={cols}, src_rows={tile_rows}, "
        "convert=fp32",
        [bench.tensor("c", "FP32", (2, 30, 50), "out")],
        [View(0, Layout.ND, 32, (30, 50), (50, 1), 1500)],
        preset={Space.L0C: l0c},
    )
    assert not found
    want = np.zeros((2, 30, 50, 4), np.uint8)
    written = np.zeros((2, 30, 50, 4), np.uint8)
    for r in range(rows):
        for c in range(cols):
            byte = address + ((c // 16) * (tile_rows // 16) + r // 16) * 1024
            byte += (r % 16) * 64 + (c % 16) * 4
            want[1, 4 + r, 3 + c] = l0c[byte : byte + 4]
            written[1, 4 + r, 3 + c] = 0xFF
    np.testing.assert_array_equal(gm.view("c"), want.reshape(-1))
    np.testing.assert_array_equal(gm.written_view("c"), written.reshape(-1))


@pytest.mark.parametrize(("xr", "xc", "axis"), [(21, 0, 0), (-1, 0, 0), (0, 41, 1), (0, -1, 1)])
def test_a_store_outside_its_view_is_refused(bench: Any, xr: int, xc: int, axis: int) -> None:
    _, gm, found = bench.apply(
        f"movi x1, {xr}\n movi x2, {xc}\n"
        "l0c_to_gm v0, x1, x2, l0c[0], rows=10, cols=10, src_rows=16, convert=bf16",
        [bench.tensor("c", "BF16", (30, 50), "out")],
        [bench.plain(0, 16, 30, 50)],
        preset={Space.L0C: np.zeros(4096, np.uint8)},
    )
    assert [problem.fault[:2] for problem in found] == [(FaultCode.VIEW_RANGE, axis)]
    assert not gm.written.any()


def test_a_store_of_what_was_never_written_is_reported_with_its_element(bench: Any) -> None:
    _, _, found = bench.apply(
        "l0c_to_gm v0, x0, x0, l0c[0], rows=2, cols=17, src_rows=16, convert=fp32",
        [bench.tensor("c", "FP32", (2, 17), "out")],
        [bench.plain(0, 32, 2, 17)],
        preset={Space.L0C: np.zeros(1024, np.uint8)},
    )
    assert [problem.fault[:5] for problem in found] == [
        (FaultCode.UNWRITTEN, Space.L0C, 1024, 0, 16)
    ]
