"""ConvertTensorToTileOps: outputs that appear, who hands them over, and what is refused."""

from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.ir import language as pl
from scalebox.ir.core import (
    AssignStmt,
    Function,
    FunctionType,
    ParamDirection,
    Program,
    ReturnStmt,
    SeqStmts,
    SpmdScopeStmt,
    flatten_to_stmts,
)
from scalebox.ir.dtypes import DType, TaskId
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.expr import Call, GlobalVar, Op, ScalarType, Submit, Var
from scalebox.ir.interp import interpret_program, select_entry
from scalebox.ir.mx_uses import MATMULS
from scalebox.ir.ops import ROWS
from scalebox.ir.passes import (
    convert_tensor_to_tile_ops,
    convert_to_ssa,
    flatten_call_expr,
    normalize_stmt_structure,
)
from scalebox.ir.passes.made_tensors import LOWERED
from scalebox.ir.properties import STRUCTURAL, IRProperty
from scalebox.ir.types import TensorType, TupleType
from scalebox.ir.verifier import verify

OPERANDS = (
    "a: pl.Tensor[[64, 128], pl.FP8E4M3FN], sa: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ], "
    "b: pl.Tensor[[128, 32], pl.FP8E4M3FN], sb: pl.Tensor[[4, 32], pl.FP8E8M0, pl.MX_B_NN]"
)
PRODUCT = "pl.matmul_mx(a, sa, b, sb)"


def program(body: str, more: str = "", kind: str = "InCore", rest: str = "") -> Program:
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    made = pl.parse(
        f"@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.{kind})\n"
        f"    def gemm(self, {OPERANDS}{more}):\n{lines}\n{rest}"
    )
    assert isinstance(made, Program)
    return made


def flat(made: Program) -> Program:
    for each in (convert_to_ssa(), normalize_stmt_structure(), flatten_call_expr()):
        made = each(made)
    return made


def converted(made: Program) -> Program:
    return convert_tensor_to_tile_ops()(flat(made))


def signature(made: Program, name: str = "gemm") -> list[tuple[str, ParamDirection]]:
    function = made.get_function(name)
    assert function is not None
    names = (param.name_hint for param in function.params)
    return list(zip(names, function.param_directions, strict=True))[4:]


OUT = ParamDirection.Out

# A body, further parameters, and the outputs that appear.
BODIES: dict[str, tuple[str, str, list[str]]] = {
    "a name": (f"c = {PRODUCT}\nreturn c", "", ["c"]),
    "no name": (f"return {PRODUCT}", "", ["out"]),
    "the name of an output": (
        f"out = pl.assemble(out, {PRODUCT}, [0, 0])\nreturn out, {PRODUCT}",
        ", out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]",
        ["out_1"],
    ),
    "twice": (f"c = {PRODUCT}\nreturn c, c", "", ["c", "c_1"]),
    "before and after a sum": (
        f"c = {PRODUCT}\nd = pl.matmul_mx_acc(c, a, sa, b, sb)\nreturn c, d",
        "",
        ["c", "d"],
    ),
    "a loop that carries": (
        f"c = {PRODUCT}\nfor i in pl.range(3):\n    c = pl.matmul_mx_acc(c, a, sa, b, sb)\nreturn c",
        "",
        ["c"],
    ),
    "explicit yields": (
        f"c = {PRODUCT}\nfor i, (x,) in pl.range(2, init_values=(c,)):\n"
        "    y = pl.yield_(pl.matmul_mx_acc(x, a, sa, b, sb))\nreturn y",
        "",
        ["y"],
    ),
    "only assembled": (
        f"c = {PRODUCT}\nwide = pl.assemble(wide, c, [0, 32])\nreturn wide",
        ", wide: pl.Out[pl.Tensor[[64, 64], pl.BF16]]",
        [],
    ),
    "not used": (f"c = {PRODUCT}\nreturn", "", []),
}


@pytest.mark.parametrize("name", BODIES)
def test_outputs_appear_and_the_numbers_stay(name: str) -> None:
    body, more, outputs = BODIES[name]
    made = program(body, more)
    done = converted(made)
    found = signature(done)
    assert found[len(found) - len(outputs) :] == [(output, OUT) for output in outputs]
    held = STRUCTURAL | convert_tensor_to_tile_ops.required | convert_tensor_to_tile_ops.produced
    assert verify(done, held) == []
    assert convert_tensor_to_tile_ops()(done) is done
    inputs = draw_inputs(select_entry(made), 4)
    golden = interpret_program(made, inputs)
    after, machine = interpret_program(done, inputs), scalebox.run(made, inputs).outputs
    assert list(golden) == list(after) == list(machine)
    for key, wanted in golden.items():
        assert after[key].tobytes() == machine[key].tobytes() == wanted.tobytes()


