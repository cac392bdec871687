"""ExpandCompoundTensors: what is refused and by which sentence, and what the layout algebra proves."""

from typing import Any

import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import AssignStmt, Function, Program, ReturnStmt, SeqStmts
from scalebox.ir.dtypes import BlockScaledDType, DType, Index
from scalebox.ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS
from scalebox.ir.errors import IRTypeError, IRValueError, Span, UserError
from scalebox.ir.expr import Call, Op, ScalarType, Var
from scalebox.ir.mx_binding import compound_params_of
from scalebox.ir.mx_types import Side, boxed, operand
from scalebox.ir.numerics.scales import scale_offset_a, scale_offset_b
from scalebox.ir.passes import (
    convert_to_ssa,
    expand_compound_tensors,
    flatten_call_expr,
    normalize_stmt_structure,
)
from scalebox.ir.passes.compound_planes import planes_of
from scalebox.ir.types import TensorLayout, TensorType, constant_dims

KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[{m}, {k}], pl.{a}], b: pl.Tensor[[{k}, {n}], pl.{b}]):
        c = {value}
        return c
"""


def flat(text: str) -> Program:
    made = pl.parse(text)
    assert isinstance(made, Program)
    for each in (convert_to_ssa(), normalize_stmt_structure(), flatten_call_expr()):
        made = each(made)
    return made


def kernel(
    a: str = "MXFP8_E4M3",
    b: str = "MXFP8_E4M3",
    shape: tuple[int, int, int] = (64, 128, 32),
    value: str = "pl.matmul(a, b)",
) -> Program:
    m, k, n = shape
    return flat(KERNEL.format(a=a, b=b, m=m, k=k, n=n, value=value))


def refusal(kind: type[UserError], made: Program) -> UserError:
    with pytest.raises(kind) as caught:
        expand_compound_tensors()(made)
    assert caught.value.span is not None
    return caught.value


class TestRefusals:
    @pytest.mark.parametrize("dtype", ["MXFP6_E3M2", "MXFP6_E2M3", "MXINT8", "NVFP4"])
    def test_dtypes_that_the_machine_does_not_multiply(self, dtype: str) -> None:
        error = refusal(IRTypeError, kernel(dtype, dtype))
        assert error.message == (
            f"'a' of 'f' must be of MXFP8_E4M3, MXFP8_E5M2 or MXFP4 to be compiled, not of {dtype}"
        )
        assert error.hint == "scalebox.interpret runs the program as it stands"

    @pytest.mark.parametrize(("a", "b"), [("MXFP8_E4M3", "MXFP4"), ("MXFP4", "MXFP8_E5M2")])
    def test_pairs_that_the_machine_does_not_multiply(self, a: str, b: str) -> None:
        error = refusal(IRTypeError, kernel(a, b))
        assert error.message == (
            "A matmul must have two operands of MXFP8, or two of MXFP4, to be compiled, not "
            f"{a} and {b}"
        )

    @pytest.mark.parametrize(
        ("shape", "sentence"),
        [
            ((8, 128, 32), "'a' of 'f' must have scales that fill their boxes to be compiled: "
             "Scales must be whole boxes of 16 rows by 2 groups, not 8 rows by 4 groups"),
            ((16, 32, 32), "'a' of 'f' must have scales that fill their boxes to be compiled: "
             "Scales must be whole boxes of 16 rows by 2 groups, not 16 rows by 1 groups"),
            ((16, 128, 8), "'b' of 'f' must have scales that fill their boxes to be compiled: "
             "Scales must be whole boxes of 16 rows by 2 groups, not 8 rows by 4 groups"),
            ((16, 128, 16), "tensor.matmul_mx: N must be a multiple of 32, not 16"),
        ],
    )  # fmt: skip
    def test_extents(self, shape: tuple[int, int, int], sentence: str) -> None:
        assert refusal(IRValueError, kernel(shape=shape)).message == sentence

    def test_a_symbolic_extent(self) -> None:
        a = Var("a", TensorType([Var("m", ScalarType(Index)), 64], DType.MXFP4), Span("k.py", 1, 1))
        made = Program([Function("f", [a], [], ReturnStmt(()))])
        assert refusal(IRTypeError, made).message == (
            "'a' of 'f' must have constant dimensions to be compiled, not symbolic ones"
        )

    def test_a_tensor_that_is_returned(self) -> None:
        a = Var("a", TensorType([32, 64], DType.MXFP4), Span("k.py", 1, 1))
        back = ReturnStmt((a,), Span("k.py", 2, 1))
        error = refusal(IRValueError, Program([Function("f", [a], [a.type], back)]))
        assert error.message == "'f' must return tensors of simple dtypes, not of MXFP4"

    def test_a_window_of_half_a_box(self) -> None:
        made = kernel(
            value="pl.matmul(pl.slice(a, [8, 64], [0, 0]), pl.slice(b, [64, 32], [0, 0]))"
        )
        assert refusal(IRValueError, made).message.endswith("not 8 rows by 2 groups")


class TestResult:
    def test_a_program_without_compound_tensors_is_the_same_object(self) -> None:
        made = flat(
            "@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n"
            "    def f(self, x: pl.Tensor[[4, 4], pl.FP32]):\n        return x\n"
        )
        assert expand_compound_tensors()(made) is made
        done = expand_compound_tensors()(kernel())
        assert expand_compound_tensors()(done) is done

    def test_a_function_without_compound_tensors_is_the_same_object(self) -> None:
        made = kernel()
        other = Function("other", [], [], SeqStmts(()))
        done = expand_compound_tensors()(Program([*made.functions.values(), other]))
        assert done.get_function("other") is other

    def test_the_planes_stand_side_by_side_and_are_noted(self) -> None:
        function = expand_compound_tensors()(kernel("MXFP4", "MXFP4")).get_function("f")
        assert function is not None
        assert [(p.name_hint, p.type) for p in function.params] == [
            ("a", TensorType([64, 128], DType.E2M1)),
            ("a_scale", TensorType([64, 4], DType.E8M0, None, TensorLayout.MX_A_ZZ)),
            ("b", TensorType([128, 32], DType.E2M1)),
            ("b_scale", TensorType([4, 32], DType.E8M0, None, TensorLayout.MX_B_NN)),
        ]
        noted = compound_params_of(function)
        assert {n: (p.scale, p.dtype) for n, p in noted.items()} == {
            "a": ("a_scale", DType.MXFP4),
            "b": ("b_scale", DType.MXFP4),
        }

    def test_the_input_is_left_as_it_was(self) -> None:
        made = kernel()
        before = str(made)
        expand_compound_tensors()(made)
        assert str(made) == before
        assert made.functions[next(iter(made.functions))].params[0].type == TensorType(
            [64, 128], DType.MXFP8_E4M3
        )


LEGAL = [DType.MXFP8_E4M3, DType.MXFP8_E5M2, DType.MXFP4]


class TestLayout:
    """Only the placement of plane 1 changes, and it is the order of the scale boxes."""

    @pytest.mark.parametrize("dtype", LEGAL)
    @pytest.mark.parametrize("shape", [(16, 64), (64, 128), (48, 192)])
    @pytest.mark.parametrize("side", list(Side))
    def test_every_element_finds_its_own_scale(
        self, dtype: BlockScaledDType, shape: tuple[int, int], side: Side
    ) -> None:
        extents = shape if side is Side.LEFT else shape[::-1]
        planes = planes_of("'a'", TensorType(extents, dtype), side, Span.unknown())
        assert planes.elements == TensorType(extents, dtype.element)
        assert planes.scales is not None
        counts = constant_dims(planes.scales.shape)
        assert counts is not None
        logical = operand(dtype, extents, side)
        physical = boxed(logical)
        assert physical.placements[0] == logical.placements[0]
        assert physical.adjacent_layouts == logical.adjacent_layouts
        groups = counts if side is Side.LEFT else counts[::-1]
        assert groups == (shape[0], shape[1] // 32)
        assert groups[0] % BOX_ROWS == groups[1] % BOX_GROUPS == 0
        for row in range(0, groups[0], 5):
            for group in range(groups[1]):
                wanted: Any = (
                    scale_offset_a(row, group, rows=groups[0], groups=groups[1])
                    if side is Side.LEFT
                    else scale_offset_b(group, row, groups=groups[1], columns=groups[0])
                )
                at = (row, group) if side is Side.LEFT else (group, row)
                assert physical.placements[1](at) == wanted

    def test_what_no_matmul_takes_has_no_scales_that_matter(self) -> None:
        planes = planes_of("'a'", TensorType([5, 7], DType.MXFP8_E4M3), None, Span.unknown())
        assert planes.elements == TensorType([5, 7], DType.E4M3)
        assert planes.scales is None


@pytest.mark.parametrize("name", ["a_scale", "b_scale", "a_scale_1"])
def test_scales_take_no_name_that_the_kernel_uses(name: str) -> None:
    text = KERNEL.format(a="MXFP4", b="MXFP4", m=64, k=128, n=32, value="pl.matmul(a, b)")
    text = text.replace("c = ", f"a_scale = pl.matmul(a, b)\n        {name} = ")
    made = expand_compound_tensors()(flat(text.replace("return c", f"return {name}")))
    (function,) = made.functions.values()
    params = [param.name_hint for param in function.params]
    assert len(set(params)) == 4
    assert not {"a_scale", name} & set(params)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("name", ["tensor.matmul", "tensor.slice", "tensor.matmul_acc"])
def test_a_call_of_too_few_operands_is_named(name: str, count: int) -> None:
    a = Var("a", TensorType([32, 64], DType.MXFP4), Span("k.py", 1, 1))
    call = Call(Op(name), [a] * count, TensorType([32, 64], DType.MXFP4), Span("k.py", 2, 1))
    body = SeqStmts((AssignStmt(Var("x", call.type), call), ReturnStmt(())))
    made = Program([Function("f", [a], [], body)])
    with pytest.raises(UserError) as caught:
        expand_compound_tensors()(made)
    assert name in caught.value.message or "'a'" in caught.value.message
