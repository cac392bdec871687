"""Compiled casts of every number that a source has, by every mode, against exact neighbours.

What is expected is found among the values of the target's codes, which are those of `ml_dtypes`; where a
cast is a chain of instructions, its numbers have to be those of one rounding all the same.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir.cast_mode import CastMode

from .vector_kernels import Array, agreed, instructions, kernel

NUMPY: dict[str, Any] = {
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "FP32": np.float32,
    "FP8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FP8E5M2": ml_dtypes.float8_e5m2,
    "FP4": ml_dtypes.float4_e2m1fn,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
}
#: How many instructions each cast takes.
CASTS = {
    ("FP16", "INT8"): 1,
    ("FP16", "UINT8"): 1,
    ("FP16", "INT16"): 1,
    ("BF16", "FP4"): 1,
    ("FP16", "FP8E4M3FN"): 2,
    ("BF16", "FP8E5M2"): 2,
    ("FP16", "FP4"): 3,
}
MODES = [mode for mode in CastMode if mode is not CastMode.none]


def table(target: str) -> tuple[Array, Array]:
    """Return the finite values of a target in ascending order, and which of them have an odd code."""
    kind = np.dtype(NUMPY[target])
    bits = 4 if target == "FP4" else 8 * kind.itemsize
    codes = np.arange(1 << bits).astype(f"u{kind.itemsize}")
    values = codes.view(kind).astype(np.float64)
    finite = np.isfinite(values) & ~((values == 0) & (codes != 0))
    values, odd = values[finite], (codes & 1 == 1)[finite]
    order = np.argsort(values)
    return values[order], odd[order]


def neighbour(x: Array, target: str, mode: CastMode) -> Array:
    """Return what finite numbers become: one of the two values beside each, or the last one there is."""
    values, odd = table(target)
    x = np.clip(x, values[0], values[-1])
    low = np.searchsorted(values, x, side="right") - 1
    high = np.searchsorted(values, x, side="left")
    below, above = values[low], values[high]
    inward = np.where(x > 0, low, high)
    outward = np.where(x > 0, high, low)
    to_below, to_above = x - below, above - x
    choose = {
        CastMode.floor: low,
        CastMode.ceil: high,
        CastMode.trunc: inward,
        CastMode.odd: np.where(odd[low], low, high),
        CastMode.round: np.where(
            to_below == to_above, outward, np.where(to_below < to_above, low, high)
        ),
        CastMode.rint: np.where(
            to_below == to_above,
            np.where(odd[low], high, low),
            np.where(to_below < to_above, low, high),
        ),
    }
    return values[choose[mode]]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("cast", CASTS, ids="-".join)
def test_every_number_of_16_bits_becomes_the_neighbour_that_the_mode_names(
    cast: tuple[str, str], mode: CastMode
) -> None:
    source, target = cast
    codes = np.arange(1 << 16, dtype=np.uint16)
    given = codes.view(NUMPY[source])
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(given.astype(np.float64))
    given = np.where(finite, given, NUMPY[source](0)).reshape(512, 128)
    body = [
        "for i in pl.range(0, 512, 128):",
        "    a = pl.load(x, [i, 0], [128, 128])",
        f"    u = pl.cast(a, pl.{target}, mode='{mode.name}')",
        "    out = pl.store(u, [i, 0], out)",
    ]
    made = kernel({"x": f"[[512, 128], pl.{source}]"}, body, f"[[512, 128], pl.{target}]")
    assert len(instructions(made, "v_cast")) == CASTS[cast]
    found = agreed(made, {"x": given}).view(NUMPY[target]).astype(np.float64)
    wanted = neighbour(given.astype(np.float64), target, mode)
    wrong = np.argwhere(found != wanted)
    assert not len(wrong), [(given[*at], found[*at], wanted[*at]) for at in wrong[:4]]


@pytest.mark.parametrize(
    ("target", "numbers"),
    [
        ("FP8E4M3FN", [448, -448, 448, -448, np.nan]),
        ("FP8E5M2", [np.inf, -np.inf, 57344, -57344, np.nan]),
        ("INT16", [32767, -32768, 32767, -32768, 0]),
        ("INT32", [2147483647, -2147483648, 2147483647, -2147483648, 0]),
    ],
)
def test_what_is_beyond_the_target_saturates(target: str, numbers: list[float]) -> None:
    x = np.zeros((16, 64), np.float32)
    x[0, :5] = [np.inf, -np.inf, 3e38, -3e38, np.nan]
    body = ["a = pl.load(x, [0, 0], [16, 64])", f"u = pl.cast(a, pl.{target})"]
    body.append("out = pl.store(u, [0, 0], out)")
    made = kernel({"x": "[[16, 64], pl.FP32]"}, body, f"[[16, 64], pl.{target}]")
    found = agreed(made, {"x": x})
    np.testing.assert_array_equal(found[0, :5].astype(np.float64), numbers)
