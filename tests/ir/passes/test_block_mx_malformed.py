"""BlockMxScaleTensorViews on raw IR that is not what it should be: an error that names the node, or it works."""

import contextlib
from collections.abc import Callable
from typing import TypeVar

import pytest

from scalebox.ir.core import (
    AssignStmt,
    EvalStmt,
    IfStmt,
    Program,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from scalebox.ir.dtypes import DType, Index
from scalebox.ir.errors import IRValueError, UserError
from scalebox.ir.expr import (
    Add,
    Call,
    ConstInt,
    Expr,
    FloorDiv,
    GlobalVar,
    IterArg,
    MakeTuple,
    Mul,
    Node,
    Op,
    TupleGetItemExpr,
    Type,
    UnknownType,
    Var,
    index,
    set_fields,
)
from scalebox.ir.node_check import checked_parts
from scalebox.ir.passes import block_mx_scale_tensor_views
from scalebox.ir.types import MemorySpace, TensorType, TensorView, TupleType

from .parts import (
    INDEX,
    A,
    assign,
    at,
    call,
    function,
    ints,
    load,
    loop,
    only,
    program,
    scalar,
    scales,
    scales_type,
    stmts,
    submit,
    tuple_of,
)

NodeT = TypeVar("NodeT", bound=Node)
JUNK = [None, "x", 3, 1.5, [1], object()]


def blocked(made: Program) -> Program:
    return block_mx_scale_tensor_views()(made)


def refusal(made: Program) -> UserError:
    with pytest.raises(ValueError, match=r".") as caught:
        blocked(made)
    error = caught.value
    assert isinstance(error, IRValueError)
    return error


def kernel(*body: Stmt, params: tuple[Var, ...] = ()) -> Program:
    return program(function("k", params, *body))


def spoilt(node: NodeT, **fields: object) -> NodeT:
    """The node with fields that its constructor would not have taken."""
    set_fields(node, **fields)
    return node


# --------------------------------------------------------------------------- every slot


S = scales()
I = scalar("i")  # noqa: E741 - the loop variable


def one_load(**fields: object) -> Program:
    return kernel(EvalStmt(spoilt(load(S, [0, 0], line=7), **fields)), params=(S,))


def at_offset(offset: Expr) -> Program:
    return kernel(EvalStmt(load(S, [offset, 0], line=7)), params=(S,))


def one_loop(**fields: object) -> Program:
    return kernel(spoilt(loop(I, 0, 64, 16, EvalStmt(load(S, [I, 0]))), **fields), params=(S,))


def holder(part: object) -> MakeTuple:
    return spoilt(tuple_of(0, 0), elements=(part, index(0)))


def one_view(*args: object) -> Program:
    view = Call(Op("tensor.view"), [], {"layout": A}, S.type, at(7))
    return kernel(EvalStmt(spoilt(view, args=args)), params=(S,))


ND = Var("nd", TensorType([1, 256], DType.E8M0))
SLOTS: dict[str, Callable[[object], Program]] = {
    "args[0] of the Call of tile.load": lambda junk: one_load(
        args=(junk, *load(S, [0, 0]).args[1:])
    ),
    "args[1] of the Call of tile.load": lambda junk: one_load(args=(S, junk, tuple_of(16, 2))),
    "args[2] of the Call of tile.load": lambda junk: one_load(args=(S, tuple_of(0, 0), junk)),
    "args[3] of the Call of tile.load": lambda junk: one_load(
        args=(*load(S, [0, 0]).args[:3], junk)
    ),
    "op of the Call of ": lambda junk: one_load(op=junk),
    "type of the Call of tile.load": lambda junk: one_load(type=junk),
    "span of the Call of tile.load": lambda junk: one_load(span=junk),
    "elements[0] of a MakeTuple": lambda junk: one_load(args=(S, holder(junk), tuple_of(16, 2))),
    "left of a Mul": lambda junk: at_offset(spoilt(Mul(I, index(16), Index), left=junk)),
    "right of a FloorDiv": lambda junk: at_offset(
        spoilt(FloorDiv(I, index(16), Index), right=junk)
    ),
    "var of an AssignStmt": lambda junk: kernel(spoilt(assign("x", index(0)), var=junk)),
    "value of an AssignStmt": lambda junk: kernel(spoilt(assign("x", index(0)), value=junk)),
    "expr of an EvalStmt": lambda junk: kernel(spoilt(EvalStmt(I), expr=junk)),
    "stmts[1] of a SeqStmts": lambda junk: kernel(spoilt(SeqStmts(()), stmts=(ReturnStmt(), junk))),
    "value[0] of a ReturnStmt": lambda junk: kernel(spoilt(ReturnStmt(), value=(junk,))),
    "value[0] of a YieldStmt": lambda junk: kernel(spoilt(YieldStmt(()), value=(junk,))),
    "loop_var of a ForStmt": lambda junk: one_loop(loop_var=junk),
    "start of a ForStmt": lambda junk: one_loop(start=junk),
    "stop of a ForStmt": lambda junk: one_loop(stop=junk),
    "step of a ForStmt": lambda junk: one_loop(step=junk),
    "body of a ForStmt": lambda junk: one_loop(body=junk),
    "iter_args[0] of a ForStmt": lambda junk: one_loop(iter_args=(junk,)),
    "return_vars[0] of a ForStmt": lambda junk: one_loop(return_vars=(junk,)),
    "init_value of the IterArg a": lambda junk: one_loop(
        iter_args=(spoilt(IterArg("a", INDEX, I), init_value=junk),)
    ),
    "condition of an IfStmt": lambda junk: kernel(
        spoilt(IfStmt(I, ReturnStmt(), None, ()), condition=junk)
    ),
    "then_body of an IfStmt": lambda junk: kernel(
        spoilt(IfStmt(I, ReturnStmt(), None, ()), then_body=junk)
    ),
    "condition of a WhileStmt": lambda junk: kernel(
        spoilt(WhileStmt(I, (), ReturnStmt(), ()), condition=junk)
    ),
    "body of a WhileStmt": lambda junk: kernel(
        spoilt(WhileStmt(I, (), ReturnStmt(), ()), body=junk)
    ),
    "type of the Var x": lambda junk: kernel(
        assign("y", index(0)), params=(spoilt(scalar("x"), type=junk),)
    ),
    "span of the Var x": lambda junk: kernel(
        assign("y", index(0)), params=(spoilt(scalar("x"), span=junk),)
    ),
    "params[0] of function k": lambda junk: program(
        spoilt(function("k", (), ReturnStmt()), params=(junk,))
    ),
    "return_types[0] of function k": lambda junk: program(
        spoilt(function("k", (), ReturnStmt()), return_types=(junk,))
    ),
    "body of function k": lambda junk: program(spoilt(function("k", (), ReturnStmt()), body=junk)),
    "span of function k": lambda junk: program(spoilt(function("k", (), ReturnStmt()), span=junk)),
    "args[0] of the Call of k": lambda junk: kernel(EvalStmt(spoilt(call("k", 1), args=(junk,)))),
    "args[0] of the Submit of k": lambda junk: kernel(
        EvalStmt(spoilt(submit("k", 1), args=(junk,)))
    ),
    "deps[0] of the Submit of k": lambda junk: kernel(
        EvalStmt(spoilt(submit("k", 1), deps=(junk,)))
    ),
    "args[0] of the Call of tensor.view": lambda junk: one_view(junk, tuple_of(64, 4)),
    "args[1] of the Call of tensor.view": lambda junk: one_view(ND, junk),
    "tuple of a TupleGetItemExpr": lambda junk: kernel(
        EvalStmt(spoilt(TupleGetItemExpr(tuple_of(1), 0), tuple=junk))
    ),
    "shape[0] of a TensorType": lambda junk: kernel(ReturnStmt(), params=(Var("t", dims(junk)),)),
    "types[0] of a TupleType": lambda junk: kernel(ReturnStmt(), params=(Var("t", types(junk)),)),
}


def dims(junk: object) -> Type:
    type_ = scales_type()
    set_fields(type_, shape=(junk, index(4)))
    return type_


def types(junk: object) -> Type:
    type_ = TupleType([scales_type()])
    set_fields(type_, types=(junk,))
    return type_


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: type(junk).__name__)
@pytest.mark.parametrize("slot", SLOTS)
def test_a_slot_that_holds_no_node_is_named(slot: str, junk: object) -> None:
    message = refusal(SLOTS[slot](junk)).message
    assert message.startswith(slot)
    found = "None" if junk is None else type(junk).__name__
    assert f", not {found}" in message
    assert ("(in function k)" in message) is ("of function k" not in slot)


