# A branch without an else gets one, which hands the old value on.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    x = n
    for i in pl.range(n):
        if i > 2:
            x = x + i
    return x
