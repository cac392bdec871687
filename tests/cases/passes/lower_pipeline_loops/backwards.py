# 192, 128, 64, 0, -64 in 2 stages: pairs by a step of -128 until -64, then the trip at -64.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[16, 512], pl.FP32], c: pl.Out[pl.Tensor[[16, 512], pl.FP32]], n: pl.Scalar[pl.INDEX]):
    x = n
    for k in pl.pipeline(192, -128, -64, stage=2):
        x = x + k
    y = x
