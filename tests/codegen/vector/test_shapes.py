"""What cuts, joins, turns and fills up tiles on the vector core: instructions by hand, and results."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.isa.vocabulary import VectorType
from scalebox.ir.errors import IRValueError, UserError

from .vector_kernels import agreed, compiled, instructions, kernel

Array = npt.NDArray[Any]

KINDS: dict[str, Any] = {
    "FP32": np.float32,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "INT32": np.int32,
    "FP8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FP4": ml_dtypes.float4_e2m1fn,
}


def counted(kind: str, rows: int, cols: int) -> Array:
    """Return codes that differ from one another as far as there are enough."""
    dtype = np.dtype(KINDS[kind])
    codes = np.arange(rows * cols).reshape(rows, cols)
    if kind == "FP4":
        return ((codes * 7 + codes // 16) % 16).astype(np.uint8).view(dtype)
    return (codes * 5 % 251).astype(f"u{dtype.itemsize}").view(dtype)


def program(lines: list[str], shape: list[int], *, kind: str = "FP32", x: str = "[32, 64]") -> Any:
    return kernel(
        {"x": f"[{x}, pl.{kind}]", "y": f"[{x}, pl.{kind}]"},
        [
            f"t = pl.load(x, [0, 0], {x}, target_memory=pl.Mem.Vec)",
            *lines,
        ],
        f"[{shape}, pl.{kind}]",
    )


def run(made: Any, kind: str = "FP32", rows: int = 32, cols: int = 64) -> tuple[Array, Array]:
    """Return what comes out, and x."""
    x = counted(kind, rows, cols)
    y = np.ascontiguousarray(x[::-1])
    return agreed(made, {"x": x, "y": y}), x


# --------------------------------------------------------------------------- windows


def test_a_window_at_a_constant_place_begins_in_a_unit_and_some_elements_in() -> None:
    """Row 3, column 9 of FP32 rows of 256 bytes: 804 bytes in, which is unit 25 and 1 element."""
    made = program(["out = pl.store(pl.slice(t, [8, 16], [3, 9]), [0, 0], out)"], [8, 16])
    (found,) = instructions(made, "v_move")
    (load,) = instructions(made, "gm_to_ub")
    assert found.fields == {
        "dst": found["dst"],
        "src": load["ub"] + 25 * 32,
        "type": VectorType.FP32,
        "dst_skip": 0,
        "src_skip": 1,
        "rows": 8,
        "cols": 16,
        "dst_pitch": 2,
        "src_pitch": 8,
    }


PLACES = [((8, 64), (5, 0)), ((7, 64), (24, 0)), ((32, 1), (0, 6)), ((1, 64), (31, 0)),
          ((1, 1), (17, 42))]  # fmt: skip
#: FP4 has no odd number of columns.
WINDOWS = [
    (kind, shape, at)
    for kind in KINDS
    for shape, at in PLACES
    if kind != "FP4" or shape[1] % 2 == 0
]


@pytest.mark.parametrize(("kind", "shape", "at"), WINDOWS)
def test_windows(kind: str, shape: tuple[int, int], at: tuple[int, int]) -> None:
    (rows, cols), (row, col) = shape, at
    made = program(
        [f"out = pl.store(pl.slice(t, {list(shape)}, {list(at)}), [0, 0], out)"],
        list(shape),
        kind=kind,
    )
    found, x = run(made, kind)
    np.testing.assert_array_equal(
        found.view(np.uint8),
        np.ascontiguousarray(x[row : row + rows, col : col + cols]).view(np.uint8),
    )


def test_a_window_of_a_part_is_valid_as_far_as_the_tile_is() -> None:
    made = kernel(
        {"x": "[[32, 64], pl.FP32]"},
        [
            "t = pl.load(x, [0, 0], [32, 64], [20, 50], target_memory=pl.Mem.Vec)",
            "out = pl.store(pl.slice(t, [16, 32], [8, 24]), [0, 0], out)",
        ],
        "[[12, 26], pl.FP32]",
    )
    x = counted("FP32", 32, 64)
    np.testing.assert_array_equal(agreed(made, {"x": x}), x[8:20, 24:50])


@pytest.mark.parametrize("kind", ["FP32", "BF16", "INT8", "FP4"])
def test_loops_move_windows_by_any_number_of_elements(kind: str) -> None:
    step = 2 if kind == "FP4" else 1
    made = program(
        [
            "for i in pl.range(0, 6):",
            f"    for j in pl.range(0, {7 * step}, {step}):",
            "        w = pl.slice(t, [4, 16 * 4], [i * 3 + 1, 0])"
            if kind == "FP4"
            else "        w = pl.slice(t, [4, 32], [i * 3 + 1, j])",
            f"        out = pl.store(w, [(i * 7 + j // {step}) * 4, 0], out)",
        ],
        [6 * 7 * 4, 64 if kind == "FP4" else 32],
        kind=kind,
    )
    found, x = run(made, kind)
    for i in range(6):
        for j in range(7):
            piece = found[(i * 7 + j) * 4 :][:4]
            wanted = x[3 * i + 1 :][:4]
            wanted = wanted if kind == "FP4" else wanted[:, j : j + 32]
            np.testing.assert_array_equal(
                piece.view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8)
            )


def test_a_moving_window_adds_its_distance_in_bytes() -> None:
    made = program(
        [
            "for i in pl.range(0, 6):",
            "    w = pl.slice(t, [4, 32], [i * 3 + 1, 5])",
            "    out = pl.store(w, [i * 4, 0], out)",
        ],
        [24, 32],
    )
    (found,) = instructions(made, "v_move_at")
    assert (found["src_skip"], found["dst_skip"], found["rows"], found["cols"]) == (5, 0, 4, 32)


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("[i * 4, 0]", "takes 8 from 0 to 28 on"),
        ("[i - 1, 0]", "takes 8 from -1 to 6 on"),
        ("[n, 0]", "begins where no constant tells"),
    ],
)
def test_a_window_must_be_known_to_lie_inside(place: str, what: str) -> None:
    made = kernel(
        {"x": "[[32, 64], pl.FP32]", "n": "INDEX"},
        [
            "t = pl.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Vec)",
            "for i in pl.range(0, 8):",
            f"    out = pl.store(pl.slice(t, [8, 64], {place}), [0, 0], out)",
        ],
        "[[8, 64], pl.FP32]",
    )
    with pytest.raises(IRValueError) as caught:
        compiled(made)
    assert caught.value.message == (
        "The row of a window must be known to lie within the 32 valid elements of the tile, but it "
        f"{what}"
    )


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
    np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))


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
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))


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
    np.testing.assert_array_equal(
        found.view(np.uint32), np.concatenate((first, second, x)).view(np.uint32)
    )


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
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))


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
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))


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
    np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))


def test_an_axis_that_changes_places_with_itself_is_a_copy() -> None:
    made = program(["out = pl.store(pl.transpose(t, 1, -1), [0, 0], out)"], [32, 64])
    assert not instructions(made, "v_transpose")
    found, x = run(made)
    np.testing.assert_array_equal(found.view(np.uint32), x.view(np.uint32))


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
    np.testing.assert_array_equal(found.view(np.uint16), x[:19, :41].T.view(np.uint16))


@pytest.mark.parametrize("shape", [[16, 128], [64, 32], [2048, 1], [1, 2048], [8, 256]])
@pytest.mark.parametrize("kind", ["FP32", "FP16", "INT8"])
def test_elements_row_after_row_in_another_shape(kind: str, shape: list[int]) -> None:
    made = program([f"out = pl.store(pl.reshape(t, {shape}), [0, 0], out)"], shape, kind=kind)
    found, x = run(made, kind)
    np.testing.assert_array_equal(found.view(np.uint8), x.reshape(shape).view(np.uint8))


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
    np.testing.assert_array_equal(agreed(made, {"x": x}).view(np.uint16), x.T.view(np.uint16))


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
    np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))
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
    np.testing.assert_array_equal(found.view(np.uint32), x.view(np.uint32))


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
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))


# --------------------------------------------------------------------------- single elements


def test_an_element_goes_into_ops_without_the_scalar_unit() -> None:
    made = program(
        [
            "s = pl.read(t, [3, 17])",
            "u = pl.mul(t, s)",
            "v = pl.sub(u, pl.read(t, [0, 1]))",
            "out = pl.store(v, [0, 0], out)",
        ],
        [32, 64],
    )
    x = (np.arange(2048).reshape(32, 64) / 64).astype(np.float32)
    found = agreed(made, {"x": x, "y": x})
    np.testing.assert_array_equal(found, x * x[3, 17] - x[0, 1])


def test_an_element_that_was_read_keeps_its_value() -> None:
    made = program(
        [
            "s = pl.read(t, [3, 17])",
            "u = pl.write(t, [3, 17], 0.0)",
            "v = pl.add(u, s)",
            "out = pl.store(v, [0, 0], out)",
        ],
        [32, 64],
    )
    x = (np.arange(2048).reshape(32, 64) / 64).astype(np.float32)
    found = agreed(made, {"x": x, "y": x})
    wanted = x.copy()
    wanted[3, 17] = 0
    np.testing.assert_array_equal(found, wanted + x[3, 17])


@pytest.mark.parametrize("valid", ["", ", [20, 50]"])
def test_an_element_is_compared_and_chosen_and_fills(valid: str) -> None:
    made = kernel(
        {"x": "[[32, 64], pl.FP32]"},
        [
            f"t = pl.load(x, [0, 0], [32, 64]{valid}, target_memory=pl.Mem.Vec)",
            "m = pl.cmp(t, pl.read(t, [1, 2]), cmp_type=2)",
            "u = pl.sel(m, t, pl.read(t, [0, 3]))",
            "out = pl.store(u, [0, 0], out)",
        ],
        "[[32, 64], pl.FP32]",
    )
    x = np.random.default_rng(2).standard_normal((32, 64)).astype(np.float32)
    found = agreed(made, {"x": x})
    rows, cols = (20, 50) if valid else (32, 64)
    part = x[:rows, :cols]
    np.testing.assert_array_equal(found[:rows, :cols], np.where(part < x[1, 2], part, x[0, 3]))


@pytest.mark.parametrize("kind", ["FP32", "BF16", "INT8", "INT32"])
def test_elements_are_written_anywhere(kind: str) -> None:
    made = program(
        [
            "u = pl.write(t, [3, 17], 5)"
            if kind.startswith("INT")
            else "u = pl.write(t, [3, 17], 5.0)",
            "v = pl.write(u, [0, 0], pl.read(t, [31, 63]))",
            "for i in pl.range(0, 20):",
            "    v = pl.write(v, [i + 7, i * 3], pl.read(v, [i, 1]))",
            "out = pl.store(v, [0, 0], out)",
        ],
        [32, 64],
        kind=kind,
    )
    found, x = run(made, kind)
    wanted = x.copy()
    wanted[3, 17] = 5
    wanted[0, 0] = x[31, 63]
    for i in range(20):
        wanted[i + 7, i * 3] = wanted[i, 1]
    np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize(
    "lines",
    [
        ["if pl.read(t, [0, 0]) > 1.0:", "    out = pl.store(t, [0, 0], out)"],
        ["s = pl.read(t, [0, 0]) * 2.0", "out = pl.store(pl.mul(t, s), [0, 0], out)"],
    ],
)
def test_what_is_read_steers_no_scalars(lines: list[str]) -> None:
    with pytest.raises(IRValueError) as caught:
        compiled(program(lines, [32, 64]))
    assert "must go into an op on tiles or into pl.write as it is" in caught.value.message
    assert caught.value.hint is not None
    assert "pl.slice(t, [1, 1], [i, j])" in caught.value.hint


@pytest.mark.parametrize(
    ("read", "source"), [("x[0, 1]", "tensor"), ("pl.read(t, [0, 1])", "tile"), ("t[0, 1]", "tile")]
)
def test_what_is_read_and_steers_a_loop_is_told_with_its_source(read: str, source: str) -> None:
    lines = [f"n = {read}", "for i in pl.range(n):", "    out = pl.store(t, [0, 0], out)"]
    with pytest.raises(IRValueError) as caught:
        compiled(program(lines, [32, 64], kind="INT32"))
    assert f"A value that is read from a {source} (n) must go into" in caught.value.message
    assert ("pl.Scalar" in (caught.value.hint or "")) is (source == "tensor")


def test_a_row_of_odd_bytes_is_refused_with_what_is_legal() -> None:
    made = program(["out = pl.store(pl.slice(t, [8, 9], [0, 0]), [0, 0], out)"], [8, 9])
    with pytest.raises(UserError, match="multiple of 32 bytes"):
        compiled(made)
