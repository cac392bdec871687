"""Type rules of load, store, move and the binding of scales."""

from collections.abc import Sequence
from typing import Any

import pytest

from scalebox.ir.dtypes import BFloat16, DType, Float16, Index, UInt8
from scalebox.ir.errors import IRTypeError, IRValueError, UserError
from scalebox.ir.expr import Call, Expr, MakeTuple, Op, ScalarType, Type, Var, index
from scalebox.ir.ops import create_op_call, deduce_type
from scalebox.ir.types import (
    MemorySpace,
    TensorLayout,
    TensorType,
    TensorView,
    TileLayout,
    TileType,
    TileView,
    constant_dims,
)

Mem = MemorySpace
ND, DN = TensorLayout.ND, TensorLayout.DN
ZZ, NN = TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN
E4M3, E8M0, E2M1, FP32 = DType.E4M3, DType.E8M0, DType.E2M1, DType.Float32
ROW, COL, NONE = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box
K = Var("k", ScalarType(Index))
Dims = Sequence[int | Expr]


def tensor(shape: Dims, dtype: DType = E4M3, view: TensorLayout | TensorView | None = None) -> Var:
    return Var("x", TensorType(shape, dtype, None, view))


def tile(
    shape: Dims, dtype: DType = E4M3, space: Mem | None = Mem.Mat, view: TileView | None = None
) -> Var:
    return Var("t", TileType(shape, dtype, None, view, space))


def scale_tile(layout: TensorLayout, shape: Dims, dtype: DType = E8M0) -> Var:
    order = ROW if layout is ZZ else COL
    return tile(shape, dtype, Mem.Mat, TileView(blayout=order, slayout=order, fractal=32))


def load(source: Var, offsets: Dims, window: Dims, valid: Dims | None = None, **kwargs: Any) -> Any:
    args: list[object] = [source, list(offsets), list(window)]
    if valid is not None:
        args.append(list(valid))
    return create_op_call("tile.load", args, kwargs).type


def store(source: Var, offsets: Dims, into: Var, window: Dims | None = None) -> Type:
    args: list[object] = [source, list(offsets), into]
    if window is not None:
        args.append(list(window))
    return create_op_call("tile.store", args).type


def move(source: Var, target: Mem, **kwargs: Any) -> Any:
    return create_op_call("tile.move", [source], {"target_memory": target, **kwargs}).type


def refusal(kind: type[UserError], action: Any, *args: Any, **kwargs: Any) -> UserError:
    with pytest.raises(kind) as caught:
        action(*args, **kwargs)
    return caught.value


