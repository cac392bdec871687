"""CanonicalizeIOOrder: what moves to the front of a pipelined body, and what must not."""

from scalebox.ir.core import (
    AssignStmt,
    EvalStmt,
    ForKind,
    ForStmt,
    IfStmt,
    SeqStmts,
    Stmt,
    YieldStmt,
    flatten_to_stmts,
)
from scalebox.ir.dtypes import DType
from scalebox.ir.expr import Add, Call, Gt, IterArg, Op, Var, index, replace
from scalebox.ir.ops import create_op_call
from scalebox.ir.passes import canonicalize_io_order
from scalebox.ir.types import MemorySpace, TensorLayout, TensorType, TensorView

from .parts import INDEX, assign, function, load, loop, only, program, scalar, scales, tuple_of

S = scales()
OUT = Var("out", TensorType([16, 64], DType.Float32))


def ordered(*body: Stmt, kind: ForKind = ForKind.Pipeline) -> list[str]:
    attrs = {"pipeline_stages": 1} if kind is ForKind.Pipeline else {}
    stmt = replace(loop(scalar("i"), 0, 4, 1, *body), kind=kind, attrs=attrs)
    made = canonicalize_io_order()(program(function("k", [S], stmt)))
    assert canonicalize_io_order()(made) is made
    found = only(made).body
    assert isinstance(found, ForStmt)
    return [
        inner.var.name_hint if isinstance(inner, AssignStmt) else type(inner).__name__
        for inner in flatten_to_stmts(found.body)
    ]


def moved(name: str, tile: AssignStmt | Var) -> AssignStmt:
    source = tile.var if isinstance(tile, AssignStmt) else tile
    return assign(
        name, create_op_call("tile.move", [source], {"target_memory": MemorySpace.LeftScale})
    )


def stored(name: str) -> AssignStmt:
    tile = Var("tile", create_op_call("tile.load", [OUT, [0, 0], [16, 64]], {}).type)
    return assign(name, Call(Op("tile.store"), [tile, tuple_of(0, 0), OUT], OUT.type))


def test_scalars_then_loads_then_the_rest_each_in_their_order() -> None:
    t0, t1 = assign("t0", load(S, [0, 0])), assign("t1", load(S, [16, 0]))
    body = (t0, moved("u0", t0), assign("j", index(1)), t1, moved("u1", t1), assign("k", index(2)))
    assert ordered(*body) == ["j", "k", "t0", "t1", "u0", "u1"]


def test_a_loop_that_is_not_pipelined_is_left_alone() -> None:
    t0 = assign("t0", load(S, [0, 0]))
    body = (t0, moved("u0", t0), assign("j", index(1)))
    assert ordered(*body, kind=ForKind.Sequential) == ["t0", "u0", "j"]


def test_stores_loops_branches_and_bare_calls_end_a_stretch() -> None:
    for end in (
        stored("s"),
        EvalStmt(Call(Op("f"), [])),
        loop(scalar("j"), 0, 2, 1, assign("y", index(1))),
        IfStmt(Gt(scalar("n"), index(0), DType.Bool), assign("y", index(1)), None, ()),
    ):
        t0, t1 = assign("t0", load(S, [0, 0])), assign("t1", load(S, [16, 0]))
        names = ordered(t0, moved("u0", t0), end, moved("u1", t0), t1)
        assert names[:2] == ["t0", "u0"]
        assert names[3:] == ["t1", "u1"]


def test_names_and_views_of_tensors_come_before_the_loads_that_use_them() -> None:
    alias = assign("alias", S)
    boxes = Call(
        Op("tensor.view"),
        [alias.var, tuple_of(1, 256)],
        TensorType([1, 256], DType.E8M0, None, TensorView(layout=TensorLayout.ND)),
    )
    view = assign("view", boxes)
    other = assign("other", view.var)
    t0 = assign("t0", load(S, [0, 0]))
    t1 = assign("t1", load(alias.var, [0, 0]))
    body = (t0, moved("u0", t0), alias, view, other, t1)
    assert ordered(*body) == ["alias", "view", "other", "t0", "t1", "u0"]


def test_a_scalar_that_is_read_from_a_tile_ends_a_stretch() -> None:
    t0 = assign("t0", load(S, [0, 0]))
    read = assign("n", Call(Op("tile.read"), [t0.var], INDEX))
    t1 = assign("t1", load(S, [Add(read.var, index(16), INDEX.dtype), 0]))
    assert ordered(t0, moved("u0", t0), read, t1) == ["t0", "u0", "n", "t1"]


def test_a_load_that_is_handed_on_stays_behind_the_last_use_of_the_old_tile() -> None:
    first = assign("first", load(S, [0, 0]))
    arg = IterArg("t", first.var.type, first.var)
    again, plain = assign("again", load(S, [16, 0])), assign("plain", load(S, [32, 0]))
    alias = assign("alias", again.var)
    body = SeqStmts((moved("u", arg), again, plain, alias, YieldStmt((alias.var,))))
    stmt = ForStmt(
        scalar("i"), index(0), index(4), index(1), (arg,), body, (Var("r", arg.type),),
        kind=ForKind.Pipeline, attrs={"pipeline_stages": 1},
    )  # fmt: skip
    made = canonicalize_io_order()(program(function("k", [S], first, stmt)))
    found = flatten_to_stmts(only(made).body)[1]
    assert isinstance(found, ForStmt)
    names = [s.var.name_hint for s in flatten_to_stmts(found.body) if isinstance(s, AssignStmt)]
    assert names == ["plain", "u", "again", "alias"]
