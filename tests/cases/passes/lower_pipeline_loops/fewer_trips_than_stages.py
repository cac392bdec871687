# 2 trips in 3 stages: no loop is left.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[16, 512], pl.FP32], c: pl.Out[pl.Tensor[[16, 512], pl.FP32]], n: pl.Scalar[pl.INDEX]):
    x = n
    for k in pl.pipeline(64, 192, 64, stage=3):
        x = x + k
    y = x