class TestLoad:
    def test_a_load_to_mat_is_boxed_for_the_cube(self) -> None:
        type_ = load(tensor([64, 128]), [0, 64], [64, 64], target_memory=Mem.Mat)
        assert type_ == TileType([64, 64], E4M3, memory_space=Mem.Mat)
        assert type_.get_effective_tile_view().arrangement == (COL, ROW, 512)

    def test_a_load_without_a_target_is_left_open(self) -> None:
        type_ = load(tensor([64, 128]), [0, 64], [64, 64])
        assert type_ == TileType([64, 64], E4M3)
        assert type_.memory_space is None

    def test_a_column_major_source_is_boxed_the_other_way(self) -> None:
        source = tensor([128, 64], view=TensorView([1, 128], DN))
        type_ = load(source, [0, 0], [64, 64], target_memory=Mem.Mat)
        assert type_.get_effective_tile_view().arrangement == (ROW, COL, 512)

    def test_a_single_row_is_a_row_vector(self) -> None:
        type_ = load(tensor([1, 128], FP32), [0, 0], [1, 128], target_memory=Mem.Mat)
        assert type_.get_effective_tile_view().arrangement == (ROW, NONE, 512)

    @pytest.mark.parametrize(("layout", "order"), [(ZZ, ROW), (NN, COL)])
    @pytest.mark.parametrize("dtype", [E8M0, UInt8])
    def test_scales_keep_their_boxes(
        self, layout: TensorLayout, order: TileLayout, dtype: DType
    ) -> None:
        source = tensor([64, 64], dtype, layout)
        type_ = load(source, [16, 16], [32, 32], target_memory=Mem.Mat)
        assert constant_dims(type_.shape) == (32, 32)
        assert type_.dtype is dtype
        assert type_.get_effective_tile_view().arrangement == (order, order, 32)

    def test_the_valid_shape_is_kept(self) -> None:
        type_ = load(tensor([64, 128]), [0, 0], [64, 64], [50, 33])
        assert constant_dims(type_.valid_shape) == (50, 33)

    def test_a_window_may_overhang_what_is_not_valid(self) -> None:
        type_ = load(tensor([50, 100]), [0, 64], [64, 64], [50, 36])
        assert constant_dims(type_.shape) == (64, 64)
        assert constant_dims(type_.valid_shape) == (50, 36)

    def test_clamping_narrows_the_valid_shape_to_the_tensor(self) -> None:
        type_ = load(tensor([50, 100]), [0, 64], [64, 64], clamp=True)
        assert constant_dims(type_.valid_shape) == (50, 36)

    def test_clamping_at_an_offset_of_the_run_keeps_an_expression(self) -> None:
        type_ = load(tensor([50, 100]), [0, K], [64, 64], clamp=True)
        assert constant_dims(type_.valid_shape[:1]) == (50,)
        assert constant_dims(type_.valid_shape[1:]) is None

    @pytest.mark.parametrize(
        ("offsets", "window", "valid", "message"),
        [
            (
                [0],
                [4, 4],
                None,
                "offsets must have 2 elements, one a dimension of the tensor, not 1",
            ),
            (
                [0, 0],
                [4],
                None,
                "shapes must have 2 elements, one a dimension of the tensor, not 1",
            ),
            (
                [0, 0],
                [4, 4],
                [4],
                "valid_shape must have 2 elements, one a dimension of the tensor, not 1",
            ),
            ([0, 0], [0, 4], None, "every dimension must be positive, not 0 in [0, 4]"),
            ([0, 0], [4, -4], None, "every dimension must be positive, not -4 in [4, -4]"),
            ([-16, 0], [16, 16], None, "the offset on axis 0 must not be negative, but is -16"),
            ([0, -1], [16, 16], None, "the offset on axis 1 must not be negative, but is -1"),
            ([0, 0], [4, 4], [4, 5], "valid_shape must be in 1..4 on axis 1, not 5"),
            ([0, 0], [4, 4], [0, 4], "valid_shape must be in 1..4 on axis 0, not 0"),
            (
                [56, 0],
                [16, 16],
                None,
                "what is loaded must end within the tensor, but takes 16 elements from offset 56 on "
                "axis 0, which has 64",
            ),
            (
                [K, 0],
                [65, 16],
                None,
                "what is loaded must end within the tensor, but takes 65 elements on axis 0, which "
                "has 64",
            ),
        ],
    )
    def test_a_wrong_window_is_refused(
        self, offsets: Dims, window: Dims, valid: Dims | None, message: str
    ) -> None:
        error = refusal(IRValueError, load, tensor([64, 128]), offsets, window, valid)
        assert error.message == f"tile.load: {message}"

    @pytest.mark.parametrize("space", [Mem.Left, Mem.Acc, Mem.LeftScale, Mem.DDR])
    def test_a_load_goes_to_vec_or_mat_only(self, space: Mem) -> None:
        source = tensor([64, 128])
        error = refusal(IRValueError, load, source, [0, 0], [64, 64], target_memory=space)
        assert error.message == f"tile.load: target_memory must be Vec or Mat, not {space.name}"
        by_way = f"load to Mat, then pl.move to {space.name}"
        never = f"nothing is loaded to {space.name}; ops that multiply put their sums into Acc"
        assert error.hint == (never if space in (Mem.Acc, Mem.DDR) else by_way)

    @pytest.mark.parametrize(
        ("offsets", "window", "message"),
        [
            (
                [0, 0],
                [16, 63],
                "the last dimension of E2M1, which lies two in a byte, must be even, not 63 in "
                "[16, 63]",
            ),
            (
                [0, 1],
                [16, 64],
                "the last offset into E2M1, which lies two in a byte, must be even, not 1",
            ),
        ],
    )
    def test_half_a_byte_is_refused(self, offsets: Dims, window: Dims, message: str) -> None:
        error = refusal(IRValueError, load, tensor([64, 128], E2M1), offsets, window)
        assert error.message == f"tile.load: {message}"

    def test_an_odd_number_of_valid_nibbles_is_fine(self) -> None:
        type_ = load(tensor([64, 128], E2M1), [0, 2], [16, 64], [16, 31])
        assert constant_dims(type_.valid_shape) == (16, 31)

    @pytest.mark.parametrize(
        ("source", "kwargs", "kind", "message"),
        [
            (
                tensor([64, 4], E4M3, ZZ),
                {"target_memory": Mem.Mat},
                IRTypeError,
                "a tensor in MX_A_ZZ must hold E8M0 or UInt8, not E4M3",
            ),
            (
                tensor([64, 4], E8M0, ZZ),
                {},
                IRValueError,
                "a load from MX_A_ZZ requires target_memory=MemorySpace.Mat, not another one",
            ),
            (
                tensor([64, 4], E8M0, ZZ),
                {"target_memory": Mem.Vec},
                IRValueError,
                "a load from MX_A_ZZ requires target_memory=MemorySpace.Mat, not Vec",
            ),
            (
                tensor([64, 4], E8M0, TensorView([8, 1], ZZ)),
                {"target_memory": Mem.Mat},
                IRValueError,
                "a tensor in MX_A_ZZ must be packed, not of stride [8, 1]",
            ),
        ],
    )
    def test_scales_that_the_hardware_cannot_load(
        self, source: Var, kwargs: dict[str, Any], kind: type[UserError], message: str
    ) -> None:
        error = refusal(kind, load, source, [0, 0], [16, 2], **kwargs)
        assert error.message == f"tile.load: {message}"

    def test_the_whole_window_of_scales_lies_within_the_tensor(self) -> None:
        source = tensor([64, 4], E8M0, ZZ)
        error = refusal(IRValueError, load, source, [0, 2], [64, 4], [64, 2], target_memory=Mem.Mat)
        assert error.message == (
            "tile.load: the window of scale boxes must end within the tensor, but takes 4 elements "
            "from offset 2 on axis 1, which has 4"
        )


