"""Tiles that are made, turned, cut, joined and filled up, and single elements of tiles and tensors."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.ir.errors import IRValueError, UserError
from scalebox.ir.interp import interpret_program

from .one_kernel import kernel, outputs

Array = npt.NDArray[Any]
KINDS: dict[str, Any] = {
    "FP32": np.float32, "FP16": np.float16, "BF16": ml_dtypes.bfloat16, "INT8": np.int8,
    "UINT16": np.uint16, "INT32": np.int32, "UINT8": np.uint8, "UINT32": np.uint32,
    "INT16": np.int16,
}  # fmt: skip


def drawn(*shape: int, dtype: str = "FP32", seed: int = 1) -> Array:
    return np.random.default_rng(seed).integers(0, 100, shape).astype(KINDS[dtype])


def run(
    body: str, a: Array, result: tuple[int, int], dtype: str = "FP32", b: Array | None = None
) -> Array:
    """Return what a kernel stores into `c`, of shape `result`, from `a` and `b`."""
    other = a if b is None else b
    params = ", ".join(
        f"{name}: pl.Tensor[{list(each.shape)}, pl.{dtype}]"
        for name, each in (("a", a), ("b", other))
    )
    params += f", c: pl.Out[pl.Tensor[{list(result)}, pl.{dtype}]]"
    program = kernel(params, f"{body}\nc = pl.store(z, [0, 0], c)\nreturn c")
    return outputs(program, {"a": a, "b": other})["c"]


class TestMakingTiles:
    @pytest.mark.parametrize(
        ("dtype", "value"),
        [("FP32", "0.1"), ("FP16", "-0.1"), ("BF16", "3"), ("INT8", "-7"), ("UINT16", "65535")],
    )
    def test_full_has_one_value(self, dtype: str, value: str) -> None:
        a = drawn(16, 32, dtype=dtype)
        found = run(f"z = pl.full([16, 32], pl.{dtype}, {value})", a, (16, 32), dtype)
        wanted = np.full((16, 32), float(value)).astype(KINDS[dtype])
        assert found.tobytes() == wanted.tobytes()

    def test_full_takes_a_scalar_that_the_run_knows(self) -> None:
        program = kernel(
            "s: pl.Scalar[pl.FP32], c: pl.Out[pl.Tensor[[1, 8], pl.FP32]]",
            "c = pl.store(pl.full([1, 8], pl.FP32, value=s * 2.0), [0, 0], c)\nreturn c",
        )
        assert (outputs(program, {"s": 1.5})["c"] == 3.0).all()

    def test_a_created_tile_is_written_part_by_part(self) -> None:
        a = drawn(16, 32)
        body = """
t = pl.create_tile([16, 64], pl.FP32)
t = pl.assemble(t, pl.load(a, [0, 0], [16, 32]), [0, 32])
z = pl.tile.assemble(t, pl.load(b, [0, 0], [16, 32], valid_shape=[16, 20]), [0, 4])"""
        found = run(body, a, (16, 64), b=-a)
        assert (found[:, 32:] == a).all()
        assert (found[:, 4:24] == -a[:, :20]).all()


class TestOtherShapes:
    @pytest.mark.parametrize(
        ("axes", "turned"), [("0, 1", True), ("-1, -2", True), ("1, 1", False)]
    )
    @pytest.mark.parametrize("dtype", ["FP32", "BF16", "INT8"])
    def test_transpose_exchanges_axes(self, axes: str, turned: bool, dtype: str) -> None:
        a = drawn(16, 48, dtype=dtype)
        body = f"z = pl.transpose(pl.load(a, [0, 0], [16, 48], valid_shape=[9, 40]), {axes})"
        found = run(body, a, (48, 16) if turned else (16, 48), dtype)
        part = a[:9, :40].T if turned else a[:9, :40]
        assert (found[: part.shape[0], : part.shape[1]] == part).all()
        assert not found[part.shape[0] :].any()
        assert not found[:, part.shape[1] :].any()

    def test_reshape_keeps_the_order_of_elements(self) -> None:
        a = drawn(16, 64)
        found = run("z = pl.reshape(pl.load(a, [0, 0], [16, 64]), [32, 32])", a, (32, 32))
        assert (found.reshape(16, 64) == a).all()
        column = run(
            "z = pl.reshape(pl.row_sum(pl.load(a, [0, 0], [16, 64])), [1, 16])", a, (1, 16)
        )
        assert (column[0] == a.sum(axis=1)).all()

    def test_concat_puts_one_to_the_right_of_the_other(self) -> None:
        a, b = drawn(16, 32), drawn(16, 64, seed=2)
        body = """
