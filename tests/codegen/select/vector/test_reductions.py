"""Reductions and expansions on the vector core: their instructions by hand, and their results."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.isa.vocabulary import Axis, VectorBinary, VectorReduction, VectorType

from .vector_kernels import agreed, instructions, kernel

Array = npt.NDArray[Any]

NAMES = {"sum": "SUM", "prod": "PROD", "max": "MAX", "min": "MIN"}
SUFFIXES = {
    "": "SECOND",
    "_add": "ADD",
    "_sub": "SUB",
    "_mul": "MUL",
    "_div": "DIV",
    "_max": "MAXIMUM",
    "_min": "MINIMUM",
    "_expdif": "EXPDIF",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_row_reduction_is_one_instruction_on_what_is_valid(name: str) -> None:
    """A tile of 24 x 40 FP32, of which 17 x 33 are valid, at address 0: rows are 160 bytes apart."""
    program = kernel(
        {"x": "[[64, 64], pl.FP32]"},
        [
            "t = pl.load(x, [0, 0], [24, 40], [17, 33], target_memory=pl.Mem.Vec)",
            "scratch = pl.create_tile([24, 40], dtype=pl.FP32)",
            f"out = pl.store(pl.row_{name}(t, scratch), [0, 0], out)",
        ],
        "[[64, 64], pl.FP32]",
    )
    (found,) = instructions(program, "v_reduce")
    destination = found["dst"]
    assert found.fields == {
        "dst": destination,
        "src": 0,
        "op": VectorReduction[NAMES[name]],
        "axis": Axis.ROW,
        "type": VectorType.FP32,
        "rows": 17,
        "cols": 33,
        "src_pitch": 5,
    }
    assert len(instructions(program, "gm_to_ub")) == 1
    (store,) = instructions(program, "ub_to_gm")
    assert (store["ub"], store["rows"], store["cols"], store["pitch"]) == (destination, 17, 1, 0)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_expansion_is_one_instruction(suffix: str) -> None:
    program = kernel(
        {"x": "[[16, 32], pl.FP32]", "v": "[[1, 32], pl.FP32]"},
        [
            "t = pl.load(x, [0, 0], [16, 32], [9, 20], target_memory=pl.Mem.Vec)",
            "r = pl.load(v, [0, 0], [1, 32], [1, 20], target_memory=pl.Mem.Vec)",
            f"out = pl.store(pl.col_expand{suffix}(t, r), [0, 0], out)",
        ],
        "[[16, 32], pl.FP32]",
    )
    (found,) = instructions(program, "v_expand")
    t, r = (each["ub"] for each in instructions(program, "gm_to_ub"))
    (store,) = instructions(program, "ub_to_gm")
    assert found.fields == {
        "dst": store["ub"],
        "a": t,
        "b": r,
        "op": VectorBinary[SUFFIXES[suffix]],
        "type": VectorType.FP32,
        "rows": 9,
        "cols": 20,
        "dst_pitch": 4,
        "a_pitch": 4,
        "axis": Axis.COL,
    }


KINDS: Mapping[str, Any] = {
    "FP32": np.float32,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "INT32": np.int32,
    "INT8": np.int8,
}


def drawn(kind: Any, shape: tuple[int, ...]) -> Array:
    rng = np.random.default_rng(3)
    if np.issubdtype(kind, np.integer):
        bits = np.dtype(kind).itemsize * 8
        codes: Array = rng.integers(0, 1 << bits, shape).astype(f"u{bits // 8}")
        return codes.view(kind)
    return (rng.standard_normal(shape) * 4).astype(kind)


def in_order(x: Array, name: str, axis: int) -> Array:
    """Reduce in ascending order, float32 at each step, rounded at the end; integers wrap."""
    step: Any = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[name]
    wide = x if np.issubdtype(x.dtype, np.integer) else x.astype(np.float32)
    lines = np.moveaxis(wide, axis, 0)
    total = lines[0]
    with np.errstate(over="ignore"):
        for line in lines[1:]:
            total = step(total, line, dtype=wide.dtype)
        return np.expand_dims(total, axis).astype(x.dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("line", ["row", "col"])
@pytest.mark.parametrize("dtype", KINDS)
def test_reductions_take_what_is_valid_in_ascending_order(dtype: str, line: str, name: str) -> None:
    x = drawn(KINDS[dtype], (16, 64))
    rows, cols = 13, 50
    out = (13, 1) if line == "row" else (1, 50)
    program = kernel(
        {"x": f"[[16, 64], pl.{dtype}]"},
        [
            f"t = pl.load(x, [0, 0], [16, 64], [{rows}, {cols}], target_memory=pl.Mem.Vec)",
            f"scratch = pl.create_tile([16, 64], dtype=pl.{dtype})",
            f"r = pl.{line}_{name}(t{', scratch' if line == 'row' else ''})",
            "out = pl.store(r, [0, 0], out)",
        ],
        f"[{list(out)}, pl.{dtype}]",
    )
    found = agreed(program, {"x": x})
    wanted = in_order(x[:rows, :cols], name, 1 if line == "row" else 0)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("line", ["row", "col"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_expansions_meet_each_element_with_that_of_its_line(line: str, suffix: str) -> None:
    x, v = drawn(np.float32, (16, 64)), drawn(np.float32, (16, 64))
    vec, window = (v[:, :1], "[16, 1]") if line == "row" else (v[:1], "[1, 64]")
    program = kernel(
        {"x": "[[16, 64], pl.FP32]", "v": f"[{list(vec.shape)}, pl.FP32]"},
        [
            "t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Vec)",
            f"r = pl.load(v, [0, 0], {window}, target_memory=pl.Mem.Vec)",
            f"out = pl.store(pl.{line}_expand{suffix}(t, r), [0, 0], out)",
        ],
        "[[16, 64], pl.FP32]",
    )
    found = agreed(program, {"x": x, "v": np.ascontiguousarray(vec)})
    wanted = {
        "": lambda: np.broadcast_to(vec, x.shape),
        "_add": lambda: x + vec,
        "_sub": lambda: x - vec,
        "_mul": lambda: x * vec,
        "_div": lambda: x / vec,
        "_max": lambda: np.maximum(x, vec),
        "_min": lambda: np.minimum(x, vec),
        "_expdif": lambda: np.exp(x.astype(np.float64) - vec).astype(np.float32),
    }[suffix]()
    np.testing.assert_array_equal(found, wanted)


SOFTMAX = {
    "one exponential of a difference": ["e = pl.row_expand_expdif(t, m)"],
    "a difference and its exponential": ["d = pl.row_expand_sub(t, m)", "e = pl.exp(d)"],
}


@pytest.mark.parametrize("way", SOFTMAX)
def test_softmax_of_the_rows_of_a_tile(way: str) -> None:
    x = drawn(np.float32, (64, 64))
    program = kernel(
        {"x": "[[64, 64], pl.FP32]"},
        [
            "t = pl.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)",
            "scratch = pl.create_tile([64, 64], dtype=pl.FP32)",
            "m = pl.row_max(t, scratch)",
            *SOFTMAX[way],
            "s = pl.row_sum(e, scratch)",
            "out = pl.store(pl.row_expand_div(e, s), [0, 0], out)",
        ],
        "[[64, 64], pl.FP32]",
    )
    found = agreed(program, {"x": x})
    largest = x.max(axis=1, keepdims=True)
    # Both in float64 and rounded once where it is one op; the difference rounded by itself where not.
    once = way.startswith("one")
    difference = x.astype(np.float64) - largest if once else (x - largest).astype(np.float64)
    powers = np.exp(difference).astype(np.float32)
    np.testing.assert_array_equal(found, powers / in_order(powers, "sum", 1))
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)


def test_layer_norm_of_rows() -> None:
    """By design rounded once an op: float32 sums in ascending order, 1 by the root in one rounding."""
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((64, 512)) * 3 + 1).astype(np.float32)
    gain, shift = (rng.standard_normal((1, 512)).astype(np.float32) for _ in range(2))
    program = kernel(
        {
            "x": "[[64, 512], pl.FP32]",
            "gain": "[[1, 512], pl.FP32]",
            "shift": "[[1, 512], pl.FP32]",
        },
        [
            "g = pl.load(gain, [0, 0], [1, 512], target_memory=pl.Mem.Vec)",
            "b = pl.load(shift, [0, 0], [1, 512], target_memory=pl.Mem.Vec)",
            "for i in pl.range(0, 64, 16):",
            "    t = pl.load(x, [i, 0], [16, 512], target_memory=pl.Mem.Vec)",
            "    scratch = pl.create_tile([16, 512], dtype=pl.FP32)",
            "    mean = pl.mul(pl.row_sum(t, scratch), 0.001953125)",
            "    c = pl.row_expand_sub(t, mean)",
            "    var = pl.mul(pl.row_sum(pl.mul(c, c), scratch), 0.001953125)",
            "    r = pl.rsqrt(pl.add(var, 0.00001))",
            "    n = pl.row_expand_mul(c, r)",
            "    y = pl.col_expand_add(pl.col_expand_mul(n, g), b)",
            "    out = pl.store(y, [i, 0], out)",
        ],
        "[[64, 512], pl.FP32]",
    )
    found = agreed(program, {"x": x, "gain": gain, "shift": shift})
    mean = in_order(x, "sum", 1) * np.float32(1 / 512)
    centred = x - mean
    variance = in_order(centred * centred, "sum", 1) * np.float32(1 / 512)
    wide = (variance + np.float32(0.00001)).astype(np.float64)
    scaled = centred * (1 / np.sqrt(wide)).astype(np.float32)
    np.testing.assert_array_equal(found, scaled * gain + shift)
