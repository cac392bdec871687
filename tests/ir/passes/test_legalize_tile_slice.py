"""Slices of tiles: padding becomes an op of its own, and what has no form is refused."""

import numpy as np
import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import IRValueError
from scalebox.ir.passes import (
    convert_to_ssa,
    flatten_call_expr,
    legalize_tile_slice,
    normalize_stmt_structure,
)
from scalebox.ir.verification.walk import all_calls


def kernel(window: str) -> Program:
    made = pl.parse(
        "@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def k(self, a: pl.Tensor[[32, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]],"
        " n: pl.Scalar[pl.INDEX]):\n"
        "        t = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Vec)\n"
        f"        w = {window}\n        o = pl.store(w, [0, 0], o)\n        return o\n"
    )
    assert isinstance(made, Program)
    for each in (convert_to_ssa(), normalize_stmt_structure(), flatten_call_expr()):
        made = each(made)
    return made


A = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
PADDED = A[8:24, 32:64].copy()
PADDED[10:] = np.inf
PADDED[:, 20:] = np.inf


@pytest.mark.parametrize(
    ("window", "ops", "wanted"),
    [
        (
            "pl.slice(t, [16, 32], [8, 32], [10, 20], pad_value=pl.PadValue.max)",
            ["tile.slice", "tile.fillpad"],
            PADDED,
        ),
        (
            "pl.slice(pl.set_validshape(t, 18, 52), [16, 32], [8, 32], clamp=True, "
            "pad_value=pl.PadValue.max)",
            ["tile.slice", "tile.fillpad"],
            PADDED,
        ),
        ("pl.slice(t, [16, 32], [16, 0], clamp=True)", ["tile.slice"], A[16:, :32]),
        ("t[4:20, 8:40]", ["tile.slice"], A[4:20, 8:40]),
    ],
)
def test_a_slice_that_pads_is_a_slice_and_a_fill(
    window: str, ops: list[str], wanted: np.ndarray
) -> None:
    made = kernel(window)
    done = legalize_tile_slice()(made)
    function = done.get_function("k")
    assert function is not None
    names = [call.op.name for call in all_calls(function)]
    assert [name for name in names if name in ("tile.slice", "tile.fillpad")] == ops
    assert not any(call.kwargs for call in all_calls(function) if call.op.name == "tile.slice")
    assert legalize_tile_slice()(done) is done
    given = {"a": A, "n": 1}
    for found in (
        scalebox.interpret(made, given),
        scalebox.interpret(done, given),
        scalebox.run(made, given, timing=False).outputs,
    ):
        np.testing.assert_array_equal(found["o"], wanted)


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (
            "pl.reshape(t[3, 0:32], [1, 32])",
            "tile.slice must keep all axes of [1, 32] to be compiled: a tile has rows and columns",
        ),
        (
            "pl.slice(t, [16, 32], [n, 0], clamp=True)",
            "tile.slice with clamp must have numbers for its extents to be compiled",
        ),
        (
            "pl.slice(t, [16, 32], [24, 0], clamp=True)",
            "tile.slice with clamp must begin so that its window [16, 32] from [24, 0] on ends within "
            "the tile [32, 64] to be compiled",
        ),
    ],
)
def test_what_has_no_form_is_refused(window: str, sentence: str) -> None:
    with pytest.raises(IRValueError) as caught:
        legalize_tile_slice()(kernel(window))
    assert caught.value.message == sentence
    assert caught.value.hint
    assert caught.value.span is not None
