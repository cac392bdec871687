from scalebox.ir import language as pl
from scalebox.ir.dtypes import DType


@pl.program
class P:
    @pl.function
    def f(self, a: pl.Tensor[[64, 128], DType.Floating]):
        return a
