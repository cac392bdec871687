"""Tiles of more than two axes, tensors in NZ, and the forms that passes give their loads and stores."""

from typing import Any, cast

import pytest

from scalebox.ir.dtypes import BFloat16, DType, Index
from scalebox.ir.errors import IRTypeError, IRValueError, Span, UserError
from scalebox.ir.expr import Call, MakeTuple, Mul, Op, ScalarType, Type, Var, index
from scalebox.ir.ops import create_op_call, deduce_type, get_op
from scalebox.ir.ops.rules_forms import flat_tile, merged
from scalebox.ir.types import (
    SCALE_ARRANGEMENT,
    MemorySpace,
    TensorLayout,
    TensorType,
    TileLayout,
    TileType,
    TileView,
    constant_dims,
)

Mem = MemorySpace
NZ = TensorLayout.NZ
E4M3, E8M0, FP32 = DType.E4M3, DType.E8M0, DType.Float32
MAT = {"target_memory": Mem.Mat}
N = Var("n", ScalarType(Index))


def tensor(shape: Any, dtype: DType = E4M3, layout: TensorLayout | None = None) -> Var:
    return Var("x", TensorType(shape, dtype, None, layout))


def tile(shape: Any, dtype: DType = E4M3, space: Mem | None = Mem.Mat, valid: Any = None) -> Var:
    return Var("t", TileType(shape, dtype, None, TileView(valid) if valid else None, space))


def stored(op: str, args: list[Any], type_: Type, **kwargs: Any) -> Type:
    """The type that the rule gives to a call as a pass left it."""
    given = [MakeTuple(tuple(cast("list[Any]", a))) if isinstance(a, list) else a for a in args]
    return deduce_type(Call(Op(op), given, kwargs, type_))


def refusal(kind: type[UserError], action: Any, *args: Any, **kwargs: Any) -> UserError:
    with pytest.raises(kind) as caught:
        action(*args, **kwargs)
    return caught.value


class TestRanks:
    def test_a_load_and_a_move_keep_the_axes_of_the_window(self) -> None:
        found = create_op_call("tile.load", [tensor([4, 64, 128]), [1, 0, 0], [1, 64, 128]], MAT)
        assert found.type == TileType([1, 64, 128], E4M3, memory_space=Mem.Mat)
        moved = create_op_call("tile.move", [Var("t", found.type)], {"target_memory": Mem.Left})
        assert moved.type == TileType([1, 64, 128], E4M3, memory_space=Mem.Left)

    def test_a_product_has_the_axes_of_its_left_operand(self) -> None:
        found = create_op_call("tile.matmul_mx", operands([1, 1, 32, 64], [1, 64, 32]))
        assert found.type == TileType([1, 1, 32, 32], FP32, memory_space=Mem.Acc)
        again = create_op_call("tile.matmul_mx", operands([32, 64], [1, 64, 32]))
        assert again.type == TileType([32, 32], FP32, memory_space=Mem.Acc)
        acc = create_op_call(
            "tile.matmul_mx_acc", [Var("acc", found.type), *operands([1, 1, 32, 64], [64, 32])]
        )
        assert acc.type == found.type

    @pytest.mark.parametrize(
        ("left", "right", "message"),
        [
            ([2, 32, 64], [64, 32], "lhs must be one matrix, not the several of [2, 32, 64]"),
            ([32, 64], [2, 64, 32], "rhs must be one matrix, not the several of [2, 64, 32]"),
            ([64], [64, 32], "lhs must have rank 2, not 1"),
        ],
    )
    def test_an_operand_is_one_matrix(self, left: Any, right: Any, message: str) -> None:
        error = refusal(IRValueError, create_op_call, "tile.matmul_mx", operands(left, right))
        assert error.message == f"tile.matmul_mx: {message}"

    def test_a_tile_valid_in_part_is_stored_by_the_shape_of_that_part(self) -> None:
        part, out = tile([64, 128], space=Mem.Vec, valid=[40, 128]), tensor([4, 64, 128])
        found = create_op_call("tile.store", [part, [0, 0, 0], out, [1, 40, 128]]).type
        assert found == out.type
        error = refusal(
            IRValueError, create_op_call, "tile.store", [part, [0, 0, 0], out, [1, 64, 128]]
        )
        assert error.message == (
            "tile.store: shapes must hold the 5120 valid elements of the tile [40, 128], not the 8192 "
            "of [1, 64, 128]"
        )
        error = refusal(
            IRValueError, create_op_call, "tile.store", [part, [0, 0, 0], out, [2, 40, 64]]
        )
        assert error.message == (
            "tile.store: shapes of a tile that is valid in part must keep its rows of 128 elements, "
            "not make them 64"
        )


