"""Programs that multiply whole tensors of block-scaled dtypes, against fractions and numerics."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalebox.ir import language as pl
from scalebox.ir import numerics
from scalebox.ir.core import AssignStmt, EvalStmt, Function, Program, ReturnStmt, SeqStmts
from scalebox.ir.dtypes import BlockScaledDType, DType, Index
from scalebox.ir.errors import InputError, IRTypeError, IRValueError
from scalebox.ir.expr import Call, GlobalVar, ScalarType, Var
from scalebox.ir.interp import interpret_program
from scalebox.ir.ops import create_op_call
from scalebox.ir.passes import convert_to_ssa, flatten_call_expr, normalize_stmt_structure
from scalebox.ir.printer import python_print
from scalebox.ir.structural import assert_structural_equal
from scalebox.ir.types import TensorType

from .block_fractions import Floats, in_fractions

MX_FORMATS = (
    DType.MXFP8_E4M3,
    DType.MXFP8_E5M2,
    DType.MXFP6_E3M2,
    DType.MXFP6_E2M3,
    DType.MXFP4,
    DType.MXINT8,
)
NV = DType.NVFP4
PAIRS = [(a, b) for a in MX_FORMATS for b in MX_FORMATS] + [(NV, NV)]

KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.{kind})
    def gemm(self, a: pl.Tensor[[{m}, {k}], pl.{a}], b: pl.Tensor[[{k}, {n}], pl.{b}]):
        c = pl.matmul(a, b)
        return c
"""


def program(text: str, **fields: Any) -> Program:
    made = pl.parse(text.format(**fields))
    assert isinstance(made, Program)
    return made


def kernel(
    a: BlockScaledDType, b: BlockScaledDType, m: int, k: int, n: int, kind: str = "InCore"
) -> Program:
    return program(KERNEL, a=a.name, b=b.name, m=m, k=k, n=n, kind=kind)


def operands(
    a: BlockScaledDType, b: BlockScaledDType, m: int, k: int, n: int
) -> dict[str, numerics.MXArray]:
    """Quantise rows and columns of very different sizes, so that a wrong scale shows."""
    rng = np.random.default_rng(11)
    left = rng.standard_normal((m, k)) * np.exp2(np.arange(m))[:, None]
    right = rng.standard_normal((k, n)) * np.exp2(-np.arange(n))
    left[:, : k // 2] *= 16.0
    right[: k // 2] /= 8.0
    return {"a": numerics.quantize(left, a, axis=1), "b": numerics.quantize(right, b, axis=0)}


def same(found: Floats, expected: Floats) -> None:
    assert found.dtype == np.float32
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), nan)
    assert (found.view(np.uint32)[nan] == 0x7FC00000).all()
    np.testing.assert_array_equal(found.view(np.uint32)[~nan], expected.view(np.uint32)[~nan])


