import pytest

from scalebox.codegen.host.check import check_host
from scalebox.codegen.host.program import (
    Alias,
    Allocate,
    Assign,
    For,
    HostProgram,
    If,
    Launch,
    Output,
    Require,
    Statement,
)
from scalebox.codegen.host.tasks import TaskGraph, expand
from scalebox.codegen.isa.program import make
from scalebox.codegen.isa.table import BY_MNEMONIC
from scalebox.codegen.kernel import Kernel
from scalebox.codegen.scalars.exprs import Binary, BinaryOp, Const, Scalar, Variable
from scalebox.codegen.tensors import Direction, Param, ParamKind
from scalebox.ir.errors import InputError, IRValueError
from scalebox.ir.limits import MAX_STEPS


def tensor(name: str, direction: Direction = Direction.IN) -> Param:
    return Param(name, ParamKind.TENSOR, "FP32", 32, direction, (16, 16))


A, B = tensor("a"), tensor("b")
OUT = tensor("out", Direction.OUT)
N = Param("n", ParamKind.SCALAR, "INDEX", 64)
COPY = Kernel.assemble(
    "copy",
    params=[
        tensor("src"),
        Param("row", ParamKind.SCALAR, "INDEX", 64),
        tensor("dst", Direction.OUT),
    ],
    views=[],
    program=[make("halt")],
)
ADD = Kernel.assemble(
    "add",
    params=[tensor("src"), tensor("acc", Direction.INOUT)],
    views=[],
    program=[make("halt")],
)
KERNELS = (COPY, ADD)
ZERO, ONE = Const(0), Const(1)


def host(*body: Statement, outputs: tuple[Output, ...] = (Output("out", "out"),)) -> HostProgram:
    return HostProgram("main", (A, B, N, OUT), body, outputs)


def run(*body: Statement, n: int = 0) -> TaskGraph:
    program = host(*body)
    check_host(program, KERNELS)
    return expand(program, KERNELS, {"n": n})


def copy(source: str, dest: str, row: Scalar = ZERO) -> Launch:
    return Launch(0, (source, dest), (row,))


def value(expression: Scalar, n: int = 0) -> int:
    return run(copy("a", "out", expression), n=n).tasks[0].scalars[0]


def test_a_loop_of_launches_gives_a_task_a_round_with_its_scalar():
    body = copy("a", "out", Binary(BinaryOp.MUL, Variable("i"), Const(64)))
    graph = run(For("i", ZERO, Variable("n"), Const(2), (body,)), n=5)
    assert [task.scalars for task in graph.tasks] == [(0,), (128,), (256,)]
    assert {task.kernel for task in graph.tasks} == {0}
    assert {task.buffers for task in graph.tasks} == {("a", "out")}
    assert graph.outputs == {"out": "out"}
    assert [buffer.name for buffer in graph.buffers] == ["a", "b", "out"]


def test_a_loop_may_count_down_or_not_run_at_all():
    down = For("i", Const(2), Const(-1), Const(-1), (copy("a", "out", Variable("i")),))
    assert [task.scalars for task in run(down).tasks] == [(2,), (1,), (0,)]
    assert run(For("i", Const(2), Const(2), ONE, (copy("a", "out"),))).tasks == ()


def test_a_task_waits_for_writers_of_what_it_uses_and_for_readers_of_what_it_writes():
    scratch = Allocate("t", "FP32", 32, (16, 16))
    graph = run(
        scratch,
        copy("a", "t"),  # 0
        copy("b", "out"),  # 1: shares nothing
        Launch(1, ("t", "out")),  # 2: reads what 0 wrote, updates what 1 wrote
        copy("t", "out"),  # 3: reads what 0 wrote, overwrites what 2 wrote
        copy("b", "t"),  # 4: overwrites what 0 wrote and 2 and 3 read
    )
    assert [task.depends for task in graph.tasks] == [(), (), (0, 1), (0, 2), (0, 2, 3)]


def test_tasks_that_only_read_together_do_not_wait_for_each_other():
    graph = run(
        Allocate("t", "FP32", 32, (16, 16)),
        Allocate("u", "FP32", 32, (16, 16)),
        copy("a", "t"),
        copy("a", "u"),
    )
    assert [task.depends for task in graph.tasks] == [(), ()]


