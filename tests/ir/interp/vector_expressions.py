"""Compares expressions of vector ops, on tiles that are valid in part and on tensors, with numpy.

What a tile holds beyond its valid shape is poison: a NaN or the largest integer.
"""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from .one_kernel import kernel, outputs

Array = npt.NDArray[Any]
ROWS, COLUMNS, VALID = 16, 32, (11, 29)
NUMPY: dict[str, Any] = {
    "FP32": np.float32,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "INT32": np.int32,
    "INT8": np.int8,
    "UINT16": np.uint16,
    "BOOL": np.bool_,
}
EACH = pytest.mark.parametrize("on_tiles", [True, False], ids=["tile", "tensor"])


def drawn(seed: int, dtype: str, shape: tuple[int, int] = (ROWS, COLUMNS)) -> Array:
    rng = np.random.default_rng(seed)
    if dtype in ("INT8", "INT32", "UINT16"):
        low = 0 if dtype == "UINT16" else -100
        return rng.integers(low, 100, shape).astype(NUMPY[dtype])
    return (rng.standard_normal(shape) * 3).astype(NUMPY[dtype])


def part(whole: Array) -> Array:
    """Return the valid part of an array of the shape of a tile, a column or a row."""
    return whole[tuple(slice(min(n, v)) for n, v in zip(whole.shape, VALID, strict=True))]


def poisoned(whole: Array) -> Array:
    kind = whole.dtype
    poison = np.iinfo(kind).max if kind.kind in "iu" else 1 if kind.kind == "b" else math.nan
    out = np.full_like(whole, poison)
    rows, columns = part(whole).shape
    out[:rows, :columns] = part(whole)
    return out


def apply(expression: str, given: dict[str, Array], dtypes: dict[str, str], shape: Any) -> Array:
    """Return an expression of ops over tiles that are loaded from the valid part of `given`."""
    params = [f"{n}_gm: pl.Tensor[{list(x.shape)}, pl.{dtypes[n]}]" for n, x in given.items()]
    lines = [
        f"{n} = pl.load({n}_gm, [0, 0], {list(x.shape)}, valid_shape={list(part(x).shape)})"
        for n, x in given.items()
    ]
    lines += [f"out = pl.store({expression}, [0, 0], out)", "return out"]
    params.append(f"out: pl.Out[pl.Tensor[{list(shape)}, pl.{dtypes['out']}]]")
    program = kernel(", ".join(params), "\n".join(lines))
    return outputs(program, {f"{name}_gm": poisoned(x) for name, x in given.items()})["out"]


def apply_to_tensors(expression: str, given: dict[str, Array], dtypes: dict[str, str]) -> Array:
    """Return an expression of ops over whole tensors."""
    params = [f"{n}: pl.Tensor[{list(x.shape)}, pl.{dtypes[n]}]" for n, x in given.items()]
    body = f"out = {expression}\nreturn out"
    program = kernel(", ".join(params), body, kind="Orchestration")
    return outputs(program, given, passes=False)["out"]


def check(
    expression: str,
    wanted: Callable[..., Any],
    dtype: str = "FP32",
    *,
    on_tiles: bool,
    result: str | None = None,
    given: dict[str, Array] | None = None,
    masks: tuple[str, ...] = (),
    shape: tuple[int, int] = (ROWS, COLUMNS),
) -> None:
    """Compare an expression over `a` and `b`, or over `given`, with numpy on what is valid."""
    arrays = given if given is not None else {"a": drawn(1, dtype), "b": drawn(2, dtype)}
    dtypes = {name: "BOOL" if name in masks else dtype for name in arrays}
    dtypes["out"] = result or dtype
    if on_tiles:
        found = apply(expression, arrays, dtypes, shape)
    else:
        found = apply_to_tensors(expression, arrays, dtypes)
    operands = [part(each) if on_tiles else each for each in arrays.values()]
    with np.errstate(all="ignore"):
        expected = np.asarray(wanted(*operands)).astype(NUMPY[result or dtype])
    rows, columns = expected.shape
    assert found.dtype == expected.dtype
    assert found[:rows, :columns].tobytes() == expected.tobytes()
    assert not found[rows:].any()
    assert not found[:, columns:].any()


One = Callable[[Any], Any]
Two = Callable[[Any, Any], Any]


def second_is(b: Any, function: Two, a: Array) -> Any:
    return function(a, b)


def wide(function: Two) -> Two:
    """Return a function of two operands that works in float64."""
    return lambda a, b: function(a.astype(np.float64), b.astype(np.float64))