class TestNumbers:
    @pytest.mark.parametrize(("a", "b"), PAIRS, ids=lambda d: d.name)
    def test_any_pair_of_formats(self, a: BlockScaledDType, b: BlockScaledDType) -> None:
        given = operands(a, b, 3, 64, 4)
        found = interpret_program(kernel(a, b, 3, 64, 4), given)
        assert list(found) == ["c"]
        same(found["c"], in_fractions(given["a"], given["b"]))
        same(found["c"], numerics.matmul(given["a"], given["b"]))

    @pytest.mark.parametrize(("a", "b"), PAIRS[::7], ids=lambda d: d.name)
    def test_one_product_after_another(self, a: BlockScaledDType, b: BlockScaledDType) -> None:
        given = operands(a, b, 2, 64, 2)
        found = interpret_program(kernel(a, b, 2, 64, 2), given, sum="sequential")
        same(found["c"], in_fractions(given["a"], given["b"], step=1))

    @pytest.mark.parametrize(("a", "b"), [PAIRS[0], PAIRS[-1]], ids=lambda d: d.name)
    def test_large_ones_are_those_of_the_compiled_routines(
        self, a: BlockScaledDType, b: BlockScaledDType
    ) -> None:
        given = operands(a, b, 16, 512, 32)
        found = interpret_program(kernel(a, b, 16, 512, 32), given)
        same(found["c"], numerics.matmul(given["a"], given["b"]))

    @pytest.mark.parametrize(
        ("dtype", "nan"), [(DType.MXFP8_E4M3, 255), (DType.MXFP4, 255), (NV, 127)], ids=str
    )
    @pytest.mark.parametrize("side", ["a", "b"])
    def test_a_nan_scale(self, dtype: BlockScaledDType, nan: int, side: str) -> None:
        given = operands(dtype, dtype, 3, 64, 4)
        given[side].scales[1, 1] = nan
        given[side].elements[...] = 0  # even over zeros a NaN scale counts
        found = interpret_program(kernel(dtype, dtype, 3, 64, 4), given)["c"]
        same(found, in_fractions(given["a"], given["b"]))
        lost = np.isnan(found)
        assert lost[1].all() if side == "a" else lost[:, 1].all()
        assert lost.sum() == (4 if side == "a" else 3)

    def test_an_infinity_and_an_overflow(self) -> None:
        given = operands(DType.MXFP8_E5M2, DType.MXFP8_E5M2, 2, 32, 2)
        given["a"].elements[0, 0] = 0x7C  # infinity
        given["a"].scales[1, 0] = given["b"].scales[0, 1] = 254
        found = interpret_program(kernel(DType.MXFP8_E5M2, DType.MXFP8_E5M2, 2, 32, 2), given)["c"]
        same(found, numerics.matmul(given["a"], given["b"]))
        assert np.isinf(found[0]).all()
        assert np.isinf(found[1, 1])

    def test_the_inputs_are_left_as_they_were(self) -> None:
        given = operands(NV, NV, 2, 32, 2)
        kept = [array.copy() for mx in given.values() for array in (mx.elements, mx.scales)]
        interpret_program(kernel(NV, NV, 2, 32, 2), given)
        after = [array for mx in given.values() for array in (mx.elements, mx.scales)]
        assert all((x == y).all() for x, y in zip(kept, after, strict=True))

    def test_no_compiler_is_loaded_for_the_golden_answer(self) -> None:
        script = (
            "import sys, numpy as np\n"
            "from scalebox.ir import language as pl, numerics\n"
            "from scalebox.ir.dtypes import DType\n"
            "from scalebox.ir.interp import interpret_program\n"
            f"made = pl.parse('''{KERNEL}'''.format(kind='InCore', m=64, k=64, n=64, "
            "a='MXFP8_E4M3', b='MXFP8_E4M3'))\n"
            "x = np.ones((64, 64), np.float32)\n"
            "a = numerics.MXArray(x.astype(np.uint8), x[:, :2].astype(np.uint8), pl.MXFP8_E4M3, 1)\n"
            "b = numerics.MXArray(x.astype(np.uint8), x[:2].astype(np.uint8), pl.MXFP8_E4M3, 0)\n"
            "interpret_program(made, {'a': a, 'b': b})\n"
            "print('numba' in sys.modules)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, check=True, text=True
        )
        assert done.stdout.strip() == "False"


PROGRAM = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def narrow(self, x: pl.Tensor[[32, 64], pl.MXFP6_E3M2], w: pl.Tensor[[64, 32], pl.MXINT8]):
        renamed = x
        product = pl.matmul(renamed, w)
        return product

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[32, 64], pl.MXFP6_E3M2], b: pl.Tensor[[64, 32], pl.MXINT8],
             u: pl.Tensor[[32, 32], pl.NVFP4], v: pl.Tensor[[32, 32], pl.NVFP4],
             n: pl.Scalar[pl.INDEX]):
        first = self.narrow(a, b)
        if n > 0:
            left = u
        else:
            left = u
        for i, (x,) in pl.range(2, init_values=(v,)):
            y = pl.yield_(x)
        return first, pl.matmul(left, y)
