"""Regions become functions: which parameters and results they get, and what cannot become one."""

from collections.abc import Mapping

import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import (
    Function,
    FunctionType,
    InCoreScopeStmt,
    ParamDirection,
    Program,
    ReturnStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    flatten_to_stmts,
)
from scalebox.ir.dtypes import DType, Index
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import Call, Submit, Var
from scalebox.ir.passes import default_pipeline, outline_scopes
from scalebox.ir.passes.block_mx_scale_tensor_views import BlockMxScaleTensorViews
from scalebox.ir.properties import IRProperty
from scalebox.ir.types import TensorType
from scalebox.ir.verification.walk import all_calls, statements
from scalebox.ir.verifier import verify_or_throw

OPERANDS = """
             a: pl.Tensor[[64, 64], pl.FP8E4M3FN], sa: pl.Tensor[[64, 2], pl.FP8E8M0, pl.MX_A_ZZ],
             b: pl.Tensor[[64, 32], pl.FP8E4M3FN], sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
             c: pl.Out[pl.Tensor[[64, 32], pl.FP32]], d: pl.InOut[pl.Tensor[[64, 32], pl.FP32]],
             n: pl.Scalar[pl.INDEX]"""


def parsed(*lines: str, kind: str = "Orchestration") -> Program:
    body = "".join(f"        {line}\n" for line in lines)
    made = pl.parse(f"""
from scalebox.ir import language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.{kind})
    def main(self, {OPERANDS}):
{body}""")
    assert isinstance(made, Program)
    return made


def before_outlining(program: Program) -> Program:
    for each in default_pipeline():
        if isinstance(each, outline_scopes):
            return program
        program = each(program)
    raise AssertionError


def outlined(*lines: str, kind: str = "Orchestration") -> Program:
    return outline_scopes()(before_outlining(parsed(*lines, kind=kind)))


def function(program: Program, name: str) -> Function:
    found = program.get_function(name)
    assert found is not None, [f.name for f in program.functions.values()]
    return found


def directions(function: Function) -> Mapping[str, ParamDirection]:
    names = [param.name_hint for param in function.params]
    return dict(zip(names, function.param_directions, strict=True))


REGION = "with pl.at(level=pl.Level.CORE_GROUP, name_hint='region'):"
PRODUCT = [
    "    acc = pl.matmul_mx(pl.load(a, [{row}, 0], [16, 64]), pl.load(sa, [{row}, 0], [16, 2]), "
    "pl.load(b, [0, 0], [64, 32]), pl.load(sb, [0, 0], [2, 32]))",
]
LOAD_D = "    z = pl.load(d, [0, 0], [1, 32], target_memory=pl.Mem.Mat)"


def product(row: str) -> list[str]:
    return [line.format(row=row) for line in PRODUCT]


# --------------------------------------------------------------------------- what a region becomes


def test_a_region_becomes_an_incore_function_of_what_it_uses() -> None:
    made = outlined(
        "row = n * 16", REGION, *product("row"), "    c = pl.store(acc, [row, 0], c)", "return c"
    )
    region = function(made, "region")
    assert region.func_type is FunctionType.InCore
    assert directions(region) == {
        "a": ParamDirection.In,
        "sa": ParamDirection.In,
        "b": ParamDirection.In,
        "sb": ParamDirection.In,
        "c": ParamDirection.Out,
        "row": ParamDirection.In,
    }
    assert region.return_types == (TensorType([64, 32], DType.Float32),)
    assert not [
        s
        for f in made.functions.values()
        for s in statements(f.body)
        if isinstance(s, InCoreScopeStmt)
    ]


@pytest.mark.parametrize(
    ("lines", "direction"),
    [
        ([LOAD_D], ParamDirection.In),
        ([*product("0"), "    d = pl.store(acc, [0, 0], d)"], ParamDirection.Out),
        ([LOAD_D, *product("0"), "    d = pl.store(acc, [0, 0], d)"], ParamDirection.InOut),
        ([*product("0"), "    d = pl.store(acc, [0, 0], d)", LOAD_D], ParamDirection.InOut),
        ([*product("0"), "    d = pl.store(acc, [0, 0], pl.tensor.view(d, [64, 32]))"], ParamDirection.Out),
        (
            [*product("0"), "    for i in pl.range(2):", "        d = pl.store(acc, [i * 16, 0], d)", LOAD_D],
            ParamDirection.InOut,
        ),
        (
            [*product("0"), "    if n > 0:", "        d = pl.store(acc, [0, 0], d)", LOAD_D],
            ParamDirection.InOut,
        ),
    ],
)  # fmt: skip
def test_a_tensor_is_read_written_or_both(lines: list[str], direction: ParamDirection) -> None:
    made = outlined(REGION, *lines, "return d")
    assert directions(function(made, "region"))["d"] is direction