def operands(left: list[int], right: list[int]) -> list[Var]:
    rows, depth, columns = left[-2] if len(left) > 1 else 32, left[-1], right[-1]

    def scale(shape: list[int], layout: TensorLayout, space: Mem) -> Var:
        blayout, slayout, fractal = SCALE_ARRANGEMENT[layout]
        view = TileView(None, blayout=blayout, slayout=slayout, fractal=fractal)
        return Var("s", TileType(shape, E8M0, None, view, space))

    return [
        tile(left, space=Mem.Left),
        scale([rows, depth // 32], TensorLayout.MX_A_ZZ, Mem.LeftScale),
        tile(right, space=Mem.Right),
        scale([depth // 32, columns], TensorLayout.MX_B_NN, Mem.RightScale),
    ]


class TestFlat:
    def test_all_axes_but_the_last_become_rows(self) -> None:
        assert flat_tile(TileType([2, 3, 16, 64], E4M3)) == TileType([96, 64], E4M3)
        plain = TileType([16, 64], E4M3)
        assert flat_tile(plain) is plain

    def test_a_single_row_in_mat_lies_as_that_memory_has_rows(self) -> None:
        row = flat_tile(TileType([1, 1, 128], FP32, memory_space=Mem.Mat))
        assert row.get_effective_tile_view().slayout is TileLayout.none_box

    def test_valid_rows_are_multiplied_too(self) -> None:
        part = flat_tile(TileType([2, 16, 64], E4M3, None, TileView([1, 10, 30]), Mem.Vec))
        assert constant_dims(part.valid_shape) == (10, 30)
        rows, last = merged((index(1), N, index(64)))
        assert (rows, constant_dims((last,))) == (N, (64,))
        both, _ = merged((N, N, index(64)))
        assert isinstance(both, Mul)

    def test_a_load_of_more_axes_than_its_tile_is_judged_by_the_flat_tile(self) -> None:
        args = [tensor([4, 64, 128]), [1, 0, 0], [2, 16, 128], [2, 16, 128]]
        flat = TileType([32, 128], E4M3, memory_space=Mem.Vec)
        assert stored("tile.load", args, flat, target_memory=Mem.Vec) == flat


class TestNz:
    def test_a_load_from_nz_is_like_one_from_nd(self) -> None:
        found = create_op_call("tile.load", [tensor([64, 128], E4M3, NZ), [16, 32], [32, 64]], MAT)
        assert found.type == TileType([32, 64], E4M3, memory_space=Mem.Mat)

    def test_a_kernel_that_names_no_memory_means_mat(self) -> None:
        row = get_op("tile.load")
        _, attributes = row.bind(
            [tensor([64, 128], E4M3, NZ), [0, 0], [16, 32]], {}, Span.unknown()
        )
        assert attributes["target_memory"] is Mem.Mat

    @pytest.mark.parametrize("shape", [[64], [2, 2, 2, 2, 16, 32]])
    def test_other_ranks_are_refused(self, shape: list[int]) -> None:
        zeros = [0] * len(shape)
        error = refusal(
            IRValueError, create_op_call, "tile.load", [tensor(shape, E4M3, NZ), zeros, shape], MAT
        )
        assert error.message == (
            f"tile.load: a tensor in NZ must have rank 2 to 4, not {len(shape)}"
        )

    def test_a_window_of_boxes_gives_rows_and_columns(self) -> None:
        x = tensor([4, 2, 8, 16, 32], E4M3, NZ)
        window = [2, 2, 4, 16, 32]
        flat = TileType([128, 64], E4M3, memory_space=Mem.Mat)
        args = [x, [1, 0, 4, 0, 0], window, window]
        assert stored("tile.load", args, flat, **MAT) == flat
        before = TileType([2, 64, 64], E4M3, memory_space=Mem.Mat)
        assert stored("tile.load", args, before, **MAT) == before

    @pytest.mark.parametrize(
        ("kind", "window", "valid", "kwargs", "shape", "message"),
        [
            (
                IRValueError, [1, 1, 1, 8, 32], None, MAT, [8, 32],
                "must take boxes of 16 x 32 elements, not [1, 1, 1, 8, 32]",
            ),
            (
                IRValueError, [1, 1, 1, 16, 32], [1, 1, 1, 10, 32], MAT, [16, 32],
                "must take whole boxes, not [1, 1, 1, 10, 32] of [1, 1, 1, 16, 32]",
            ),
            (
                IRValueError, [1, 1, 1, 16, 32], None, {"target_memory": Mem.Vec}, [16, 32],
                "a load of boxes in NZ requires target_memory=MemorySpace.Mat",
            ),
            (
                IRTypeError, [1, 2, 1, 16, 32], None, MAT, [16, 32],
                "must give a tile of [16, 64], not of [16, 32]",
            ),
            (
                IRValueError, [1, 3, 1, 16, 32], None, MAT, [16, 96],
                "the window of boxes must end within the tensor, but takes 3 elements from offset 0 on "
                "axis 1, which has 2",
            ),
        ],
    )  # fmt: skip
    def test_boxes_that_do_not_fit_are_refused(
        self,
        kind: type[UserError],
        window: list[int],
        valid: list[int] | None,
        kwargs: dict[str, Any],
        shape: list[int],
        message: str,
    ) -> None:
        args = [tensor([4, 2, 8, 16, 32], E4M3, NZ), [0] * 5, window, valid or window]
        type_ = TileType(shape, E4M3, memory_space=Mem.Mat)
        error = refusal(kind, stored, "tile.load", args, type_, **kwargs)
        assert error.message == f"tile.load: {message}"

    def test_the_width_of_a_box_follows_the_element(self) -> None:
        x = tensor([1, 2, 2, 16, 16], BFloat16, NZ)
        flat = TileType([32, 32], BFloat16, memory_space=Mem.Mat)
        window = [1, 2, 2, 16, 16]
        assert stored("tile.load", [x, [0] * 5, window, window], flat, **MAT) == flat