def test_every_op_on_tensors_is_lowered_or_moves_no_data() -> None:
    no_data = {"tensor.create", "tensor.view", "tensor.dim"}
    assert {
        name for name in ROWS if name.startswith("tensor.")
    } <= LOWERED | MATMULS.keys() | no_data


def test_what_is_read_again_is_no_output() -> None:
    made = program(
        f"first = {PRODUCT}\nrow = pl.load(first, [5, 0], [1, 32], target_memory=pl.Mem.Mat)\n"
        "second = pl.matmul_mx_bias(\n    pl.load(a, [0, 0], [64, 128], target_memory=pl.Mem.Mat),"
        "\n    pl.load(sa, [0, 0], [64, 4]),\n"
        "    pl.load(b, [0, 0], [128, 32], target_memory=pl.Mem.Mat),\n"
        "    pl.load(sb, [0, 0], [4, 32]), row)\nout = pl.store(second, [0, 0], out)\nreturn out",
        ", out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]",
    )
    done = converted(made)
    assert signature(done) == [("out", OUT), ("first_scratch", OUT)]
    inputs = draw_inputs(select_entry(made), 4)
    golden = interpret_program(made, inputs)
    assert list(interpret_program(done, inputs)) == ["out"]
    found = scalebox.run(made, inputs)
    assert list(found.outputs) == ["out"]
    assert found.outputs["out"].tobytes() == golden["out"].tobytes()


CALLER = f"""
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {OPERANDS}):
        first = self.gemm(a, sa, b, sb)
        second = self.gemm(a, sa, b, sb)
        return second, first
"""


class TestCallers:
    def test_who_calls_makes_a_tensor_for_each_call(self) -> None:
        made = program(f"c = {PRODUCT}\nreturn c", rest=CALLER)
        done = converted(made)
        main = done.get_function("main")
        assert main is not None
        stmts = flatten_to_stmts(main.body)
        names = [
            s.value.op.name
            for s in stmts
            if isinstance(s, AssignStmt) and isinstance(s.value, Call)
        ]
        assert names == ["tensor.create", "gemm", "tensor.create", "gemm"]
        assert signature(done, "main") == []
        inputs = draw_inputs(select_entry(made), 2)
        golden, found = interpret_program(made, inputs), scalebox.run(made, inputs).outputs
        assert list(golden) == list(found) == ["second", "first"]
        assert all(found[k].tobytes() == golden[k].tobytes() for k in golden)

    def test_a_launch_that_leaves_outputs_out_goes_on_doing_so(self) -> None:
        done = self._launch(complete=False)
        submit = done[-2]
        assert isinstance(submit, AssignStmt)
        assert isinstance(submit.value, Submit)
        assert len(submit.value.args) == 3

    def test_a_complete_launch_gets_the_tensor(self) -> None:
        *_, create, submit, _back = self._launch(complete=True)
        assert isinstance(create, AssignStmt)
        assert isinstance(submit, AssignStmt)
        assert isinstance(submit.value, Submit)
        assert submit.value.args[-1] is create.var

    def _launch(self, *, complete: bool) -> Any:
        kernel = flat(program(f"c = {PRODUCT}\nreturn c")).get_function("gemm")
        assert kernel is not None
        params = [Var(p.name_hint, p.type) for p in kernel.params]
        args = params if complete else params[:3]
        type_ = TupleType([kernel.return_types[0], ScalarType(TaskId)])
        result = Var("t", type_)
        submit = Submit(GlobalVar("gemm"), args, [], type_)
        body = SeqStmts((AssignStmt(result, submit), ReturnStmt(())))
        main = Function("main", params, [], body, type=FunctionType.Orchestration)
        done = convert_tensor_to_tile_ops()(Program([kernel, main])).get_function("main")
        assert done is not None
        return flatten_to_stmts(done.body)

    def test_a_wrapper_of_a_grid_hands_its_own_output_on(self) -> None:
        kernel = flat(program(f"c = {PRODUCT}\nreturn c")).get_function("gemm")
        assert kernel is not None
        product = TensorType([64, 32], DType.Float32)

        def calling(name: str, type_: FunctionType, callee: str) -> Function:
            params = [Var(p.name_hint, p.type) for p in kernel.params]
            result = Var("c", product)
            call = AssignStmt(result, Call(GlobalVar(callee), params, product))
            grid = SpmdScopeStmt(core_num=2, body=call)  # pyright: ignore[reportArgumentType]
            first = grid if type_ is FunctionType.Spmd else call
            body = SeqStmts((first, ReturnStmt((result,))))
            return Function(name, params, [product], body, type=type_)

        wrapper = calling("grid", FunctionType.Spmd, "gemm")
        main = calling("main", FunctionType.Orchestration, "grid")
        done = convert_tensor_to_tile_ops()(Program([kernel, wrapper, main]))
        assert signature(done, "grid") == [("c", OUT)]
        assert signature(done, "main") == []
        wrapped, outer = done.get_function("grid"), done.get_function("main")
        assert wrapped is not None
        assert outer is not None
        grid = flatten_to_stmts(wrapped.body)[0]
        assert isinstance(grid, SpmdScopeStmt)
        assert isinstance(grid.body, AssignStmt)
        assert isinstance(grid.body.value, Call)
        assert grid.body.value.args[-1] is wrapped.params[-1]
        create, launch, _ = flatten_to_stmts(outer.body)
        assert isinstance(create, AssignStmt)
        assert isinstance(launch, AssignStmt)
        assert isinstance(launch.value, Call)
        assert launch.value.args[-1] is create.var


