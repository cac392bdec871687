"""Types: equality by structure, the normal form of views, and where a memory puts its tiles."""

import pytest

from scalebox.ir.dtypes import DType, Index, Int64
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.expr import ConstInt, ScalarType, UnknownType, Var, index
from scalebox.ir.types import (
    SCALE_ARRANGEMENT,
    DistributedTensorType,
    MemorySpace,
    MemRef,
    PadValue,
    TensorLayout,
    TensorType,
    TensorView,
    TileLayout,
    TileType,
    TileView,
    TupleType,
    constant_dim,
    constant_dims,
    implicit_tile_view,
    static_dims,
)

ROW, COL, NONE = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box


class TestTensorType:
    def test_types_are_compared_by_structure(self) -> None:
        one, other = TensorType([2, 4], DType.E4M3), TensorType([2, 4], DType.E4M3)
        assert one == other
        assert hash(one) == hash(other)
        assert one != TensorType([4, 2], DType.E4M3)
        assert one != TensorType([2, 4], DType.E5M2)
        assert one != TileType([2, 4], DType.E4M3)
        assert one != "a tensor"

    def test_a_plain_view_is_no_view(self) -> None:
        assert TensorType([2], DType.Float32, None, TensorLayout.ND).tensor_view is None
        assert TensorType([2], DType.Float32, None, TensorView()).tensor_view is None
        padded = TensorView(layout=TensorLayout.ND, pad=PadValue.zero)
        assert TensorType([2], DType.Float32, None, padded).tensor_view is not None

    def test_a_layout_stands_for_a_view_without_strides(self) -> None:
        type_ = TensorType([64, 4], DType.E8M0, None, TensorLayout.MX_A_ZZ)
        assert type_.tensor_view == TensorView([], TensorLayout.MX_A_ZZ)
        assert (type_.layout, type_.stride, type_.valid_shape) == (TensorLayout.MX_A_ZZ, (), ())

    def test_layout_and_presence_of_a_stride_count(self) -> None:
        plain = TensorType([4, 2], DType.Float32)
        strided = TensorType([4, 2], DType.Float32, None, TensorView([2, 1], TensorLayout.ND))
        dn = TensorType([4, 2], DType.Float32, None, TensorLayout.DN)
        assert len({plain, strided, dn}) == 3

    def test_the_memory_reference_does_not_count(self) -> None:
        assert TensorType([2], DType.Int8, MemRef("m")) == TensorType([2], DType.Int8)

    def test_a_distributed_tensor_is_another_type(self) -> None:
        assert DistributedTensorType([2], DType.Int8) != TensorType([2], DType.Int8)

    @pytest.mark.parametrize("given", [{"stride": [1]}, {"valid_shape": [1]}])
    def test_a_view_that_says_something_names_its_layout(self, given: dict[str, list[int]]) -> None:
        expected = "^A TensorView with a stride or a valid_shape must name its layout$"
        with pytest.raises(IRValueError, match=expected):
            TensorView(given.get("stride"), None, given.get("valid_shape"))

    def test_which_layouts_are_boxed(self) -> None:
        assert [layout.name for layout in TensorLayout if layout.is_mx] == ["MX_A_ZZ", "MX_B_NN"]


