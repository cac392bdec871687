"""Type rules of the matmuls without scales and of the products of a row."""

from typing import Any

import pytest

from scalebox.ir.dtypes import BFloat16, DType, Float16, Index
from scalebox.ir.errors import IRTypeError, IRValueError, UserError
from scalebox.ir.expr import ScalarType, Var
from scalebox.ir.ops import create_op_call, get_op, get_op_memory_spec
from scalebox.ir.types import (
    AccPhase,
    CompactMode,
    MemorySpace,
    TensorLayout,
    TileType,
    TileView,
)

Mem = MemorySpace
FP32 = DType.Float32


def tile(*shape: int, dtype: DType = Float16, space: Mem | None = None, valid: Any = None) -> Var:
    return Var("t", TileType(shape, dtype, None, TileView(valid) if valid else None, space))


def made(name: str, *args: Any, **kwargs: Any) -> Any:
    return create_op_call(name, args, kwargs).type


@pytest.mark.parametrize(
    ("lhs", "rhs", "result"),
    [
        (Float16, Float16, FP32),
        (BFloat16, BFloat16, FP32),
        (FP32, FP32, FP32),
        (DType.E4M3, DType.E5M2, FP32),
        (DType.Int8, DType.Int8, DType.Int32),
    ],
)
def test_a_product_lies_in_acc_and_is_wide(lhs: DType, rhs: DType, result: DType) -> None:
    a, b = tile(16, 64, dtype=lhs), tile(64, 48, dtype=rhs)
    wanted = TileType([16, 48], result, None, None, Mem.Acc)
    assert made("tile.matmul", a, b) == wanted
    assert made("tile.matmul_acc", Var("c", wanted), a, b) == wanted
    assert made("tile.matmul_bias", a, b, tile(1, 48, dtype=result)) == wanted
    row = TileType([1, 48], result, None, None, Mem.Acc)
    assert made("tile.gemv", tile(1, 64, dtype=lhs), b) == row


def test_a_product_of_fewer_rows_is_compact() -> None:
    found = made("tile.matmul", tile(32, 64, valid=[17, 50]), tile(64, 32, valid=[50, 9]))
    assert found.tile_view.compact is CompactMode.normal
    assert [dim.value for dim in found.valid_shape] == [17, 9]


def test_signatures_and_memories() -> None:
    assert get_op("tile.matmul_acc").signature == "tile.matmul_acc(acc, lhs, rhs, init_cond=…)"
    assert get_op("tile.gemv").signature == "tile.gemv(lhs, rhs, acc_phase=unspecified)"
    assert get_op_memory_spec("tile.gemv_mx_bias")["input_constraints"] == [
        [Mem.Left], [Mem.LeftScale], [Mem.Right], [Mem.RightScale], [Mem.Bias],
    ]  # fmt: skip


ACC = Var("c", TileType([16, 32], FP32, None, None, Mem.Acc))


