# Inner loops are unrolled first; a loop over pl.range between them stays a loop, once a copy.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    x = n
    for i in pl.unroll(2):
        for j in pl.range(n):
            for h in pl.unroll(1, 3):
                x = x + i * h
    return x