class TestTileType:
    @pytest.mark.parametrize(
        ("space", "arrangement"),
        [
            (None, (ROW, NONE, 512)),
            (MemorySpace.Vec, (ROW, NONE, 512)),
            (MemorySpace.Mat, (COL, ROW, 512)),
            (MemorySpace.Left, (COL, ROW, 512)),
            (MemorySpace.Right, (ROW, COL, 512)),
            (MemorySpace.Acc, (COL, ROW, 1024)),
            (MemorySpace.LeftScale, (ROW, ROW, 32)),
            (MemorySpace.RightScale, (COL, COL, 32)),
            (MemorySpace.Bias, (ROW, NONE, 512)),
        ],
    )
    def test_a_memory_space_implies_the_arrangement(
        self, space: MemorySpace | None, arrangement: tuple[TileLayout, TileLayout, int]
    ) -> None:
        type_ = TileType([16, 64], DType.E4M3, memory_space=space)
        assert type_.tile_view is None
        assert type_.get_effective_tile_view().arrangement == arrangement

    def test_a_single_row_in_mat_is_a_row_vector(self) -> None:
        one = implicit_tile_view((index(1), index(64)), MemorySpace.Mat)
        assert one.arrangement == (ROW, NONE, 512)

    def test_scales_keep_their_boxes_on_the_way_through_mat(self) -> None:
        assert SCALE_ARRANGEMENT == {
            TensorLayout.MX_A_ZZ: (ROW, ROW, 32),
            TensorLayout.MX_B_NN: (COL, COL, 32),
        }

    def test_a_view_equal_to_the_implicit_one_is_not_stored(self) -> None:
        view = TileView([16, 64], blayout=COL, slayout=ROW)
        assert TileType([16, 64], DType.E4M3, None, view, MemorySpace.Mat).tile_view is None
        assert TileType([16, 64], DType.E4M3, None, view, MemorySpace.Vec).tile_view is not None

    def test_valid_extents_default_to_the_shape(self) -> None:
        whole = TileType([16, 64], DType.E4M3)
        assert constant_dims(whole.valid_shape) == (16, 64)
        part = TileType([16, 64], DType.E4M3, None, TileView([16, 31]))
        assert constant_dims(part.valid_shape) == (16, 31)
        assert whole != part
        assert constant_dims(whole.get_effective_tile_view().valid_shape) == (16, 64)

    def test_the_memory_space_counts(self) -> None:
        left = TileType([16, 64], DType.E4M3, memory_space=MemorySpace.Left)
        assert left != TileType([16, 64], DType.E4M3, memory_space=MemorySpace.Mat)

    def test_the_ids_of_the_memory_spaces_are_those_of_the_language(self) -> None:
        assert [(space.name, int(space)) for space in MemorySpace] == [
            ("DDR", 0), ("Vec", 1), ("Mat", 2), ("Left", 3), ("Right", 4), ("Acc", 5), ("Bias", 6),
            ("ScalarLocal", 7), ("LeftScale", 8), ("RightScale", 9),
        ]  # fmt: skip


class TestDims:
    def test_constants_are_told_from_symbols(self) -> None:
        n = Var("n", ScalarType(Index))
        assert constant_dim(index(3)) == 3
        assert constant_dim(n) is None
        assert constant_dims((index(3), index(4))) == (3, 4)
        assert constant_dims((index(3), n)) is None

    def test_a_symbol_where_a_constant_is_needed_is_refused_by_name(self) -> None:
        expected = "^The tile 't' must have constant dimensions, not symbolic ones$"
        with pytest.raises(IRTypeError, match=expected):
            static_dims((Var("n", ScalarType(Index)),), "The tile 't'")

    def test_the_two_words_are_equal_as_dimensions(self) -> None:
        one, other = TensorType([3], DType.Int8), TensorType([ConstInt(3, Int64)], DType.Int8)
        assert one == other
        assert hash(one) == hash(other)

    def test_the_same_symbol_is_the_same_dimension(self) -> None:
        n, m = Var("n", ScalarType(Index)), Var("n", ScalarType(Index))
        assert TensorType([n], DType.Int8) == TensorType([n], DType.Int8)
        assert TensorType([n], DType.Int8) != TensorType([m], DType.Int8)


def test_tuples_and_unknown_types_compare_by_structure() -> None:
    scalar = ScalarType(DType.Int32)
    assert TupleType([scalar, scalar]) == TupleType([scalar, scalar])
    assert TupleType([scalar]) != TupleType([scalar, scalar])
    assert UnknownType() == UnknownType()
    assert UnknownType() != scalar