def test_an_allocation_in_a_loop_makes_a_tensor_a_round():
    rounds = For(
        "i",
        ZERO,
        Const(3),
        ONE,
        (Allocate("t", "FP32", 32, (16, 16)), copy("a", "t"), copy("t", "out")),
    )
    graph = run(rounds)
    assert [buffer.name for buffer in graph.buffers if buffer.allocated] == ["t", "t#2", "t#3"]
    assert [task.buffers[1] for task in graph.tasks[::2]] == ["t", "t#2", "t#3"]
    assert [task.depends for task in graph.tasks] == [(), (0,), (), (1, 2), (), (3, 4)]


def test_an_alias_is_the_buffer_it_stands_for():
    graph = run(
        Alias("flat", "out", "FP32", 32, (256,)),
        copy("a", "flat"),
        copy("out", "out"),
    )
    assert graph.tasks[0].buffers == ("a", "out")
    assert graph.tasks[1].depends == (0,)


def test_assigned_scalars_carry_from_round_to_round():
    twice = Assign("x", Binary(BinaryOp.MUL, Variable("x"), Const(2)))
    graph = run(
        Assign("x", ONE),
        For("i", ZERO, Const(3), ONE, (copy("a", "out", Variable("x")), twice)),
    )
    assert [task.scalars for task in graph.tasks] == [(1,), (2,), (4,)]


def test_a_condition_chooses_the_branch():
    choice = If(
        Binary(BinaryOp.LT, Variable("n"), Const(10)),
        (copy("a", "out"),),
        (copy("b", "out"), copy("b", "out")),
    )
    assert len(run(choice, n=9).tasks) == 1
    assert len(run(choice, n=10).tasks) == 2


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        (BinaryOp.ADD, 2**63 - 1, 1, -(2**63)),
        (BinaryOp.SUB, -(2**63), 1, 2**63 - 1),
        (BinaryOp.MUL, 2**62, 4, 0),
        (BinaryOp.FLOORDIV, -3, 16, -1),
        (BinaryOp.FLOORDIV, -(2**63), -1, -(2**63)),
        (BinaryOp.FLOORMOD, -3, 16, 13),
        (BinaryOp.FLOORMOD, 3, -16, -13),
        (BinaryOp.MIN, -1, 1, -1),
        (BinaryOp.MAX, -1, 1, 1),
        (BinaryOp.AND, 12, 10, 8),
        (BinaryOp.OR, 12, 10, 14),
        (BinaryOp.XOR, 12, 10, 6),
        (BinaryOp.SHL, 1, 63, -(2**63)),
        (BinaryOp.SHL, 1, 64, 1),
        (BinaryOp.SHR, -8, 1, -4),
        (BinaryOp.EQ, 1, 1, 1),
        (BinaryOp.NE, 1, 1, 0),
        (BinaryOp.LT, -1, 0, 1),
        (BinaryOp.LE, 0, 0, 1),
        (BinaryOp.GT, 0, 0, 0),
        (BinaryOp.GE, 0, 0, 1),
    ],
)
def test_scalars_are_64_bit_and_divide_downward(op: BinaryOp, a: int, b: int, expected: int):
    assert value(Binary(op, Const(a), Const(b))) == expected


def test_the_host_computes_what_the_scalar_unit_computes():
    assert {op.value for op in BinaryOp} <= set(BY_MNEMONIC)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            For("i", ZERO, ONE, ZERO, ()),
            "The step of loop 'i' in 'main' must not be zero.",
        ),
        (
            Assign("x", Binary(BinaryOp.FLOORDIV, ONE, ZERO)),
            "A divisor in 'main' must not be zero.",
        ),
        (
            For("i", ZERO, Const(2**62), ONE, ()),
            f"A launch of 'main' must take at most {MAX_STEPS} host steps.",
        ),
        (
            Require(Binary(BinaryOp.GT, Variable("n"), ZERO), "n must be positive, not 0."),
            "n must be positive, not 0.",
        ),
    ],
)
def test_an_impossible_launch_is_refused(body: Statement, message: str):
    with pytest.raises(InputError) as caught:
        run(body)
    assert caught.value.message == message