class TestBlockedLoad:
    """The form that a load of scales takes once its tensor is cut into boxes of 16 by 2."""

    @staticmethod
    def call(
        type_: Type,
        *,
        offsets: Dims = (0, 1, 1, 0, 0),
        window: Dims = (1, 1, 1, 16, 2),
        valid: Dims | None = None,
    ) -> Call:
        source = tensor([1, 4, 2, 16, 2], E8M0, ZZ)
        parts = [MakeTuple(tuple(d)) for d in (offsets, window, valid or window)]  # pyright: ignore[reportArgumentType]
        return Call(Op("tile.load"), [source, *parts], {"target_memory": Mem.Mat}, type_)

    @staticmethod
    def stored(shape: Dims = (16, 2), valid: Dims | None = None) -> TileType:
        view = TileView(valid, blayout=ROW, slayout=ROW, fractal=32)
        return TileType(shape, E8M0, None, view, Mem.Mat)

    def test_the_tile_stays_logical(self) -> None:
        assert deduce_type(self.call(self.stored())) == self.stored()

    def test_a_narrowed_valid_shape_is_metadata_of_the_tile(self) -> None:
        narrow = self.stored(valid=(10, 1))
        assert deduce_type(self.call(narrow)) == narrow

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"offsets": (0, 1)}, "offsets must have 5 elements, one a dimension of the blocked"),
            ({"valid": (1, 1, 1, 16, 1)}, "must take whole boxes, not [1, 1, 1, 16, 1] of"),
            ({"offsets": (0, 4, 0, 0, 0)}, "the window of scale boxes must end within the tensor"),
            ({"offsets": (0, -1, 0, 0, 0)}, "the offset on axis 1 must not be negative, but is -1"),
        ],
    )
    def test_a_wrong_box_window_is_refused(self, change: dict[str, Any], message: str) -> None:
        error = refusal(IRValueError, deduce_type, self.call(self.stored(), **change))
        assert error.message.startswith(f"tile.load: {message}")

    def test_a_tile_of_another_shape_is_refused(self) -> None:
        error = refusal(IRTypeError, deduce_type, self.call(self.stored(shape=(2, 16))))
        assert error.message == "tile.load: must give a tile of [16, 2], not of [2, 16]"

    def test_the_right_operands_boxes_are_columns(self) -> None:
        source = tensor([1, 4, 2, 16, 2], E8M0, NN)
        parts = [MakeTuple(tuple(index(d) for d in dims)) for dims in (
            (0, 0, 1, 0, 0), (1, 3, 1, 16, 2), (1, 3, 1, 16, 2))]  # fmt: skip
        view = TileView(blayout=COL, slayout=COL, fractal=32)
        stored = TileType([2, 48], E8M0, None, view, Mem.Mat)
        call = Call(Op("tile.load"), [source, *parts], {"target_memory": Mem.Mat}, stored)
        assert deduce_type(call) == stored


