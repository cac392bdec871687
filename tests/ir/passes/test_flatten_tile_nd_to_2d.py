"""FlattenTileNdTo2D: tiles of rows and columns, and what cannot become one."""

import numpy as np
import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import InputError, IRValueError
from scalebox.ir.expr import MakeTuple
from scalebox.ir.passes import PassContext, VerificationInstrument, flatten_tile_nd_to_2d
from scalebox.ir.printer import python_print
from scalebox.ir.properties import IRProperty
from scalebox.ir.types import TileType, constant_dims
from scalebox.ir.verifier import verify

from .kernels import before, calls_of, the, tiles

TEXT = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        x: pl.Tensor[[4, 64, 128], pl.FP32],
        z: pl.Tensor[[2, 3, 64, 128], pl.FP8E4M3FN, pl.NZ],
        d: pl.Tensor[[4, 64, 128], pl.FP32, pl.TensorView(stride=[8192, 1, 64], layout=pl.DN)],
        y: pl.Out[pl.Tensor[[4, 64, 128], pl.FP32]],
        n: pl.Scalar[pl.INDEX],
    ):
{body}
"""


def kernel(body: str) -> Program:
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    parsed = pl.parse(TEXT.format(body=lines))
    assert isinstance(parsed, Program)
    return before(parsed, flatten_tile_nd_to_2d)


def flat(body: str) -> Program:
    made = kernel(body)
    with PassContext([VerificationInstrument()]):
        done = flatten_tile_nd_to_2d()(made)
    assert not verify(done, {IRProperty.TileOps2D, IRProperty.TypeChecked})
    return done


def shapes(made: Program) -> dict[str, tuple[int, ...] | None]:
    return {name: constant_dims(tile.shape) for name, tile in tiles(made).items()}


def offsets(made: Program) -> list[str]:
    found: list[str] = []
    for _, call in calls_of(made, "tile.load"):
        places = call.args[1]
        assert isinstance(places, MakeTuple)
        found += [python_print(each) for each in places.elements]
    return found


def test_tiles_of_two_axes_are_left_alone() -> None:
    made = kernel("t = pl.load(pl.tensor.view(x, [256, 128]), [n, 0], [16, 128])")
    assert flatten_tile_nd_to_2d()(made) is made
    assert verify(made, {IRProperty.TileOps2D}) == []


def test_a_second_run_changes_nothing() -> None:
    done = flat("t = pl.load(x, [n, 0, 0], [1, 64, 128], target_memory=pl.Mem.Mat)")
    assert flatten_tile_nd_to_2d()(done) is done


def test_one_view_serves_all_loads_of_a_sequence() -> None:
    done = flat(
        """
t = pl.load(x, [0, 0, 0], [1, 64, 128], target_memory=pl.Mem.Mat)
u = pl.load(x, [1, 0, 64], [1, 64, 64], target_memory=pl.Mem.Mat)
"""
    )
    ((view, _),) = calls_of(done, "tensor.view")
    assert [call.args[0] for _, call in calls_of(done, "tile.load")] == [view, view]
    assert offsets(done) == ["0", "0", "64", "64"]
    assert shapes(done) == {"t": (64, 128), "u": (64, 64)}


def test_inner_axes_in_full_are_folded_with_the_outer_ones() -> None:
    done = flat("t = pl.load(x, [n, 0, 0], [2, 64, 128], target_memory=pl.Mem.Mat)")
    assert shapes(done) == {"t": (128, 128)}
    assert offsets(done) == ["n * 64", "0"]


def test_an_unplaced_load_of_pieces_keeps_its_window() -> None:
    made = kernel("t = pl.load(x, [0, 0, 0], [2, 16, 128])")
    (old,) = calls_of(made, "tile.load")
    (new,) = calls_of(flat("t = pl.load(x, [0, 0, 0], [2, 16, 128])"), "tile.load")
    assert python_print(new[1].args[2]) == python_print(old[1].args[2]) == "[2, 16, 128]"
    assert new[1].type == TileType([32, 128], pl.FP32)


def test_carried_tiles_and_branches_are_flat_too() -> None:
    done = flat(
        """
t = pl.load(x, [0, 0, 0], [1, 16, 128], target_memory=pl.Mem.Vec)
for i in pl.range(3):
    t = pl.load(x, [i, 16, 0], [1, 16, 128], target_memory=pl.Mem.Vec)
if n > 3:
    u = pl.yield_(t)
else:
    u = pl.yield_(pl.load(x, [3, 0, 0], [1, 16, 128], target_memory=pl.Mem.Vec))
