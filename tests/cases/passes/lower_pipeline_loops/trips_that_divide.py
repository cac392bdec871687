# 4 trips in 2 stages: a loop by steps of 128 over two copies, each with variables of its own, and nothing
# behind it. Loads and moves say which copy they belong to.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[16, 512], pl.FP32], c: pl.Out[pl.Tensor[[16, 512], pl.FP32]], n: pl.Scalar[pl.INDEX]):
    for k in pl.pipeline(0, 256, 64, stage=2):
        t = pl.load(a, [0, k], [16, 64])
        c = pl.store(t, [0, k], c)
