from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.ir import numerics
from scalebox.ir.dtypes import E1M2, DType, SimpleDType
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.numerics import fast_matmul, quantization, reference

from . import oracles

Matmul = Callable[..., np.ndarray]

ELEMENTS = (*oracles.BYTE_FLOATS, DType.Int8)
ONE = 0x38  # 1.0 in E4M3

both = pytest.mark.parametrize(
    "multiply", [reference.matmul_mx, fast_matmul.matmul_mx], ids=["numpy", "compiled"]
)


def e4m3(multiply: Matmul, *operands: Any, **options: Any) -> np.ndarray:
    return multiply(*operands, a_dtype=DType.E4M3, b_dtype=DType.E4M3, **options)


def full(rows: int, columns: int, code: int) -> np.ndarray:
    return np.full((rows, columns), code, np.uint8)


def bits(out: np.ndarray) -> np.ndarray:
    assert out.dtype == np.float32
    return out.view(np.uint32)


def worth(codes: np.ndarray, dtype: SimpleDType) -> np.ndarray:
    """What block scaling takes element codes for."""
    if dtype is DType.Int8:
        return codes.view(np.int8).astype(np.float32) / 64
    return oracles.values(dtype)[codes]


def draw(
    rng: np.random.Generator, shape: tuple[int, int], dtype: SimpleDType, *, finite: bool
) -> np.ndarray:
    codes = rng.integers(0, 1 << dtype.bits, shape, dtype=np.uint8)
    if finite and dtype is not DType.Int8:
        codes = np.where(np.isfinite(oracles.values(dtype)[codes]), codes, 0).astype(np.uint8)
    return codes


