# t is handed on to the next trip, whose move still reads the old one: this load stays behind it. The load
# of s, and that of the first copy of t, which nobody hands on, go to the front.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[16, 512], pl.FP32], c: pl.Out[pl.Tensor[[16, 512], pl.FP32]], n: pl.Scalar[pl.INDEX]):
    t = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
    for k in pl.pipeline(0, 256, 64, stage=2):
        u = pl.move(t, pl.Mem.Left)
        t = pl.load(a, [0, k], [16, 64], target_memory=pl.Mem.Mat)
        s = pl.load(a, [0, k], [8, 64])
    v = pl.move(t, pl.Mem.Left)
