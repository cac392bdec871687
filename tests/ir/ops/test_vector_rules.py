"""Type rules of the vector core's ops: what comes out, and what is refused in which words."""

from typing import Any

import pytest

from scalebox.ir.dtypes import BFloat16, DType, Float16, Index
from scalebox.ir.errors import IRTypeError, IRValueError, UserError
from scalebox.ir.expr import ConstFloat, ConstInt, ScalarType, Var
from scalebox.ir.ops import ROWS, create_op_call, get_op, get_op_memory_spec
from scalebox.ir.types import (
    MemorySpace,
    TensorLayout,
    TensorType,
    TensorView,
    TileLayout,
    TileType,
    TileView,
)

Mem = MemorySpace
FP32, BOOL = DType.Float32, DType.Bool


def tile(*shape: Any, dtype: DType = FP32, space: Mem | None = Mem.Vec, valid: Any = None) -> Var:
    return Var("t", TileType(shape, dtype, None, TileView(valid) if valid else None, space))


def tensor(*shape: Any, dtype: DType = FP32, view: Any = None) -> Var:
    return Var("g", TensorType(shape, dtype, None, view))


def made(name: str, *args: Any, **kwargs: Any) -> Any:
    return create_op_call(name, args, kwargs).type


def scalar(dtype: Any = FP32) -> Var:
    return Var("s", ScalarType(dtype))


class TestResults:
    def test_a_tile_keeps_shape_valid_shape_and_dtype_and_lies_in_vec(self) -> None:
        wanted = TileType([16, 64], BFloat16, None, TileView([9, 64]), Mem.Vec)
        part = tile(16, 64, dtype=BFloat16, valid=[9, 64])
        assert made("tile.exp", part) == wanted
        assert made("tile.add", part, part) == wanted
        assert made("tile.muls", part, 2) == wanted
        unplaced = tile(16, 64, space=None)
        assert made("tile.exp", unplaced) == TileType([16, 64], FP32, None, None, Mem.Vec)
        assert made("tile.neg", tile(16, 64, space=Mem.Acc)).memory_space is Mem.Vec

    def test_a_tensor_gives_a_fresh_one_without_gaps(self) -> None:
        column = tensor(3, 4, view=TensorView([1, 3], TensorLayout.DN))
        assert made("tensor.exp", column) == TensorType([3, 4], FP32)
        assert made("tensor.add", tensor(2, 3, 4), tensor(2, 3, 4)) == TensorType([2, 3, 4], FP32)

    def test_a_mask_is_of_bool(self) -> None:
        assert made("tile.cmp", tile(4, 8), tile(4, 8), cmp_type="ge").dtype is BOOL
        assert made("tensor.cmps", tensor(4, 8), 1.0).dtype is BOOL
        mask = tile(4, 8, dtype=BOOL)
        assert made("tile.sel", mask, tile(4, 8), tile(4, 8)) == tile(4, 8).type

    def test_a_reduction_leaves_one_element_of_each_line(self) -> None:
        part = tile(16, 64, valid=[9, 30])
        column = made("tile.row_sum", part)
        assert column == TileType(
            [16, 1], FP32, None, TileView([9, 1], blayout=TileLayout.col_major), Mem.Vec
        )
        assert made("tile.col_sum", part) == TileType(
            [1, 64], FP32, None, TileView([1, 30]), Mem.Vec
        )
        assert made("tensor.col_max", tensor(16, 64)) == TensorType([1, 64], FP32)

    def test_a_column_in_vec_lies_element_behind_element(self) -> None:
        column = TileType([16, 1], FP32, None, None, Mem.Vec).get_effective_tile_view()
        assert column.arrangement == (TileLayout.col_major, TileLayout.none_box, 512)
        for shape, space in (([1, 1], Mem.Vec), ([16, 2], Mem.Vec), ([16, 1], Mem.Bias)):
            other = TileType(shape, FP32, None, None, space).get_effective_tile_view()
            assert other.blayout is TileLayout.row_major

    def test_symbolic_extents_are_left_to_the_run(self) -> None:
        n, m = (Var(name, ScalarType(Index)) for name in "nm")
        made("tile.add", tile(16, 64, valid=[n, 64]), tile(16, 64, valid=[m, 64]))
        made("tensor.add", tensor(n, 64), tensor(16, 64))


class TestScalars:
    def test_a_literal_takes_the_dtype_of_the_elements(self) -> None:
        one = create_op_call("tile.adds", [tile(4, 8, dtype=Float16), 1]).args[1]
        assert isinstance(one, ConstFloat)
        assert (one.value, one.dtype) == (1.0, Float16)
        two = create_op_call("tile.adds", [tile(4, 8, dtype=DType.Int8), -2]).args[1]
        assert isinstance(two, ConstInt)
        assert (two.value, two.dtype) == (-2, DType.Int8)
        half = create_op_call("tile.sels", [tile(4, 8, dtype=BOOL), tile(4, 8), 0.5]).args[2]
        assert isinstance(half, ConstFloat)
        assert half.dtype is FP32

    def test_every_op_of_two_operands_has_a_form_with_a_scalar(self) -> None:
        forms = {name: row.scalar_form for name, row in ROWS.items() if row.scalar_form}
        assert forms == {
            f"{level}.{name}": f"{level}.{name}s"
            for level in ("tile", "tensor")
            for name in (
                "add", "sub", "mul", "div", "rem", "maximum", "minimum", "cmp", "sel",
            )
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("kind", "args", "message"),
        [
            (
                IRValueError,
                (tile(4, 8, dtype=DType.Int8), 200),
                "b must be an integer in -128..127, as Int8 has them, not 200",
            ),
            (
                IRValueError,
                (tile(4, 8, dtype=DType.Int32), 0.5),
                "b must be an integer in -2147483648..2147483647, as Int32 has them, not 0.5",
            ),
            (
                IRTypeError,
                (tile(4, 8), scalar(Float16)),
                "b must be a scalar of Float32, not of Float16",
            ),
            (IRTypeError, (tile(4, 8), tile(4, 8)), "b must be a scalar, not a tile"),
        ],
    )
    def test_another_scalar_is_refused(
        self, kind: type[UserError], args: tuple[Any, ...], message: str
    ) -> None:
        with pytest.raises(kind) as caught:
            create_op_call("tile.adds", args)
        assert caught.value.message == f"tile.adds: {message}"


