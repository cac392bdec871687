# A loop without trips leaves nothing, also as the only statement of a branch.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    x = n
    for i in pl.unroll(0):
        x = x + i
    if n > 0:
        for i in pl.unroll(2, 2):
            x = x + i
    return x
