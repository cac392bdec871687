"""Windows of tiles on the vector core, at constant places and where loops move them."""

import numpy as np
import pytest

from scalebox.codegen.isa.vocabulary import VectorType
from scalebox.ir.errors import IRValueError, UserError

from .counted_tiles import KINDS, assert_same_codes, counted, program, run
from .vector_kernels import agreed, compiled, instructions, kernel


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
    assert_same_codes(found, x[row : row + rows, col : col + cols])


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
            assert_same_codes(piece, wanted)


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


def test_a_row_of_odd_bytes_is_refused_with_what_is_legal() -> None:
    made = program(["out = pl.store(pl.slice(t, [8, 9], [0, 0]), [0, 0], out)"], [8, 9])
    with pytest.raises(UserError, match="multiple of 32 bytes"):
        compiled(made)
