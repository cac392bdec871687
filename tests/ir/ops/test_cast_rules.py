"""The cast of a tile: its type rule, and how kernels write it."""

from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir import numerics
from scalebox.ir.cast_mode import CastMode
from scalebox.ir.core import Program
from scalebox.ir.dtypes import BFloat16, DType, Int4
from scalebox.ir.errors import IRTypeError, IRValueError, UserError
from scalebox.ir.expr import Var
from scalebox.ir.ops import create_op_call, get_op, get_op_memory_spec
from scalebox.ir.passes import default_pipeline
from scalebox.ir.printer import python_print
from scalebox.ir.structural import first_difference
from scalebox.ir.types import MemorySpace, TensorLayout, TensorType, TileType, TileView

Mem = MemorySpace
FP32, FP4, FP8 = DType.Float32, DType.E2M1, DType.E4M3


def tile(shape: Any, dtype: DType = FP32, space: Mem | None = Mem.Vec, valid: Any = None) -> Var:
    return Var("t", TileType(shape, dtype, None, TileView(valid) if valid else None, space))


def cast(source: Var, target: DType, **kwargs: Any) -> TileType:
    made = create_op_call("tile.cast", [source], {"target_type": target, **kwargs}).type
    assert isinstance(made, TileType)
    return made


class TestRule:
    def test_a_cast_keeps_shape_and_valid_shape_and_lies_in_vec(self) -> None:
        assert cast(tile([16, 64]), FP8) == TileType([16, 64], FP8, memory_space=Mem.Vec)
        assert cast(tile([2, 16, 64], space=None), FP8).memory_space is Mem.Vec
        view = TileView([10, 30])
        partial = cast(tile([16, 64], valid=[10, 30]), BFloat16)
        assert partial == TileType([16, 64], BFloat16, None, view, Mem.Vec)

    def test_the_default_rounds_halves_away_and_is_not_stored(self) -> None:
        call = create_op_call("tile.cast", [tile([16, 64])], {"target_type": FP8, "mode": "round"})
        assert dict(call.kwargs) == {"target_type": FP8}
        assert get_op("tile.cast").attribute(call.kwargs, "mode") is CastMode.round
        assert get_op("tile.cast").signature == "tile.cast(tile, target_type, mode=round)"
        assert get_op_memory_spec("tile.cast") == {
            "output_memory": Mem.Vec,
            "input_constraints": [[Mem.Vec]],
        }

    @pytest.mark.parametrize("given", ["floor", 3, CastMode.floor])
    def test_a_mode_is_written_by_name_or_number(self, given: object) -> None:
        call = create_op_call("tile.cast", [tile([16, 64])], {"target_type": FP8, "mode": given})
        assert call.kwargs["mode"] is CastMode.floor

    @pytest.mark.parametrize(
        ("kind", "source", "target", "message"),
        [
            (IRTypeError, tile([16, 64]), DType.E8M0, "target_type E8M0 cannot be cast"),
            (IRTypeError, tile([16, 64]), DType.MXFP4, "target_type MXFP4 cannot be cast"),
            (IRTypeError, tile([16, 2], DType.E8M0), FP32, "a tile of E8M0 cannot be cast"),
            (
                IRValueError,
                tile([16, 64]),
                FP32,
                "target_type must be another dtype than the tile's, not Float32 again",
            ),
            (
                IRValueError,
                tile([16, 64], space=Mem.Mat),
                FP8,
                "a tile must lie in Vec to be cast, where the vector core works, not in Mat",
            ),
            (
                IRValueError,
                tile([16, 63]),
                FP4,
                "the last dimension of E2M1, which lies two in a byte, must be even, not 63 in [16, 63]",
            ),
        ],
    )
    def test_what_cannot_be_cast_is_refused(
        self, kind: type[UserError], source: Var, target: DType, message: str
    ) -> None:
        with pytest.raises(kind) as caught:
            cast(source, target)
        assert caught.value.message == f"tile.cast: {message}"

    def test_what_the_cube_made_is_cast_once_it_is_in_vec(self) -> None:
        assert cast(tile([16, 64], space=Mem.Acc), BFloat16).memory_space is Mem.Vec

    def test_a_tensor_is_cast_as_a_whole(self) -> None:
        given = Var("g", TensorType([3, 5, 64], FP32))
        made = create_op_call("tensor.cast", [given], {"target_type": FP8, "mode": "rint"})
        assert made.type == TensorType([3, 5, 64], FP8)
        with pytest.raises(
            IRValueError, match=r"another dtype than the tensor's, not Float32 again"
        ):
            create_op_call("tensor.cast", [given], {"target_type": FP32})
        boxed = Var("g", TensorType([16, 64], FP32, None, TensorLayout.NZ))
        with pytest.raises(
            IRValueError, match="must lie row by row or column by column, not in NZ"
        ):
            create_op_call("tensor.cast", [boxed], {"target_type": FP8})

    def test_int4_can_be_cast(self) -> None:
        assert cast(tile([16, 64]), Int4).dtype is Int4