def test_a_region_may_write_a_tensor_under_its_own_name_and_leave_a_fresh_one_too() -> None:
    """Nothing that the function returns replaces `c`, so `c` keeps its name in the caller."""
    made = outlined(
        REGION,
        *product("0"),
        "    w = pl.store(acc, [0, 0], c)",
        "    e = pl.create_tensor([64, 32], dtype=pl.FP32)",
        "    e = pl.store(acc, [0, 0], e)",
        "return c, e",
    )
    region = function(made, "region")
    assert directions(region)["c"] is ParamDirection.Out
    assert len(region.return_types) == 1
    verify_or_throw(made, [IRProperty.InOutUseValid])


def test_what_is_not_used_behind_a_region_is_not_returned() -> None:
    made = outlined(REGION, *product("0"), "    c = pl.store(acc, [0, 0], c)", "return d")
    assert function(made, "region").return_types == ()


def test_a_grid_becomes_its_launch_and_what_a_block_does() -> None:
    made = outlined(
        "for i in pl.spmd(n + 1, sync_start=True):",
        *product("i * 16"),
        "    c = pl.store(acc, [i * 16, 0], c)",
        "return c",
    )
    wrapper, core = function(made, "main_spmd_0"), function(made, "main_incore_0")
    assert (wrapper.func_type, core.func_type) == (FunctionType.Spmd, FunctionType.InCore)
    grid, end = flatten_to_stmts(wrapper.body)
    assert isinstance(grid, SpmdScopeStmt)
    assert isinstance(end, ReturnStmt)
    assert grid.sync_start
    assert [call.op.name for call in all_calls(wrapper)] == ["main_incore_0"]
    assert list(directions(wrapper)) == [*directions(core), "n"]
    assert [call.op.name for call in all_calls(function(made, "main"))] == ["main_spmd_0"]


def test_names_count_up_and_hints_that_are_taken_get_a_number() -> None:
    at = "with pl.at(level=pl.Level.CORE_GROUP):"
    made = outlined(at, LOAD_D, at, LOAD_D, REGION, LOAD_D, REGION, LOAD_D, "return d")
    names = {f.name for f in made.functions.values()}
    assert names == {"main", "main_incore_0", "main_incore_1", "region", "region_1"}


def test_a_region_with_a_name_or_something_to_wait_for_becomes_a_submit() -> None:
    made = outlined(
        f"{REGION.replace('):', ') as one:')}",
        LOAD_D,
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[one]):",
        *product("0"),
        "    c = pl.store(acc, [0, 0], c)",
        "return c",
    )
    first, second = all_calls(function(made, "main"))
    assert isinstance(first, Submit)
    assert isinstance(second, Submit)
    assert [var.name_hint for var in second.deps if isinstance(var, Var)] == ["one"]


def test_what_is_to_be_dumped_stays_with_the_launch() -> None:
    at = "with pl.at(level=pl.Level.CORE_GROUP, dumps=[d]):"
    (call,) = all_calls(function(outlined(at, LOAD_D, "return d"), "main"))
    assert isinstance(call, Call)
    assert [var.name_hint for var in call.attrs["dump_vars"]] == ["d"]


# --------------------------------------------------------------------------- functions


@pytest.mark.parametrize("kind", ["Opaque", "Orchestration"])
def test_a_function_with_a_region_is_an_orchestration_from_then_on(kind: str) -> None:
    made = outlined(REGION, LOAD_D, "return d", kind=kind)
    assert function(made, "main").func_type is FunctionType.Orchestration


def test_an_undecided_function_that_launches_nothing_stays_undecided() -> None:
    before = before_outlining(parsed("return d", kind="Opaque"))
    assert outline_scopes()(before) is before


def test_a_program_without_regions_comes_back_as_the_same_object() -> None:
    before = before_outlining(
        parsed(*[line.strip() for line in product("0")], "return d", kind="InCore")
    )
    assert outline_scopes()(before) is before


def test_a_second_run_changes_nothing() -> None:
    made = outlined(
        "for i in pl.spmd(2):",
        *product("i * 16"),
        "    c = pl.store(acc, [i * 16, 0], c)",
        "return c",
    )
    assert outline_scopes()(made) is made


def test_the_input_is_left_alone() -> None:
    before = before_outlining(
        parsed(REGION, *product("0"), "    c = pl.store(acc, [0, 0], c)", "return c")
    )
    kept = pl.parse(scalebox.ir.python_print(before))
    outline_scopes()(before)
    assert isinstance(kept, Program)
    scalebox.ir.assert_structural_equal(before, kept)


# --------------------------------------------------------------------------- offsets


