"""The type rule of `tile.extract`, and what it means on values."""

from typing import Any

import numpy as np
import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.dtypes import DType, Index, UInt8
from scalebox.ir.errors import IRTypeError, IRValueError, UserError
from scalebox.ir.expr import ScalarType, Var
from scalebox.ir.interp import interpret_program
from scalebox.ir.numerics import pack_scales_a, pack_scales_b
from scalebox.ir.ops import create_op_call
from scalebox.ir.ops.rules_window import steps_into, window_steps
from scalebox.ir.types import MemorySpace, TileLayout, TileType, TileView, constant_dims

Mem = MemorySpace
E4M3, E2M1, E8M0, FP32 = DType.E4M3, DType.E2M1, DType.E8M0, DType.Float32
ROW, COL = TileLayout.row_major, TileLayout.col_major
K = Var("k", ScalarType(Index))


def tile(
    *shape: int, dtype: DType = E4M3, space: Mem | None = Mem.Mat, view: TileView | None = None
) -> Var:
    return Var("t", TileType(shape, dtype, None, view, space))


def scales(order: TileLayout, *shape: int, dtype: DType = E8M0) -> Var:
    view = TileView(blayout=order, slayout=order, fractal=32)
    return tile(*shape, dtype=dtype, view=view)


def extract(source: Var, row: Any, col: Any, shape: list[int], target: Mem) -> TileType:
    call = create_op_call("tile.extract", [source, row, col, shape], {"target_memory": target})
    assert isinstance(call.type, TileType)
    return call.type


def refusal(kind: type[UserError], *args: Any) -> UserError:
    with pytest.raises(kind) as caught:
        extract(*args)
    return caught.value


class TestTypes:
    @pytest.mark.parametrize(
        ("target", "arrangement"),
        [(Mem.Left, (COL, ROW, 512)), (Mem.Right, (ROW, COL, 512))],
    )
    def test_data_lie_as_the_cube_expects_them(self, target: Mem, arrangement: object) -> None:
        found = extract(tile(64, 256), 16, 64, [32, 64], target)
        assert found == TileType([32, 64], E4M3, memory_space=target)
        assert found.get_effective_tile_view().arrangement == arrangement

    def test_scales_become_e8m0_in_their_boxes(self) -> None:
        for dtype in (E8M0, UInt8):
            left = extract(scales(ROW, 64, 8, dtype=dtype), 16, 2, [32, 4], Mem.LeftScale)
            right = extract(scales(COL, 8, 64, dtype=dtype), 2, 16, [4, 32], Mem.RightScale)
            assert left == TileType([32, 4], E8M0, memory_space=Mem.LeftScale)
            assert right == TileType([4, 32], E8M0, memory_space=Mem.RightScale)

    def test_a_row_of_biases_is_cut_every_32_bytes(self) -> None:
        found = extract(tile(1, 128, dtype=FP32), 0, 8, [1, 64], Mem.Bias)
        assert found == TileType([1, 64], FP32, memory_space=Mem.Bias)

    def test_a_tile_that_is_placed_nowhere_yet_can_be_cut(self) -> None:
        assert extract(tile(64, 64, space=None), 0, 0, [16, 64], Mem.Left).memory_space is Mem.Left

    @pytest.mark.parametrize(
        ("place", "valid"), [((0, 0), (64, 64)), ((64, 0), (36, 64)), ((64, 256), (36, 44))]
    )
    def test_a_window_at_a_constant_place_is_valid_as_far_as_the_tile(
        self, place: tuple[int, int], valid: tuple[int, int]
    ) -> None:
        source = tile(128, 320, view=TileView([100, 300], blayout=COL, slayout=ROW))
        found = extract(source, *place, [64, 64], Mem.Left)
        assert constant_dims(found.valid_shape) == valid

    def test_a_window_that_moves_is_valid_as_a_whole_along_that_axis(self) -> None:
        source = tile(128, 320, view=TileView([100, 300], blayout=COL, slayout=ROW))
        assert constant_dims(extract(source, 64, K, [64, 64], Mem.Left).valid_shape) == (36, 64)

    def test_a_row_of_scales_is_cut_every_32_bytes(self) -> None:
        plain = TileView(blayout=ROW, slayout=TileLayout.none_box)
        row = tile(1, 100, dtype=E8M0, view=plain)
        assert isinstance(row.type, TileType)
        assert steps_into(row.type, Mem.LeftScale) == (1, 32)
        found = extract(row, 0, 64, [1, 36], Mem.LeftScale)
        assert found == TileType([1, 36], E8M0, memory_space=Mem.LeftScale)
        with pytest.raises(IRValueError, match="index_col must be a multiple of 32 from 0 on"):
            extract(row, 0, 2, [1, 32], Mem.LeftScale)

    def test_windows_begin_between_boxes(self) -> None:
        assert window_steps(8, Mem.Left) == window_steps(8, Mem.Right) == (16, 32)
        assert window_steps(4, Mem.Left) == (16, 64)
        assert window_steps(8, Mem.LeftScale) == (16, 2)
        assert window_steps(8, Mem.RightScale) == (2, 16)
        assert window_steps(32, Mem.Bias) == (1, 8)


