"""Windows of several matrices whose rows do not follow one another: one transfer a piece."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from scalebox.ir.errors import UserError

from .vector_kernels import agreed, compiled, instructions, kernel

Array = npt.NDArray[Any]

X = np.random.default_rng(3).standard_normal((3, 16, 64)).astype(np.float32)
PART = np.random.default_rng(4).standard_normal((3, 8, 64)).astype(np.float32)


@pytest.mark.parametrize("memory", ["", ", target_memory=pl.Mem.Vec"])
def test_part_of_each_matrix_is_loaded_matrix_by_matrix(memory: str):
    program = kernel(
        {"a": "[[3, 16, 64], pl.FP32]"},
        [
            f"t = pl.load(a, [0, 4, 0], [3, 8, 64]{memory})",
            "out = pl.store(pl.neg(t), [0, 0, 0], out)",
        ],
        "[[3, 8, 64], pl.FP32]",
    )
    loads = instructions(program, "gm_to_ub")
    assert [each["ub"] for each in loads] == [0, 8 * 256, 16 * 256]
    assert {(each["rows"], each["cols"], each["pitch"]) for each in loads} == {(8, 64, 8)}
    assert len(instructions(program, "ub_to_gm")) == 1
    np.testing.assert_array_equal(agreed(program, {"a": X}), -X[:, 4:12])


def test_part_of_each_matrix_is_stored_matrix_by_matrix():
    program = kernel(
        {"a": "[[3, 8, 64], pl.FP32]", "x": "[[3, 16, 64], pl.FP32]"},
        [
            "o = pl.store(pl.load(x, [0, 0, 0], [3, 16, 64]), [0, 0, 0], out)",
            "t = pl.load(a, [0, 0, 0], [3, 8, 64])",
            "out = pl.store(pl.neg(t), [0, 4, 0], o)",
        ],
        "[[3, 16, 64], pl.FP32]",
    )
    assert len(instructions(program, "ub_to_gm")) == 4
    wanted = X.copy()
    wanted[:, 4:12] = -PART
    np.testing.assert_array_equal(agreed(program, {"a": PART, "x": X}), wanted)


def test_an_offset_that_a_loop_counts_moves_every_piece():
    program = kernel(
        {"a": "[[3, 16, 64], pl.FP32]"},
        [
            "for i in pl.range(2):",
            "    t = pl.load(a, [i, i * 8, 0], [2, 8, 64])",
            "    out = pl.store(t, [i * 2, 0, 0], out)",
        ],
        "[[4, 8, 64], pl.FP32]",
    )
    wanted = np.concatenate([X[0:2, 0:8], X[1:3, 8:16]])
    np.testing.assert_array_equal(agreed(program, {"a": X}), wanted)


def test_two_axes_before_a_matrix_are_counted_through():
    x = np.arange(2 * 3 * 4 * 32, dtype=np.int32).reshape(2, 3, 4, 32)
    program = kernel(
        {"a": "[[2, 3, 4, 32], pl.INT32]"},
        [
            "t = pl.load(a, [0, 1, 0, 0], [2, 2, 4, 32])",
            "out = pl.store(t, [0, 0, 0, 0], out)",
        ],
        "[[2, 2, 4, 32], pl.INT32]",
    )
    assert [each["rows"] for each in instructions(program, "gm_to_ub")] == [8, 8]
    np.testing.assert_array_equal(agreed(program, {"a": x}), x[:, 1:])


def test_columns_of_whole_32_bytes_are_packed_one_after_another():
    x = np.arange(3 * 16, dtype=np.float32).reshape(3, 16, 1)
    program = kernel(
        {"a": "[[3, 16, 1], pl.FP32]"},
        ["t = pl.load(a, [0, 8, 0], [3, 8, 1])", "out = pl.store(t, [0, 0, 0], out)"],
        "[[3, 8, 1], pl.FP32]",
    )
    np.testing.assert_array_equal(agreed(program, {"a": x}), x[:, 8:])


@pytest.mark.parametrize(
    ("tensor", "window", "message"),
    [
        (
            "[[3, 16, 1], pl.FP32]",
            "[3, 6, 1]",
            "The matrices of a packed column must take a multiple of 32 bytes each in Vec, not 24 "
            "bytes for 6 rows of Float32",
        ),
        (
            "[[300, 2, 32], pl.FP32]",
            "[300, 1, 32]",
            "tile.load must take at most 256 pieces of rows that follow one another, not 300, which "
            "[300, 1, 32] of [300, 2, 32] has",
        ),
    ],
)
def test_pieces_that_no_transfer_takes_are_refused(tensor: str, window: str, message: str):
    body = [f"t = pl.load(a, [0, 0, 0], {window})", "out = pl.store(t, [0, 0, 0], out)"]
    with pytest.raises(UserError) as caught:
        compiled(kernel({"a": tensor}, body, tensor))
    assert caught.value.message == message
    assert caught.value.hint == "a loop that takes one matrix a trip"