def junk_integer(value: object) -> ConstInt:
    return spoilt(index(16), value=value)


INTEGERS: dict[str, Callable[[object], Program]] = {
    "offset": lambda junk: at_offset(junk_integer(junk)),
    "factor": lambda junk: at_offset(Mul(junk_integer(junk), index(16), Index)),
    "divisor": lambda junk: at_offset(FloorDiv(index(64), junk_integer(junk), Index)),
    "start": lambda junk: one_loop(start=junk_integer(junk)),
    "step": lambda junk: one_loop(step=junk_integer(junk)),
    "extent": lambda junk: kernel(ReturnStmt(), params=(Var("t", dims(junk_integer(junk))),)),
    "window": lambda junk: one_load(args=(S, tuple_of(0, 0), tuple_of(junk_integer(junk), 2))),
}


@pytest.mark.parametrize("value", [None, "16", 16.0, [16], index(16)])
@pytest.mark.parametrize("build", INTEGERS.values(), ids=INTEGERS)
def test_an_integer_that_is_none_is_named(
    build: Callable[[object], Program], value: object
) -> None:
    message = refusal(build(value)).message
    assert message.startswith("value of a ConstInt must be an integer, not ")


def test_the_error_of_a_slot_stands_at_the_node() -> None:
    assert refusal(one_load(args=(S, None))).span == at(7)


