"""Every scale reaches its place, a NaN poisons what it must, and padding changes nothing."""

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import scalebox
from scalebox.app.result import Result
from scalebox.ir.core import Program

from .oracle import (
    E4M3,
    NAN_SCALE,
    PLAIN_NAN,
    UNIT_SCALE,
    Array,
    assert_bits,
    in_float64,
    near_one,
    small,
)

Gemm = Callable[..., Program]
Inputs = Callable[..., dict[str, Array]]
Through = Callable[..., Result]


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