x = pl.load(a, [0, 0], [16, 32], valid_shape=[9, 32])
z = pl.concat(x, pl.load(b, [0, 0], [16, 64], valid_shape=[9, 50]))"""
        found = run(body, a, (16, 96), b=b)
        assert (found[:9, :82] == np.hstack([a[:9], b[:9, :50]])).all()
        assert not found[9:].any()
        assert not found[:, 82:].any()

    def test_whole_tensors_are_turned_and_joined_too(self) -> None:
        program = kernel(
            "a: pl.Tensor[[2, 3, 4], pl.FP32]",
            """
t = pl.transpose(a, 0, -1)
r = pl.tensor.reshape(a, [6, 4])
out = pl.concat(r, pl.tensor.reshape(t, [6, 4]))
return out""",
            kind="Orchestration",
        )
        a = drawn(2, 3, 4)
        found = outputs(program, {"a": a}, passes=False)["out"]
        turned = np.swapaxes(a, 0, -1).reshape(6, 4)
        assert (found == np.hstack([a.reshape(6, 4), turned])).all()


class TestWindows:
    def test_a_slice_is_valid_as_far_as_the_tile_is(self) -> None:
        a = drawn(32, 64)
        body = """
t = pl.load(a, [0, 0], [32, 64], valid_shape=[20, 50])
z = pl.slice(t, [16, 32], [8, 32])"""
        found = run(body, a, (16, 32))
        assert (found[:12, :18] == a[8:20, 32:50]).all()
        assert not found[12:].any()
        assert not found[:, 18:].any()

    @pytest.mark.parametrize(
        "written",
        [
            "pl.slice(t, [16, 32], [16, 16], [9, 7])",
            "pl.slice(t, [16, 32], [16, 16], valid_shape=[9, 7])",
        ],
    )
    def test_a_slice_may_be_valid_in_less(self, written: str) -> None:
        a = drawn(32, 64)
        found = run(f"t = pl.load(a, [0, 0], [32, 64])\nz = {written}", a, (16, 32))
        assert (found[:9, :7] == a[16:25, 16:23]).all()
        assert found.sum() == a[16:25, 16:23].sum()

    def test_brackets_read_and_write_windows_of_tiles_in_a_loop(self) -> None:
        a = drawn(32, 64)
        body = """
t = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Vec)
for i in pl.range(2):
    t[i * 16 : i * 16 + 16, 0:32] = t[i * 16 : i * 16 + 16, 32:64]