y = pl.store(u, [n, 0, 0], y)
"""
    )
    assert set(shapes(done).values()) == {(16, 128)}
    ((_, store),) = calls_of(done, "tile.store")
    assert python_print(store.args[3]) == "[1, 16, 128]"


def test_nodes_have_the_spans_of_what_they_replace() -> None:
    made = kernel("t = pl.load(x, [0, 0, 0], [1, 64, 128], target_memory=pl.Mem.Mat)")
    (old,) = calls_of(made, "tile.load")
    done = flatten_tile_nd_to_2d()(made)
    for name in ("tensor.view", "tile.load"):
        (new,) = calls_of(done, name)
        assert new[1].span == old[1].span
        assert new[0].span.is_known
    assert the(done).params == the(made).params


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "t = pl.load(x, [0, 0, 0], [2, 16, 128], target_memory=pl.Mem.Mat)",
            "A load of more than two axes into Mat must take rows that follow one another, which those "
            "of [2, 16, 128] of [4, 64, 128] do not: load one matrix at a time",
        ),
        (
            "t = pl.load(d, [0, 0, 0], [1, 64, 128], target_memory=pl.Mem.Mat)",
            "A load of more than two axes into Mat must be from a tensor in ND or NZ, not in DN",
        ),
        (
            "t = pl.load(x, [3, 60, 0], [1, 64, 128], target_memory=pl.Mem.Mat, clamp=True)",
            "A load of more than two axes into Mat must be written without clamp",
        ),
        (
            "t = pl.load(x, [0, 0, 0], [2, 16, 128], [2, 10, 128], target_memory=pl.Mem.Vec)",
            "The valid rows of a tile of more than two axes must follow one another, as those of "
            "[2, 10, 128] in [2, 16, 128] do not",
        ),
        (  # n may be less than 16
            "t = pl.load(x, [0, 0, 0], [2, 16, 128], [2, n, 128], target_memory=pl.Mem.Vec)",
            "The valid rows of a tile of more than two axes must follow one another, as those of "
            "[2, n, 128] in [2, 16, 128] do not",
        ),
    ],
)
def test_what_has_no_flat_form_is_refused_at_its_place(body: str, message: str) -> None:
    with pytest.raises(IRValueError) as caught:
        flatten_tile_nd_to_2d()(kernel(body))
    assert caught.value.message == message
    assert caught.value.span is not None
    assert caught.value.span.is_known


def test_a_tile_of_one_axis_is_refused_with_a_way_to_two() -> None:
    body = ["t = pl.tile.full([64], pl.FP32, 1.0)", "y = pl.store(t, [0, 0, 0], y, [1, 1, 64])"]
    with pytest.raises(IRValueError) as caught:
        flatten_tile_nd_to_2d()(kernel("\n".join(body)))
    assert (
        caught.value.message
        == "A tile must have rows and columns to be compiled, not the shape [64]"
    )
    assert caught.value.hint == (
        "pl.tensor.view(x, [1, 64]) of a tensor x is loaded as a tile [1, 64]"
    )
    assert caught.value.span is not None
    assert caught.value.span.is_known


class TestNumbers:
    BODY = """
a = pl.load(x, [n, 0, 0], [2, 64, 128], target_memory=pl.Mem.Vec)
y = pl.store(a, [0, 0, 0], y)
b = pl.load(x, [0, 8, 32], [4, 16, 64], [1, 12, 64], target_memory=pl.Mem.Vec)
y = pl.store(b, [2, 50, 64], y)
c = pl.load(x, [3, 60, 0], [1, 64, 128], target_memory=pl.Mem.Vec, clamp=True)
y = pl.store(c, [3, 0, 0], y)
return y
"""

    def inputs(self, n: int) -> dict[str, object]:
        rng = np.random.default_rng(5)
        x = rng.standard_normal((4, 64, 128)).astype(np.float32)
        return {"x": x, "z": np.zeros((2, 3, 64, 128), np.uint8), "d": x, "n": n}

    def test_they_are_the_same_before_and_after(self) -> None:
        made = kernel(self.BODY)
        given = self.inputs(1)
        found = scalebox.interpret(made, given)["y"]
        again = scalebox.interpret(flatten_tile_nd_to_2d()(made), given)["y"]
        assert (again == found).all()
        x = given["x"]
        assert isinstance(x, np.ndarray)
        assert (found[:2] == x[1:3]).all()
        assert (found[2, 50:62, 64:] == x[0, 8:20, 32:96]).all()
        assert (found[3, :4] == x[3, 60:]).all()

    def test_a_row_beyond_its_matrix_is_told_before_and_after(self) -> None:
        body = "t = pl.load(x, [0, n, 0], [1, 16, 128], target_memory=pl.Mem.Mat)"
        made = kernel(body)
        done = flatten_tile_nd_to_2d()(made)
        for each in (made, done):
            scalebox.interpret(each, self.inputs(48))
            with pytest.raises((IRValueError, InputError), match="must lie within the tensor"):
                scalebox.interpret(each, self.inputs(49))
