"""Kernels of a few lines: what the tests of the tile passes write their bodies into."""

from collections.abc import Iterator

from scalebox.ir import language as pl
from scalebox.ir.core import AssignStmt, Function, Program, Stmt
from scalebox.ir.expr import Call, Var
from scalebox.ir.passes import default_pipeline
from scalebox.ir.passes.base import Pass
from scalebox.ir.types import TileType
from scalebox.ir.verification.walk import all_vars, statements

_HEAD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[128, 2048], pl.FP8E4M3FN],
        sa: pl.Tensor[[128, 64], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[2048, 128], pl.FP8E4M3FN],
        sb: pl.Tensor[[64, 128], pl.FP8E8M0, pl.MX_B_NN],
        bias: pl.Tensor[[1, 128], pl.FP32],
        c: pl.Out[pl.Tensor[[128, 128], pl.FP32]],
        n: pl.Scalar[pl.INDEX],
    ):
"""
#: Four small operands in place, `l`, `p`, `r` and `q`, and their product `x`.
OPERANDS = """
l = pl.move(pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
p = pl.move(pl.load(sa, [0, 0], [16, 2]), pl.Mem.LeftScale)
r = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), pl.Mem.Right)
q = pl.move(pl.load(sb, [0, 0], [2, 32]), pl.Mem.RightScale)
x = pl.matmul_mx(l, p, r, q)
"""


def kernel(body: str) -> Program:
    """A program of one InCore function `k` with the given body."""
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    parsed = pl.parse(f"{_HEAD}{lines}\n")
    assert isinstance(parsed, Program)
    return parsed


def after(made: Program, last: type[Pass]) -> Program:
    """The program after the default pipeline up to and including a pass."""
    for each in default_pipeline():
        made = each(made)
        if isinstance(each, last):
            return made
    raise AssertionError(last)


def before(made: Program, stop: type[Pass]) -> Program:
    """The program as a pass of the default pipeline gets it."""
    for each in default_pipeline():
        if isinstance(each, stop):
            return made
        made = each(made)
    raise AssertionError(stop)


def the(made: Program) -> Function:
    found = made.get_function("k")
    assert found is not None
    return found


def assignments(made: Program) -> Iterator[AssignStmt]:
    """Every assignment of the kernel, nested ones after the statement that holds them."""
    return (s for s in statements(the(made).body) if isinstance(s, AssignStmt))


def calls_of(made: Program, op: str) -> list[tuple[Var, Call]]:
    return [
        (stmt.var, stmt.value)
        for stmt in assignments(made)
        if isinstance(stmt.value, Call) and stmt.value.name == op
    ]


def tiles(made: Program) -> dict[str, TileType]:
    """The tile types of the kernel by their variables' names."""
    return {v.name_hint: v.type for v in all_vars(the(made)) if isinstance(v.type, TileType)}


def buffers(made: Program) -> dict[str, str]:
    """The buffer of each tile by its variable's name."""
    found: dict[str, str] = {}
    for name, tile in tiles(made).items():
        assert tile.memref is not None, name
        found[name] = tile.memref.name
    return found


def names(stmts: Iterator[Stmt] | list[Stmt]) -> list[str]:
    return [s.var.name_hint if isinstance(s, AssignStmt) else type(s).__name__ for s in stmts]