@pytest.mark.parametrize(
    ("kind", "name", "args", "message"),
    [
        (
            IRTypeError,
            "tile.matmul",
            (tile(16, 64), tile(64, 32, dtype=BFloat16)),
            "lhs and rhs must be both from one of {Float16}, {BFloat16}, {Float32}, {E4M3, E5M2}, "
            "{Int8}, not Float16 and BFloat16",
        ),
        (
            IRTypeError,
            "tile.matmul",
            (tile(16, 64, dtype=DType.E2M1), tile(64, 32, dtype=DType.E2M1)),
            "lhs and rhs must be both from one of {Float16}, {BFloat16}, {Float32}, {E4M3, E5M2}, "
            "{Int8}, not E2M1 and E2M1",
        ),
        (
            IRValueError,
            "tile.matmul",
            (tile(16, 24), tile(24, 32)),
            "the physical K must be a multiple of 16, not 24",
        ),
        (
            IRValueError,
            "tile.matmul",
            (tile(15, 64), tile(64, 32)),
            "the physical M must be a multiple of 16, not 15",
        ),
        (
            IRValueError,
            "tile.matmul",
            (tile(16, 64), tile(32, 32)),
            "the physical K must be the same on both sides, but lhs has 64 and rhs has 32",
        ),
        (
            IRValueError,
            "tile.matmul",
            (tile(16, 64, valid=[16, 50]), tile(64, 32)),
            "the valid K must be the same on both sides, but lhs has 50 and rhs has 64",
        ),
        (
            IRValueError,
            "tile.matmul",
            (tile(16, 64, space=Mem.Right), tile(64, 32)),
            "lhs must lie in Left, not in Right",
        ),
        (
            IRValueError,
            "tile.matmul_acc",
            (ACC, tile(32, 64), tile(64, 32)),
            "acc must be [32, 32], not [16, 32]",
        ),
        (
            IRTypeError,
            "tile.matmul_acc",
            (ACC, tile(16, 64, dtype=DType.Int8), tile(64, 32, dtype=DType.Int8)),
            "acc must hold Int32, not Float32",
        ),
        (
            IRTypeError,
            "tile.matmul_acc",
            (ACC, tile(16, 64), tile(64, 32), Var("k", ScalarType(Index))),
            "init_cond must be a comparison, of Bool, not a scalar of Index",
        ),
        (
            IRTypeError,
            "tile.matmul_bias",
            (tile(16, 64), tile(64, 32), tile(1, 32)),
            "bias must hold Float32, not Float16",
        ),
        (
            IRValueError,
            "tile.gemv",
            (tile(16, 64), tile(64, 32)),
            "lhs must be a row [1, K], not [16, 64]",
        ),
    ],
)
def test_what_the_cube_does_not_multiply(
    kind: type[UserError], name: str, args: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(kind) as caught:
        create_op_call(name, args)
    assert caught.value.message == f"{name}: {message}"


def test_a_phase_is_a_word_or_a_member_of_its_enumeration() -> None:
    for phase in AccPhase:
        word, member = (
            create_op_call("tile.gemv", [tile(1, 64), tile(64, 32)], {"acc_phase": each})
            for each in (phase.value, phase)
        )
        assert word.kwargs == member.kwargs


def test_a_phase_has_a_name() -> None:
    with pytest.raises(IRValueError) as caught:
        made("tile.gemv", tile(1, 64), tile(64, 32), acc_phase="first")
    assert caught.value.message == (
        "tile.gemv: acc_phase must be one of 'unspecified', 'partial', 'final', not 'first'"
    )


class TestBlockScaledRows:
    def scales(self, *shape: int, layout: TensorLayout | None = None) -> Var:
        from scalebox.ir.types import SCALE_ARRANGEMENT

        view = None
        if layout is not None:
            blayout, slayout, fractal = SCALE_ARRANGEMENT[layout]
            view = TileView(None, None, None, blayout, slayout, fractal)
        return Var("s", TileType(shape, DType.E8M0, None, view, Mem.Mat))

    def test_the_scales_of_the_row_are_a_plain_row(self) -> None:
        a, b = tile(1, 128, dtype=DType.E4M3), tile(128, 32, dtype=DType.E4M3)
        right = self.scales(4, 32, layout=TensorLayout.MX_B_NN)
        found = made("tile.gemv_mx", a, self.scales(1, 4), b, right)
        assert found == TileType([1, 32], FP32, None, None, Mem.Acc)
        moved = made("tile.move", self.scales(1, 4), target_memory=Mem.LeftScale)
        assert moved == TileType([1, 4], DType.E8M0, None, None, Mem.LeftScale)
        with pytest.raises(IRValueError, match="must come from a tensor in MX_B_NN"):
            made("tile.move", self.scales(1, 4), target_memory=Mem.RightScale)

    def test_a_matrix_is_not_a_row(self) -> None:
        a, b = tile(16, 128, dtype=DType.E4M3), tile(128, 32, dtype=DType.E4M3)
        left = self.scales(16, 4, layout=TensorLayout.MX_A_ZZ)
        right = self.scales(4, 32, layout=TensorLayout.MX_B_NN)
        with pytest.raises(IRValueError, match=r"lhs must be a row \[1, K\], not \[16, 128\]"):
            made("tile.gemv_mx", a, left, b, right)