def classes(kind: type[Node] | type[Type]) -> list[type[Node] | type[Type]]:
    return [kind, *(inner for each in kind.__subclasses__() for inner in classes(each))]


@pytest.mark.parametrize("kind", [*classes(Node), *classes(Type)], ids=lambda kind: kind.__name__)
def test_the_annotations_of_every_class_can_be_read(kind: type[Node] | type[Type]) -> None:
    # An empty object lacks the first field that is looked at, if there is one.
    with contextlib.suppress(AttributeError):
        checked_parts(object.__new__(kind), function("k", (), ReturnStmt()))


# --------------------------------------------------------------------------- calls of the wrong shape


def test_a_load_with_too_many_arguments() -> None:
    message = "tile.load with an MX tensor must have at most 4 arguments, not 5"
    assert refusal(one_load(args=(*load(S, [0, 0]).args, index(1)))).message == message


def test_a_valid_shape_of_a_load_is_looked_at_before_it_is_replaced() -> None:
    args = load(S, [0, 0]).args[:3]
    assert refusal(one_load(args=(*args, index(1)))).message == (
        "Argument 3 of tile.load must be a tuple of coordinates, not ConstInt"
    )
    assert refusal(one_load(args=(*args, tuple_of(16)))).message == (
        "An MX_A_ZZ tensor must have a rank-2 logical valid_shape, not rank 1"
    )


@pytest.mark.parametrize(
    ("target", "found"),
    [("Mat", '"Mat"'), (2, "a int"), (2.0, "a float"), (index(2), "a ConstInt")],
)
def test_a_target_memory_that_is_none_is_told_as_it_is(target: object, found: str) -> None:
    message = refusal(one_load(kwargs={"target_memory": target})).message
    assert f"must have target_memory=MemorySpace.Mat, not {found}: only cube" in message


def test_the_mat_of_a_load_is_named_by_the_enumeration() -> None:
    blocked(one_load(kwargs={"target_memory": MemorySpace.Mat}))


def test_a_view_whose_operand_and_type_disagree() -> None:
    view = Call(Op("tensor.view"), [ND, tuple_of(128, 2)], {"layout": A}, scales_type(), at(7))
    error = refusal(kernel(EvalStmt(view), params=(ND,)))
    assert error.message == "The shape operand of tensor.view must be the shape of its result"
    assert error.span == at(7)


def test_a_view_of_other_bytes_than_there_are() -> None:
    view = Call(Op("tensor.view"), [ND, tuple_of(64, 8)], {}, scales_type((64, 8)), at(7))
    message = "A tensor.view of ND as MX_A_ZZ must have the 256 bytes of its source, not 512"
    assert refusal(kernel(EvalStmt(view), params=(ND,))).message == message
    plain = TensorType([1, 255], DType.E8M0)
    back = Call(Op("tensor.view"), [S, tuple_of(1, 255)], {}, plain, at(7))
    message = "A tensor.view of MX_A_ZZ as ND must have the 256 bytes of its source, not 255"
    assert refusal(kernel(EvalStmt(back), params=(S,))).message == message


def test_a_view_as_boxes_takes_no_valid_shape() -> None:
    view = Call(Op("tensor.view"), [ND, *[tuple_of(64, 4)] * 2], {}, scales_type(), at(7))
    message = "tensor.view with an MX tensor must have at most 2 arguments, not 3"
    assert refusal(kernel(EvalStmt(view), params=(ND,))).message == message


# --------------------------------------------------------------------------- depth, size, sharing