"""


def main_inputs() -> dict[str, Any]:
    first = operands(DType.MXFP6_E3M2, DType.MXINT8, 32, 64, 32)
    second = operands(NV, NV, 32, 32, 32)
    return {**first, "u": second["a"], "v": second["b"], "n": 1}


class TestPrograms:
    @pytest.mark.parametrize("kind", ["InCore", "Orchestration", "Opaque"])
    def test_a_function_of_any_kind_may_multiply_and_return_the_product(self, kind: str) -> None:
        given = operands(DType.MXFP4, DType.MXFP4, 2, 32, 2)
        found = interpret_program(kernel(DType.MXFP4, DType.MXFP4, 2, 32, 2, kind), given)
        same(found["c"], numerics.matmul(given["a"], given["b"]))

    def test_results_have_the_names_they_are_returned_under_else_out(self) -> None:
        given = main_inputs()
        found = interpret_program(program(PROGRAM), given)
        assert list(found) == ["first", "out"]
        same(found["first"], numerics.matmul(given["a"], given["b"]))
        same(found["out"], numerics.matmul(given["u"], given["v"]))

    def test_after_passes_the_answer_is_the_same(self) -> None:
        given, made = main_inputs(), program(PROGRAM)
        before = interpret_program(made, given)
        for each in (convert_to_ssa(), normalize_stmt_structure(), flatten_call_expr()):
            made = each(made)
            assert_structural_equal(made, pl.parse(python_print(made)))
            after = interpret_program(made, given)
            assert list(after) == list(before)
            for name, array in before.items():
                same(after[name], array)

    def test_a_product_can_be_handed_on(self) -> None:
        made = program(
            """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        out = pl.store(pl.load(x, [0, 0], [32, 32], target_memory=pl.Mem.Vec), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[32, 32], pl.MXFP4], b: pl.Tensor[[32, 32], pl.MXFP4],
             out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        out = self.copy(pl.matmul(a, b), out)
        return out
"""
        )
        given = operands(DType.MXFP4, DType.MXFP4, 32, 32, 32)
        found = interpret_program(made, given)
        assert list(found) == ["out"]
        same(found["out"], numerics.matmul(given["a"], given["b"]))


class TestInputs:
    def refusal(self, **changed: Any) -> InputError:
        given = {**operands(DType.MXFP8_E4M3, DType.MXFP4, 4, 64, 32), **changed}
        with pytest.raises(InputError) as caught:
            interpret_program(kernel(DType.MXFP8_E4M3, DType.MXFP4, 4, 64, 32), given)
        return caught.value

    def test_the_axis_of_the_groups_follows_from_use(self) -> None:
        x = np.ones((4, 64), np.float32)
        error = self.refusal(a=numerics.quantize(x, DType.MXFP8_E4M3, axis=0))
        assert error.message == (
            "a must be an MXFP8_E4M3 array of shape [4, 64], grouped along axis 1, not along axis 0"
        )
        assert error.hint == "numerics.quantize(x, pl.MXFP8_E4M3, axis=1) makes it"
        error = self.refusal(b=numerics.quantize(np.ones((64, 32)), DType.MXFP4, axis=1))
        assert error.message == (
            "b must be an MXFP4 array of shape [64, 32], grouped along axis 0, not along axis 1"
        )
        assert error.hint == "numerics.quantize(x, pl.MXFP4, axis=0) makes it"

    def test_it_follows_from_the_use_in_a_function_that_is_called(self) -> None:
        given = main_inputs()
        given["b"] = numerics.quantize(np.ones((64, 32)), DType.MXINT8, axis=1)
        with pytest.raises(
            InputError, match=r"^b must be .*grouped along axis 0, not along axis 1"
        ):
            interpret_program(program(PROGRAM), given)

    def test_other_arrays(self) -> None:
        error = self.refusal(a=numerics.quantize(np.ones((4, 64)), DType.MXFP8_E5M2))
        assert error.message.endswith("grouped along axis 1, not of MXFP8_E5M2")
        error = self.refusal(a=numerics.quantize(np.ones((4, 96)), DType.MXFP8_E4M3))
        assert error.message.endswith("grouped along axis 1, not of shape [4, 96]")
        error = self.refusal(a=np.ones((4, 64), np.float32))
        assert error.message.endswith(
            "grouped along axis 1, not an array of float32 of shape [4, 64]"
        )
        assert error.hint == "numerics.quantize(x, pl.MXFP8_E4M3, axis=1) makes it"
        error = self.refusal(a=[1.0])
        assert error.message.endswith("grouped along axis 1, not a list")
        error = self.refusal(a=None)
        assert error.message.endswith("grouped along axis 1, but it was not given")

    def test_an_array_for_a_tensor_of_a_simple_dtype(self) -> None:
        made = program(
            """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[4, 64], pl.FP8E4M3FN]):
        return
