"""Programs of compound dtypes: those that the machine multiplies are compiled, the others are named."""

from dataclasses import replace

import pytest

import scalebox
from scalebox.codegen.host.program import Compound
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import IRTypeError, IRValueError

KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, a: pl.Tensor[[64, 128], pl.{dtype}], b: pl.Tensor[[128, 32], pl.{dtype}],
             unused: pl.Tensor[[64, 32], pl.{dtype}]):
        c = pl.matmul(a, b)
        return c
"""


def program(text: str) -> Program:
    made = pl.parse(text)
    assert isinstance(made, Program)
    return made


@pytest.mark.parametrize("dtype", ["MXFP6_E2M3", "MXFP6_E3M2", "MXINT8", "NVFP4"])
def test_compiling_names_the_dtype_and_what_works(dtype: str) -> None:
    made = program(KERNEL.format(dtype=dtype))
    with pytest.raises(IRTypeError) as caught:
        scalebox.compile(made)
    error = caught.value
    assert error.message == (
        f"'a' of 'gemm' must be of MXFP8_E4M3, MXFP8_E5M2 or MXFP4 to be compiled, not of {dtype}"
    )
    assert error.hint == "scalebox.interpret runs the program as it stands"
    assert error.span is not None
    with pytest.raises(IRTypeError, match=f"not of {dtype}"):
        scalebox.run(made, {})


@pytest.mark.parametrize("dtype", ["MXFP8_E4M3", "MXFP8_E5M2", "MXFP4"])
def test_an_entry_says_which_parameters_are_planes(dtype: str) -> None:
    entry = scalebox.compile(program(KERNEL.format(dtype=dtype))).entry()
    assert [param.name for param in entry.params] == [
        "a", "a_scale", "b", "b_scale", "unused", "c",
    ]  # fmt: skip
    assert entry.compounds == (
        Compound("a", "a_scale", dtype),
        Compound("b", "b_scale", dtype),
        Compound("unused", "", dtype),
    )
    assert [output.name for output in entry.outputs] == ["c"]


def test_a_plane_must_be_a_tensor_parameter() -> None:
    entry = scalebox.compile(program(KERNEL.format(dtype="MXFP4"))).entry()
    with pytest.raises(IRValueError) as caught:
        replace(entry, compounds=(Compound("a", "scales", "MXFP4"),))
    assert caught.value.message == (
        "A plane of a block-scaled array of entry 'gemm' must be a tensor parameter, not 'scales'."
    )
