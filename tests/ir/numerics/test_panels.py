"""Packed operands hold what the codes and scales are worth, from wherever they are packed."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.ir import numerics
from scalebox.ir.dtypes import E1M2, DType, SimpleDType
from scalebox.ir.numerics import panel_product, panels
from scalebox.ir.numerics.panels import GROUP_LINES, LEFT_LANES, RIGHT_LANES, Places

from . import oracles

ELEMENTS = (*oracles.BYTE_FLOATS, DType.Int8)
SIDES = (LEFT_LANES, RIGHT_LANES)
REALS = (np.float64, np.float32)


def worth(codes: np.ndarray, dtype: SimpleDType) -> np.ndarray:
    if dtype is DType.Int8:
        return codes.view(np.int8) / 64
    if dtype is E1M2:
        return np.where(codes & 8, -0.25, 0.25) * (codes & 7)
    return oracles.values(dtype)[codes].astype(np.float64)


def in_panel_order(scales: np.ndarray, width: int) -> np.ndarray:
    """Bring scales [lanes, G] into [panels, G, width]."""
    lanes, groups = scales.shape
    full = np.full((-(-lanes // width) * width, groups), 77, np.uint8)
    full[:lanes] = scales
    return full.reshape(-1, width, groups).transpose(0, 2, 1).reshape(-1)


def packed(
    source: np.ndarray,
    places: Places,
    shape: tuple[int, int],
    width: int,
    dtype: SimpleDType,
    scales: np.ndarray,
    real: Any,
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Pack and return values [lanes, K padded], peaks [lanes, G], and whether they are exact."""
    lanes, depth = shape
    groups, count = -(-depth // 32), -(-lanes // width)
    out = np.full(count * groups * GROUP_LINES * width, 123.0, real)
    exact = panels.pack_panels(
        source, places, lanes, depth, width, panels.element_form(dtype),
        in_panel_order(scales, width), panels.scale_factors(real), out,
        np.full(panels.SCRATCH_BYTES, 255, np.uint8),
    )  # fmt: skip
    boxes = out.reshape(count, groups, GROUP_LINES, width)
    values = boxes[:, :, :32].transpose(0, 3, 1, 2).reshape(count * width, groups * 32)
    peaks = boxes[:, :, 32].transpose(0, 2, 1).reshape(count * width, groups)
    return values, peaks, exact


def expected_values(codes: np.ndarray, dtype: SimpleDType, scales: np.ndarray) -> np.ndarray:
    """Return code times scale, exact, float64 [lanes, K]."""
    factors = np.where(scales == 255, np.nan, np.ldexp(1.0, scales.astype(np.int64) - 127))
    return worth(codes, dtype) * np.repeat(factors, 32, axis=1)[:, : codes.shape[1]]


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("width", SIDES)
@pytest.mark.parametrize("dtype", ELEMENTS, ids=lambda d: d.name)
def test_every_code_becomes_its_value(dtype: SimpleDType, width: int, real: Any) -> None:
    codes = np.resize(np.arange(1 << dtype.bits, dtype=np.uint8), (width, 256))
    codes = (codes + np.arange(width)[:, None]).astype(np.uint8) & ((1 << dtype.bits) - 1)
    scales = np.full((width, 8), 127, np.uint8)
    source, places = np.ascontiguousarray(codes).reshape(-1), Places(0, 0, 256, 1, 1, 32, 0)
    values, _, exact = packed(source, places, (width, 256), width, dtype, scales, real)
    expected = worth(codes, dtype)
    assert exact
    np.testing.assert_array_equal(values, expected)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(
        np.signbit(values)[is_number], (np.signbit(expected) & is_number)[is_number]
    )


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    dtype=st.sampled_from(ELEMENTS),
    width=st.sampled_from(SIDES),
    lanes=st.integers(1, 40),
    depth=st.integers(1, 140),
    layout=st.sampled_from(["by lanes", "by k", "spread", "boxes", "packed boxes"]),
)
def test_operands_are_packed_from_any_layout(
    seed: int, dtype: SimpleDType, width: int, lanes: int, depth: int, layout: str
) -> None:
    rng = np.random.default_rng(seed)
    if layout == "packed boxes":
        dtype = DType.E2M1
    groups = -(-depth // 32)
    codes = rng.integers(0, 1 << dtype.bits, (lanes, depth), dtype=np.uint8)
    scales = rng.integers(0, 256, (lanes, groups), dtype=np.uint8)
    tall = -(-lanes // 16) * 16
    match layout:
        case "by lanes":
            source, places = codes.reshape(-1), Places(0, width * depth, depth, 1, 1, 32, 0)
        case "by k":
            source, places = codes.T.reshape(-1), Places(0, width, 1, lanes, 1, 32 * lanes, 0)
        case "spread":
            source = np.zeros(lanes * depth * 3 + 5, np.uint8)
            source[5::3][: codes.size] = codes.reshape(-1)
            places = Places(5, 3 * width * depth, 3 * depth, 3, 1, 96, 0)
        case _:
            boxes = numerics.pack_nz(
                np.pad(codes, ((0, tall - lanes), (0, -depth % 64)), constant_values=9)
            )
            source, places = boxes.reshape(-1), Places(0, 32 * width, 32, 1, 1, tall * 32, 0)
            if layout == "packed boxes":
                # 64 codes of a row make a line of 32 bytes.
                pairs = boxes.reshape(-1, 2, tall, 32).transpose(0, 2, 1, 3).reshape(-1, 2)
                source = (pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint8)
                places = Places(0, 32 * width, 32, 0, 2, tall * 32, 16)
    values, peaks, exact = packed(
        np.ascontiguousarray(source), places, (lanes, depth), width, dtype, scales, np.float64
    )
    expected = expected_values(codes, dtype, scales)
    np.testing.assert_array_equal(values[:lanes, :depth], expected)
    assert exact
    numbers = np.abs(np.pad(expected, ((0, 0), (0, groups * 32 - depth))))
    numbers = numbers.reshape(lanes, groups, 32)
    is_finite = np.isfinite(numbers).all(axis=2)
    np.testing.assert_array_equal(peaks[:lanes][is_finite], numbers.max(axis=2)[is_finite])
    rest = values[:, depth:]
    assert not rest[:lanes][~np.isnan(rest[:lanes])].any()


@pytest.mark.parametrize("width", SIDES)
@pytest.mark.parametrize(
    ("scale", "is_exact"),
    [(127, True), (71, True), (183, True), (255, True), (70, False), (184, False), (0, False)],
)
def test_float32_panels_are_refused_for_scales_near_the_ends(
    width: int, scale: int, is_exact: bool
) -> None:
    codes, scales = np.zeros((width, 64), np.uint8), np.full((width, 2), 127, np.uint8)
    scales[width - 1, 1] = scale
    places = Places(0, 0, 64, 1, 1, 32, 0)
    args = (places, (width, 64), width, DType.E2M1, scales)
    zeros, _, exact = packed(codes.reshape(-1), *args, np.float32)
    assert exact, "zeros are exact under any scale"
    assert scale == 255 or not zeros.any()
    codes[width - 1, 63] = 9  # minus a half
    values, _, exact = packed(codes.reshape(-1), *args, np.float32)
    assert exact == is_exact
    if is_exact and scale != 255:
        assert values[width - 1, 63] == -(2.0 ** (scale - 128))
    assert packed(codes.reshape(-1), *args, np.float64)[2]


def test_which_pairs_fit_which_numbers() -> None:
    small = {DType.E3M2, DType.E2M3, DType.E2M1, E1M2, DType.Int8}
    single = {(a, b) for a in ELEMENTS for b in ELEMENTS if panels.is_single(a, b)}
    assert single == {(a, b) for a in small for b in small}
    wide = {(a.name, b.name) for a in ELEMENTS for b in ELEMENTS if panels.is_wide(a, b)}
    assert wide == {("E5M2", "E5M2"), ("E5M2", "E4M3"), ("E4M3", "E5M2")}


def test_an_accumulator_in_boxes_of_16_columns_is_touched_where_the_product_is() -> None:
    rng = np.random.default_rng(5)
    rows, columns, depth, tall = 21, 37, 64, 32
    a, b = (
        rng.integers(0, 16, shape, dtype=np.uint8) for shape in ((rows, depth), (columns, depth))
    )
    left: npt.NDArray[np.float64] = np.zeros(3 * 2 * GROUP_LINES * LEFT_LANES)
    right = left[:0]
    sides: list[np.ndarray] = []
    for codes, width in ((a, LEFT_LANES), (b, RIGHT_LANES)):
        lanes = len(codes)
        out = np.zeros(-(-lanes // width) * 2 * GROUP_LINES * width)
        panels.pack_panels(
            codes.reshape(-1), Places(0, width * depth, depth, 1, 1, 32, 0), lanes, depth, width,
            panels.element_form(DType.E2M1), np.full(-(-lanes // width) * width * 2, 127, np.uint8),
            panels.scale_factors(np.float64), out, np.zeros(panels.SCRATCH_BYTES, np.uint8),
        )  # fmt: skip
        sides.append(out)
    left, right = sides
    start = rng.integers(0, 100, 7 + 3 * tall * 16).astype(np.float32)
    acc = start.copy()
    panel_product.multiply_panels(
        left, right, acc.view(np.uint32), 7, 16, tall * 16, rows, columns, 2, False,
        np.zeros(panel_product.EDGE_WORDS, np.uint32),
    )  # fmt: skip
    product = worth(a, DType.E2M1) @ worth(b, DType.E2M1).T
    expected = start.copy()
    boxes = expected[7:].reshape(3, tall, 16)
    for column in range(columns):
        boxes[column // 16, :rows, column % 16] += product[:, column].astype(np.float32)
    np.testing.assert_array_equal(acc, expected)
