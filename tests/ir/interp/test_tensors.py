"""Loads, stores, views and calls on tensors in global memory."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.interp import interpret_program
from scalebox.ir.numerics.scales import pack_scales_a
from scalebox.ir.ops.checks import LOADED_LESS
from scalebox.ir.passes import default_pipeline

Source = Callable[[str], Program]


def program(text: str) -> Program:
    done = pl.parse("@pl.program\nclass P:\n" + text.strip("\n") + "\n")
    assert isinstance(done, Program)
    return done


COPY = """
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[{rows}, {cols}], pl.{dtype}{layout}], i: pl.Scalar[pl.INDEX],
             y: pl.Out[pl.Tensor[[16, 16], pl.{dtype}]]):
        t = pl.load(x, [i, 0], [16, 16]{more})
        y = pl.store(t, [0, 0], y)
        return y
"""


def copy(
    rows: int = 40, cols: int = 16, dtype: str = "FP32", layout: str = "", more: str = ""
) -> Program:
    return program(COPY.format(rows=rows, cols=cols, dtype=dtype, layout=layout, more=more))


class TestLoadsAndStores:
    def test_a_window_is_copied(self) -> None:
        x = np.arange(640, dtype=np.float32).reshape(40, 16)
        assert (interpret_program(copy(), {"x": x, "i": 7})["y"] == x[7:23]).all()

    def test_bits_are_copied_as_they_are(self) -> None:
        x = np.random.default_rng(0).integers(0, 256, (40, 16), dtype=np.uint8)
        y = interpret_program(copy(dtype="FP8E4M3FN"), {"x": x, "i": 7})["y"]
        assert y.dtype == ml_dtypes.float8_e4m3fn
        assert (y.view(np.uint8) == x[7:23]).all()

    @pytest.mark.parametrize("i", [-1, -16, 25, 40, 2**40])
    def test_a_window_beyond_the_tensor_is_told_with_its_place(self, i: int) -> None:
        with pytest.raises(IRValueError) as caught:
            interpret_program(copy(), {"x": np.zeros((40, 16), np.float32), "i": i})
        assert caught.value.message == (
            f"tile.load: the window must lie within the tensor, but takes 16 elements from offset "
            f"{i} on axis 0, which has 40"
        )
        assert caught.value.span is not None
        assert caught.value.hint == (LOADED_LESS if i >= 0 else None)

    def test_a_column_major_tensor_is_read_in_logical_order(self) -> None:
        layout = ", pl.TensorView(stride=[1, 40], layout=pl.TensorLayout.DN)"
        x = np.arange(640, dtype=np.float32).reshape(40, 16)
        y = interpret_program(copy(layout=layout), {"x": x, "i": 3})["y"]
        assert (y == x[3:19]).all()

    def test_clamping_leaves_the_rest_of_the_output_alone(self) -> None:
        x = np.arange(1, 641, dtype=np.float32).reshape(40, 16)
        y = interpret_program(copy(more=", clamp=True"), {"x": x, "i": 30})["y"]
        assert (y[:10] == x[30:]).all()
        assert (y[10:] == 0).all()

    @pytest.mark.parametrize("i", [40, 1000])
    def test_clamping_beyond_the_tensor_copies_nothing(self, i: int) -> None:
        x = np.ones((40, 16), np.float32)
        y = interpret_program(copy(more=", clamp=True"), {"x": x, "i": i})["y"]
        assert (y == 0).all()

    def test_a_clamped_load_still_begins_within_the_tensor(self) -> None:
        x = np.ones((40, 16), np.float32)
        with pytest.raises(IRValueError, match="takes 16 elements from offset -1 on axis 0"):
            interpret_program(copy(more=", clamp=True"), {"x": x, "i": -1})

    def test_a_valid_shape_stores_only_what_is_valid(self) -> None:
        x = np.arange(1, 641, dtype=np.float32).reshape(40, 16)
        y = interpret_program(copy(more=", [16, 5]"), {"x": x, "i": 0})["y"]
        assert (y[:, :5] == x[:16, :5]).all()
        assert (y[:, 5:] == 0).all()

    def test_a_store_beyond_the_tensor_is_told(self) -> None:
        text = """
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[16, 16], pl.FP32], i: pl.Scalar[pl.INDEX],
          y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        y = pl.store(pl.load(x, [0, 0], [16, 16]), [0, i], y)
        return y
"""
        x = np.ones((16, 16), np.float32)
        assert interpret_program(program(text), {"x": x, "i": 16})["y"][:, 16:].all()
        with pytest.raises(IRValueError, match="takes 16 elements from offset 17 on axis 1"):
            interpret_program(program(text), {"x": x, "i": 17})

    def test_a_store_may_stand_as_a_statement(self) -> None:
        text = """
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], y)
"""
        x = np.ones((16, 16), np.float32)
        assert list(interpret_program(program(text), {"x": x})) == ["y"]
        assert interpret_program(program(text), {"x": x})["y"].all()


class TestScales:
    """A tile of scales reads the boxes that its logical offsets name."""

    TEXT = """
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, s: pl.Tensor[[64, 8], pl.FP8E8M0, pl.MX_A_ZZ],
          a: pl.Tensor[[32, 64], pl.FP8E4M3FN], b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
          sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN], c: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        for i in pl.range(16, 32, 16):
            q = pl.load(s, [i, 4], [32, 2])
            acc = pl.matmul_mx(pl.load(a, [0, 0], [32, 64]), q, pl.load(b, [0, 0], [64, 32]),
                               pl.load(sb, [0, 0], [2, 32]))
            c = pl.store(acc, [0, 0], c)
        return c