class TestMove:
    @pytest.mark.parametrize(
        ("target", "arrangement"),
        [(Mem.Left, (COL, ROW, 512)), (Mem.Right, (ROW, COL, 512)), (Mem.Bias, (ROW, NONE, 512))],
    )
    def test_the_result_lies_as_its_memory_wants_it(
        self, target: Mem, arrangement: tuple[TileLayout, TileLayout, int]
    ) -> None:
        narrow = tile([64, 64], view=TileView([60, 33], blayout=COL, slayout=ROW))
        type_ = move(narrow, target)
        assert type_.memory_space is target
        assert type_.get_effective_tile_view().arrangement == arrangement
        assert constant_dims(type_.valid_shape) == (60, 33)

    @pytest.mark.parametrize(("layout", "target"), [(ZZ, Mem.LeftScale), (NN, Mem.RightScale)])
    def test_scales_go_to_their_buffer_and_become_e8m0(
        self, layout: TensorLayout, target: Mem
    ) -> None:
        for dtype in (E8M0, UInt8):
            type_ = move(scale_tile(layout, [64, 64], dtype), target)
            assert type_ == TileType([64, 64], E8M0, memory_space=target)

    @pytest.mark.parametrize(
        ("source", "target", "message", "hint"),
        [
            (
                scale_tile(NN, [64, 64]),
                Mem.LeftScale,
                "the scales for LeftScale must come from a tensor in MX_A_ZZ, not in MX_B_NN",
                "annotate the left operand's scales pl.Tensor[[…], pl.FP8E8M0, pl.MX_A_ZZ] and give "
                "their bytes in box order; pl.quant_mx makes them with group_axis=1",
            ),
            (
                scale_tile(ZZ, [64, 64]),
                Mem.RightScale,
                "the scales for RightScale must come from a tensor in MX_B_NN, not in MX_A_ZZ",
                "annotate the right operand's scales pl.Tensor[[…], pl.FP8E8M0, pl.MX_B_NN] and "
                "give their bytes in box order; pl.quant_mx makes them with group_axis=0",
            ),
            (
                tile([64, 64], E8M0),
                Mem.LeftScale,
                "the scales for LeftScale must come from a tensor in MX_A_ZZ, not in ND",
                "annotate the left operand's scales pl.Tensor[[…], pl.FP8E8M0, pl.MX_A_ZZ] and give "
                "their bytes in box order; pl.quant_mx makes them with group_axis=1",
            ),
            (
                scale_tile(ZZ, [64, 64]),
                Mem.Left,
                "a tile of scales in MX_A_ZZ must go to LeftScale, not to Left",
                None,
            ),
            (
                tile([64, 64], space=Mem.Vec),
                Mem.Left,
                "a tile cannot go from Vec to Left",
                "from Vec it can go to: Mat",
            ),
            (
                tile([64, 64], space=Mem.Left),
                Mem.Mat,
                "a tile cannot go from Left to Mat",
                "from Left it can go to: nowhere",
            ),
        ],
    )
    def test_a_wrong_way_is_refused(
        self, source: Var, target: Mem, message: str, hint: str | None
    ) -> None:
        error = refusal(IRValueError, move, source, target)
        assert error.message == f"tile.move: {message}"
        assert error.hint == hint

    def test_only_scales_go_to_a_scale_buffer(self) -> None:
        error = refusal(IRTypeError, move, tile([64, 64]), Mem.LeftScale)
        assert error.message == "tile.move: a tile for LeftScale must hold E8M0 or UInt8, not E4M3"

    def test_the_arrangement_of_scales_is_not_the_kernels_to_choose(self) -> None:
        source = scale_tile(ZZ, [64, 64])
        error = refusal(IRValueError, move, source, Mem.LeftScale, blayout=ROW)
        assert error.message == (
            "tile.move: a move to LeftScale must leave blayout and slayout alone"
        )

    def test_an_arrangement_may_be_named(self) -> None:
        type_ = move(tile([64, 64], space=Mem.Vec), Mem.Mat, blayout=ROW, slayout=COL)
        assert type_.get_effective_tile_view().arrangement == (ROW, COL, 512)
        scales = move(tile([64, 64], E8M0, Mem.Vec), Mem.Mat, blayout=COL, slayout=COL)
        assert scales.get_effective_tile_view().arrangement == (COL, COL, 32)

    @pytest.mark.parametrize("order", [ROW, COL])
    def test_scales_from_the_vector_core_stay_in_their_boxes(self, order: TileLayout) -> None:
        view = TileView(blayout=order, slayout=order, fractal=32)
        type_ = move(tile([64, 64], E8M0, Mem.Vec, view), Mem.Mat)
        assert type_.get_effective_tile_view().arrangement == (order, order, 32)

    def test_a_move_to_the_same_memory_changes_nothing(self) -> None:
        source = scale_tile(ZZ, [64, 64])
        assert move(source, Mem.Mat) == source.type


