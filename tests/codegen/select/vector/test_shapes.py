"""What joins, turns and fills up tiles on the vector core: instructions by hand, and results."""

import numpy as np
import pytest

from .counted_tiles import KINDS, assert_same_codes, counted, program, run
from .vector_kernels import agreed, instructions, kernel

# --------------------------------------------------------------------------- putting together


@pytest.mark.parametrize("kind", KINDS)
def test_a_tile_replaces_a_window_of_another(kind: str) -> None:
    made = program(
        [
            "s = pl.load(y, [0, 0], [8, 64], target_memory=pl.Mem.Vec)",
            "u = pl.assemble(t, s, [13, 0])",
            "out = pl.store(u, [0, 0], out)",
        ],
        [32, 64],
        kind=kind,
    )
    assert [each.mnemonic for each in instructions(made, "v_move")] == ["v_move"]
    found, x = run(made, kind)
    wanted = x.copy()
    wanted[13:21] = x[::-1][:8]
    assert_same_codes(found, wanted)


def test_a_single_row_may_be_longer_than_the_longest_step_to_the_next() -> None:
    lines = [
        "t = pl.load(x, [1, 0], [1, 20000], target_memory=pl.Mem.Vec)",
        "u = pl.slice(pl.neg(t), [1, 8000], [0, 11999])",
        "t = pl.assemble(t, u, [0, 1])",
        "out = pl.store(pl.write(t, [0, 19999], pl.read(t, [0, 17])), [0, 0], out)",
    ]
    x = np.arange(40000, dtype=np.float32).reshape(2, 20000)
    wanted = x[1:].copy()
    wanted[:, 1:8001] = -x[1:, 11999:19999]
    wanted[:, 19999] = wanted[:, 17]
    made = kernel({"x": "[[2, 20000], pl.FP32]"}, lines, "[[1, 20000], pl.FP32]")
    assert np.array_equal(agreed(made, {"x": x}), wanted)


def test_what_is_valid_replaces_and_the_rest_stays() -> None:
    made = program(
        [
            "s = pl.load(y, [0, 0], [8, 16], [5, 11], target_memory=pl.Mem.Vec)",
            "u = pl.assemble(t, s, [27, 53])",
            "out = pl.store(u, [0, 0], out)",
        ],
        [32, 64],
    )
    found, x = run(made)
    wanted = x.copy()
    wanted[27:32, 53:64] = x[::-1][:5, :11]
    assert_same_codes(found, wanted)


def test_a_tile_that_is_needed_as_it_was_is_copied_before_it_is_changed() -> None:
    made = program(
        [
            "s = pl.load(y, [0, 0], [8, 64], target_memory=pl.Mem.Vec)",
            "u = pl.assemble(t, s, [0, 0])",
            "v = pl.assemble(t, s, [24, 0])",
            "out = pl.store(u, [0, 0], out)",
            "out = pl.store(v, [32, 0], out)",
            "out = pl.store(t, [64, 0], out)",
        ],
        [96, 64],
    )
    assert len(instructions(made, "v_move")) == 4
    found, x = run(made)
    first, second = x.copy(), x.copy()
    first[:8] = second[24:] = x[::-1][:8]
    assert_same_codes(found, np.concatenate((first, second, x)))


def test_a_loop_puts_pieces_together() -> None:
    made = program(
        [
            "whole = pl.create_tile([32, 64], dtype=pl.FP32)",
            "for i in pl.range(0, 8):",
            "    w = pl.load(x, [28 - 4 * i, 0], [4, 64], target_memory=pl.Mem.Vec)",
            "    whole = pl.assemble(whole, w, [4 * i, 0])",
            "out = pl.store(whole, [0, 0], out)",
        ],
        [32, 64],
    )
    found, x = run(made)
    wanted = x.reshape(8, 4, 64)[::-1].reshape(32, 64)
    assert_same_codes(found, wanted)


def test_two_tiles_stand_side_by_side() -> None:
    made = program(
        [
            "a = pl.load(x, [0, 0], [16, 24], target_memory=pl.Mem.Vec)",
            "b = pl.load(y, [0, 0], [16, 40], [16, 33], target_memory=pl.Mem.Vec)",
            "out = pl.store(pl.concat(a, b), [0, 0], out)",
        ],
        [16, 57],
    )
    found, x = run(made)
    wanted = np.concatenate((x[:16, :24], x[::-1][:16, :33]), axis=1)
    assert_same_codes(found, wanted)


# --------------------------------------------------------------------------- other shapes


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_columns_change_places(kind: str) -> None:
    made = kernel(
        {"x": f"[[64, 96], pl.{kind}]"},
        [
            "t = pl.load(x, [0, 0], [64, 96], target_memory=pl.Mem.Vec)",
            "u = pl.transpose(pl.slice(t, [64, 64], [0, 32]), 0, 1)",
            "out = pl.store(u, [0, 0], out)",
        ],
        f"[[64, 64], pl.{kind}]",
    )
    if kind == "FP4":
        made = kernel(
            {"x": "[[64, 128], pl.FP4]"},
            [
                "t = pl.load(x, [0, 0], [64, 128], target_memory=pl.Mem.Vec)",
                "u = pl.transpose(pl.slice(t, [64, 64], [0, 64]), 0, -1)",
                "out = pl.store(u, [0, 0], out)",
            ],
            "[[64, 64], pl.FP4]",
        )
    cols = 128 if kind == "FP4" else 96
    x = counted(kind, 64, cols)
    found = agreed(made, {"x": x})
    wanted = np.ascontiguousarray(x[:, cols - 64 :].T)
    assert_same_codes(found, wanted)