class TestRefusals:
    @pytest.mark.parametrize(
        ("source", "place", "shape", "target", "message"),
        [
            (
                tile(64, 64),
                (8, 0),
                [16, 64],
                Mem.Left,
                "index_row must be a multiple of 16 from 0 on, not 8",
            ),
            (
                tile(64, 64, dtype=E2M1),
                (0, 32),
                [16, 32],
                Mem.Left,
                "index_col must be a multiple of 64 from 0 on, not 32",
            ),
            (
                tile(64, 64),
                (-16, 0),
                [16, 64],
                Mem.Left,
                "index_row must be a multiple of 16 from 0 on, not -16",
            ),
            (
                scales(ROW, 64, 8),
                (0, 1),
                [16, 2],
                Mem.LeftScale,
                "index_col must be a multiple of 2 from 0 on, not 1",
            ),
            (
                scales(ROW, 64, 8),
                (0, 0),
                [8, 2],
                Mem.LeftScale,
                "the window must be made of whole boxes of scales, not [8, 2]",
            ),
            (
                tile(64, 64),
                (48, 0),
                [32, 64],
                Mem.Left,
                "the window must end within the tile, but takes 32 elements from offset 48 on axis 0, "
                "which has 64",
            ),
            (
                tile(64, 64, view=TileView([10, 64], blayout=COL, slayout=ROW)),
                (16, 0),
                [16, 64],
                Mem.Left,
                "the window must begin within the 10 valid elements, not at 16",
            ),
            (tile(64, 64, space=Mem.Vec), (0, 0), [16, 64], Mem.Left, "src must lie in Mat, not in Vec"),
            (
                tile(64, 64),
                (0, 0),
                [16, 64],
                Mem.Vec,
                "target_memory must be one of Left, Right, Bias, LeftScale, RightScale, not Vec",
            ),
            (
                scales(COL, 8, 64),
                (0, 0),
                [2, 32],
                Mem.Right,
                "a tile of scales in MX_B_NN must go to a scale buffer, not to Right",
            ),
            (
                scales(COL, 8, 64),
                (0, 0),
                [2, 16],
                Mem.LeftScale,
                "the scales for LeftScale must come from a tensor in MX_A_ZZ, not in MX_B_NN",
            ),
            (
                tile(64, 64),
                (0, 0),
                [16],
                Mem.Left,
                "shape must have 2 elements, one a dimension of a tile of rank 2, not 1",
            ),
        ],
    )  # fmt: skip
    def test_a_window_that_the_machine_cannot_take(
        self, source: Var, place: tuple[int, int], shape: list[int], target: Mem, message: str
    ) -> None:
        found = refusal(IRValueError, source, *place, shape, target)
        assert found.message == f"tile.extract: {message}"

    def test_an_index_is_an_integer(self) -> None:
        found = refusal(
            IRTypeError, tile(64, 64), Var("f", ScalarType(FP32)), 0, [16, 64], Mem.Left
        )
        assert found.message == (
            "tile.extract: index_row must be an integer, not a scalar of another kind"
        )


