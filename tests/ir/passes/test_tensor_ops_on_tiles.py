"""Ops on whole tensors become loads, ops on tiles and stores that compute the same bits."""

from typing import Any

import pytest

import scalebox
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.ir import language as pl
from scalebox.ir.core import Function, Program
from scalebox.ir.errors import IRTypeError, IRValueError, UserError
from scalebox.ir.expr import ScalarType
from scalebox.ir.interp import interpret_program, select_entry
from scalebox.ir.ops import ROWS
from scalebox.ir.passes import (
    convert_tensor_to_tile_ops,
    convert_to_ssa,
    flatten_call_expr,
    normalize_stmt_structure,
)
from scalebox.ir.passes.made_tensors import LOWERED
from scalebox.ir.printer import python_print
from scalebox.ir.properties import STRUCTURAL
from scalebox.ir.verification.walk import all_calls
from scalebox.ir.verifier import verify

from .corpus import assert_same_bits
from .tensor_bodies import BODIES

#: What the scalar unit of the machine has no numbers for.
ONLY_INTERPRETED = {"scalars"}


def program(params: str, body: str) -> Program:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    made = pl.parse(
        "@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def f(self, {params}):\n{lines}\n"
    )
    assert isinstance(made, Program)
    return made


def inputs_of(made: Program) -> dict[str, Any]:
    entry = select_entry(made)
    pairs = list(zip(entry.params, entry.param_directions, strict=True))
    tensors = [pair for pair in pairs if not isinstance(pair[0].type, ScalarType)]
    shown = Function(entry.name, tensors, [], entry.body, type=entry.func_type)
    scalars = {p.name_hint: 1 for p in entry.params if isinstance(p.type, ScalarType)}
    return {**draw_inputs(shown, 3), **scalars}


def converted(made: Program) -> Program:
    for each in (convert_to_ssa(), normalize_stmt_structure(), flatten_call_expr()):
        made = each(made)
    return convert_tensor_to_tile_ops()(made)


@pytest.mark.parametrize("name", BODIES)
def test_the_pass_keeps_the_bits_and_leaves_no_op_on_tensors(name: str) -> None:
    made = program(*BODIES[name])
    given = inputs_of(made)
    done = converted(made)
    held = STRUCTURAL | convert_tensor_to_tile_ops.required | convert_tensor_to_tile_ops.produced
    assert verify(done, held) == []
    assert convert_tensor_to_tile_ops()(done) is done
    function = done.get_function("f")
    assert function is not None
    left = {call.op.name for call in all_calls(function)}
    assert not left & {*LOWERED, "tensor.create"}
    golden, found = interpret_program(made, given), interpret_program(done, given)
    assert list(found) == list(golden)
    assert_same_bits(found, golden)


@pytest.mark.parametrize("name", sorted(BODIES.keys() - ONLY_INTERPRETED))
def test_the_machine_computes_the_same_bits(name: str) -> None:
    made = program(*BODIES[name])
    given = inputs_of(made)
    golden, found = interpret_program(made, given), scalebox.run(made, given, timing=False).outputs
    assert list(found) == list(golden)
    assert_same_bits(found, golden)


def test_every_op_on_tensors_that_a_vector_core_runs_is_lowered() -> None:
    vector = {name for name, row in ROWS.items() if name.startswith("tensor.") and row.vector}
    assert vector <= LOWERED


A = "a: pl.Tensor[[16, 40], pl.FP32]"
SUM = "a: pl.Tensor[[16, 32], pl.BF16], b: pl.Tensor[[32, 16], pl.BF16]"
SUMMED = "for i in pl.range(2):\n    s = pl.matmul_acc(s, a, b, init_cond=(i == 0))\n"


