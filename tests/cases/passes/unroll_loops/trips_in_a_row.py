# Each trip becomes a copy with the loop variable's number, also when it counts down; names are assigned again.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    x = n
    for i in pl.unroll(3):
        x = x + i
    for i in pl.unroll(4, 0, -2):
        x = x * i
    return x