class TestRefusals:
    def refusal(self, made: Program) -> IRValueError:
        with pytest.raises(IRValueError) as caught:
            converted(made)
        assert caught.value.span is not None
        return caught.value

    @pytest.mark.parametrize("kind", ["Orchestration", "Opaque"])
    def test_a_product_that_no_core_runs(self, kind: str) -> None:
        error = self.refusal(program(f"c = {PRODUCT}\nreturn c", kind=kind))
        assert error.message == (
            "tensor.matmul_mx must stand in an InCore function to be compiled, but 'gemm' is of "
            f"type {kind}"
        )

    def test_a_sum_that_starts_from_global_memory(self) -> None:
        made = program(
            "d = pl.matmul_mx_acc(x, a, sa, b, sb)\nreturn d", ", x: pl.Tensor[[64, 32], pl.FP32]"
        )
        assert self.refusal(made).message == (
            "tensor.matmul_mx_acc: acc must be a product of this function to be compiled, which "
            "'x' is not: nothing is loaded into the accumulator"
        )

    def test_a_result_with_the_name_of_an_input(self) -> None:
        made = program(f"x = {PRODUCT}\nreturn x", ", x: pl.Tensor[[64, 32], pl.FP32]")
        assert self.refusal(made).message == (
            "The result 'x' of 'gemm' must have a name of its own to be compiled, not that of a "
            "parameter"
        )

    def test_a_product_on_one_way_and_a_parameter_on_another(self) -> None:
        made = program(
            f"if n > 0:\n    c = {PRODUCT}\nelse:\n    c = x\nreturn c",
            ", x: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX]",
        )
        assert self.refusal(made).message.startswith(
            "'x' must be made by ops of one kind on every way to it to be compiled"
        )

    def test_a_return_before_the_end(self) -> None:
        made = program(
            f"if n > 0:\n    return {PRODUCT}\nreturn x",
            ", x: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX]",
        )
        assert self.refusal(made).message.startswith(
            "A return must be the last statement of 'gemm' to be compiled"
        )


@pytest.mark.parametrize(
    "body",
    [
        "w = pl.slice(x, [64, 32], [0, 0])\nreturn w",
        "w = pl.slice(x, [64, 32], [0, 0])\nw = pl.slice(x, [64, 32], [0, 32])\nreturn w",
        "out[:, 0:32] = x[:, 0:32]\nw = out[:, 0:32]\nreturn out, w",
        "w = pl.slice(out, [64, 32], [0, 0])\nout = pl.assemble(out, w, [0, 32])\nreturn out",
        "w = out[0:32, :]\nout[0:32, :] = out[32:64, :]\nout[32:64, :] = w\nreturn out",
    ],
)
def test_a_window_is_what_the_tensor_held_when_it_was_cut(body: str) -> None:
    made = program(
        body,
        ", x: pl.Tensor[[64, 64], pl.FP32], out: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]",
    )
    inputs = draw_inputs(select_entry(made), 2)
    golden = interpret_program(made, inputs)
    for found in (
        interpret_program(converted(made), inputs),
        scalebox.run(made, inputs, timing=False).outputs,
    ):
        assert list(found) == list(golden)
        assert all(found[name].tobytes() == golden[name].tobytes() for name in golden)


