"""Programs of compound dtypes are interpreted, and refused where they would be compiled."""

import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import IRValueError

KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, a: pl.Tensor[[64, 128], pl.{dtype}], b: pl.Tensor[[128, 32], pl.{dtype}]):
        c = pl.matmul(a, b)
        return c
"""


@pytest.mark.parametrize(
    ("dtype", "way"),
    [
        (
            "MXFP8_E4M3",
            "; what is compiled takes two tensors, elements of E4M3 and scales of E8M0 in MX_A_ZZ "
            "or MX_B_NN",
        ),
        (
            "MXFP4",
            "; what is compiled takes two tensors, elements of E2M1 and scales of E8M0 in MX_A_ZZ "
            "or MX_B_NN",
        ),
        ("MXFP6_E2M3", ""),
        ("MXINT8", ""),
        ("NVFP4", ""),
    ],
)
def test_compiling_names_the_dtype_and_what_works(dtype: str, way: str) -> None:
    program = pl.parse(KERNEL.format(dtype=dtype))
    assert isinstance(program, Program)
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(program)
    error = caught.value
    assert error.message == (
        "A program must have tensors of simple dtypes to be compiled, but 'a' of 'gemm' is of "
        f"{dtype}"
    )
    assert error.hint == f"scalebox.interpret runs the program as it stands{way}"
    assert error.span is not None
    with pytest.raises(IRValueError, match=f"is of {dtype}"):
        scalebox.run(program, {})
