"""Type rules of what fills a tile up in Mat, and of sums that the fixpipe brings there."""

from typing import Any

import pytest

from scalebox.ir.dtypes import BFloat16, DType, Float16, UInt8
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.expr import Var
from scalebox.ir.ops import create_op_call
from scalebox.ir.types import (
    MemorySpace,
    PadValue,
    TileLayout,
    TileType,
    TileView,
    constant_dims,
    implicit_tile_view,
)

Mem = MemorySpace
ROW, COL, NONE = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box
FP32 = DType.Float32


def tile(dtype: DType, space: Mem | None, view: TileView | None = None, rows: int = 32) -> Var:
    return Var("t", TileType([rows, 64], dtype, None, view, space))


def call(name: str, operand: Var, **kwargs: Any) -> TileType:
    type_ = create_op_call(name, [operand], kwargs).type
    assert isinstance(type_, TileType)
    return type_


class TestFillpadMat:
    @pytest.mark.parametrize("dtype", [DType.E4M3, DType.E2M1, Float16, DType.Int8, FP32])
    @pytest.mark.parametrize(
        ("rows", "blayout", "slayout"), [(32, COL, ROW), (32, ROW, COL), (1, ROW, NONE)]
    )
    def test_all_of_the_tile_becomes_valid_where_and_as_it_lies(
        self, dtype: DType, rows: int, blayout: TileLayout, slayout: TileLayout
    ) -> None:
        view = TileView([1, 34], blayout=blayout, slayout=slayout)
        made = call("tile.fillpad_mat", tile(dtype, Mem.Mat, view, rows))
        assert (made.dtype, made.memory_space) == (dtype, Mem.Mat)
        assert constant_dims(made.valid_shape) == (rows, 64)
        assert made.get_effective_tile_view().arrangement == (blayout, slayout, 512)

    @pytest.mark.parametrize(
        ("space", "found"),
        [(Mem.Vec, "Vec"), (Mem.Acc, "Acc"), (None, "a memory that is not known yet")],
    )
    def test_the_tile_must_lie_in_mat(self, space: Mem | None, found: str) -> None:
        with pytest.raises(IRValueError) as caught:
            call("tile.fillpad_mat", tile(FP32, space))
        assert caught.value.message == f"tile.fillpad_mat: x must lie in Mat, not in {found}"

    @pytest.mark.parametrize("pad", [PadValue.max, PadValue.min, PadValue.null])
    def test_only_zeros_are_filled_in(self, pad: PadValue) -> None:
        with pytest.raises(IRValueError, match="pad_value must be"):
            call("tile.fillpad_mat", tile(FP32, Mem.Mat), pad_value=pad)

    def test_scales_have_no_zero(self) -> None:
        view = TileView(blayout=ROW, slayout=ROW, fractal=32)
        for dtype in (DType.E8M0, UInt8):
            with pytest.raises(IRTypeError, match="not scales in MX_A_ZZ, which have no zero"):
                call("tile.fillpad_mat", tile(dtype, Mem.Mat, view))


class TestSumsInMat:
    @pytest.mark.parametrize(
        ("kwargs", "dtype"),
        [
            ({}, FP32),
            ({"dtype": FP32}, FP32),
            ({"dtype": BFloat16}, BFloat16),
            ({"dtype": Float16, "pre_relu": True}, Float16),
            ({"pre_quant": 0.5}, FP32),
            ({"dtype": DType.E4M3, "pre_quant": 0.5}, DType.E4M3),
            ({"dtype": UInt8, "pre_quant": 0.5}, UInt8),
        ],
    )
    @pytest.mark.parametrize("rows", [32, 1])
    def test_they_lie_in_the_boxes_of_an_operand(
        self, kwargs: dict[str, Any], dtype: DType, rows: int
    ) -> None:
        view = TileView([1, 33], blayout=COL, slayout=ROW, fractal=1024)
        made = call("tile.move", tile(FP32, Mem.Acc, view, rows), target_memory=Mem.Mat, **kwargs)
        assert (made.dtype, made.memory_space) == (dtype, Mem.Mat)
        assert constant_dims(made.valid_shape) == (1, 33)
        assert made.get_effective_tile_view().arrangement == (COL, ROW, 512)

    def test_in_vec_they_lie_as_other_tiles_do(self) -> None:
        made = call("tile.move", tile(FP32, Mem.Acc), target_memory=Mem.Vec, dtype=BFloat16)
        wanted = implicit_tile_view((), Mem.Vec).arrangement
        assert made == TileType([32, 64], BFloat16, memory_space=Mem.Vec)
        assert made.get_effective_tile_view().arrangement == wanted

    @pytest.mark.parametrize("dtype", [DType.E4M3, DType.E5M2, DType.Int8, UInt8])
    def test_eight_bits_need_a_multiplier(self, dtype: DType) -> None:
        with pytest.raises(IRTypeError) as caught:
            call("tile.move", tile(FP32, Mem.Acc), target_memory=Mem.Mat, dtype=dtype)
        assert caught.value.message == (
            "tile.move: a tile of Float32 in Acc must be moved as Float32, BFloat16, Float16, not as "
            f"{dtype.name}"
        )
        hint = "pre_quant=, a number by which sums are multiplied, stores them in 8 bits"
        assert caught.value.hint == hint

    @pytest.mark.parametrize("name", ["pre_quant", "pre_relu"])
    def test_integer_sums_stand_as_they_are(self, name: str) -> None:
        kwargs: dict[str, Any] = {"pre_quant": 0.5} if name == "pre_quant" else {"pre_relu": True}
        sums = tile(DType.Int32, Mem.Acc)
        assert call("tile.move", sums, target_memory=Mem.Mat).dtype is DType.Int32
        with pytest.raises(IRTypeError) as caught:
            call("tile.move", sums, target_memory=Mem.Mat, **kwargs)
        message = f"tile.move: {name} must be for a tile of Float32 in Acc, not of Int32 in Acc"
        assert caught.value.message == message

    @pytest.mark.parametrize("source", [Mem.Vec, Mem.Mat, None])
    def test_no_other_move_converts(self, source: Mem | None) -> None:
        found = "a memory that is not known yet" if source is None else source.name
        target = Mem.Left if source is Mem.Mat else Mem.Mat
        with pytest.raises(IRValueError) as caught:
            call("tile.move", tile(FP32, source), target_memory=target, dtype=Float16)
        assert caught.value.message == (
            f"tile.move: dtype must be for a move out of Acc to Mat or Vec, not from {found} to "
            f"{target.name}"
        )

    @pytest.mark.parametrize("layout", [{"blayout": ROW}, {"slayout": NONE}])
    def test_the_boxes_are_in_columns(self, layout: dict[str, Any]) -> None:
        with pytest.raises(IRValueError, match="must leave blayout and slayout alone"):
            call("tile.move", tile(FP32, Mem.Acc), target_memory=Mem.Mat, **layout)