def test_an_axis_that_changes_places_with_itself_is_a_copy() -> None:
    made = program(["out = pl.store(pl.transpose(t, 1, -1), [0, 0], out)"], [32, 64])
    assert not instructions(made, "v_transpose")
    found, x = run(made)
    assert_same_codes(found, x)


def test_the_valid_part_is_turned() -> None:
    made = kernel(
        {"x": "[[32, 64], pl.FP16]"},
        [
            "t = pl.load(x, [0, 0], [32, 64], [19, 41], target_memory=pl.Mem.Vec)",
            "out = pl.store(pl.transpose(t, 0, 1), [0, 0], out)",
        ],
        "[[41, 19], pl.FP16]",
    )
    x = counted("FP16", 32, 64)
    found = agreed(made, {"x": x})
    assert_same_codes(found, x[:19, :41].T)


@pytest.mark.parametrize("shape", [[16, 128], [64, 32], [2048, 1], [1, 2048], [8, 256]])
@pytest.mark.parametrize("kind", ["FP32", "FP16", "INT8"])
def test_elements_row_after_row_in_another_shape(kind: str, shape: list[int]) -> None:
    made = program([f"out = pl.store(pl.reshape(t, {shape}), [0, 0], out)"], shape, kind=kind)
    found, x = run(made, kind)
    assert_same_codes(found, x.reshape(shape))


def test_a_column_becomes_a_row_with_its_tail() -> None:
    made = kernel(
        {"x": "[[19, 1], pl.FP16]"},
        [
            "t = pl.load(x, [0, 0], [19, 1], target_memory=pl.Mem.Vec)",
            "out = pl.store(pl.reshape(t, [1, 19]), [0, 0], out)",
        ],
        "[[1, 19], pl.FP16]",
    )
    assert [(m["rows"], m["cols"]) for m in instructions(made, "v_move")] == [(1, 16), (1, 3)]
    x = counted("FP16", 19, 1)
    assert_same_codes(agreed(made, {"x": x}), x.T)


# --------------------------------------------------------------------------- valid shapes


FILLS = {
    "FP32": {"zero": 0.0, "max": np.inf, "min": -np.inf},
    "FP16": {"zero": 0.0, "max": np.inf, "min": -np.inf},
    "BF16": {"zero": 0.0, "max": np.inf, "min": -np.inf},
    "INT8": {"zero": 0, "max": 127, "min": -128},
    "UINT8": {"zero": 0, "max": 255, "min": 0},
    "INT32": {"zero": 0, "max": 2**31 - 1, "min": -(2**31)},
}


@pytest.mark.parametrize("pad", ["zero", "max", "min"])
@pytest.mark.parametrize("kind", FILLS)
def test_a_tile_is_filled_up_to_the_right_and_below(kind: str, pad: str) -> None:
    made = kernel(
        {"x": f"[[32, 64], pl.{kind}]"},
        [
            "t = pl.load(x, [0, 0], [32, 64], [21, 45], target_memory=pl.Mem.Vec)",
            f"out = pl.store(pl.fillpad(t, pl.PadValue.{pad}), [0, 0], out)",
        ],
        f"[[32, 64], pl.{kind}]",
    )
    x = counted(kind, 32, 64)
    wanted = np.full((32, 64), FILLS[kind][pad], KINDS[kind])
    wanted[:21, :45] = x[:21, :45]
    found = agreed(made, {"x": x})
    assert_same_codes(found, wanted)
    assert len(instructions(made, "v_fill")) == 2


def test_less_of_a_tile_is_valid_without_an_instruction() -> None:
    made = program(
        [
            "u = pl.set_validshape(t, 7, 9)",
            "out = pl.store(u, [0, 0], out)",
            "out = pl.store(t, [0, 0], out)",
        ],
        [32, 64],
    )
    assert not [each for each in instructions(made) if each.mnemonic.startswith("v_")]
    stores = instructions(made, "ub_to_gm")
    assert [(s["ub"], s["rows"], s["cols"]) for s in stores] == [(0, 7, 9), (0, 32, 64)]
    found, x = run(made)
    assert_same_codes(found, x)


def test_a_part_that_is_changed_under_another_name_is_copied() -> None:
    made = program(
        [
            "u = pl.set_validshape(t, 16, 64)",
            "s = pl.load(y, [0, 0], [8, 64], target_memory=pl.Mem.Vec)",
            "v = pl.assemble(u, s, [0, 0])",
            "out = pl.store(t, [0, 0], out)",
            "out = pl.store(v, [32, 0], out)",
        ],
        [48, 64],
    )
    found, x = run(made)
    wanted = np.concatenate((x, x[::-1][:8], x[8:16]))
    assert_same_codes(found, wanted)