class TestRefused:
    @pytest.mark.parametrize(
        ("kind", "name", "args", "message"),
        [
            (IRTypeError, "tile.exp", (tensor(4, 8),), "x must be a tile, not a tensor"),
            (IRTypeError, "tensor.exp", (tile(4, 8),), "x must be a tensor, not a tile"),
            (
                IRTypeError,
                "tile.exp",
                (tile(4, 8, dtype=DType.Int32),),
                "x must hold Float32, Float16, BFloat16, not Int32",
            ),
            (
                IRTypeError,
                "tile.relu",
                (tile(4, 8, dtype=DType.E4M3),),
                "x must hold Float32, Float16, BFloat16, Int8, Int16, Int32, not E4M3",
            ),
            (
                IRValueError,
                "tile.exp",
                (tile(4, 8, space=Mem.Mat),),
                "x must lie in Vec, where the vector core works, not in Mat",
            ),
            (
                IRTypeError,
                "tile.add",
                (tile(4, 8), tile(4, 8, dtype=BFloat16)),
                "a and b must hold one dtype, not Float32 and BFloat16",
            ),
            (
                IRValueError,
                "tile.add",
                (tile(4, 8), tile(4, 1)),
                "a and b must be of one shape, not [4, 8] and [4, 1]",
            ),
            (
                IRValueError,
                "tile.add",
                (tile(4, 8), tile(4, 8, valid=[3, 8])),
                "a and b must be valid in the same extents, not in [4, 8] and [3, 8]",
            ),
            (
                IRTypeError,
                "tile.sel",
                (tile(4, 8), tile(4, 8), tile(4, 8)),
                "mask must hold Bool, not Float32",
            ),
            (
                IRValueError,
                "tile.sel",
                (tile(4, 6, dtype=BOOL), tile(4, 8), tile(4, 8)),
                "mask and a must be of one shape, not [4, 6] and [4, 8]",
            ),
            (IRValueError, "tile.row_sum", (tile(2, 4, 8),), "x must have rank 2, not 3"),
            (
                IRTypeError,
                "tile.row_sum",
                (tile(4, 8), tile(4, 8, dtype=Float16)),
                "tmp_tile must hold Float32, as what it helps with, not Float16",
            ),
            (IRTypeError, "tile.col_max", (tile(4, 8), tile(4, 8)), "takes 1 operands, not 2"),
            (
                IRValueError,
                "tile.row_expand_add",
                (tile(4, 8), tile(1, 8)),
                "vec must be [4, 1], not [1, 8]",
            ),
            (
                IRValueError,
                "tile.col_expand_mul",
                (tile(4, 8, valid=[4, 7]), tile(1, 8)),
                "vec must be valid in [1, 7], not in [1, 8]",
            ),
            (
                IRTypeError,
                "tile.col_expand_div",
                (tile(4, 8), tile(1, 8, dtype=Float16)),
                "x and vec must hold one dtype, not Float32 and Float16",
            ),
            (
                IRValueError,
                "tensor.exp",
                (tensor(4, 8, view=TensorView(None, TensorLayout.ND, [3, 8])),),
                "x must be valid as a whole, not only [3, 8] of [4, 8]",
            ),
            (
                IRValueError,
                "tensor.exp",
                (tensor(16, 8, view=TensorLayout.NZ),),
                "x must lie row by row or column by column, not in NZ",
            ),
        ],
    )
    def test_what_no_vector_core_does(
        self, kind: type[UserError], name: str, args: tuple[Any, ...], message: str
    ) -> None:
        with pytest.raises(kind) as caught:
            create_op_call(name, args)
        assert caught.value.message == f"{name}: {message}"

    @pytest.mark.parametrize(("shape", "word"), [((4, 1), "row_expand"), ((1, 8), "col_expand")])
    def test_a_vector_in_the_place_of_a_tile_is_told_the_way(
        self, shape: tuple[int, int], word: str
    ) -> None:
        with pytest.raises(IRValueError) as caught:
            create_op_call("tile.add", [tile(4, 8), tile(*shape)])
        assert f"pl.{word}_add" in (caught.value.hint or "")


def test_signatures_are_those_of_the_language() -> None:
    assert get_op("tile.cmp").signature == "tile.cmp(a, b, cmp_type=eq)"
    assert get_op("tile.div").signature == "tile.div(a, b, high_precision=False)"
    assert get_op("tile.rsqrt").signature == "tile.rsqrt(x, tmp=…, high_precision=False)"
    assert get_op("tensor.rsqrt").signature == "tensor.rsqrt(x, high_precision=False)"
    assert get_op("tile.row_max").signature == "tile.row_max(x, tmp_tile=…)"
    assert get_op("tensor.row_max").signature == "tensor.row_max(x)"
    assert get_op_memory_spec("tile.add") == {
        "output_memory": Mem.Vec,
        "input_constraints": [[Mem.Vec], [Mem.Vec]],
    }