"""

    def test_every_scale_of_the_window_is_found_before_and_after_the_passes(self) -> None:
        scales = np.arange(512, dtype=np.int64).reshape(64, 8) % 90 + 80
        a = np.zeros((32, 64), np.uint8)
        a[:, 0] = a[:, 32] = 0x38
        b = np.zeros((64, 32), np.uint8)
        b[0, 0] = b[32, 1] = 0x38
        inputs = {
            "s": pack_scales_a(scales.astype(np.uint8)),
            "a": a,
            "b": b,
            "sb": np.full(64, 127, np.uint8),
        }
        wanted = 2.0 ** (scales[16:48, 4:6] - 127)
        done = program(self.TEXT)
        found = [interpret_program(done, inputs)["c"]]
        for each in default_pipeline():
            done = each(done)
            found.append(interpret_program(done, inputs)["c"])
        assert all((c[:, :2] == wanted).all() for c in found)
        assert all((c[:, 2:] == 0).all() for c in found)


class TestOrchestration:
    TILES = """
    @pl.function(type=pl.FunctionType.InCore)
    def add_row(self, x: pl.Tensor[[64, 16], pl.FP32], i: pl.Scalar[pl.INDEX],
                y: pl.Out[pl.Tensor[[64, 16], pl.FP32]]):
        y = pl.store(pl.load(x, [i, 0], [16, 16]), [i, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 16], pl.FP32], n: pl.Scalar[pl.INDEX],
             y: pl.Out[pl.Tensor[[64, 16], pl.FP32]]):
        for i in pl.range(n):
            y = self.add_row(x, i * 16, y)
        return y
"""

    def test_a_loop_of_calls_fills_the_output_tile_by_tile(self) -> None:
        x = np.arange(1, 1025, dtype=np.float32).reshape(64, 16)
        for n in range(5):
            y = interpret_program(program(self.TILES), {"x": x, "n": n})["y"]
            assert (y[: 16 * n] == x[: 16 * n]).all()
            assert (y[16 * n :] == 0).all()

    def test_the_passes_change_nothing(self) -> None:
        x = np.arange(1, 1025, dtype=np.float32).reshape(64, 16)
        done = program(self.TILES)
        for each in default_pipeline().passes[:3]:
            done = each(done)
            assert (interpret_program(done, {"x": x, "n": 4})["y"] == x).all()

    FRESH = """
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        y = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32]):
        t = pl.tensor.create([16, 16], pl.FP32)
        {body}
"""

    def test_a_fresh_result_has_the_name_it_was_returned_under(self) -> None:
        x = np.ones((16, 16), np.float32)
        for body, name in (
            ("t = self.copy(x, t)\n        return t", "t"),
            ("r = self.copy(x, t)\n        return r", "r"),
            ("return self.copy(x, t)", "out"),
        ):
            done = program(self.FRESH.format(body=body))
            for each in (None, *default_pipeline().passes[:3]):
                done = done if each is None else each(done)
                outputs = interpret_program(done, {"x": x})
                assert list(outputs) == [name]
                assert (outputs[name] == x).all()

    def test_a_view_shares_its_bytes(self) -> None:
        text = """
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        y = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4, 64], pl.FP32], y: pl.Out[pl.Tensor[[2, 128], pl.FP32]]):
        u = pl.tensor.view(x, [16, 16])
        v = pl.tensor.view(y, [16, 16])
        w = self.copy(u, v)
        return y
"""
        x = np.arange(256, dtype=np.float32).reshape(4, 64)
        outputs = interpret_program(program(text), {"x": x})
        assert list(outputs) == ["y"]
        assert (outputs["y"] == x.reshape(2, 128)).all()

    def test_plain_bytes_viewed_as_boxes_are_boxes(self) -> None:
        text = """
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, s: pl.Tensor[[1, 64], pl.FP8E8M0], a: pl.Tensor[[32, 64], pl.FP8E4M3FN],
          b: pl.Tensor[[64, 32], pl.FP8E4M3FN], sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
          c: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        sa = pl.tensor.view(s, [32, 2], layout=pl.MX_A_ZZ)
        acc = pl.matmul_mx(pl.load(a, [0, 0], [32, 64]), pl.load(sa, [0, 0], [32, 2]),
                           pl.load(b, [0, 0], [64, 32]), pl.load(sb, [0, 0], [2, 32]))
        c = pl.store(acc, [0, 0], c)
        return c
"""
        a, b = np.zeros((32, 64), np.uint8), np.zeros((64, 32), np.uint8)
        a[:, 0] = b[0, 0] = 0x38
        scales = np.arange(64, dtype=np.uint8) + 100
        inputs = {"s": scales[None], "a": a, "b": b, "sb": np.full(64, 127, np.uint8)}
        c = interpret_program(program(text), inputs)["c"]
        rows = np.arange(32)
        wanted = 2.0 ** (scales[rows // 16 * 32 + rows % 16 * 2].astype(float) - 127)
        assert (c[:, 0] == wanted).all()

    def test_a_tensor_of_another_type_is_no_argument(self) -> None:
        done = program(self.TILES)
        from scalebox.ir.core import Function
        from scalebox.ir.dtypes import DType
        from scalebox.ir.expr import Var, replace
        from scalebox.ir.types import TensorType

        narrow = done.get_function("add_row")
        assert isinstance(narrow, Function)
        x = Var("x", TensorType([64, 16], DType.Int32))
        changed = replace(narrow, params=(x, *narrow.params[1:]))
        other = Program([changed, *(f for f in done.functions.values() if f is not narrow)])
        with pytest.raises(IRTypeError) as caught:
            interpret_program(other, {"x": np.zeros((64, 16), np.float32), "n": 1})
        assert caught.value.message == (
            "x of add_row must be Int32 [64, 16] in ND, not Float32 [64, 16] in ND"
        )