class TestByHand:
    @both
    @pytest.mark.parametrize("b_scale", [0x00, 0x7F])
    def test_case_a1_a_nan_scale_poisons(self, multiply: Matmul, b_scale: int) -> None:
        out = e4m3(
            multiply, full(16, 64, ONE), full(16, 2, 0xFF), full(64, 32, ONE), full(2, 32, b_scale)
        )
        assert (bits(out) == 0x7FC00000).all()

    @both
    def test_case_c7_padding_scales_are_never_read(self, multiply: Matmul) -> None:
        rng = np.random.default_rng(20)
        a = draw(rng, (3, 1536), DType.E4M3, finite=True)
        b = draw(rng, (1536, 5), DType.E4M3, finite=True)
        scales = rng.integers(120, 135, (3, 48), dtype=np.uint8)
        b_scales = rng.integers(120, 135, (48, 5), dtype=np.uint8)
        outs: list[np.ndarray] = []
        for padding in (0x00, 0xFF):
            a[:, 1504:] = padding
            b[1504:] = padding
            scales[:, 47:] = padding
            b_scales[47:] = padding
            outs.append(bits(e4m3(multiply, a, scales, b, b_scales, valid_k=1504)))
        np.testing.assert_array_equal(outs[0], outs[1])
        alone = e4m3(multiply, a[:, :1504], scales[:, :47], b[:1504], b_scales[:47])
        np.testing.assert_array_equal(outs[0], bits(alone))

    @both
    @pytest.mark.parametrize(("code", "is_nan"), [(0x00, False), (0x7F, False), (0xFF, True)])
    def test_case_c8_zero_data_under_any_scale(
        self, multiply: Matmul, code: int, is_nan: bool
    ) -> None:
        a, scales = full(2, 128, ONE), full(2, 4, 127)
        a[:, 96:], scales[:, 3] = 0, code
        out = e4m3(multiply, a, scales, full(128, 2, ONE), full(4, 2, 127))
        assert np.isnan(out).all() if is_nan else (out == 96).all()

    @both
    def test_a_nan_scale_within_the_valid_k_counts_for_one_element(self, multiply: Matmul) -> None:
        a, scales = full(1, 64, 0), full(1, 2, 127)
        scales[0, 1] = 0xFF
        args = (a, scales, full(64, 1, 0), full(2, 1, 127))
        assert bits(e4m3(multiply, *args, valid_k=32)).item() == 0
        assert bits(e4m3(multiply, *args, valid_k=33)).item() == 0x7FC00000

    @both
    def test_case_e1_scale_sums_beyond_eight_bits(self, multiply: Matmul) -> None:
        a, b = full(1, 32, 0), full(32, 1, 0)
        a[0, 0] = b[0, 0] = ONE
        expected = {
            (200, 200): np.inf,  # 2^146
            (0, 0): 0.0,  # 2^-254
            (254, 0): 1.0,
            (254, 127): 2.0**127,
            (100, 5): 2.0**-149,
            (100, 4): 0.0,  # 2^-150, a tie, goes to even
            (64, 64): 2.0**-126,
        }
        for (left, right), value in expected.items():
            out = e4m3(multiply, a, full(1, 1, left), b, full(1, 1, right))
            assert out.item() == value, (left, right)

    @both
    def test_a_negative_underflow_is_minus_zero_and_an_exact_zero_is_plus_zero(
        self, multiply: Matmul
    ) -> None:
        a, b = full(1, 32, 0), full(32, 1, ONE)
        minus_zero = np.full((1, 1), -0.0, np.float32)
        tiny = (full(1, 1, 0), b, full(1, 1, 0))
        a[0, 0] = ONE | 0x80
        assert bits(e4m3(multiply, a, *tiny, acc=minus_zero)).item() == 0x80000000
        a[0, 1] = ONE
        assert bits(e4m3(multiply, a, *tiny, acc=minus_zero)).item() == 0
        products = full(1, 32, 0x80)
        assert bits(e4m3(multiply, products, *tiny, acc=minus_zero)).item() == 0
        out = e4m3(multiply, products, *tiny, acc=minus_zero, sum="sequential")
        assert bits(out).item() == 0

    @both
    def test_a_group_is_rounded_once_and_each_product_not_at_all(self, multiply: Matmul) -> None:
        # 2^15 * 2^15 + 2^-16 * 2^-16 - 2^15 * 2^15: a float64 would lose the small one.
        a, b = full(1, 32, 0), full(32, 1, 0)
        a[0, :3] = (0x78, 0x01, 0xF8)
        b[:3, 0] = (0x78, 0x01, 0x78)
        out = multiply(
            a, full(1, 1, 127), b, full(1, 1, 127), a_dtype=DType.E5M2, b_dtype=DType.E5M2
        )
        assert out.item() == 2.0**-32
        out = multiply(
            a,
            full(1, 1, 127),
            b,
            full(1, 1, 127),
            a_dtype=DType.E5M2,
            b_dtype=DType.E5M2,
            sum="sequential",
        )
        assert out.item() == 0

    @both
    def test_a_sticky_bit_far_below_breaks_a_tie(self, multiply: Matmul) -> None:
        # 2^30 + 2^6 is halfway between two float32; 2^-32 more or less decides.
        for sign, expected in ((0x00, 2.0**30 + 128), (0x80, 2.0**30)):
            a, b = full(1, 32, 0), full(32, 1, 0)
            a[0, :3] = (0x78, 0x48, 0x01 | sign)  # 2^15, 8, 2^-16
            b[:3, 0] = (0x78, 0x48, 0x01)
            out = multiply(
                a, full(1, 1, 127), b, full(1, 1, 127), a_dtype=DType.E5M2, b_dtype=DType.E5M2
            )
            assert out.item() == expected

    @both
    def test_infinities_follow_ieee(self, multiply: Matmul) -> None:
        infinity, minus, one, zero, nan = 0x7C, 0xFC, 0x3C, 0x00, 0x7E
        rows = [
            ([infinity, one], [one, one], np.inf),
            ([minus, one], [one, one], -np.inf),
            ([infinity, one], [one, minus], np.nan),
            ([infinity, one], [zero, one], np.nan),
            ([infinity, infinity], [one, one], np.inf),
            ([minus, infinity], [minus, one], np.inf),
            ([nan, one], [one, one], np.nan),
            ([nan, infinity], [one, one], np.nan),
        ]
        for left, right, expected in rows:
            a, b = full(1, 32, zero), full(32, 1, one)
            a[0, :2], b[:2, 0] = left, right
            out = multiply(
                a, full(1, 1, 127), b, full(1, 1, 254), a_dtype=DType.E5M2, b_dtype=DType.E5M2
            )
            np.testing.assert_array_equal(out, [[expected]])

    @both
    def test_opposite_infinities_of_two_groups_are_nan(self, multiply: Matmul) -> None:
        a, b = full(1, 64, 0x3C), full(64, 1, 0x3C)
        a[0, 0], a[0, 40] = 0x7C, 0xFC
        out = multiply(
            a, full(1, 2, 127), b, full(2, 1, 127), a_dtype=DType.E5M2, b_dtype=DType.E5M2
        )
        assert bits(out).item() == 0x7FC00000

    @both
    def test_the_result_overflows_to_infinity(self, multiply: Matmul) -> None:
        out = e4m3(multiply, full(1, 32, ONE), full(1, 1, 254), full(32, 1, ONE), full(1, 1, 127))
        assert out.item() == np.inf

    @both
    def test_an_accumulator_or_a_bias_to_start_from(self, multiply: Matmul) -> None:
        args = (full(2, 32, ONE), full(2, 1, 127), full(32, 3, ONE), full(1, 3, 127))
        acc = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(e4m3(multiply, *args, acc=acc), acc + 32)
        np.testing.assert_array_equal(acc, np.arange(6).reshape(2, 3))
        bias = np.array([[1, np.nan, -np.inf]], np.float32)
        expected = [[33, np.nan, -np.inf]] * 2
        np.testing.assert_array_equal(e4m3(multiply, *args, bias=bias), expected)

    @both
    def test_every_nan_leaves_as_one(self, multiply: Matmul) -> None:
        args = (full(1, 32, ONE), full(1, 1, 127), full(32, 1, ONE), full(1, 1, 127))
        odd = np.array([[0xFFABCDEF]], np.uint32).view(np.float32)
        assert bits(e4m3(multiply, *args, acc=odd)).item() == 0x7FC00000


