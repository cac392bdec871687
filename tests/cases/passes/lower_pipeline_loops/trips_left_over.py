# 5 trips in 3 stages: one group of three by a step of 192 up to 192, then the trips at 192 and 256 behind it.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[16, 512], pl.FP32], c: pl.Out[pl.Tensor[[16, 512], pl.FP32]], n: pl.Scalar[pl.INDEX]):
    x = n
    for k in pl.pipeline(0, 320, 64, stage=3):
        x = x * 2 + k
    y = x