z = pl.adds(t, 0.0)"""
        found = run(body, a, (32, 64))
        assert (found == np.hstack([a[:, 32:], a[:, 32:]])).all()

    @pytest.mark.parametrize(
        "window",
        [
            "pl.load(a, [0, 0], [16, 64], [n, 64])",
            "pl.load(a, [16, 0], [16, 64], [n, 64], clamp=True)",
            "pl.slice(t, [16, 64], [0, 0], [n, 64])",
            "pl.slice(t, [16, 64], [0, 0], [n, 64], pad_value=pl.PadValue.zero)",
            "pl.slice(a, [16, 64], [0, 0], [n, 64], pad_value=pl.PadValue.zero)",
        ],
    )
    def test_more_valid_than_the_window_has_is_found_by_the_run(self, window: str) -> None:
        program = kernel(
            "a: pl.Tensor[[32, 64], pl.FP32], n: pl.Scalar[pl.INDEX], "
            "c: pl.Out[pl.Tensor[[32, 64], pl.FP32]]",
            f"t = pl.load(a, [0, 0], [32, 64])\nz = {window}\n"
            + ("c[0:16, :] = z" if "slice(a" in window else "c = pl.store(z, [0, 0], c)")
            + "\nreturn c",
        )
        a = drawn(32, 64)
        wanted = np.zeros_like(a)
        wanted[:5] = (a[16:] if "clamp" in window else a)[:5]
        assert (interpret_program(program, {"a": a, "n": 5})["c"] == wanted).all()
        for n in (17, -1):
            with pytest.raises(IRValueError, match=rf"valid_shape must be in 0\.\.16 .*, not {n}"):
                interpret_program(program, {"a": a, "n": n})

    def test_a_window_beyond_what_is_valid_is_found_by_the_run(self) -> None:
        program = kernel(
            "a: pl.Tensor[[32, 64], pl.FP32], n: pl.Scalar[pl.INDEX], "
            "c: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
            "t = pl.load(a, [0, 0], [32, 64])\nc = pl.store(t[n : n + 16, :], [0, 0], c)\nreturn c",
        )
        a = drawn(32, 64)
        assert (interpret_program(program, {"a": a, "n": 16})["c"] == a[16:]).all()
        for n in (17, -1):
            with pytest.raises(IRValueError) as caught:
                interpret_program(program, {"a": a, "n": n})
            assert caught.value.message == (
                "tile.slice: the window must lie within the 32 valid elements of axis 0, but takes 16 "
                f"from {n} on"
            )


PADS: dict[str, Any] = {"zero": (0, 0), "max": (math.inf, "max"), "min": (-math.inf, "min")}


class TestValidShapes:
    @pytest.mark.parametrize("pad", PADS)
    @pytest.mark.parametrize("dtype", KINDS)
    def test_fillpad_fills_up_with_what_it_names(self, pad: str, dtype: str) -> None:
        a = drawn(16, 32, dtype=dtype)
        body = f"""
t = pl.load(a, [0, 0], [16, 32], valid_shape=[9, 30])
z = pl.fillpad(t, pl.PadValue.{pad})"""
        found = run(body, a, (16, 32), dtype)
        of_floats, of_integers = PADS[pad]
        fill = of_floats
        if dtype.startswith(("INT", "UINT")):
            fill = getattr(np.iinfo(KINDS[dtype]), of_integers) if of_integers else 0
        wanted = np.full((16, 32), fill).astype(KINDS[dtype])
        wanted[:9, :30] = a[:9, :30]
        assert found.tobytes() == wanted.tobytes()

    def test_fillpad_with_min_leaves_a_maximum_alone(self) -> None:
        a = -drawn(16, 32) - 1
        body = """
t = pl.load(a, [0, 0], [16, 32], valid_shape=[16, 5])
z = pl.row_max(pl.fillpad(t, pad_value=pl.PadValue.min))"""
        found = run(body, a, (16, 1))
        assert (found[:, 0] == a[:, :5].max(axis=1)).all()

    def test_set_validshape_keeps_the_first_rows_and_columns(self) -> None:
        a = drawn(16, 32)
        body = "z = pl.row_sum(pl.set_validshape(pl.load(a, [0, 0], [16, 32]), 3, 20))"
        found = run(body, a, (16, 1))
        assert (found[:3, 0] == a[:3, :20].sum(axis=1)).all()
        assert not found[3:].any()

    def test_the_run_may_say_how_much_is_valid(self) -> None:
        program = kernel(
            "a: pl.Tensor[[16, 32], pl.FP32], n: pl.Scalar[pl.INDEX], "
            "c: pl.Out[pl.Tensor[[1, 32], pl.FP32]]",
            """
