import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.ir import numerics
from scalebox.ir.dtypes import BlockScaledDType, DType
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.numerics import quantization

from . import block_oracle

Source = Callable[[np.random.Generator], np.ndarray]


def signed(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return np.where(rng.random(x.shape) < 0.5, -x, x).astype(np.float32)


def normal(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((12, 32)).astype(np.float32)


def below_powers_of_two(rng: np.random.Generator) -> np.ndarray:
    powers = np.ldexp(1.0, np.arange(-148, 128))[:, None].astype(np.float32)
    below = np.append(np.nextafter(powers, np.float32(0)), [[np.finfo(np.float32).max]], axis=0)
    return signed(rng, np.broadcast_to(below, (len(below), 32)))


def every_exponent(rng: np.random.Generator) -> np.ndarray:
    largest = np.ldexp(rng.uniform(1, 2, (278, 1)), np.arange(-150, 128)[:, None])
    few = largest * np.array([1, 0.9, 0.5, 0.11, 1 / 300, 1e-6])
    return signed(rng, np.tile(few, 6)[:, :32])


def every_binade_below(rng: np.random.Generator) -> np.ndarray:
    """Small groups with an element in each of the 31 binades below the largest."""
    exponents = np.arange(-126, -50, 3)[:, None] - np.arange(32)
    return signed(rng, np.ldexp(rng.uniform(1, 2, exponents.shape), exponents))


def subnormal(rng: np.random.Generator) -> np.ndarray:
    widths = rng.integers(1, 24, (12, 1))
    return signed(rng, (rng.integers(0, 1 << widths, (12, 32))).astype(np.uint32).view(np.float32))


def zeros(rng: np.random.Generator) -> np.ndarray:
    x = signed(rng, np.zeros((4, 32)))
    x[0] = 0.0
    x[1] = -0.0
    x[3, 5] = 3.0
    return x


def infinities(rng: np.random.Generator) -> np.ndarray:
    x = normal(rng)
    x[0, 3], x[1, 0], x[2, 31] = np.inf, -np.inf, np.inf
    x[2, 30], x[3] = -np.inf, np.inf
    return x


def nans(rng: np.random.Generator) -> np.ndarray:
    x = infinities(rng)
    x[0, 9], x[4, 1], x[5] = np.nan, -np.nan, np.nan
    return x


def patterns(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 1 << 32, (12, 32), dtype=np.uint64).astype(np.uint32).view(np.float32)


CLASSES = (
    normal, below_powers_of_two, every_exponent, every_binade_below, subnormal, zeros, infinities,
    nans, patterns,
)  # fmt: skip


@pytest.fixture(params=["numpy", "compiled"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of every routine, whatever the size."""
    compiled_from = 0 if request.param == "compiled" else 1 << 60
    monkeypatch.setattr(quantization, "COMPILED_FROM", compiled_from)
    return request.param


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("source", CLASSES, ids=lambda source: source.__name__)
@pytest.mark.parametrize("rule", block_oracle.RULES)
@pytest.mark.parametrize("dtype", block_oracle.MX_FORMATS, ids=lambda dtype: dtype.name)
def test_every_class_of_values_by_every_rule(
    dtype: BlockScaledDType, rule: str, source: Source
) -> None:
    x = source(np.random.default_rng(7))
    codes, scales = block_oracle.quantize_rows(x, dtype, rule)
    rows = numerics.quantize(x, dtype, rule=rule)
    np.testing.assert_array_equal(rows.scales, scales)
    np.testing.assert_array_equal(rows.elements, codes)
    columns = numerics.quantize(np.ascontiguousarray(x.T), dtype, rule=rule, axis=0)
    np.testing.assert_array_equal(columns.scales, scales.T)
    np.testing.assert_array_equal(columns.elements, codes.T)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("rule", block_oracle.RULES)
@pytest.mark.parametrize("dtype", block_oracle.MX_FORMATS, ids=lambda dtype: dtype.name)
def test_saturating_infinities(dtype: BlockScaledDType, rule: str) -> None:
    x = nans(np.random.default_rng(8))
    codes, scales = block_oracle.quantize_rows(x, dtype, rule, "saturate")
    mx = numerics.quantize(x, dtype, rule=rule, infinity="saturate")
    np.testing.assert_array_equal(mx.scales, scales)
    np.testing.assert_array_equal(mx.elements, codes)


@pytest.mark.usefixtures("path")
class TestExamples:
    def test_one_ulp_below_eight(self) -> None:
        x = np.full(32, np.nextafter(np.float32(8), np.float32(0)))
        mx = numerics.quantize(x, DType.MXFP8_E4M3, rule="floor")
        assert mx.scales.tolist() == [121]
        assert mx.elements.tolist() == [0x7E] * 32
        assert numerics.dequantize(mx).tolist() == [7.0] * 32

    def test_a_block_of_2_to_the_minus_119(self) -> None:
        mx = numerics.quantize(np.full(32, 2.0**-119, np.float32), DType.MXFP8_E4M3)
        assert mx.scales.tolist() == [0]
        assert mx.elements.tolist() == [0x78] * 32
        assert numerics.dequantize(mx).tolist() == [2.0**-119] * 32

    @pytest.mark.parametrize(
        ("amax", "floor", "ceil", "even", "rceil"),
        [
            (150, 126, 127, 126, 126),
            (448, 127, 128, 127, 127),
            (449, 127, 128, 127, 128),
            (480, 127, 128, 127, 128),
            (495, 127, 128, 127, 128),
            (496, 127, 128, 128, 128),
            (511, 127, 128, 128, 128),
        ],
    )
    def test_case_b4(self, amax: int, floor: int, ceil: int, even: int, rceil: int) -> None:
        x = np.linspace(-amax, amax, 32).astype(np.float32)
        expected = {"floor": floor, "ceil": ceil, "even": even, "rceil": rceil}
        for rule, code in expected.items():
            mx = numerics.quantize(x, DType.MXFP8_E4M3, rule=rule)
            assert mx.scales.tolist() == [code], rule

    def test_the_machine_s_rounded_ratio_decides_its_code(self) -> None:
        # 448 * 2^-127 times float32(1 / 448) is a little above 2^-127, and float32, which has steps
        # of 2^-149 there, makes it 2^-127 itself; a step more and a half is the next code.
        x = np.full((2, 32), 448 * 2.0**-127, np.float32)
        x[1] *= np.float32(1 + 2.0**-21)
        mx = numerics.quantize(x, DType.MXFP8_E4M3, rule="nv")
        assert mx.scales.tolist() == [[0], [1]]
        assert (mx.elements[0] == 0x7E).all()

    def test_case_b5_zeros_keep_their_sign_and_nothing_warns(self) -> None:
        x = np.zeros((3, 32), np.float32)
        x[1], x[2] = -0.0, 1.0
        mx = numerics.quantize(x, DType.MXFP8_E4M3)
        assert mx.scales[:2].tolist() == [[0], [0]]
        assert mx.elements[:2, 0].tolist() == [0, 0x80]
        assert (numerics.dequantize(mx)[:2] == 0).all()

    def test_case_b7_nan_and_infinity(self) -> None:
        x = np.ones((2, 32), np.float32)
        x[0, 0], x[1, 0] = np.nan, np.inf
        mx = numerics.quantize(x, DType.MXFP8_E4M3)
        assert mx.scales.tolist() == [[255], [255]]
        assert (mx.elements == 0x7F).all()
        assert np.isnan(numerics.dequantize(mx)).all()
        mx = numerics.quantize(x[1], DType.MXFP8_E4M3, rule="nv")
        assert mx.scales.tolist() == [254]
        assert mx.elements.tolist() == [0x7E, *[0] * 31]

    @pytest.mark.parametrize("axis", [0, 1])
    def test_case_b9_a_row_s_tail_shares_no_scale_with_the_next_row(self, axis: int) -> None:
        x = np.random.default_rng(9).standard_normal((2, 48)).astype(np.float32)
        x[1] *= 2.0**20
        alone = numerics.quantize(x[0], DType.MXFP8_E4M3)
        turned = x if axis else np.ascontiguousarray(x.T)
        mx = numerics.quantize(turned, DType.MXFP8_E4M3, axis=axis)
        scales, elements = (mx.scales, mx.elements) if axis else (mx.scales.T, mx.elements.T)
        assert scales.shape == (2, 2)
        np.testing.assert_array_equal(scales[0], alone.scales)
        np.testing.assert_array_equal(elements[0], alone.elements)
        np.testing.assert_array_equal(scales[1], scales[0] + 20)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_any_axis_and_any_tail(axis: int) -> None:
    x = np.random.default_rng(10).standard_normal((37, 65, 33)).astype(np.float32)
    mx = numerics.quantize(x, DType.MXFP4, axis=axis)
    assert mx.axis == axis % 3
    assert mx.shape == x.shape
    moved = np.moveaxis(x, axis, -1)
    rows = numerics.quantize(moved.reshape(-1, moved.shape[-1]), DType.MXFP4)
    np.testing.assert_array_equal(
        np.moveaxis(mx.elements, axis, -1).reshape(rows.shape), rows.elements
    )
    np.testing.assert_array_equal(
        np.moveaxis(mx.scales, axis, -1).reshape(rows.scales.shape), rows.scales
    )
    np.testing.assert_array_equal(
        np.moveaxis(numerics.dequantize(mx), axis, -1).reshape(rows.shape),
        numerics.dequantize(rows),
    )


def test_a_large_array_is_its_small_ones_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantization, "_PIECE", 1 << 12)
    monkeypatch.setattr(quantization, "_SMALL_PIECE", 1 << 10)
    x = np.random.default_rng(11).standard_normal((700, 160)).astype(np.float32)
    for axis, source in ((1, x), (0, x), (1, x.T)):
        mx = numerics.quantize(source, DType.MXFP8_E5M2, axis=axis, rule="even")
        codes, scales = block_oracle_free(source, axis)
        np.testing.assert_array_equal(mx.elements, codes)
        np.testing.assert_array_equal(mx.scales, scales)


def block_oracle_free(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    parts = [
        numerics.quantize(each.copy(), DType.MXFP8_E5M2, rule="even")
        for each in np.moveaxis(x, axis, -1)
    ]
    return (
        np.moveaxis(np.array([part.elements for part in parts]), -1, axis),
        np.moveaxis(np.array([part.scales for part in parts]), -1, axis),
    )


@pytest.mark.parametrize("rule", [rule for rule in block_oracle.RULES if rule != "nv"])
def test_a_float64_source_is_rounded_once(rule: str) -> None:
    rng = np.random.default_rng(12)
    ties = 1 + (2 * np.arange(32) + 1) / 16
    x = np.stack([ties, np.nextafter(ties, 9), np.nextafter(ties, 0), rng.uniform(0, 1e300, 32)])
    x = np.concatenate([x, x * 2.0**-160, -x])
    codes, scales = block_oracle.quantize_rows(x, DType.MXFP8_E4M3, rule)
    mx = numerics.quantize(x, DType.MXFP8_E4M3, rule=rule)
    np.testing.assert_array_equal(mx.scales, scales)
    np.testing.assert_array_equal(mx.elements, codes)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float64, np.int16])
def test_other_sources_count_as_what_they_hold(kind: npt.DTypeLike) -> None:
    numbers = np.random.default_rng(13).standard_normal((5, 70)) * 100
    x = np.asarray(numbers.astype(ml_dtypes.bfloat16).astype(np.float32), kind)
    as_float32 = numerics.quantize(x.astype(np.float32), DType.MXFP8_E4M3)
    mx = numerics.quantize(x, DType.MXFP8_E4M3)
    np.testing.assert_array_equal(mx.elements, as_float32.elements)
    np.testing.assert_array_equal(mx.scales, as_float32.scales)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("dtype", [*block_oracle.MX_FORMATS, DType.NVFP4], ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(0,), (0, 64), (3, 0), (0, 0), (2, 0, 33), (0, 2, 3)])
def test_empty_arrays_stay_empty(shape: tuple[int, ...], dtype: BlockScaledDType) -> None:
    block = dtype.levels[0].block
    assert isinstance(block, int)
    for axis in range(len(shape)):
        mx = numerics.quantize(np.zeros(shape, np.float32), dtype, axis=axis)
        assert mx.shape == shape
        assert mx.scales.shape == tuple(
            -(-extent // block) if where == axis else extent for where, extent in enumerate(shape)
        )
        assert numerics.dequantize(mx).shape == shape


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("dtype", [*block_oracle.MX_FORMATS, DType.NVFP4], ids=lambda d: d.name)
def test_a_signalling_nan_is_a_nan_and_does_not_warn(dtype: BlockScaledDType) -> None:
    sources = (
        np.full(40, 0x7C01, np.uint16).view(np.float16),
        np.full(40, 0xFF81, np.uint16).view(ml_dtypes.bfloat16),
        np.full(40, 0x7F800001, np.uint32).view(np.float32),
        np.full(40, 0x7FF0000000000001, np.uint64).view(np.float64),
    )
    for x in sources:
        mx = numerics.quantize(x, dtype)
        assert (mx.scales == (0x7F if dtype is DType.NVFP4 else 0xFF)).all()
        assert np.isnan(numerics.dequantize(mx)).all()


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("kind", [">f4", ">f8", ">f2", ">i4"])
def test_a_source_counts_in_its_own_byte_order(kind: str) -> None:
    numbers = np.random.default_rng(15).integers(-2000, 2000, (5, 70))
    native = numerics.quantize(numbers.astype(np.float32), DType.MXFP6_E2M3)
    mx = numerics.quantize(numbers.astype(kind), DType.MXFP6_E2M3)
    np.testing.assert_array_equal(mx.elements, native.elements)
    np.testing.assert_array_equal(mx.scales, native.scales)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["float32", "turned", "strided", "float16", "float64"])
@pytest.mark.parametrize("dtype", [DType.MXFP8_E4M3, DType.NVFP4], ids=lambda d: d.name)
def test_memory_stays_below_one_and_a_half_of_inputs_and_outputs(
    dtype: BlockScaledDType, kind: str, axis: int
) -> None:
    x = np.random.default_rng(14).standard_normal((1024, 2048)).astype(np.float32)
    match kind:
        case "turned":
            x = x.T
        case "strided":
            x = np.repeat(x, 2, axis=1)[:, ::2]
        case _:
            x = x.astype(kind)
    numerics.quantize(x, dtype, axis=axis)
    tracemalloc.start()
    mx = numerics.quantize(x, dtype, axis=axis)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert x.nbytes + peak <= 1.5 * (x.nbytes + mx.elements.nbytes + mx.scales.nbytes)


class TestDequantize:
    @pytest.mark.usefixtures("path")
    def test_the_product_is_rounded_once(self) -> None:
        codes = np.tile(np.arange(256, dtype=np.uint8)[:, None], (1, 32)).reshape(-1)
        scales = np.arange(256, dtype=np.uint8)
        for dtype in (DType.MXFP8_E4M3, DType.MXFP8_E5M2):
            for element in (0x00, 0x80, 0x01, 0x3B, 0x7B, 0xFB, 0x7C, 0x7F, 0xFF):
                codes[:] = element
                mx = numerics.MXArray(codes, scales, dtype, 0)
                value = float(numerics.decode(np.uint8(element), dtype.element))
                with np.errstate(over="ignore", under="ignore"):
                    expected = np.ldexp(value, np.arange(256) - 127).astype(np.float32)
                expected[255] = np.nan
                bits = expected.view(np.uint32).copy()
                bits[np.isnan(expected)] = 0x7FC00000
                out = numerics.dequantize(mx).view(np.uint32)
                np.testing.assert_array_equal(out[::32], bits)

    def test_int8_counts_in_sixty_fourths(self) -> None:
        codes = np.array([1, 64, 127, 0x80, 0xFF], np.uint8)
        mx = numerics.MXArray(codes, np.array([128], np.uint8), DType.MXINT8, 0)
        assert numerics.dequantize(mx).tolist() == [1 / 32, 2.0, 127 / 32, -4.0, -1 / 32]


class TestBadInput:
    def test_an_unknown_rule_or_policy(self) -> None:
        x = np.zeros(32, np.float32)
        sentence = r"^rule must be one of 'floor', 'ceil', 'even', 'rceil', 'nv', not 'round'$"
        with pytest.raises(IRValueError, match=sentence):
            numerics.quantize(x, DType.MXFP4, rule="round")
        with pytest.raises(IRValueError, match=r"^infinity must be one of 'nan', 'saturate', not"):
            numerics.quantize(x, DType.MXFP4, infinity="clip")

    @pytest.mark.parametrize("dtype", [DType.E4M3, DType.Floating, None])
    def test_a_dtype_that_is_not_block_scaled(self, dtype: BlockScaledDType) -> None:
        with pytest.raises(
            IRTypeError, match=r"^The dtype must be a block-scaled format, not"
        ) as e:
            numerics.quantize(np.zeros(32, np.float32), dtype)
        assert "MXFP8_E4M3" in (e.value.hint or "")

    def test_an_axis_that_is_not_there(self) -> None:
        sentence = r"^The axis must be in -2\.\.1 for an array of rank 2, not 2$"
        with pytest.raises(IRValueError, match=sentence):
            numerics.quantize(np.zeros((2, 32), np.float32), DType.MXFP4, axis=2)
        with pytest.raises(
            IRValueError, match=r"must have at least one axis to group, not rank 0$"
        ):
            numerics.quantize(1.0, DType.MXFP4)

    @pytest.mark.parametrize("dtype", [DType.MXFP4, DType.NVFP4], ids=lambda d: d.name)
    @pytest.mark.parametrize(
        "wrong",
        [np.zeros(32, complex), np.zeros((0, 32), complex), np.ones(32, bool), ["a"], None, [None]],
        ids=repr,
    )
    def test_what_is_no_number(self, dtype: BlockScaledDType, wrong: Any) -> None:
        with pytest.raises(IRTypeError, match=r"^x must be an array of real numbers up to float64"):
            numerics.quantize(wrong, dtype)
