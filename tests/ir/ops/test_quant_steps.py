"""The steps of a quantisation: their types, and that together they mean what it means."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import scalebox
from scalebox import pl
from scalebox.ir.core import Program
from scalebox.ir.dtypes import DType, UInt8
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.expr import Var
from scalebox.ir.ops import create_op_call
from scalebox.ir.passes import default_pipeline
from scalebox.ir.types import MemorySpace, TensorLayout, TileType, TileView, constant_dims


def tile(*shape: int, dtype: DType = DType.Float32, valid: tuple[int, ...] = ()) -> Var:
    return Var("x", TileType(shape, dtype, None, TileView(valid or shape), MemorySpace.Vec))


def test_scale_codes_have_rows_of_whole_units_of_which_the_groups_are_valid() -> None:
    made = create_op_call("tile.quant_scales", [tile(48, 192)], {}).type
    assert isinstance(made, TileType)
    assert made.dtype is UInt8
    assert constant_dims(made.shape) == (48, 32)
    assert constant_dims(made.valid_shape) == (48, 6)
    wide = create_op_call("tile.quant_scales", [tile(16, 64 * 17)], {}).type
    assert isinstance(wide, TileType)
    assert constant_dims(wide.shape) == (16, 64)


def test_elements_have_the_shape_of_the_source() -> None:
    codes = tile(48, 32, dtype=UInt8, valid=(48, 6))
    made = create_op_call("tile.quant_elements", [tile(48, 192), codes], {}).type
    assert made == TileType((48, 192), DType.E4M3, None, None, MemorySpace.Vec)


def test_elements_need_the_scales_of_their_source() -> None:
    with pytest.raises(IRTypeError, match="scales must be UInt8 codes of"):
        create_op_call("tile.quant_elements", [tile(48, 192), tile(48, 5, dtype=UInt8)], {})


@pytest.mark.parametrize(
    ("layout", "shape"), [(TensorLayout.MX_A_ZZ, (48, 6)), (TensorLayout.MX_B_NN, (6, 48))]
)
def test_boxes_are_those_of_a_side(layout: TensorLayout, shape: tuple[int, int]) -> None:
    codes = tile(48, 32, dtype=UInt8, valid=(48, 6))
    made = create_op_call("tile.scale_boxes", [codes], {"layout": layout}).type
    assert isinstance(made, TileType)
    assert (constant_dims(made.shape), made.dtype) == (shape, DType.E8M0)
    assert made.get_effective_tile_view().fractal == 32


def test_boxes_are_whole() -> None:
    codes = tile(40, 32, dtype=UInt8, valid=(40, 6))
    with pytest.raises(IRValueError, match="must fill whole boxes of 16 x 2"):
        create_op_call("tile.scale_boxes", [codes], {"layout": TensorLayout.MX_A_ZZ})
    whole = tile(48, 32, dtype=UInt8, valid=(48, 6))
    with pytest.raises(IRValueError, match="layout must be MX_A_ZZ or MX_B_NN, not ND"):
        create_op_call("tile.scale_boxes", [whole], {"layout": TensorLayout.ND})
    with pytest.raises(IRTypeError, match="rows and columns of UInt8"):
        create_op_call("tile.scale_boxes", [tile(48, 6)], {"layout": TensorLayout.MX_A_ZZ})


SOURCE = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 128], pl.BF16], q: pl.Out[pl.Tensor[{shape}, pl.{dtype}]],
          s: pl.Out[pl.Tensor[[1, 256], pl.FP8E8M0]]):
        t = pl.load(x, [0, 0], [64, 128], target_memory=pl.Mem.Vec)
        e, c = pl.quant_mx(t, group_axis={axis}, dtype=pl.{dtype}, rule="{rule}")
        q = pl.store(e, [0, 0], q)
        s = pl.store(c, [0, 0], s, [1, 256])
        return q, s
"""


@pytest.mark.parametrize("rule", ["floor", "nv"])
@pytest.mark.parametrize("dtype", ["FP8E4M3FN", "FP4"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_interpreter_says_the_same_after_every_pass(axis: int, dtype: str, rule: str) -> None:
    shape = [64, 128] if axis else [128, 64]
    made = pl.parse(SOURCE.format(axis=axis, dtype=dtype, rule=rule, shape=shape))
    assert isinstance(made, Program)
    rng = np.random.default_rng(1)
    wide: Any = rng.standard_normal((64, 128)) * np.exp2(rng.integers(-9, 9, (64, 1)))
    x = wide.astype(ml_dtypes.bfloat16)
    x[3, :32], x[4, 40] = 0, np.nan
    wanted = scalebox.interpret(made, {"x": x})
    for each in default_pipeline():
        made = each(made)
        found = scalebox.interpret(made, {"x": x})
        for name, value in wanted.items():
            assert found[name].tobytes() == value.tobytes(), (each.name, name)