t = pl.set_validshape(pl.load(a, [0, 0], [16, 32]), n, 32)
c = pl.store(pl.col_sum(t), [0, 0], c)
return c""",
        )
        a = drawn(16, 32)
        for n in (1, 7, 16):
            assert (outputs(program, {"a": a, "n": n})["c"] == a[:n].sum(axis=0)).all()
        with pytest.raises(
            IRValueError, match=r"rows must be in 0\.\.16, what is valid now, not 17"
        ):
            interpret_program(program, {"a": a, "n": 17})


class TestElements:
    @pytest.mark.parametrize("dtype", ["FP32", "BF16", "INT8", "UINT16"])
    def test_one_element_is_read_and_another_written(self, dtype: str) -> None:
        a = drawn(16, 32, dtype=dtype)
        body = """
t = pl.load(a, [0, 0], [16, 32], target_memory=pl.Mem.Vec)
s = pl.read(t, [3, 5])
t = pl.write(t, [0, 1], s)
t[0, 2] = t[4, 6]
t[0, 3] = 7
z = pl.maximum(t, t)"""
        found = run(body, a, (16, 32), dtype)
        wanted = a.copy()
        wanted[0, 1:4] = [a[3, 5], a[4, 6], KINDS[dtype](7)]
        assert found.tobytes() == wanted.tobytes()

    def test_a_tile_that_was_written_leaves_the_old_one_as_it_was(self) -> None:
        program = kernel(
            "a: pl.Tensor[[16, 32], pl.FP32], c: pl.Out[pl.Tensor[[16, 32], pl.FP32]]",
            """
t = pl.load(a, [0, 0], [16, 32])
u = pl.write(t, [0, 0], -1.0)
c = pl.store(pl.sub(t, u), [0, 0], c)
return c""",
        )
        a = drawn(16, 32)
        found = outputs(program, {"a": a})["c"]
        assert found[0, 0] == a[0, 0] + 1
        assert not found.reshape(-1)[1:].any()

    def test_elements_of_tensors_steer_an_orchestration(self) -> None:
        program = kernel(
            "a: pl.Tensor[[4, 3], pl.INT32], m: pl.Tensor[[2], pl.BOOL], "
            "c: pl.Out[pl.Tensor[[2, 2], pl.INT32]]",
            """
n = pl.read(a, [1, 2])
c[0, 0] = n + pl.read(a, [0, 0])
pl.write(c, [0, 1], 5)
if m[1]:
    c = pl.write(c, [1, 0], pl.cast(pl.tensor.dim(a, 0), pl.INT32))
return c""",
            kind="Orchestration",
        )
        a = drawn(4, 3, dtype="INT32")
        given = {"a": a, "m": np.array([False, True])}
        found = outputs(program, given, passes=False)["c"]
        assert found.tolist() == [[a[1, 2] + a[0, 0], 5], [4, 0]]

    def test_an_element_beyond_what_is_valid_is_refused(self) -> None:
        with pytest.raises(UserError, match="the element must end within what is valid of x"):
            kernel("a: pl.Tensor[[4, 8], pl.FP32]", "s = pl.read(a, [4, 0])")
        with pytest.raises(UserError, match="the offset on axis 0 must not be negative"):
            kernel("a: pl.Tensor[[4, 8], pl.FP32]", "s = a[-1, 0]")
        program = kernel(
            "a: pl.Tensor[[4, 8], pl.FP32], n: pl.Scalar[pl.INDEX], c: pl.Out[pl.Tensor[[1], pl.FP32]]",
            "c[0] = a[n, 0]\nreturn c",
            kind="Orchestration",
        )
        with pytest.raises(IRValueError, match="the window must lie within the tensor"):
            interpret_program(program, {"a": drawn(4, 8), "n": -1})