class TestStore:
    @pytest.mark.parametrize("dtype", [FP32, BFloat16, Float16])
    def test_an_accumulator_is_stored_in_what_the_fixpipe_writes(self, dtype: DType) -> None:
        into = tensor([64, 128], dtype)
        assert store(tile([64, 128], FP32, Mem.Acc), [0, 0], into) is into.type

    def test_a_tile_without_a_memory_keeps_its_dtype(self) -> None:
        into = tensor([64, 128])
        assert store(tile([64, 64], space=None), [0, 64], into) is into.type

    @pytest.mark.parametrize(
        ("source", "into", "message"),
        [
            (
                tile([64, 64], FP32, Mem.Acc),
                tensor([64, 64], E4M3),
                "a tile of Float32 in Acc must be stored as Float32, BFloat16, Float16, not into a "
                "tensor of E4M3",
            ),
            (
                tile([64, 64], FP32, Mem.Vec),
                tensor([64, 64], BFloat16),
                "a tile of Float32 in Vec must be stored as Float32, not into a tensor of BFloat16",
            ),
        ],
    )
    def test_a_dtype_that_nobody_writes_is_refused(
        self, source: Var, into: Var, message: str
    ) -> None:
        error = refusal(IRTypeError, store, source, [0, 0], into)
        assert error.message == f"tile.store: {message}"

    def test_a_tile_of_the_vector_core_is_to_be_cast_first(self) -> None:
        error = refusal(
            IRTypeError,
            store,
            tile([64, 64], FP32, Mem.Vec),
            [0, 0],
            tensor([64, 64], BFloat16),
        )
        assert error.hint == "pl.cast converts the tile first"

    @pytest.mark.parametrize("space", [Mem.Left, Mem.Right, Mem.LeftScale, Mem.Bias])
    def test_operand_buffers_cannot_be_stored(self, space: Mem) -> None:
        error = refusal(IRValueError, store, tile([64, 64], space=space), [0, 0], tensor([64, 64]))
        assert error.message == (
            f"tile.store: a tile must be stored from Acc or Vec, not from {space.name}"
        )

    def test_the_valid_part_must_fit(self) -> None:
        into = tensor([50, 64], FP32)
        view = TileView([50, 64], blayout=COL, slayout=ROW, fractal=1024)
        assert store(tile([64, 64], FP32, Mem.Acc, view), [0, 0], into) is into.type
        error = refusal(IRValueError, store, tile([64, 64], FP32, Mem.Acc), [0, 0], into)
        assert error.message == (
            "tile.store: what is stored must end within the tensor, but takes 64 elements from "
            "offset 0 on axis 0, which has 50"
        )

    def test_a_negative_offset_is_refused(self) -> None:
        source, into = tile([64, 64], FP32, Mem.Acc), tensor([64, 64], FP32)
        error = refusal(IRValueError, store, source, [-1, 0], into)
        assert error.message == "tile.store: the offset on axis 0 must not be negative, but is -1"

    def test_a_tensor_of_more_dimensions_needs_its_window(self) -> None:
        source, into = tile([64, 64], FP32, Mem.Acc), tensor([2, 64, 64], FP32)
        error = refusal(IRValueError, store, source, [0, 0, 0], into)
        assert (
            error.message
            == "tile.store: a tile of rank 2 must go into a tensor of that rank, not 3"
        )
        assert store(source, [1, 0, 0], into, [1, 64, 64]) is into.type

    def test_the_window_must_hold_the_tile(self) -> None:
        source, into = tile([64, 64], FP32, Mem.Acc), tensor([2, 64, 64], FP32)
        error = refusal(IRValueError, store, source, [0, 0, 0], into, [1, 64, 32])
        assert error.message == (
            "tile.store: shapes must hold the 4096 elements of the tile [64, 64], "
            "not the 2048 of [1, 64, 32]"
        )

    def test_a_store_into_boxes_must_come_from_boxes(self) -> None:
        into = tensor([1, 4, 2, 16, 2], E8M0, ZZ)
        offsets = MakeTuple(tuple(index(0) for _ in range(5)))

        def blocked(source: Var) -> Type:
            return deduce_type(Call(Op("tile.store"), [source, offsets, into], into.type))

        assert blocked(scale_tile(ZZ, [64, 4])) is into.type
        error = refusal(IRValueError, blocked, scale_tile(NN, [4, 64]))
        assert error.message == (
            "tile.store: a tile for a tensor in MX_A_ZZ must lie in that layout, not in MX_B_NN"
        )


