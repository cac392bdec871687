# Scalars come first, then the loads of both copies, then what computes; the loop is an ordinary one now.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[16, 512], pl.FP32], c: pl.Out[pl.Tensor[[16, 512], pl.FP32]], n: pl.Scalar[pl.INDEX]):
    for k in pl.pipeline(0, 256, 64, stage=2):
        t = pl.load(a, [0, k], [16, 64])
        u = pl.move(t, pl.Mem.Left)
        j = k // 32