BIAS = ", bias: pl.Tensor[[1, 32], pl.FP32], o: pl.Out[pl.Tensor[[64, 32], pl.FP32]]"
BIASED = "c = pl.matmul_mx_bias(a, sa, b, sb, bias)\n"


@pytest.mark.parametrize(
    "body",
    [
        f"c = pl.assemble(c, {PRODUCT}, [0, 0])\nreturn c",
        f"d = pl.assemble(c, {PRODUCT}, [0, 0])\nreturn d",
        f"c[:] = {PRODUCT}\nreturn o, c",
        f"pl.assemble(c, {PRODUCT}, [0, 0])\nreturn c",
        f"c = pl.matmul_mx_acc(c, a, sa, b, sb)\nd = pl.assemble(c, {PRODUCT}, [0, 0])\nreturn d",
        f"for i in pl.range(2):\n    pl.assemble(c, {PRODUCT}, [0, 0])\nreturn c",
        f"d = pl.tensor.view(c, [32, 64])\npl.assemble(c, {PRODUCT}, [0, 0])\nreturn c",
    ],
)
def test_a_result_that_is_written_into_is_returned_under_its_name(body: str) -> None:
    made = program(BIASED + body, BIAS)
    inputs = draw_inputs(select_entry(made), 1)
    golden = scalebox.interpret(made, inputs)
    after = scalebox.interpret(converted(made), inputs)
    found = scalebox.run(made, inputs, timing=False).outputs
    for outputs in (after, found):
        assert outputs.keys() == golden.keys()
        for name, array in golden.items():
            assert outputs[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (f"d = pl.assemble(c, {PRODUCT}, [0, 0])\nreturn c, d", "'c' must have one name"),
        (f"d = pl.assemble(c, {PRODUCT}, [0, 0])\nreturn d, d", "'c' must have one name"),
        (f"pl.assemble(c, {PRODUCT}, [0, 0])\nreturn c, c", "'c' must have one name"),
        (f"d = c\nd = pl.assemble(d, {PRODUCT}, [0, 0])\nreturn c", "'d' must have one name"),
        ("d = pl.tensor.view(c, [32, 64])\nreturn c, d", "'c' must have one name"),
        (
            "d = pl.tensor.view(c, [32, 64])\nreturn d",
            "'d' must be returned in the shape in which 'c'",
        ),
        (
            f"pl.assemble(c, {PRODUCT}, [0, 0])\no = pl.assemble(o, c, [0, 0])\nreturn o",
            "'c' must not be an operand",
        ),
        (
            f"pl.assemble(c, {PRODUCT}, [0, 0])\nd = pl.matmul_mx_acc(c, a, sa, b, sb)\nreturn d",
            "'c' must not be an operand",
        ),
    ],
)
def test_a_tensor_that_would_be_in_two_places_is_refused(body: str, sentence: str) -> None:
    with pytest.raises(IRValueError) as caught:
        converted(program(BIASED + body, BIAS))
    assert caught.value.message.startswith(sentence)
    assert caught.value.span is not None


def test_a_window_that_a_load_takes_is_loaded_from_where_it_was_cut() -> None:
    made = program(
        "w = pl.slice(a, [64, 64], [0, 64])\n"
        "t = pl.load(w, [32, 32], [16, 16], target_memory=pl.Mem.Vec)\n"
        "out = pl.store(t, [0, 0], out)\nreturn out",
        ", out: pl.Out[pl.Tensor[[16, 16], pl.FP8E4M3FN]]",
    )
    inputs = draw_inputs(select_entry(made), 2)
    done = converted(made)
    assert not verify(done, {IRProperty.IncoreTileOps})
    found = interpret_program(done, inputs)["out"]
    np.testing.assert_array_equal(found, inputs["a"][32:48, 96:112])
    assert interpret_program(made, inputs)["out"].tobytes() == found.tobytes()


@pytest.mark.parametrize("name", sorted(LOWERED))
def test_a_call_without_operands_is_named(name: str) -> None:
    result = Var("x", TensorType([64, 32], DType.Float32))
    body = SeqStmts((AssignStmt(result, Call(Op(name), [], result.type)), ReturnStmt(())))
    made = Program([Function("f", [], [], body, type=FunctionType.InCore)])
    with pytest.raises(IRTypeError, match=rf"^{name}: "):
        convert_tensor_to_tile_ops()(made)
