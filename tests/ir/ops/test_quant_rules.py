"""Type rules of quantising: the published shapes, dtypes and refusals of the device."""

from typing import Any

import pytest

from scalebox.ir.dtypes import BFloat16, DType, Float16, Index
from scalebox.ir.errors import IRTypeError, IRValueError, UserError
from scalebox.ir.expr import Call, ScalarType, Type, Var
from scalebox.ir.op import tensor, tile
from scalebox.ir.ops import create_op_call
from scalebox.ir.types import (
    MemorySpace,
    TensorLayout,
    TensorType,
    TileLayout,
    TileType,
    TileView,
    TupleType,
    constant_dims,
)

FP32, E4M3, E2M1, E8M0 = DType.Float32, DType.E4M3, DType.E2M1, DType.E8M0
ROW, COL = TileLayout.row_major, TileLayout.col_major
A, B = TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN
AXIS = {A: 1, B: 0}


def source(shape: tuple[Any, ...], dtype: DType = FP32, space: Any = MemorySpace.Vec) -> Var:
    return Var("x", TileType(shape, dtype, memory_space=space))


def parts(call: Call) -> tuple[Type, ...]:
    assert isinstance(call.type, TupleType)
    return call.type.types


def shape(type_: Type) -> tuple[int, ...]:
    assert isinstance(type_, TileType | TensorType)
    return constant_dims(type_.shape) or ()


# Source shape, source dtype, layout, dtype, quantised shape, shape of the scales.
RIGHT = [
    ((16, 64), FP32, A, E4M3, (16, 64), (16, 2)),
    ((32, 64), FP32, B, E4M3, (64, 32), (2, 32)),
    ((16, 64), BFloat16, A, E2M1, (16, 64), (16, 2)),
    ((64, 64), Float16, B, E2M1, (64, 64), (2, 64)),
    ((32, 128), BFloat16, B, E2M1, (128, 32), (4, 32)),
    ((48, 192), Float16, A, E4M3, (48, 192), (48, 6)),
]


@pytest.mark.parametrize(("given", "dtype", "layout", "target", "elements", "scales"), RIGHT)
def test_tiles(
    given: tuple[int, int],
    dtype: DType,
    layout: TensorLayout,
    target: DType,
    elements: tuple[int, int],
    scales: tuple[int, int],
) -> None:
    call = tile.quant_mx(source(given, dtype), group_axis=AXIS[layout], dtype=target)
    quant, scale = parts(call)
    assert quant == TileType(elements, target, memory_space=MemorySpace.Vec)
    assert isinstance(quant, TileType)
    assert quant.get_effective_tile_view().arrangement == (ROW, TileLayout.none_box, 512)
    assert isinstance(scale, TileType)
    assert (shape(scale), scale.dtype, scale.memory_space) == (scales, E8M0, MemorySpace.Vec)
    side = ROW if layout is A else COL
    assert scale.get_effective_tile_view().arrangement == (side, side, 32)


@pytest.mark.parametrize(("given", "dtype", "layout", "target", "elements", "scales"), RIGHT)
def test_tensors(
    given: tuple[int, int],
    dtype: DType,
    layout: TensorLayout,
    target: DType,
    elements: tuple[int, int],
    scales: tuple[int, int],
) -> None:
    given_tensor = Var("x", TensorType(given, dtype))
    quant, scale = parts(tensor.quant_mx(given_tensor, group_axis=AXIS[layout], dtype=target))
    assert quant == TensorType(elements, target)
    assert scale == TensorType(scales, E8M0, None, layout)


@pytest.mark.parametrize("layout", [A, B])
def test_the_older_spelling_is_the_same_call(layout: TensorLayout) -> None:
    older = tile.quant_mx(source((32, 64)), layout=layout)
    newer = tile.quant_mx(source((32, 64)), group_axis=AXIS[layout])
    assert dict(older.kwargs) == dict(newer.kwargs) == {"group_axis": AXIS[layout]}
    raw = create_op_call("tile.quant_mx", [source((32, 64))], {"layout": layout})
    assert raw.type == newer.type


def test_a_source_that_is_not_placed_yet() -> None:
    quant, _ = parts(tile.quant_mx(source((16, 64), space=None), group_axis=1))
    assert isinstance(quant, TileType)
    assert quant.memory_space is MemorySpace.Vec


@pytest.mark.parametrize(
    ("given", "kwargs", "kind", "sentence"),
    [
        (
            source((16, 64)),
            {"group_axis": 1, "dtype": E2M1},
            IRTypeError,
            "src must be one of BFloat16, Float16 to become E2M1, not Float32",
        ),
        (
            source((16, 64), E4M3),
            {"group_axis": 1},
            IRTypeError,
            "src must be one of Float32, BFloat16, Float16 to become E4M3, not E4M3",
        ),
        (
            source((16, 64)),
            {"group_axis": 1, "dtype": DType.E5M2},
            IRTypeError,
            "dtype must be E4M3 or E2M1, not E5M2",
        ),
        (
            source((16, 64), Float16),
            {"group_axis": 0},
            IRValueError,
            "N must be a multiple of 32, not 16",
        ),
        (source((33, 64)), {"group_axis": 0}, IRValueError, "N must be a multiple of 32, not 33"),
        (
            source((32, 64), Float16),
            {"group_axis": 0, "dtype": E2M1},
            IRValueError,
            "N must be a multiple of 64, not 32",
        ),
        (source((16, 32)), {"group_axis": 1}, IRValueError, "K must be a multiple of 64, not 32"),
        (source((24, 64)), {"group_axis": 1}, IRValueError, "M must be a multiple of 16, not 24"),
        (source((16, 2, 64)), {"group_axis": 1}, IRValueError, "src must have rank 2, not 3"),
        (
            source((Var("m", ScalarType(Index)), 64)),
            {"group_axis": 1},
            IRValueError,
            "src must have constant dimensions, not [m, 64]",
        ),
        (
            Var("x", TileType([32, 64], FP32, None, TileView([16, 64]), MemorySpace.Vec)),
            {"group_axis": 1},
            IRValueError,
            "src must be valid as a whole, not only [16, 64] of [32, 64]",
        ),
        (
            source((16, 64), space=MemorySpace.Mat),
            {"group_axis": 1},
            IRValueError,
            "src must lie in Vec, not in Mat",
        ),
        (source((16, 64)), {}, IRValueError, "must be given its group_axis"),
        (
            source((16, 64)),
            {"group_axis": 2},
            IRValueError,
            "group_axis must be 0 or 1, not 2",
        ),
        (
            source((16, 64)),
            {"layout": TensorLayout.ND},
            IRValueError,
            "layout must be MX_A_ZZ or MX_B_NN, not ND",
        ),
        (
            source((32, 64)),
            {"layout": A, "group_axis": 1},
            IRValueError,
            "must be given group_axis or layout, not both",
        ),
        (
            source((16, 64)),
            {"group_axis": 1, "rule": "ceil"},
            IRValueError,
            "rule must be 'floor' or 'nv', the device's two, not 'ceil'",
        ),
    ],
)
def test_refusals(given: Var, kwargs: dict[str, Any], kind: type[UserError], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        tile.quant_mx(given, **kwargs)
    assert caught.value.message == f"tile.quant_mx: {sentence}"


def test_scales_cannot_be_quantised() -> None:
    scales = Var("s", TensorType([64, 4], E8M0, None, A))
    with pytest.raises(IRValueError, match=r"src must hold numbers, not scales in MX_A_ZZ$"):
        tensor.quant_mx(scales, group_axis=1)