# --------------------------------------------------------------------------- what it means

M, DEPTH, N = 32, 128, 64


def product_of_windows(row: str, k: str, col: str) -> Program:
    made = pl.parse(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[{M}, {DEPTH}], pl.FP8E4M3FN],
        sa: pl.Tensor[[{M}, {DEPTH // 32}], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[{DEPTH}, {N}], pl.FP8E4M3FN],
        sb: pl.Tensor[[{DEPTH // 32}, {N}], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        n: pl.Scalar[pl.INDEX],
    ):
        l = pl.load(a, [0, 0], [{M}, {DEPTH}])
        p = pl.load(sa, [0, 0], [{M}, {DEPTH // 32}])
        r = pl.load(b, [0, 0], [{DEPTH}, {N}])
        q = pl.load(sb, [0, 0], [{DEPTH // 32}, {N}])
        x = pl.matmul_mx(
            pl.extract(l, {row}, {k}, [16, 64], target_memory=pl.Mem.Left),
            pl.extract(p, {row}, {k} // 32, [16, 2], target_memory=pl.Mem.LeftScale),
            pl.extract(r, {k}, {col}, [64, 32], target_memory=pl.Mem.Right),
            pl.extract(q, {k} // 32, {col}, [2, 32], target_memory=pl.Mem.RightScale),
        )
        c = pl.store(x, [0, 0], c)
        return c
""")
    assert isinstance(made, Program)
    return made


def operands() -> dict[str, Any]:
    """Ones, and scales that are different powers of two for every row and group."""
    groups = DEPTH // 32
    left = (100 + np.arange(M)[:, None] + 2 * np.arange(groups)).astype(np.uint8)
    right = (110 + np.arange(groups)[:, None] + np.arange(N) // 8).astype(np.uint8)
    return {
        "a": np.full((M, DEPTH), 0x38, np.uint8),
        "sa": pack_scales_a(left),
        "b": np.full((DEPTH, N), 0x38, np.uint8),
        "sb": pack_scales_b(right),
        "left": left,
        "right": right,
    }


@pytest.mark.parametrize(("row", "k", "col"), [(0, 0, 0), (16, 64, 32), (0, 64, 32)])
def test_a_window_holds_what_stands_there(row: int, k: int, col: int) -> None:
    given = operands()
    left = given.pop("left")[row : row + 16, k // 32 : k // 32 + 2].astype(np.float64) - 127
    right = given.pop("right")[k // 32 : k // 32 + 2, col : col + 32].astype(np.float64) - 127
    wanted = 32 * (np.exp2(left) @ np.exp2(right))
    for program, n in ((product_of_windows(str(row), str(k), str(col)), 0),
                       (product_of_windows(f"n * {row}", f"n * {k}", f"n * {col}"), 1)):  # fmt: skip
        found = interpret_program(program, {**given, "n": n})
        np.testing.assert_array_equal(found["c"], wanted.astype(np.float32))


@pytest.mark.parametrize(
    ("row", "n", "message"),
    [
        (
            "n",
            8,
            "tile.extract: the window must begin at a multiple of 16 and end within the 32 valid elements "
            "of axis 0, but takes 16 from 8 on",
        ),
        (
            "n",
            32,
            "tile.extract: the window must begin at a multiple of 16 and end within the 32 valid elements "
            "of axis 0, but takes 16 from 32 on",
        ),
    ],
)
def test_a_window_that_leaves_the_tile_is_refused_where_it_runs(
    row: str, n: int, message: str
) -> None:
    given = operands()
    del given["left"], given["right"]
    with pytest.raises(IRValueError) as caught:
        interpret_program(product_of_windows(row, "0", "0"), {**given, "n": n})
    assert caught.value.message == message
