"""Type rules of the block-scaled matmuls."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from scalebox.ir.dtypes import E1M2, DType, UInt8
from scalebox.ir.errors import IRTypeError, IRValueError, UserError
from scalebox.ir.expr import ScalarType, Var
from scalebox.ir.ops import create_op_call
from scalebox.ir.types import (
    CompactMode,
    MemorySpace,
    TileLayout,
    TileType,
    TileView,
    constant_dims,
    implicit_tile_view,
)

Mem = MemorySpace
E4M3, E5M2, E2M1, E8M0, FP32 = DType.E4M3, DType.E5M2, DType.E2M1, DType.E8M0, DType.Float32
ROW, COL = TileLayout.row_major, TileLayout.col_major
Shape = tuple[int, int]


def tile(
    shape: Shape, dtype: DType, space: Mem | None, valid: Shape | None = None, boxes: str = ""
) -> Var:
    whole = TileType(shape, dtype, memory_space=space)
    view = implicit_tile_view(whole.shape, space)
    blayout, slayout, fractal = view.arrangement
    if boxes:
        blayout = slayout = ROW if boxes == "A" else COL
        fractal = 32
    view = TileView(valid, None, None, blayout, slayout, fractal)
    return Var("t", TileType(shape, dtype, None, view, space))


@dataclass(frozen=True)
class Case:
    """A 64x128x128 matmul that is right; each field can be made wrong."""

    m: int = 64
    k: int = 128
    n: int = 128
    dtypes: tuple[DType, DType] = (E4M3, E4M3)
    spaces: tuple[Mem | None, ...] = (Mem.Left, Mem.LeftScale, Mem.Right, Mem.RightScale)
    boxes: tuple[str, str] = ("A", "B")
    valid: tuple[Shape | None, ...] = (None, None, None, None)
    scale_dtype: DType = E8M0
    shapes: dict[int, Shape] = field(default_factory=dict[int, Shape])

    def operands(self) -> list[Var]:
        groups = -(-self.k // 32)
        usual = ((self.m, self.k), (self.m, groups), (self.k, self.n), (groups, self.n))
        shapes = [self.shapes.get(i, shape) for i, shape in enumerate(usual)]
        a, b = self.dtypes
        sa, sb = self.boxes
        return [
            tile(shapes[0], a, self.spaces[0], self.valid[0]),
            tile(shapes[1], self.scale_dtype, self.spaces[1], self.valid[1], sa),
            tile(shapes[2], b, self.spaces[2], self.valid[2]),
            tile(shapes[3], self.scale_dtype, self.spaces[3], self.valid[3], sb),
        ]

    def type(self) -> TileType:
        made = create_op_call("tile.matmul_mx", self.operands()).type
        assert isinstance(made, TileType)
        return made


def refusal(kind: type[UserError], case: Case) -> UserError:
    with pytest.raises(kind) as caught:
        case.type()
    return caught.value


class TestResult:
    def test_the_result_is_a_float32_accumulator(self) -> None:
        assert Case().type() == TileType([64, 128], FP32, memory_space=Mem.Acc)
        assert Case().type().get_effective_tile_view().arrangement == (COL, ROW, 1024)

    def test_the_valid_shape_follows_the_operands(self) -> None:
        valid: tuple[Shape, ...] = ((50, 100), (50, 4), (100, 90), (4, 90))
        type_ = Case(valid=valid).type()
        assert constant_dims(type_.valid_shape) == (50, 90)
        assert type_.get_effective_tile_view().compact is CompactMode.normal

    def test_full_rows_need_no_compact_pitch(self) -> None:
        valid = (None, None, (128, 90), (4, 90))
        assert Case(valid=valid).type().get_effective_tile_view().compact is CompactMode.null

    @pytest.mark.parametrize("k", range(1, 65))
    def test_any_valid_k_is_accepted(self, k: int) -> None:
        groups = -(-k // 32)
        exact = Case(k=64, valid=((64, k), (64, groups), (k, 128), (groups, 128)))
        whole_scales = replace(exact, valid=((64, k), None, (k, 128), None))
        assert exact.type() == whole_scales.type()


class TestOperands:
    @pytest.mark.parametrize(
        "dtypes",
        [(a, b) for pair in ((E4M3, E5M2), (E2M1, E1M2)) for a in pair for b in pair],
        ids=lambda pair: f"{pair[0].name}x{pair[1].name}",
    )
    def test_the_pairs_of_the_instruction_set(self, dtypes: tuple[DType, DType]) -> None:
        assert Case(dtypes=dtypes).type().dtype is FP32

    @pytest.mark.parametrize("dtypes", [(E4M3, E2M1), (E2M1, E5M2), (E1M2, E4M3)])
    def test_fp8_times_fp4_is_refused_with_the_way_out(self, dtypes: tuple[DType, DType]) -> None:
        error = refusal(IRTypeError, Case(dtypes=dtypes))
        assert error.message == (
            "tile.matmul_mx: lhs and rhs must be both from {E4M3, E5M2} or both from {E2M1, E1M2}, "
            f"not {dtypes[0].name} and {dtypes[1].name}"
        )
        assert error.hint == (
            "cast the 4-bit operand to E4M3 first (pl.cast): the cube has no FP8 x FP4 product"
        )

    @pytest.mark.parametrize("dtype", [DType.Int8, DType.E3M2, DType.Float32])
    def test_a_dtype_that_the_cube_does_not_scale_is_refused(self, dtype: DType) -> None:
        error = refusal(IRTypeError, Case(dtypes=(dtype, dtype)))
        assert error.message.endswith(f"not {dtype.name} and {dtype.name}")
        assert error.hint is None

    @pytest.mark.parametrize(
        ("case", "message"),
        [
            (Case(m=8), "the physical M must be a multiple of 16, not 8"),
            (Case(m=24), "the physical M must be a multiple of 16, not 24"),
            (Case(k=96), "the physical K must be a multiple of 64, not 96"),
            (Case(k=32), "the physical K must be a multiple of 64, not 32"),
            (Case(n=16), "the physical N must be a multiple of 32, not 16"),
            (
                Case(shapes={2: (64, 128)}),
                "the physical K must be the same on both sides, but lhs has 128 and rhs has 64",
            ),
            (
                Case(valid=((64, 100), None, None, None)),
                "the valid K must be the same on both sides, but lhs has 100 and rhs has 128",
            ),
            (
                Case(shapes={1: (64, 2)}),
                "lhs_scale must be [64, 4], one scale for 32 elements along K, not [64, 2]",
            ),
            (
                Case(shapes={3: (128, 4)}),
                "rhs_scale must be [4, 128], one scale for 32 elements along K, not [128, 4]",
            ),
            (
                Case(valid=(None, (64, 3), None, None)),
                "the valid shape of lhs_scale must cover [64, 4], not [64, 3]",
            ),
            (
                Case(valid=((50, 65), (49, 3), (65, 128), None)),
                "the valid shape of lhs_scale must cover [50, 3], not [49, 3]",
            ),
            (
                Case(valid=(None, None, None, (4, 127))),
                "the valid shape of rhs_scale must cover [4, 128], not [4, 127]",
            ),
            (
                Case(valid=((64, 0), None, (0, 128), None)),
                "lhs must have valid elements, not the valid shape [64, 0]",
            ),
        ],
    )
    def test_extents_that_do_not_fit(self, case: Case, message: str) -> None:
        assert refusal(IRValueError, case).message == f"tile.matmul_mx: {message}"

    def test_the_way_out_of_a_small_operand_is_told(self) -> None:
        assert refusal(IRValueError, Case(m=8)).hint == (
            "load a larger window and narrow it by valid_shape"
        )

    def test_scales_must_be_e8m0_once_they_are_placed(self) -> None:
        error = refusal(IRTypeError, Case(scale_dtype=UInt8))
        assert error.message == "tile.matmul_mx: lhs_scale must hold E8M0, not UInt8"
        unmoved = Case(scale_dtype=UInt8, spaces=(Mem.Left, Mem.Mat, Mem.Right, Mem.Mat))
        assert unmoved.type().dtype is FP32

    @pytest.mark.parametrize(
        ("boxes", "message"),
        [
            (("B", "B"), "lhs_scale must come from a tensor in MX_A_ZZ, not in MX_B_NN"),
            (("A", "A"), "rhs_scale must come from a tensor in MX_B_NN, not in MX_A_ZZ"),
            (("", "B"), "lhs_scale must come from a tensor in MX_A_ZZ, not in ND"),
        ],
    )
    def test_scales_of_the_wrong_layout_are_refused(
        self, boxes: tuple[str, str], message: str
    ) -> None:
        unmoved = (Mem.Left, Mem.Mat, Mem.Right, Mem.Mat)
        error = refusal(IRValueError, Case(boxes=boxes, spaces=unmoved))
        assert error.message == f"tile.matmul_mx: {message}"
        assert error.hint is not None
        assert error.hint.startswith("annotate the ")

    def test_one_tile_cannot_be_both_scales(self) -> None:
        lhs, _, rhs, _ = Case(m=128, k=128, n=128).operands()
        both = tile((128, 4), E8M0, Mem.LeftScale)
        with pytest.raises(IRValueError) as caught:
            create_op_call("tile.matmul_mx", [lhs, both, rhs, both])
        # The second scale is in the wrong buffer too; sharing is told where the buffer is open.
        assert caught.value.message == (
            "tile.matmul_mx: rhs_scale must lie in RightScale, not in LeftScale"
        )
        open_scale = tile((128, 4), E8M0, Mem.Mat, boxes="A")
        with pytest.raises(IRValueError) as caught:
            create_op_call("tile.matmul_mx", [lhs, open_scale, rhs, open_scale])
        assert caught.value.message == (
            "tile.matmul_mx: lhs_scale and rhs_scale must be two tiles, not the same one"
        )


class TestSpaces:
    def test_what_is_in_mat_or_nowhere_is_left_to_the_pass(self) -> None:
        assert Case(spaces=(Mem.Mat,) * 4).type() == Case().type()
        assert Case(spaces=(None, Mem.Mat, None, Mem.Mat)).type() == Case().type()
        assert Case(spaces=(Mem.Vec, Mem.Mat, Mem.Vec, Mem.Mat)).type() == Case().type()

    @pytest.mark.parametrize(
        ("spaces", "message"),
        [
            (
                (Mem.Right, Mem.LeftScale, Mem.Right, Mem.RightScale),
                "lhs must lie in Left, not in Right",
            ),
            (
                (Mem.Left, Mem.RightScale, Mem.Right, Mem.RightScale),
                "lhs_scale must lie in LeftScale, not in RightScale",
            ),
            (
                (Mem.Left, Mem.LeftScale, Mem.Acc, Mem.RightScale),
                "rhs must lie in Right, not in Acc",
            ),
        ],
    )
    def test_an_explicit_wrong_place_is_an_error(
        self, spaces: tuple[Mem, ...], message: str
    ) -> None:
        error = refusal(IRValueError, Case(spaces=spaces))
        assert error.message == f"tile.matmul_mx: {message}"
        assert error.hint is not None
        from_acc = Mem.Acc in spaces
        assert error.hint.startswith(
            "pl.move it to pl.Mem.Vec"
            if from_acc
            else "load it to pl.Mem.Mat, and pl.move it from there to pl.Mem."
        )


class TestAccumulator:
    @staticmethod
    def call(acc: Var, case: Case | None = None) -> Any:
        return create_op_call("tile.matmul_mx_acc", [acc, *(case or Case()).operands()]).type

    def test_the_result_has_the_type_of_the_accumulator(self) -> None:
        acc = Var("acc", Case().type())
        assert self.call(acc) == acc.type

    @pytest.mark.parametrize(
        ("acc", "kind", "message"),
        [
            (
                tile((64, 128), DType.Int32, Mem.Acc),
                IRTypeError,
                "acc must hold Float32, not Int32",
            ),
            (
                tile((64, 64), FP32, Mem.Acc),
                IRValueError,
                "acc must be [64, 128], not [64, 64]",
            ),
            (
                tile((64, 128), FP32, Mem.Acc, (50, 128)),
                IRValueError,
                "the valid shape of acc must be [64, 128], not [50, 128]",
            ),
            (
                tile((64, 128), FP32, Mem.Mat),
                IRValueError,
                "acc must lie in Acc, not in Mat",
            ),
        ],
    )
    def test_an_accumulator_that_does_not_fit(
        self, acc: Var, kind: type[UserError], message: str
    ) -> None:
        with pytest.raises(kind) as caught:
            self.call(acc)
        assert caught.value.message == f"tile.matmul_mx_acc: {message}"

    def test_nothing_is_proposed_that_moves_a_tile_into_acc(self) -> None:
        with pytest.raises(IRValueError, match="acc must lie in Acc, not in Mat") as caught:
            self.call(tile((64, 128), FP32, Mem.Mat))
        assert caught.value.hint == (
            "nothing is moved to Acc; begin with a sum that pl.matmul or pl.matmul_mx makes"
        )


class TestBias:
    @staticmethod
    def call(bias: Var, case: Case | None = None) -> Any:
        return create_op_call("tile.matmul_mx_bias", [*(case or Case()).operands(), bias]).type

    @pytest.mark.parametrize("space", [Mem.Bias, Mem.Mat, None])
    def test_a_row_of_float32(self, space: Mem | None) -> None:
        assert self.call(tile((1, 128), FP32, space)) == Case().type()

    @pytest.mark.parametrize(
        ("bias", "kind", "message"),
        [
            (
                tile((1, 128), DType.E4M3, Mem.Bias),
                IRTypeError,
                "bias must hold Float32, not E4M3",
            ),
            (tile((1, 64), FP32, Mem.Bias), IRValueError, "bias must be [1, 128], not [1, 64]"),
            (tile((64, 128), FP32, Mem.Bias), IRValueError, "bias must be [1, 128], not [64, 128]"),
            (
                tile((1, 128), FP32, Mem.Bias, (1, 100)),
                IRValueError,
                "the valid shape of bias must be [1, 128], not [1, 100]",
            ),
            (tile((1, 128), FP32, Mem.Left), IRValueError, "bias must lie in Bias, not in Left"),
        ],
    )
    def test_a_bias_that_does_not_fit(self, bias: Var, kind: type[UserError], message: str) -> None:
        with pytest.raises(kind) as caught:
            self.call(bias)
        assert caught.value.message == f"tile.matmul_mx_bias: {message}"


def test_symbolic_extents_skip_their_checks() -> None:
    n = Var("n", ScalarType(DType.Int32))
    lhs = Var("a", TileType([64, n], E4M3, memory_space=Mem.Left))
    scale = Var("s", TileType([64, 4], E8M0, memory_space=Mem.LeftScale))
    rhs = Var("b", TileType([n, 128], E4M3, memory_space=Mem.Right))
    other = Var("t", TileType([4, 128], E8M0, memory_space=Mem.RightScale))
    type_ = create_op_call("tile.matmul_mx", [lhs, scale, rhs, other]).type
    assert type_ == Case().type()