@pytest.mark.parametrize(
    ("params", "body", "sentence"),
    [
        (
            "a: pl.Tensor[[2, 16, 32], pl.FP32]",
            "return pl.transpose(a, 0, 2)",
            "tensor.transpose must be of rank 2 to be compiled, not 3",
        ),
        (
            A,
            "o = a\nfor i in pl.range(2):\n    c = pl.create_tensor([16, 40], dtype=pl.FP32)\n"
            "    c = pl.assemble(c, a, [0, 0])\n    o = pl.add(o, c)\nreturn o",
            "'c' must be created outside of loops and branches to be compiled: a kernel is handed one "
            "tensor for it",
        ),
        (
            f"{A}, o: pl.InOut[pl.Tensor[[16, 40], pl.FP32]], n: pl.Scalar[pl.INDEX]",
            "c = o\nif n > 0:\n    c = pl.add(a, 1.0)\no[0:1, :] = a[0:1, :]\nreturn o, c",
            "'o' must be made by ops of one kind on every way to it to be compiled, not be a fresh "
            "result on one way and another tensor on another",
        ),
        (
            f"{A}, b: pl.Tensor[[40, 16], pl.FP32], acc: pl.Tensor[[16, 16], pl.FP32]",
            "return pl.matmul_acc(acc, a, b)",
            "tensor.matmul_acc: acc must be a product of this function to be compiled, which 'acc' is "
            "not: nothing is loaded into the accumulator",
        ),
        (
            SUM,
            f"s = pl.create_tensor([16, 16], dtype=pl.FP32)\nz = s\n{SUMMED}return s, z",
            "'z' must be written before it is used to be compiled, not still be 's' as "
            "pl.create_tensor made it: a product is summed up in it only later",
        ),
        (
            SUM,
            f"s = pl.create_tensor([16, 16], dtype=pl.FP32)\nz = pl.add(s, 1.0)\n{SUMMED}return z, s",
            "'s' must be written before it is used to be compiled, not still be as pl.create_tensor "
            "made it: a product is summed up in it only later",
        ),
        (
            SUM,
            f"s = pl.create_tensor([16, 16], dtype=pl.FP32)\nz = s[0:8, :]\n{SUMMED}return z, s",
            "'s' must be written before it is used",
        ),
        (A, "a = pl.neg(a)\nreturn a", "The result 'a' of 'f' must have a name of its own"),
    ],
)
def test_what_has_no_form_on_tiles_is_refused(params: str, body: str, sentence: str) -> None:
    with pytest.raises(IRValueError) as caught:
        converted(program(params, body))
    assert caught.value.message.startswith(sentence)
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("params", "body", "sentence"),
    [
        (f"{A}, b: pl.Tensor[[16, 8], pl.FP32]", "return pl.matmul(a, b)", "K must be the same"),
        (f"{A}, b: pl.Tensor[[40, 8], pl.BF16]", "return pl.matmul(a, b)", "lhs and rhs must be"),
        (
            f"{A}, b: pl.Tensor[[40, 8], pl.FP32]",
            "return pl.matmul(a, b, out_dtype=pl.INT32)",
            "out_dtype must be one of Float32, BFloat16, Float16, not Int32",
        ),
        (
            f"{A}, b: pl.Tensor[[40, 8], pl.FP32], s: pl.Tensor[[1, 7], pl.FP32]",
            "return pl.matmul_bias(a, b, s)",
            "bias must be [1, 8], not [1, 7]",
        ),
        (A, "return pl.slice(a, [2, 4], [0, 0], drop_dims=[0])", "drop_dims must name axes of one"),
        (
            A,
            "return pl.slice(a, [1, 4], [0, 0], drop_dims=[2])",
            "drop_dims must name axes in 0..1",
        ),
        (A, "return pl.slice(a, [1, 1], [0, 0], drop_dims=[0, 1])", "drop_dims must leave an axis"),
        (A, "return pl.slice(a, [1, 4], [0, 0], drop_dims=1)", "drop_dims must be a list of axes"),
        (A, "return pl.slice(a, [16, 8], [0, 36])", "the window must end within the tensor"),
        (
            A,
            "return pl.slice(a, [16, 8], [0, 32], [16, 9])",
            "valid_shape must be in 1..8 on axis 1, not 9",
        ),
        (
            A,
            "return pl.add(pl.slice(a, [8, 8], [0, 0], [8, 5]), 1.0)",
            "a must be valid as a whole",
        ),
        (
            A,
            "return pl.fillpad(a, pl.PadValue.null)",
            "pad_value must be zero, max or min, not null",
        ),
    ],
)
def test_what_the_language_refuses_says_what_must_be(params: str, body: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        program(params, body)
    assert sentence in caught.value.message


def test_blocks_of_a_grid_do_not_share_what_a_kernel_keeps_in_global_memory() -> None:
    made = pl.parse(
        "@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def f(self, a: pl.Tensor[[16, 40], pl.FP32], o: pl.Out[pl.Tensor[[40, 16], pl.FP32]]):\n"
        "        b = pl.reshape(pl.neg(a), [40, 16])\n"
        "        return pl.assemble(o, b, [0, 0])\n"
        "    @pl.function(type=pl.FunctionType.Orchestration)\n"
        "    def main(self, a: pl.Tensor[[16, 40], pl.FP32], o: pl.Out[pl.Tensor[[40, 16], pl.FP32]]):\n"
        "        with pl.spmd(2):\n            o = self.f(a, o)\n        return o\n"
    )
    assert isinstance(made, Program)
    with pytest.raises(IRValueError, match="its blocks would share that tensor") as caught:
        converted(made)
    assert caught.value.span is not None
    alone = pl.parse(python_print(made).replace("with pl.spmd(2):", "for _ in pl.range(1):"))
    assert isinstance(alone, Program)
    converted(alone)


def test_a_result_of_several_returns_is_refused() -> None:
    params = f"{A}, n: pl.Scalar[pl.INDEX]"
    with pytest.raises((IRValueError, IRTypeError), match="must be the last statement"):
        converted(program(params, "if n > 0:\n    return pl.neg(a)\nreturn a"))


def test_what_two_ops_of_a_vector_core_need_of_a_product_is_moved_once() -> None:
    params = (
        "q: pl.Tensor[[64, 64], pl.BF16], k: pl.Tensor[[64, 64], pl.BF16], n: pl.Scalar[pl.INDEX]"
    )
    body = (
        "s = pl.matmul(q, k)\ne = pl.row_expand_expdif(s, pl.row_max(s))\n"
        "if n > 0:\n    e = pl.add(pl.add(e, s), s)\nreturn e"
    )
    text = python_print(converted(program(params, body)))
    moves = "pl.tile.move(s, target_memory=pl.Mem.Vec)"
    assert text.count(moves) == 2, "once before the branch, which may not be taken, and once in it"