TEXT = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[16, 64], pl.FP32], b: pl.Out[pl.Tensor[[16, 64], pl.INT8]]):
        t = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        b = pl.store({cast}, [0, 0], b)
        return b
"""


def kernel(cast: str) -> Program:
    parsed = pl.parse(TEXT.format(cast=cast))
    assert isinstance(parsed, Program)
    return parsed


class TestKernels:
    @pytest.mark.parametrize(
        "written",
        [
            'pl.cast(t, pl.INT8, mode="floor")',
            "pl.cast(t, pl.INT8, 3)",
            'pl.cast(t, target_type=pl.INT8, mode="floor")',
            "pl.tile.cast(t, pl.INT8, mode=3)",
        ],
    )
    def test_a_kernel_writes_it_in_short_or_in_full(self, written: str) -> None:
        made = kernel(written)
        text = python_print(made)
        assert 'pl.tile.cast(t, target_type=pl.INT8, mode="floor")' in text
        again = pl.parse(text)
        assert isinstance(again, Program)
        assert first_difference(made, again) is None
        x = np.linspace(-200, 200, 1024).astype(np.float32).reshape(16, 64)
        found = scalebox.interpret(made, {"a": x})["b"]
        assert (found == np.clip(np.floor(x), -128, 127)).all()

    def test_an_orchestration_casts_whole_tensors(self) -> None:
        text = TEXT.replace("InCore", "Orchestration")
        text = text.replace("t = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)", "t = a")
        text = text.replace("b = pl.store({cast}, [0, 0], b)", "b = pl.assemble(b, {cast}, [0, 0])")
        made = pl.parse(text.format(cast='pl.cast(t, pl.INT8, mode="ceil")'))
        assert isinstance(made, Program)
        again = pl.parse(python_print(made))
        assert isinstance(again, Program)
        assert first_difference(made, again) is None
        x = np.linspace(-200, 200, 1024).astype(np.float32).reshape(16, 64)
        found = scalebox.interpret(made, {"a": x})["b"]
        assert (found == np.clip(np.ceil(x), -128, 127)).all()

    def test_a_mode_that_is_none_is_told_with_all_that_are(self) -> None:
        with pytest.raises(UserError) as caught:
            kernel('pl.cast(t, pl.INT8, mode="up")')
        assert caught.value.message == (
            "pl operation 'cast': mode must be one of none (0), rint (1), round (2), floor (3), "
            "ceil (4), trunc (5), odd (6), not 'up'"
        )

    def test_a_machine_makes_the_same_of_it(self) -> None:
        made = kernel('pl.cast(t, pl.INT8, mode="ceil")')
        x = np.linspace(-200, 200, 1024).astype(np.float32).reshape(16, 64)
        found = scalebox.run(made, {"a": x}, timing=False).outputs["b"]
        assert (found == scalebox.interpret(made, {"a": x})["b"]).all()

    def test_fp4_elements_are_multiplied_after_a_cast_to_fp8(self) -> None:
        text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 64], pl.{dtype}],
        sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        {load}
        x = pl.move(t, target_memory=pl.Mem.Left)
        y = pl.load(b, [0, 0], [64, 32])
        z = pl.matmul_mx(x, pl.load(sa, [0, 0], [16, 2]), y, pl.load(sb, [0, 0], [2, 32]))
        c = pl.store(z, [0, 0], c)
        return c
"""
        by_cast = (
            "t = pl.move(pl.cast(pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec), "
            "pl.FP8E4M3FN), target_memory=pl.Mem.Mat)"
        )
        plain = "t = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)"
        four, eight = (
            pl.parse(text.format(dtype=dtype, load=load))
            for dtype, load in (("FP4", by_cast), ("FP8E4M3FN", plain))
        )
        assert isinstance(four, Program)
        assert isinstance(eight, Program)
        rng = np.random.default_rng(30)
        codes = rng.integers(0, 16, (16, 64)).astype(np.uint8)
        given = {
            "sa": rng.integers(120, 135, (16, 2)).astype(np.uint8),
            "b": numerics.encode(rng.standard_normal((64, 32)), FP8),
            "sb": rng.integers(120, 135, (2, 32)).astype(np.uint8),
        }
        values = numerics.encode(numerics.decode(codes, FP4), FP8)
        wanted = scalebox.interpret(eight, {**given, "a": values})["c"]
        made = four
        assert (scalebox.interpret(made, {**given, "a": codes})["c"] == wanted).all()
        for each in default_pipeline():
            made = each(made)
            found = scalebox.interpret(made, {**given, "a": codes})["c"]
            assert (found == wanted).all(), each.name
