"""The compiled product, bit for bit that of `reference`: shapes, threads, and sums in doubt."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.ir.dtypes import DType, SimpleDType
from scalebox.ir.numerics import fast_matmul, reference, tiled_product

from . import oracles

ELEMENTS = (*oracles.BYTE_FLOATS, DType.Int8)
WIDE = ((DType.E5M2, DType.E5M2), (DType.E5M2, DType.E4M3), (DType.E4M3, DType.E5M2))
SCALES = {
    "usual": (119, 136),
    "any": (0, 256),
    "low": (0, 60),
    "high": (200, 255),
    "around 2^-56": (66, 76),
    "around 2^56": (178, 188),
}
EXTREMES = np.array([0, 1, 127, 253, 254, 255], np.uint8)

Operands = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def codes(
    rng: np.random.Generator, shape: tuple[int, int], dtype: SimpleDType, kind: str
) -> npt.NDArray[np.uint8]:
    """Return codes of any bits, of finite numbers alone, mostly zeros, or of few exponents."""
    drawn = rng.integers(0, 1 << dtype.bits, shape, dtype=np.uint8)
    if dtype in oracles.BYTE_FLOATS and kind != "any":
        drawn[~np.isfinite(oracles.values(dtype)[drawn])] = 0
    if kind == "sparse":
        drawn[rng.random(shape) < 0.9] = 0
    return drawn


def operands(
    rng: np.random.Generator,
    shape: tuple[int, int, int],
    pair: tuple[SimpleDType, SimpleDType],
    kind: str,
    scales: str,
) -> Operands:
    rows, depth, columns = shape
    groups = -(-depth // 32)
    low, high = SCALES.get(scales, (0, 0))
    sides: list[np.ndarray] = []
    for matrix, lanes, dtype in (
        ((rows, depth), (rows, groups), pair[0]),
        ((depth, columns), (groups, columns), pair[1]),
    ):
        drawn = (
            rng.choice(EXTREMES, lanes)
            if scales == "extremes"
            else rng.integers(low, high, lanes, dtype=np.uint8)
        )
        sides += [codes(rng, matrix, dtype, kind), drawn]
    return sides[0], sides[1], sides[2], sides[3]


def assert_equal(
    given_operands: Operands, pair: tuple[SimpleDType, SimpleDType], **options: Any
) -> None:
    threads = options.pop("threads", None)
    found = fast_matmul.matmul_mx(
        *given_operands, a_dtype=pair[0], b_dtype=pair[1], threads=threads, **options
    )
    expected = reference.matmul_mx(*given_operands, a_dtype=pair[0], b_dtype=pair[1], **options)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    pair=st.tuples(st.sampled_from(ELEMENTS), st.sampled_from(ELEMENTS)) | st.sampled_from(WIDE),
    shape=st.tuples(st.integers(1, 300), st.integers(1, 300), st.integers(1, 300)),
    kind=st.sampled_from(["any", "finite", "sparse"]),
    scales=st.sampled_from([*SCALES, "extremes"]),
    cut=st.floats(0, 1),
    starts=st.booleans(),
    threads=st.sampled_from([1, 2, 5]),
)
def test_any_shape_pair_and_scales(
    seed: int,
    pair: tuple[SimpleDType, SimpleDType],
    shape: tuple[int, int, int],
    kind: str,
    scales: str,
    cut: float,
    starts: bool,
    threads: int,
) -> None:
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = {"valid_k": max(1, round(cut * shape[1]))}
    if starts:
        options["acc"] = rng.standard_normal((shape[0], shape[2])).astype(np.float32)
    assert_equal(operands(rng, shape, pair, kind, scales), pair, threads=threads, **options)


@pytest.mark.parametrize("pair", [(a, b) for a in ELEMENTS for b in ELEMENTS], ids=str)
def test_every_pair_of_formats(pair: tuple[SimpleDType, SimpleDType]) -> None:
    rng = np.random.default_rng(30)
    for kind, scales in (("finite", "usual"), ("any", "any"), ("finite", "extremes")):
        assert_equal(operands(rng, (17, 70, 35), pair, kind, scales), pair)


@pytest.mark.parametrize("order", ["group", "sequential"])
@pytest.mark.parametrize(
    "pair", [(DType.E4M3, DType.E4M3), (DType.E2M1, DType.E3M2), *WIDE], ids=str
)
def test_threads_change_no_bit(
    pair: tuple[SimpleDType, SimpleDType], order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiled_product, "_ALONE", 0)
    rng = np.random.default_rng(31)
    given_operands = operands(rng, (131, 300, 83), pair, "finite", "usual")
    for threads in (1, 2, 5):
        assert_equal(given_operands, pair, sum=order, threads=threads)


def test_tiles_and_cuts_of_k_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(32)
    given_operands = operands(rng, (100, 290, 90), WIDE[0], "finite", "usual")
    for tile in ((8, 16, 32), (24, 48, 64), (512, 1024, 256)):
        for name, size in zip(("ROWS", "COLUMNS", "DEPTH"), tile, strict=True):
            monkeypatch.setattr(tiled_product, f"_TILE_{name}", size)
        assert_equal(given_operands, WIDE[0], threads=2)


@pytest.mark.parametrize("pair", [(DType.E4M3, DType.E4M3), (DType.E2M1, DType.E2M1)], ids=str)
def test_operands_that_lie_otherwise_in_memory(pair: tuple[SimpleDType, SimpleDType]) -> None:
    rng = np.random.default_rng(33)
    a, a_scales, b, b_scales = operands(rng, (40, 100, 50), pair, "finite", "usual")
    a.setflags(write=False)
    wider = np.zeros((100, 120), np.uint8)
    wider[:, 7:107:2] = b
    for left, right in (
        (a, b),
        (np.asfortranarray(a), np.asfortranarray(b)),
        (a[::-1, ::-1][::-1, ::-1], wider[:, 7:107:2]),
        (a[:, ::-1], b[::-1]),
        (np.broadcast_to(a[:1], a.shape), np.broadcast_to(b[:, :1], b.shape)),
    ):
        assert_equal((left, np.asfortranarray(a_scales), right, np.asfortranarray(b_scales)), pair)


class TestSumsInDoubt:
    """Sums of E5M2 products that float64 cannot hold, made so that one bit far below decides."""

    BIG, ONE, TINY = 0x78, 0x3C, 0x01  # 2^15, 1, 2^-16

    @pytest.mark.parametrize("scales", [(127, 127), (0, 0), (254, 0), (200, 3), (127, 255)])
    @pytest.mark.parametrize("position", [0, 7, 8, 20])
    def test_large_products_that_cancel_leave_the_small_one(
        self, position: int, scales: tuple[int, int]
    ) -> None:
        rng = np.random.default_rng(34)
        a, b = np.zeros((21, 64), np.uint8), np.zeros((64, 37), np.uint8)
        a[position, :4] = self.BIG, self.BIG | 0x80, self.TINY, self.TINY | 0x80
        b[:2], b[2], b[3, ::2] = self.BIG, self.TINY, self.TINY
        a[:, 32:] = rng.integers(0, 0x7C, (21, 32))
        b[32:] = rng.integers(0, 0x7C, (32, 37))
        given_operands = (
            a, np.full((21, 2), scales[0], np.uint8), b, np.full((2, 37), scales[1], np.uint8)
        )  # fmt: skip
        assert_equal(given_operands, WIDE[0])
        assert_equal(given_operands, WIDE[0], acc=np.full((21, 37), -0.0, np.float32))

    @pytest.mark.parametrize("pair", WIDE, ids=str)
    def test_ties_that_a_bit_far_below_breaks(self, pair: tuple[SimpleDType, SimpleDType]) -> None:
        # Sums of a power, half a float32 step of it, and the smallest product there is, or not.
        high, middle = (
            np.array([code for code in range(0x7C) if oracles.values(dtype)[code] >= 1])
            for dtype in pair
        )
        rng = np.random.default_rng(35)
        a, b = np.zeros((64, 32), np.uint8), np.zeros((32, 64), np.uint8)
        a[:, 0], b[0] = high[-1], middle[-1]
        a[:, 1] = rng.choice(high, 64)
        b[1] = rng.choice(middle, 64)
        a[:, 2] = rng.integers(0, 2, 64) * (1 | 0x80 * rng.integers(0, 2, 64))
        b[2] = rng.integers(0, 2, 64)
        scale = np.full((64, 1), 127, np.uint8)
        assert_equal((a, scale, b, scale.T), pair)

    @settings(max_examples=60, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), pair=st.sampled_from(WIDE), anti=st.booleans())
    def test_sums_that_nearly_cancel(
        self, seed: int, pair: tuple[SimpleDType, SimpleDType], anti: bool
    ) -> None:
        rng = np.random.default_rng(seed)
        rows, columns = (int(n) for n in rng.integers(1, 40, 2))
        a = codes(rng, (rows, 32), pair[0], "finite")
        b = codes(rng, (32, columns), pair[1], "finite")
        half = 16 if anti else 15
        a[:, half : 2 * half] = a[:, :half] ^ 0x80
        b[half : 2 * half] = b[:half]
        order = rng.permutation(32)
        scales = rng.choice(EXTREMES[:-1], (rows, 1)), rng.choice(EXTREMES[:-1], (1, columns))
        given_operands = a[:, order], scales[0], b[order], scales[1]
        assert_equal(given_operands, pair)
        assert_equal(given_operands, pair, acc=np.full((rows, columns), -0.0, np.float32))

    def test_infinities_among_rows_in_doubt(self) -> None:
        rng = np.random.default_rng(36)
        a = codes(rng, (48, 96), DType.E5M2, "finite")
        b = codes(rng, (96, 48), DType.E5M2, "finite")
        a[:, 16:32] = a[:, :16] ^ 0x80
        b[16:32] = b[:16]
        a[::3, 5], b[40, ::5], a[7, 70] = 0x7C, 0xFC, 0x7E
        scale = np.full((48, 3), 127, np.uint8)
        assert_equal((a, scale, b, scale.T), WIDE[0])


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("sum_", ["group", "sequential"])
@pytest.mark.parametrize("shape", [(7, 1, 9), (1, 70, 9), (7, 70, 1), (1, 1, 1)])
def test_operands_with_steps_of_zero(
    dtype: SimpleDType, sum_: str, shape: tuple[int, int, int]
) -> None:
    rows, depth, columns = shape
    rng = np.random.default_rng(5)
    kind = "finite" if dtype in oracles.BYTE_FLOATS else "any"
    column = codes(rng, (rows, 1), dtype, kind)
    row = codes(rng, (1, columns), dtype, kind)
    a_scales = np.full((rows, -(-depth // 32)), 127, np.uint8)
    b_scales = np.full((-(-depth // 32), columns), 127, np.uint8)
    spread = np.lib.stride_tricks.as_strided
    a = spread(column, (rows, depth), (1, 0))  # along K, and where an extent is 1
    b = spread(row, (depth, columns), (0, 1))
    options: dict[str, Any] = {"a_dtype": dtype, "b_dtype": dtype, "sum": sum_}
    expected = reference.matmul_mx(a.copy(), a_scales, b.copy(), b_scales, **options)
    found = fast_matmul.matmul_mx(a, a_scales, b, b_scales, **options)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))
