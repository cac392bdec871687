"""A walk through an allocated kernel that keeps book of what lies where.

Each tile value is a token. A statement that makes a tile puts its token on the bytes of the tile; one that
reads a tile looks whether its token still lies there. Loops and branches are walked as they would run.
"""

import itertools
from collections.abc import Mapping, Sequence

from scalebox.ir.core import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    Program,
    ReturnStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from scalebox.ir.expr import BinaryExpr, Call, Cast, ConstInt, Expr, Var
from scalebox.ir.passes.insert_mx_scale_addr import PAIRS
from scalebox.ir.target import Target
from scalebox.ir.types import MemorySpace, TileType

from .kernels import the

GRANULE = 32
SIZES = {
    MemorySpace.Mat: "l1_bytes",
    MemorySpace.Left: "l0a_bytes",
    MemorySpace.Right: "l0b_bytes",
    MemorySpace.Acc: "l0c_bytes",
    MemorySpace.Bias: "bias_bytes",
    MemorySpace.Vec: "ub_bytes",
    MemorySpace.LeftScale: "scale_a_bytes",
    MemorySpace.RightScale: "scale_b_bytes",
}


class Overwritten(AssertionError):  # noqa: N818 - what was found, not an error of the walk
    """A value is read that no longer lies where it was put."""


class Walk:
    """Walks the kernel of a program after AllocateMemoryAddr with given scalars."""

    def __init__(self, made: Program, scalars: Mapping[str, int], target: Target) -> None:
        self._target = target
        self._tokens = itertools.count()
        self._bytes: dict[tuple[MemorySpace, int], int] = {}
        self._env: dict[Var, int] = {}
        self.reads = 0
        function = the(made)
        for param in function.params:
            if param.name_hint in scalars:
                self._env[param] = scalars[param.name_hint]
        self._body(function.body)

    # ------------------------------------------------------------------- control

    def _body(self, body: Stmt | None) -> tuple[int, ...]:
        for stmt in flatten_to_stmts(body):
            match stmt:
                case AssignStmt():
                    self._assign(stmt)
                case EvalStmt():
                    self._value(stmt.expr)
                case ForStmt():
                    self._for(stmt)
                case IfStmt():
                    taken = stmt.then_body if self._value(stmt.condition) else stmt.else_body
                    self._hand_on(stmt.return_vars, self._body(taken))
                case YieldStmt():
                    return tuple(self._value(e) for e in stmt.value)
                case ReturnStmt():
                    return ()
                case _:
                    assert not isinstance(stmt, WhileStmt), stmt
        return ()

    def _for(self, stmt: ForStmt) -> None:
        bounds = [self._value(e) for e in (stmt.start, stmt.stop, stmt.step)]
        values = tuple(self._value(arg.init_value) for arg in stmt.iter_args)
        for index in range(*bounds):
            self._env[stmt.loop_var] = index
            self._hand_on(stmt.iter_args, values)
            values = self._body(stmt.body)
        self._hand_on(stmt.return_vars, values)

    def _hand_on(self, variables: Sequence[Var], values: Sequence[int]) -> None:
        """A tile that goes by another name now must lie where that name says."""
        for var, value in zip(variables, values, strict=True):
            self._env[var] = value
            self._check(var)

    # ------------------------------------------------------------------- values

    def _assign(self, stmt: AssignStmt) -> None:
        made = self._value(stmt.value)
        makes_tile = isinstance(stmt.value, Call) and isinstance(stmt.var.type, TileType)
        if makes_tile and stmt.value.name == "tile.tget_scale_addr":  # type: ignore[union-attr]
            self._env[stmt.var] = made
            self._check(stmt.var)
        elif makes_tile:
            self._put(stmt.var)
        else:
            self._hand_on((stmt.var,), (made,))

    def _value(self, expr: Expr) -> int:
        match expr:
            case ConstInt():
                return expr.value
            case Var():
                self._check(expr)
                return self._env.get(expr, -1)
            case BinaryExpr():
                left, right = self._value(expr.left), self._value(expr.right)
                return int(type(expr).evaluate(left, right))
            case Cast():
                return self._value(expr.operand)
            case Call():
                return self._call(expr)
            case _:
                return -1

    def _call(self, call: Call) -> int:
        for arg in call.args:
            if isinstance(arg, Var):
                self._check(arg)
        for data, scale in PAIRS.get(call.name, ()):
            # The cube finds the scales by the data's address alone.
            tile, scales = call.args[data].type, call.args[scale].type
            assert isinstance(tile, TileType)
            assert isinstance(scales, TileType)
            assert tile.memref is not None
            assert scales.memref is not None
            assert scales.memref.byte_offset == tile.memref.byte_offset >> 4
        first = call.args[0] if call.args else None
        return self._env.get(first, -1) if isinstance(first, Var) else -1

    # ------------------------------------------------------------------- bytes

    def _granules(self, tile: TileType) -> list[tuple[MemorySpace, int]]:
        assert tile.memref is not None
        assert tile.memory_space is not None
        begin, size = tile.memref.byte_offset, tile.memref.size
        assert begin >= 0
        assert begin % GRANULE == 0
        assert begin + size <= getattr(self._target, SIZES[tile.memory_space])
        return [(tile.memory_space, at) for at in range(begin, begin + size, GRANULE)]

    def _put(self, var: Var) -> None:
        assert isinstance(var.type, TileType)
        token = self._env[var] = next(self._tokens)
        for granule in self._granules(var.type):
            self._bytes[granule] = token

    def _check(self, var: Var) -> None:
        if not isinstance(var.type, TileType):
            return
        self.reads += 1
        for granule in self._granules(var.type):
            if self._bytes.get(granule) != self._env[var]:
                message = f"{var.name_hint} is read at {granule}, but something else lies there"
                raise Overwritten(message)
