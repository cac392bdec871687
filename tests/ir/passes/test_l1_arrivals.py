"""What loads take of the port: bytes, and runs of bytes, by hand and as the machine model says."""

from fractions import Fraction

import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.passes import auto_tile_matmul_l0
from scalebox.ir.passes.l1_arrivals import load_cycles
from scalebox.ir.target import load_target
from scalebox.sim import costs

from .kernels import before, calls_of

A5 = load_target("a5")
RUN = Fraction("1.7")

TEXT = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[64, 256], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 8], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[256, 128], pl.FP8E4M3FN],
        t: pl.Tensor[[256, 128], pl.FP8E4M3FN, pl.TensorView(stride=[1, 256], layout=pl.TensorLayout.DN)],
        sb: pl.Tensor[[8, 128], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
    ):
        l = pl.load(a, [0, 0], [64, 256], [64, 200])
        p = pl.load(sa, [0, 0], [64, 8])
        r = pl.load(b, [0, 0], [256, 128], [200, 128])
        u = pl.load(t, [0, 0], [256, 128], [200, 128])
        q = pl.load(sb, [0, 0], [8, 128])
        c = pl.store(pl.matmul_mx(l, p, r, q), [0, 0], c)
        c = pl.store(pl.matmul_mx(l, p, u, q), [0, 0], c)
        return c
"""


def cycles(name: str, **valid: int) -> Fraction:
    """The cycles of the load of a tile, or of a part of it along `rows` or `columns`."""
    made = pl.parse(TEXT)
    assert isinstance(made, Program)
    ahead = before(made, auto_tile_matmul_l0)
    (call,) = (call for var, call in calls_of(ahead, "tile.load") if var.name_hint == name)
    axes = {"rows": 0, "columns": 1}
    return load_cycles(call, A5, {axes[axis]: size for axis, size in valid.items()})


@pytest.mark.parametrize(
    ("name", "valid", "size_bytes", "runs"),
    [
        ("l", {}, 64 * 200, 64),  # a part of each row
        ("l", {"columns": 64}, 64 * 64, 64),
        ("l", {"columns": 256, "rows": 16}, 16 * 256, 1),  # whole rows follow one another
        ("l", {"rows": 1}, 200, 1),
        ("r", {}, 200 * 128, 1),
        ("r", {"rows": 64}, 64 * 128, 1),
        ("u", {"rows": 256}, 256 * 128, 1),
        ("u", {"rows": 64}, 64 * 128, 128),  # column after column: a part of each
        ("p", {}, 64 * 8, 1),
        ("p", {"columns": 4}, 64 * 4, 4),  # 2 of 4 boxes for each 16 rows
        ("q", {}, 8 * 128, 1),
        ("q", {"rows": 3}, 4 * 128, 8),  # 2 of 4 boxes for each 16 columns
    ],
)
def test_a_load_takes_its_bytes_and_its_runs(
    name: str, valid: dict[str, int], size_bytes: int, runs: int
) -> None:
    found = cycles(name, **valid)
    assert found == Fraction(size_bytes, 128) + runs * RUN
    assert float(found) == pytest.approx(
        costs.gm_transfer_time(A5, size_bytes=size_bytes, rows=runs)
    )