def deep_sum(depth: int, leaf: Expr) -> Expr:
    for _ in range(depth):
        leaf = Add(leaf, index(16), Index)
    return leaf


@pytest.mark.parametrize("depth", [5_000, 100_000])
def test_a_deep_expression_is_an_error(depth: int) -> None:
    offset = kernel(loop(I, 0, 64, 16, EvalStmt(load(S, [deep_sum(depth, I), 0]))), params=(S,))
    assert "cannot be proven" in refusal(offset).message
    elsewhere = kernel(assign("x", deep_sum(depth, I)), params=(S,))
    assert refusal(elsewhere).message == "The expressions and loops of 'p' must not nest so deep"


def test_an_expression_as_deep_as_people_write_them_works() -> None:
    blocked(kernel(assign("x", deep_sum(400, I)), params=(S,)))


def in_a_loop(body: Stmt) -> Stmt:
    return loop(scalar("j"), 0, 2, 1, body)


def in_a_sequence(body: Stmt) -> Stmt:
    return SeqStmts((body,))


@pytest.mark.parametrize("wrap", [in_a_loop, in_a_sequence])
def test_deep_nesting_is_an_error(wrap: Callable[[Stmt], Stmt]) -> None:
    body: Stmt = EvalStmt(load(S, [0, 0]))
    for _ in range(5_000):
        body = wrap(body)
    assert refusal(kernel(body, params=(S,))).message.endswith("must not nest so deep")


def test_shared_nodes_are_looked_at_once() -> None:
    # Each of these unfolds to 2^60 nodes.
    total: Expr = I
    whole: Expr = MakeTuple((S,))
    type_: Type = S.type
    body: Stmt = EvalStmt(load(S, [0, 0]))
    for _ in range(60):
        total = Add(total, total, Index)
        whole = MakeTuple((whole, whole))
        type_ = TupleType((type_, type_))
        body = SeqStmts((body, body))
    shaped = Var("x", TensorType([total], DType.Float32))
    launch = Call(GlobalVar("elsewhere"), [whole], UnknownType())
    made = only(
        blocked(
            kernel(assign("y", total), EvalStmt(launch), body, params=(S, shaped, Var("z", type_)))
        )
    )
    assert isinstance(made.body, SeqStmts)
    first, third = made.body.stmts[0], made.params[2].type
    assert isinstance(first, AssignStmt)
    unchanged = first.value is total and made.params[1] is shaped
    assert unchanged  # the nodes themselves are too many to be shown
    assert isinstance(third, TupleType)
    assert third.types[0] is third.types[1]
    refused = Call(Op("made.up"), [whole], UnknownType())
    assert "not by made.up (argument 0)" in refusal(kernel(EvalStmt(refused))).message
    offset = loop(I, 0, 64, 16, EvalStmt(load(S, [total, 0])))
    assert "cannot be proven" in refusal(kernel(offset, params=(S,))).message


def test_a_node_that_stands_in_two_places_is_rewritten_to_one() -> None:
    shared = load(S, [16, 0])
    made = only(blocked(kernel(assign("a", shared), assign("b", shared), params=(S,))))
    first, second = stmts(made)
    assert isinstance(first, AssignStmt)
    assert isinstance(second, AssignStmt)
    assert first.value is second.value
    assert isinstance(first.value, Call)
    assert ints(first.value.args[1]) == [0, 1, 0, 0, 0]


def test_a_program_without_functions_and_a_function_without_statements() -> None:
    empty = Program([], "p")
    assert blocked(empty) is empty
    made = only(blocked(kernel(SeqStmts(()), params=(S,))))
    assert made.attrs == {"mx_tensor_views_blocked": True}


@pytest.mark.parametrize(("calls", "accepted"), [(255, True), (256, False)])
def test_each_call_of_a_function_costs_a_step(calls: int, accepted: bool) -> None:
    s, row, t = scales(), scalar("row"), scales("t")
    launches = [EvalStmt(call("k", t, 16)) for _ in range(calls)]
    made = program(
        function("k", [s, row], EvalStmt(load(s, [row, 0]))), function("main", [t], *launches)
    )
    if accepted:
        blocked(made)
    else:
        assert "in 256 steps" in refusal(made).message


def test_a_strided_type_of_junk_is_named() -> None:
    view = TensorView([4, 1], A)
    set_fields(view, stride=("x", index(1)))
    type_ = TensorType([64, 4], DType.E8M0, None, view)
    found = refusal(kernel(params=(Var("t", type_),))).message
    assert found.startswith("stride[0] of a TensorView must be Expr, not str")