def test_too_many_tasks_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("scalebox.ir.limits.MAX_TASKS", 10)
    assert len(run(For("i", ZERO, Const(10), ONE, (copy("a", "out"),))).tasks) == 10
    with pytest.raises(InputError, match="A launch of 'main' must have at most 10 tasks"):
        run(For("i", ZERO, Const(11), ONE, (copy("a", "out"),)))


@pytest.mark.parametrize(
    ("scalars", "message"),
    [
        ({}, "Scalar 'n' of 'main' must be given, not left out."),
        ({"n": 1, "m": 2}, "A scalar of 'main' must be one of its parameters, not 'm'."),
        ({"n": 2**63}, f"Scalar 'n' must be a signed 64-bit integer, not {2**63}."),
    ],
)
def test_the_entrys_scalars_are_given_in_full(scalars: dict[str, int], message: str):
    with pytest.raises(InputError) as caught:
        expand(host(), KERNELS, scalars)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("body", "clause"),
    [
        ((copy("c", "out"),), "use tensors that are defined (a, b, out), not 'c'"),
        ((copy("a", "out", Variable("i")),), "use scalars that are defined (n), not 'i'"),
        (
            (For("i", ZERO, ONE, ONE, (Assign("x", ONE),)), copy("a", "out", Variable("x"))),
            "use scalars that are defined (n), not 'x'",
        ),
        (
            (If(ONE, (Allocate("t", "FP32", 32, (16, 16)),)), copy("t", "out")),
            "use tensors that are defined (a, b, out), not 't'",
        ),
        ((Launch(2, ()),), "launch one of the 2 kernels, not 2"),
        ((Launch(-1, ()),), "launch one of the 2 kernels, not -1"),
        ((Launch(0, ("a",), (ZERO,)),), "bind the 2 tensors of 'copy', not 1"),
        ((Launch(0, ("a", "out")),), "give the 1 scalars of 'copy', not 0"),
        (
            (Allocate("t", "FP32", 32, (16, 8)), copy("a", "t")),
            "bind 1024 bytes to 'dst' of 'copy', not the 512 of 't'",
        ),
        (
            (Alias("t", "a", "FP16", 16, (16, 16)),),
            "give alias 't' the 1024 bytes of 'a', not 512",
        ),
        ((Allocate("a", "FP32", 32, (1,)),), "allocate tensors under names of their own, not 'a'"),
        ((Alias("a", "b", "FP32", 32, (256,)),), "alias tensors under names of their own, not 'a'"),
    ],
)
def test_an_inconsistent_host_program_is_refused(body: tuple[Statement, ...], clause: str):
    with pytest.raises(IRValueError) as caught:
        check_host(host(*body), KERNELS)
    assert caught.value.message == f"Entry 'main' must {clause}."


def test_names_defined_on_both_branches_are_defined_after_them():
    scratch = Allocate("t", "FP32", 32, (16, 16))
    graph = run(If(Variable("n"), (scratch,), (scratch,)), copy("a", "t"))
    assert graph.tasks[0].buffers == ("a", "t")


def test_nesting_is_limited():
    deep: Statement = copy("a", "out")
    expression: Scalar = ZERO
    for _ in range(70):
        deep = If(ONE, (deep,))
        expression = Binary(BinaryOp.ADD, expression, ONE)
    for body in (deep, copy("a", "out", expression)):
        with pytest.raises(IRValueError, match="nest at most 64 deep, not more"):
            check_host(host(body), KERNELS)


def test_outputs_must_exist_and_have_different_names():
    with pytest.raises(IRValueError, match="use tensors that are defined"):
        check_host(host(outputs=(Output("out", "t"),)), KERNELS)
    with pytest.raises(IRValueError, match=r"outputs of different names, not \['x', 'x'\]"):
        host(outputs=(Output("x", "a"), Output("x", "b")))


def test_a_kernel_is_an_entry_of_its_own():
    entry = HostProgram.of_kernel(1, ADD)
    check_host(entry, KERNELS)
    graph = expand(entry, KERNELS)
    assert entry.name == "add"
    assert graph.tasks[0].buffers == ("src", "acc")
    assert graph.outputs == {"acc": "acc"}
    entry = HostProgram.of_kernel(0, COPY, outputs=(Output("result", "dst"),))
    graph = expand(entry, KERNELS, {"row": 16})
    assert graph.tasks[0].scalars == (16,)
    assert graph.outputs == {"result": "dst"}
