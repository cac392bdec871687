"""Decoding and quantising against what else there is: speed a thread, and memory.

Run it as `python benchmarks/numerics.py [--json]`. Every figure is a ratio of two times from this
one run, each the best of interleaved tries, since what disturbs a run only ever makes it longer.
Two rivals quantise in plain numpy: one as anybody would write it who has ml_dtypes, one by the
method that the microxcaling library publishes, which takes logarithms for exponents and rounds
each element in units of its own binade.
"""

import tracemalloc

import ml_dtypes
import numpy as np
import numpy.typing as npt
from rows import Row, interleaved, report, wants_json

from scalebox.ir import numerics
from scalebox.ir.dtypes import DType, SimpleDType

TRIES = 15
DECODE_COUNT = 1 << 20
QUANTIZE_SHAPE = (2048, 2048)
BLOCK = 32
EMAX, MANTISSA_BITS, LARGEST = 8, 3, np.float32(448)  # E4M3

DECODE_TARGET = 5.0
QUANTIZE_TARGET = 5.0
PUBLISHED_TARGET = 30.0
MEMORY_TARGET = 1.5

FORMATS: dict[SimpleDType, npt.DTypeLike] = {
    DType.E4M3: ml_dtypes.float8_e4m3fn,
    DType.E5M2: ml_dtypes.float8_e5m2,
    DType.E3M2: ml_dtypes.float6_e3m2fn,
    DType.E2M3: ml_dtypes.float6_e2m3fn,
    DType.E2M1: ml_dtypes.float4_e2m1fn,
    DType.E8M0: ml_dtypes.float8_e8m0fnu,
}

Array = npt.NDArray[np.float32]


def exponent_from_bits(amax: Array, rule: str) -> npt.NDArray[np.int32]:
    """Return the scale's exponent of each group by one of the rules."""
    if rule == "nv":
        bits = (amax * (np.float32(1) / LARGEST)).view(np.int32)
        return (bits >> 23) + ((bits & 0x7FFFFF) > 0) - 127
    bits = amax.view(np.int32)
    fraction = bits & 0x7FFFFF
    match rule:
        case "ceil":
            bits = bits + 0x7FFFFF
        case "even":
            bits = bits + (1 << (22 - MANTISSA_BITS))
        case "rceil":
            bits = bits + ((fraction > (LARGEST.view(np.int32) & 0x7FFFFF)).astype(np.int32) << 23)
        case _:
            pass
    return (bits >> 23) - 127 - EMAX


