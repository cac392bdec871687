# The end is an argument. trips = ceil((n - 64) / 64), at least 0; the first loop ends where whole pairs of
# trips end, the second goes on from there with the old step.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[16, 512], pl.FP32], c: pl.Out[pl.Tensor[[16, 512], pl.FP32]], n: pl.Scalar[pl.INDEX]):
    x = n
    for k in pl.pipeline(64, n, 64, stage=2):
        x = x + k
    y = x