class TestScaleAddress:
    @staticmethod
    def bind(scale: Mem | None, data: Mem | None) -> Type:
        return create_op_call(
            "tile.tget_scale_addr",
            [tile([64, 2], E8M0, scale), tile([64, 64], E4M3, data)],
        ).type

    @pytest.mark.parametrize(
        ("scale", "data"), [(Mem.LeftScale, Mem.Left), (Mem.RightScale, Mem.Right)]
    )
    def test_the_scale_tile_keeps_its_type(self, scale: Mem, data: Mem) -> None:
        assert self.bind(scale, data) == TileType([64, 2], E8M0, memory_space=scale)

    @pytest.mark.parametrize(
        ("scale", "data", "message"),
        [
            (Mem.Mat, Mem.Left, "the scale must lie in LeftScale or RightScale, not in Mat"),
            (
                None,
                Mem.Left,
                "the scale must lie in LeftScale or RightScale, not in a memory that is not known yet",
            ),
            (
                Mem.LeftScale,
                Mem.Right,
                "the data of a scale in LeftScale must lie in Left, not in Right",
            ),
        ],
    )
    def test_partners_lie_side_by_side(
        self, scale: Mem | None, data: Mem | None, message: str
    ) -> None:
        error = refusal(IRValueError, self.bind, scale, data)
        assert error.message == f"tile.tget_scale_addr: {message}"