def block_pass(program: Program) -> Program:
    for each in default_pipeline():
        program = each(program)
        if isinstance(each, BlockMxScaleTensorViews):
            return program
    raise AssertionError


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("for i in pl.spmd(4):", "i * 16"),
        ("for i in pl.spmd(2):", "base + i * 16"),
        ("for i in pl.spmd(2):", "(base // 16 + i) * 16"),
    ],
)
def test_an_offset_of_a_block_is_proved_through_both_argument_lists(head: str, row: str) -> None:
    lines = [head, *product(row), f"    c = pl.store(acc, [{row}, 0], c)"]
    program = parsed(
        "for half in pl.range(2):",
        "    base = half * 32",
        *(f"    {line}" for line in lines),
        "return c",
    )
    block_pass(program)


@pytest.mark.parametrize(
    ("row", "clause"),
    [
        ("i * 8", "must be a multiple of 16"),
        ("i * 16 + rest", "must be a multiple of 16"),
        ("n * 16 + i * 16", "must be non-negative"),
        ("i * 16 - 16", "must be non-negative"),
    ],
)
def test_an_offset_that_is_not_proved_is_refused(row: str, clause: str) -> None:
    program = parsed(
        "for half in pl.range(2):",
        "    rest = half * 4",
        "    for i in pl.spmd(2):",
        *(f"    {line}" for line in product(row)),
        "return c",
    )
    with pytest.raises(IRValueError, match=clause) as caught:
        block_pass(program)
    assert "cannot be proven" in caught.value.message
    assert caught.value.span is not None


# --------------------------------------------------------------------------- refusals


def refused(program: Program) -> str:
    with pytest.raises(IRValueError) as caught:
        outline_scopes()(program)
    assert caught.value.span is not None
    return caught.value.message


def region(*stmts: Stmt) -> InCoreScopeStmt:
    return InCoreScopeStmt(body=SeqStmts(stmts), span=stmts[0].span)


def rebuilt(program: Program, *stmts: Stmt, kind: FunctionType | None = None) -> Program:
    """Return the program with other statements in its only function."""
    (main,) = program.functions.values()
    params = zip(main.params, main.param_directions, strict=True)
    body = SeqStmts(stmts)
    return Program(
        [Function(main.name, params, [], body, main.span, kind or main.func_type)], program.name
    )


def flat(*lines: str) -> tuple[Program, list[Stmt]]:
    """Return a program in the form before outlining, and its statements without the return."""
    before = before_outlining(parsed(*lines, "return d", kind="InCore"))
    (main,) = before.functions.values()
    return before, list(flatten_to_stmts(main.body))[:-1]


def test_a_tile_must_not_enter_a_region() -> None:
    program, stmts = flat(*(line.strip() for line in product("0")), "c = pl.store(acc, [0, 0], c)")
    split = rebuilt(program, *stmts[:-1], region(stmts[-1]), kind=FunctionType.Orchestration)
    assert refused(split) == (
        "A region must use tensors and scalars from around it, not 'acc', which is a tile"
    )


def test_a_tile_must_not_leave_a_region() -> None:
    program, stmts = flat(*(line.strip() for line in product("0")), "c = pl.store(acc, [0, 0], c)")
    split = rebuilt(program, region(*stmts[:-1]), stmts[-1], kind=FunctionType.Orchestration)
    assert refused(split) == (
        "'acc' must be used inside of its region only, since a region hands on tensors, not a tile"
    )


def test_a_scalar_must_not_leave_a_region() -> None:
    program, stmts = flat("x = n + 1", "y = x + 1")
    split = rebuilt(program, region(stmts[0]), stmts[1], kind=FunctionType.Orchestration)
    assert refused(split) == (
        "'x' must be used inside of its region only, since a region hands on tensors, not a scalar "
        "of Index"
    )


def test_a_core_must_not_launch_a_region() -> None:
    program, stmts = flat("x = n + 1")
    assert refused(rebuilt(program, region(stmts[0]))) == (
        "'main' runs on a core and must not launch a region"
    )


def test_a_region_must_not_stand_in_another_one() -> None:
    program, stmts = flat("x = n + 1")
    nested = rebuilt(program, region(region(stmts[0])), kind=FunctionType.Orchestration)
    assert refused(nested) == "A region that is launched must not stand inside another one"
    grid = SpmdScopeStmt(core_num=Var("k", pl_index()), body=region(region(stmts[0])))
    inside = rebuilt(program, grid, kind=FunctionType.Orchestration)
    assert refused(inside) == "A region that is launched must not stand inside another one"


def test_blocks_must_not_make_a_tensor_each() -> None:
    before = before_outlining(
        parsed(
            "e = pl.create_tensor([64, 32], dtype=pl.FP32)",
            "f = pl.tensor.view(e, [32, 64])",
            "return d",
        )
    )
    (main,) = before.functions.values()
    first, second, _ = flatten_to_stmts(main.body)
    grid = SpmdScopeStmt(core_num=main.params[-1], body=region(first), span=first.span)
    assert refused(rebuilt(before, grid, second)) == (
        "The blocks of a grid must write into a tensor from around it, not each make 'e'"
    )


def pl_index() -> "scalebox.ir.ScalarType":
    return scalebox.ir.ScalarType(Index)