"""
        )
        given = {"x": numerics.quantize(np.ones((4, 64)), DType.MXFP8_E4M3)}
        with pytest.raises(InputError) as caught:
            interpret_program(made, given)
        assert caught.value.message == "x must be an E4M3 array of shape [4, 64], not an MXArray"

    def test_a_tensor_that_no_matmul_takes_may_be_grouped_along_any_axis(self) -> None:
        made = program(
            """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 64], pl.MXFP4]):
        return
"""
        )
        for axis in (0, 1):
            given = {"a": numerics.quantize(np.ones((64, 64)), DType.MXFP4, axis=axis)}
            assert interpret_program(made, given) == {}
        with pytest.raises(InputError) as caught:
            interpret_program(made, {"a": 3})
        assert caught.value.message == "a must be an MXFP4 array of shape [64, 64], not 3"
        assert caught.value.hint == "numerics.quantize(x, pl.MXFP4) makes it"

    def test_a_symbolic_extent_cannot_be_run(self) -> None:
        a = Var("a", TensorType([Var("m", ScalarType(Index)), 64], DType.MXFP4))
        made = Program([Function("f", [a], [], ReturnStmt(()))])
        with pytest.raises(InputError) as caught:
            interpret_program(made, {"a": numerics.quantize(np.ones((4, 64)), DType.MXFP4)})
        assert caught.value.message == (
            "a must have constant dimensions to be run, not symbolic ones"
        )


class TestRawPrograms:
    """Programs that the language would refuse, made of nodes."""

    def test_an_ambiguous_use(self) -> None:
        a, b = (Var(name, TensorType([32, 32], DType.MXFP4)) for name in "ab")
        product = create_op_call("tensor.matmul", [a, a])
        c = Var("c", product.type)
        body = SeqStmts((AssignStmt(c, product), ReturnStmt((c,))))
        given = operands(DType.MXFP4, DType.MXFP4, 32, 32, 32)
        with pytest.raises(IRValueError, match=r"^'a' must be used on one side of matmuls"):
            interpret_program(Program([Function("f", [a, b], [c.type], body)]), given)
        back = Program([Function("f", [a, b], [a.type], ReturnStmt((a,)))])
        with pytest.raises(IRTypeError, match=r"tensors or scalars, not a tensor of MXFP4$"):
            interpret_program(back, given)

    def test_an_argument_of_another_dtype(self) -> None:
        inner = kernel(DType.MXFP4, DType.MXFP4, 32, 32, 32).get_function("gemm")
        assert inner is not None
        x, y = (Var(name, TensorType([32, 32], DType.MXFP8_E4M3)) for name in "xy")
        call = EvalStmt(Call(GlobalVar("gemm"), [x, y], inner.return_types[0]))
        made = Program([inner, Function("main", [x, y], [], call)])
        square = np.ones((32, 32))
        given = {
            "x": numerics.quantize(square, DType.MXFP8_E4M3),
            "y": numerics.quantize(square, DType.MXFP8_E4M3, axis=0),
        }
        with pytest.raises(IRTypeError) as caught:
            interpret_program(made, given, entry="main")
        assert caught.value.message == "a of gemm must be MXFP4 [32, 32], not MXFP8_E4M3 [32, 32]"


def test_the_case_that_prints_also_runs(request: pytest.FixtureRequest) -> None:
    path = Path(str(request.config.rootpath)) / "tests/cases/language/compound.py"
    made = pl.loads(path)
    assert isinstance(made, Program)
    one, two, three = (
        operands(a, b, 64, 128, 32)
        for a, b in (
            (DType.MXFP8_E4M3, DType.MXFP4),
            (DType.MXFP6_E3M2, DType.MXINT8),
            (NV, NV),
        )
    )
    given: dict[str, Any] = {
        "a": one["a"], "b": one["b"], "c": two["a"], "d": two["b"], "e": three["a"],
        "f": three["b"], "n": 0,
    }  # fmt: skip
    found = interpret_program(made, given)
    assert list(found) == ["first", "second", "third"]
    same(found["third"], numerics.matmul(three["a"], three["b"]))