def with_ml_dtypes(x: Array, rule: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Quantise rows to MXFP8_E4M3 the plain way: groups, exponents, a division, a cast."""
    groups = x.reshape(x.shape[0], -1, BLOCK)
    exponent = exponent_from_bits(np.abs(groups).max(axis=2), rule).clip(-127, 127)
    scaled = groups * np.ldexp(np.float32(1), -exponent)[:, :, None]
    codes = scaled.clip(-LARGEST, LARGEST).astype(ml_dtypes.float8_e4m3fn)
    return codes.view(np.uint8).reshape(x.shape), (exponent + 127).astype(np.uint8)


def exponent_from_logarithm(amax: Array, rule: str) -> Array:
    """Return the scale's exponent of each group as microxcaling finds it, extended to each rule."""
    safe = amax + np.finfo(np.float32).tiny * (amax == 0)
    match rule:
        case "ceil":
            return np.ceil(np.log2(safe)) - EMAX
        case "even":
            step = np.float32(2) ** (np.floor(np.log2(safe)) - MANTISSA_BITS)
            return np.floor(np.log2(np.rint(safe / step) * step)) - EMAX
        case "rceil":
            return np.ceil(np.log2(safe / LARGEST))
        case "nv":
            return np.ceil(np.log2(safe * (np.float32(1) / LARGEST)))
        case _:
            return np.floor(np.log2(safe)) - EMAX


def as_published(x: Array, rule: str) -> Array:
    """Return what `x` is worth after quantising, by microxcaling's method; it makes no codes."""
    groups = x.reshape(x.shape[0], -1, BLOCK)
    exponent = exponent_from_logarithm(np.abs(groups).max(axis=2, keepdims=True), rule)
    exponent = np.where(exponent > 127, np.nan, np.maximum(exponent, -127)).astype(np.float32)
    scaled = groups / np.float32(2) ** exponent
    binade = np.floor(np.log2(np.abs(scaled) + (scaled == 0)))
    binade = np.maximum(binade, np.float32(2 - 2**3))
    step = np.float32(2) ** MANTISSA_BITS
    steps = scaled / np.float32(2) ** binade * step
    rounded = np.sign(steps) * np.floor(np.abs(steps) + np.float32(0.5))
    rounded -= np.sign(steps) * (np.mod(np.abs(steps), 2) == np.float32(0.5))
    values = (rounded / step * np.float32(2) ** binade).clip(-LARGEST, LARGEST)
    for special in (scaled == np.inf, scaled == -np.inf, np.isnan(scaled)):
        values[special] = scaled[special]
    return (values * np.float32(2) ** exponent).reshape(x.shape)


def decode_rows(*, tries: int = TRIES) -> list[Row]:
    """Measure decoding, format by format."""
    rows: list[Row] = []
    for dtype, theirs in FORMATS.items():
        codes = np.random.default_rng(0).integers(0, 1 << dtype.bits, DECODE_COUNT, dtype=np.uint8)
        typed = codes.view(theirs)
        ours, rival = interleaved(
            lambda codes=codes, dtype=dtype: numerics.decode(codes, dtype),
            lambda typed=typed: typed.astype(np.float32),
            tries=tries,
        )
        rows.append(
            ours.against(
                rival,
                f"decode {dtype.name}",
                unit="x",
                target=DECODE_TARGET,
                ns_per_element=ours.best / DECODE_COUNT * 1e9,
            )
        )
    return rows


def quantize_rows(*, tries: int = TRIES) -> list[Row]:
    """Measure quantising float32 to MXFP8_E4M3 by each rule."""
    rows: list[Row] = []
    x = np.random.default_rng(1).standard_normal(QUANTIZE_SHAPE).astype(np.float32)
    for rule in (rule.value for rule in numerics.ScaleRule):
        mx = numerics.quantize(x, DType.MXFP8_E4M3, rule=rule)
        codes, scales = with_ml_dtypes(x, rule)
        same = np.array_equal(mx.elements, codes) and np.array_equal(mx.scales, scales)
        agreeing = np.count_nonzero(numerics.dequantize(mx) == as_published(x, rule))
        ours, plain, logarithms = interleaved(
            lambda rule=rule: numerics.quantize(x, DType.MXFP8_E4M3, rule=rule),
            lambda rule=rule: with_ml_dtypes(x, rule),
            lambda rule=rule: as_published(x, rule),
            tries=tries,
        )
        ns = ours.best / x.size * 1e9
        rows += [
            ours.against(
                plain,
                f"quantize {rule}, ml_dtypes",
                unit="x",
                target=QUANTIZE_TARGET,
                ns_per_element=ns,
                equal=str(same).lower(),
            ),
            ours.against(
                logarithms,
                f"quantize {rule}, published",
                unit="x",
                target=PUBLISHED_TARGET,
                ns_per_element=ns,
                share_equal=agreeing / x.size,
            ),
        ]
    return rows


def memory_row() -> Row:
    """Measure the peak of one quantising beside what it reads and leaves."""
    x = np.random.default_rng(2).standard_normal(QUANTIZE_SHAPE).astype(np.float32)
    numerics.quantize(x, DType.MXFP8_E4M3)
    tracemalloc.start()
    mx = numerics.quantize(x, DType.MXFP8_E4M3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = x.nbytes + mx.elements.nbytes + mx.scales.nbytes
    return Row(
        name="memory of quantize",
        unit="x",
        target=MEMORY_TARGET,
        figure=(x.nbytes + peak) / kept,
        less_is_better=True,
        beside={"megabytes": kept / 1e6},
    )


def main() -> None:
    """Measure everything and report."""
    as_json = wants_json("Measure decoding and quantising against what else there is.")
    report([*decode_rows(), *quantize_rows(), memory_row()], as_json=as_json)


if __name__ == "__main__":
    main()