@both
@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    a_dtype=st.sampled_from(ELEMENTS),
    b_dtype=st.sampled_from(ELEMENTS),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 70), st.integers(1, 4)),
    scales=st.sampled_from([(0, 255), (119, 135), (0, 60), (200, 254), (50, 70)]),
    finite=st.booleans(),
    start=st.sampled_from([None, "acc", "bias"]),
    order=st.sampled_from(["group", "sequential"]),
)
def test_the_answer_in_fractions(
    multiply: Matmul,
    seed: int,
    a_dtype: SimpleDType,
    b_dtype: SimpleDType,
    shape: tuple[int, int, int],
    scales: tuple[int, int],
    finite: bool,
    start: str | None,
    order: str,
) -> None:
    rng = np.random.default_rng(seed)
    rows, depth, columns = shape
    groups = -(-depth // 32)
    a = draw(rng, (rows, depth), a_dtype, finite=finite)
    b = draw(rng, (depth, columns), b_dtype, finite=finite)
    a_scales = rng.integers(*scales, (rows, groups), dtype=np.uint8, endpoint=True)
    b_scales = rng.integers(*scales, (groups, columns), dtype=np.uint8, endpoint=True)
    given_start = {
        None: np.zeros((rows, columns), np.float32),
        "acc": rng.standard_normal((rows, columns)).astype(np.float32),
        "bias": rng.standard_normal((1, columns)).astype(np.float32),
    }[start]
    expected = oracles.matmul(
        worth(a, a_dtype),
        a_scales,
        worth(b, b_dtype),
        b_scales,
        start=np.broadcast_to(given_start, (rows, columns)),
        step=32 if order == "group" else 1,
    )
    out = multiply(
        a,
        a_scales,
        b,
        b_scales,
        a_dtype=a_dtype,
        b_dtype=b_dtype,
        sum=order,
        **({start: given_start} if start else {}),
    )
    np.testing.assert_array_equal(bits(out), expected)


@pytest.mark.parametrize("order", ["group", "sequential"])
@pytest.mark.parametrize("seed", range(40))
def test_numpy_and_compiled_agree_on_any_shape(seed: int, order: str) -> None:
    rng = np.random.default_rng(1000 + seed)
    a_dtype, b_dtype = (ELEMENTS[int(i)] for i in rng.integers(0, len(ELEMENTS), 2))
    if seed % 3 == 0:
        a_dtype = b_dtype = DType.E5M2
    rows, depth, columns = (int(n) for n in rng.integers(1, 131, 3))
    groups = -(-depth // 32) + int(rng.integers(0, 2))
    finite = bool(seed % 2)
    low, high = ((0, 256), (120, 136), (0, 50), (210, 255))[seed % 4]
    args = (
        draw(rng, (rows, depth), a_dtype, finite=finite),
        rng.integers(low, high, (rows, groups), dtype=np.uint8),
        draw(rng, (depth, columns), b_dtype, finite=finite),
        rng.integers(low, high, (groups, columns), dtype=np.uint8),
    )
    options: dict[str, Any] = {"a_dtype": a_dtype, "b_dtype": b_dtype, "sum": order}
    options["valid_k"] = int(rng.integers(1, depth + 1))
    options["acc"] = rng.standard_normal((rows, columns)).astype(np.float32)
    plain = reference.matmul_mx(*args, **options)
    np.testing.assert_array_equal(bits(fast_matmul.matmul_mx(*args, **options)), bits(plain))


@both
def test_cutting_along_k_changes_no_bit(multiply: Matmul) -> None:
    rng = np.random.default_rng(21)
    a, b = (draw(rng, shape, DType.E4M3, finite=True) for shape in ((5, 192), (192, 7)))
    scales = rng.integers(110, 140, (5, 6), dtype=np.uint8)
    b_scales = rng.integers(110, 140, (6, 7), dtype=np.uint8)
    whole = e4m3(multiply, a, scales, b, b_scales)
    acc = None
    for first in range(0, 192, 64):
        g, k = slice(first // 32, first // 32 + 2), slice(first, first + 64)
        acc = e4m3(multiply, a[:, k], scales[:, g], b[k], b_scales[g], acc=acc)
    assert acc is not None
    np.testing.assert_array_equal(bits(acc), bits(whole))


class TestBadInput:
    GOOD = (full(2, 64, ONE), full(2, 2, 127), full(64, 3, ONE), full(2, 3, 127))

    @pytest.mark.parametrize(
        ("position", "value", "sentence"),
        [
            (0, full(2, 63, ONE), r"^B codes must have as many rows as A has columns \(63\), not"),
            (
                0,
                np.zeros(64, np.uint8),
                r"^A codes must be a matrix \[M, K\], not of shape \[64\]$",
            ),
            (1, full(3, 2, 127), r"^A scales must be \[2, at least 2\], not \[3, 2\]$"),
            (1, full(2, 1, 127), r"^A scales must be \[2, at least 2\], not \[2, 1\]$"),
            (3, full(1, 3, 127), r"^B scales must be \[at least 2, 3\], not \[1, 3\]$"),
            (3, full(2, 4, 127), r"^B scales must be \[at least 2, 3\], not \[2, 4\]$"),
        ],
    )
    @both
    def test_shapes(
        self, multiply: Matmul, position: int, value: np.ndarray, sentence: str
    ) -> None:
        args = list(self.GOOD)
        args[position] = value
        with pytest.raises(IRValueError, match=sentence):
            e4m3(multiply, *args)

    @both
    def test_linear_scales_are_refused(self, multiply: Matmul) -> None:
        args = list(self.GOOD)
        args[1] = np.ones((2, 2), np.float32)
        with pytest.raises(IRTypeError, match=r"^A scales must be uint8 codes \(E8M0"):
            e4m3(multiply, *args)

    @both
    @pytest.mark.parametrize("valid_k", [0, -1, 65])
    def test_valid_k(self, multiply: Matmul, valid_k: int) -> None:
        with pytest.raises(IRValueError, match=r"^The valid K must be in 1\.\.64, the physical K"):
            e4m3(multiply, *self.GOOD, valid_k=valid_k)

    @both
    def test_starts(self, multiply: Matmul) -> None:
        good = np.zeros((2, 3), np.float32)
        with pytest.raises(IRValueError, match=r"^A matmul starts from an accumulator or from a b"):
            e4m3(multiply, *self.GOOD, acc=good, bias=good[:1])
        with pytest.raises(IRValueError, match=r"^The accumulator must be \[2, 3\], not \[3, 2\]$"):
            e4m3(multiply, *self.GOOD, acc=good.T)
        with pytest.raises(IRValueError, match=r"^The bias must be \[1, 3\], not \[2, 3\]$"):
            e4m3(multiply, *self.GOOD, bias=good)
        with pytest.raises(IRTypeError, match=r"^The accumulator must be float32, not float64$"):
            e4m3(multiply, *self.GOOD, acc=np.zeros((2, 3)))

    @both
    def test_an_unknown_order(self, multiply: Matmul) -> None:
        with pytest.raises(
            IRValueError, match=r"^sum must be 'group' or 'sequential', not 'fast'$"
        ):
            e4m3(multiply, *self.GOOD, sum="fast")

    @both
    def test_wide_elements(self, multiply: Matmul) -> None:
        with pytest.raises(IRTypeError, match=r"at most 8 bits, not Float32$"):
            multiply(*self.GOOD, a_dtype=DType.Float32, b_dtype=DType.E4M3)


class TestArrays:
    """`numerics.matmul` of two MXArrays."""

    FORMATS = (
        DType.MXFP8_E4M3, DType.MXFP8_E5M2, DType.MXFP6_E3M2, DType.MXFP6_E2M3, DType.MXFP4,
        DType.MXINT8,
    )  # fmt: skip

    @pytest.mark.parametrize("compiled_from", [0, 1 << 60], ids=["compiled", "numpy"])
    @pytest.mark.parametrize("left", FORMATS, ids=lambda dtype: dtype.name)
    @pytest.mark.parametrize("right", FORMATS, ids=lambda dtype: dtype.name)
    def test_any_two_formats_of_32(
        self, left: Any, right: Any, compiled_from: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(quantization, "COMPILED_FROM", compiled_from)
        rng = np.random.default_rng(22)
        a = numerics.quantize(rng.standard_normal((3, 80)), left)
        b = numerics.quantize(rng.standard_normal((80, 2)), right, axis=0)
        expected = oracles.matmul(
            worth(a.elements, left.element), a.scales, worth(b.elements, right.element), b.scales
        )
        np.testing.assert_array_equal(bits(numerics.matmul(a, b)), expected)

    def test_what_does_not_multiply(self) -> None:
        x = np.ones((64, 64), np.float32)
        rows = numerics.quantize(x, DType.MXFP8_E4M3)
        columns = numerics.quantize(x, DType.MXFP8_E4M3, axis=0)
        nv = numerics.quantize(x, DType.NVFP4, axis=0)
        sentence = (
            r"^The right operand must be a matrix grouped along axis 0, not of shape \[64, 64\]"
        )
        with pytest.raises(IRValueError, match=sentence):
            numerics.matmul(rows, rows)
        with pytest.raises(IRValueError, match=r"^The left operand must be a matrix grouped along"):
            numerics.matmul(columns, columns)
        with pytest.raises(IRTypeError, match=r"or be of one format, not MXFP8_E4M3 and NVFP4$"):
            numerics.matmul(rows, nv)
        short = numerics.quantize(x[:32], DType.MXFP8_E4M3, axis=0)
        with pytest.raises(
            IRValueError, match=r"^The operands must share a K of at least 1, not 64"
        ):
            numerics.matmul(rows, short)
        wrong: Any = x
        with pytest.raises(
            IRTypeError, match=r"^The right operand must be an MXArray, not ndarray$"
        ):
            numerics.matmul(rows, wrong)


def test_e1m2_times_e2m1_by_hand() -> None:
    a, b = full(1, 32, 0x7), full(32, 1, 0xD)  # 1.75 and -3
    out = reference.matmul_mx(
        a, full(1, 1, 128), b, full(1, 1, 126), a_dtype=E1M2, b_dtype=DType.E2M1
    )
    assert out.item() == 32 * 1.75 * -3
