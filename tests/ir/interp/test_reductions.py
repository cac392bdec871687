"""Reductions of rows and columns in kernels, and one element in the place of all of its line."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from .one_kernel import kernel, outputs
from .vector_expressions import COLUMNS, EACH, ROWS, Array, Two, check, drawn, second_is, wide


def reduced_alone(axis: int, function: Two, a: Array, _scratch: Array) -> Any:
    return function(a, axis)


def in_order(of: Two) -> Callable[[Array, int], Array]:
    """Return the reduction of an axis, one float32 operation after another."""

    def reduced(a: Array, axis: int) -> Array:
        lines = np.moveaxis(a, axis, 0)
        integer = a.dtype.kind in "iu"
        total = lines[0] if integer else lines[0].astype(np.float32)
        for line in lines[1:]:
            total = of(total, line if integer else line.astype(np.float32))
        return np.expand_dims(total, axis)

    return reduced


REDUCTIONS: dict[str, Callable[[Array, int], Array]] = {
    "sum": in_order(np.add),
    "prod": in_order(np.multiply),
    "max": lambda a, axis: a.max(axis=axis, keepdims=True),
    "min": lambda a, axis: a.min(axis=axis, keepdims=True),
}
REDUCED = ["row_sum", "row_prod", "row_max", "row_min", "col_sum", "col_prod", "col_max", "col_min"]


@EACH
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "INT32"])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions_see_what_is_valid_only(name: str, dtype: str, on_tiles: bool) -> None:
    line, _, function = name.partition("_")
    axis, shape = (1, (ROWS, 1)) if line == "row" else (0, (1, COLUMNS))
    check(
        f"pl.{name}(a)",
        partial(second_is, axis, REDUCTIONS[function]),
        dtype,
        on_tiles=on_tiles,
        given={"a": drawn(1, dtype)},
        shape=shape,
    )


@pytest.mark.parametrize("name", ["row_sum", "row_max", "row_min", "row_prod", "col_sum"])
def test_a_scratch_tile_changes_nothing(name: str) -> None:
    line, _, function = name.partition("_")
    axis, shape = (1, (ROWS, 1)) if line == "row" else (0, (1, COLUMNS))
    check(
        f"pl.{name}(a, b)",
        partial(reduced_alone, axis, REDUCTIONS[function]),
        on_tiles=True,
        shape=shape,
    )


EXPANSIONS: dict[str, Two] = {
    "": lambda a, vec: np.broadcast_to(vec, a.shape),
    "_add": lambda a, vec: a + vec,
    "_sub": lambda a, vec: a - vec,
    "_mul": lambda a, vec: a * vec,
    "_div": wide(lambda a, vec: a / vec),
    "_max": np.maximum,
    "_min": np.minimum,
    "_expdif": wide(lambda a, vec: np.exp(a - vec)),
}
EXPANDED = [
    "row_expand", "row_expand_add", "row_expand_sub", "row_expand_mul", "row_expand_div",
    "row_expand_max", "row_expand_min", "row_expand_expdif",
    "col_expand", "col_expand_add", "col_expand_sub", "col_expand_mul", "col_expand_div",
    "col_expand_max", "col_expand_min", "col_expand_expdif",
]  # fmt: skip


@EACH
@pytest.mark.parametrize("dtype", ["FP32", "BF16"])
@pytest.mark.parametrize("name", EXPANDED)
def test_one_element_stands_for_its_row_or_column(name: str, dtype: str, on_tiles: bool) -> None:
    is_row = name.startswith("row")
    vec = drawn(5, dtype, (ROWS, 1) if is_row else (1, COLUMNS))
    suffix = name.removeprefix("row_expand").removeprefix("col_expand")
    given = {"a": drawn(1, dtype), "v": vec}
    check(f"pl.{name}(a, v)", EXPANSIONS[suffix], dtype, on_tiles=on_tiles, given=given)


def test_softmax_of_a_row_is_what_its_steps_are() -> None:
    program = kernel(
        "a: pl.Tensor[[16, 64], pl.FP32], c: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
        """
x = pl.load(a, [0, 0], [16, 64], valid_shape=[16, 50])
e = pl.row_expand_expdif(x, pl.row_max(x))
c = pl.store(pl.row_expand_div(e, pl.row_sum(e)), [0, 0], c)
return c""",
    )
    x = np.random.default_rng(6).standard_normal((16, 64)).astype(np.float32)
    x[:, 50:] = np.nan
    found = outputs(program, {"a": x})["c"]
    part = x[:, :50]
    e = np.exp(part.astype(np.float64) - part.max(axis=1, keepdims=True)).astype(np.float32)
    total = e[:, 0]
    for column in e.T[1:]:
        total = total + column
    assert (found[:, :50] == (e / total[:, None])).all()
    assert not found[:, 50:].any()
