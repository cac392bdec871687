# The inner loop is lowered first, then copied with its outer one; the copies keep the stage that the inner
# loop gave them.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[16, 512], pl.FP32], c: pl.Out[pl.Tensor[[16, 512], pl.FP32]], n: pl.Scalar[pl.INDEX]):
    for j in pl.pipeline(0, 256, 128, stage=2):
        for k in pl.pipeline(0, 128, 64, stage=2):
            t = pl.load(a, [0, j + k], [16, 64])
            c = pl.store(t, [0, j + k], c)
