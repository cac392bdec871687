# One stage: nothing to copy.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[16, 512], pl.FP32], c: pl.Out[pl.Tensor[[16, 512], pl.FP32]], n: pl.Scalar[pl.INDEX]):
    for k in pl.pipeline(0, 256, 64, stage=1):
        t = pl.load(a, [0, k], [16, 64])
