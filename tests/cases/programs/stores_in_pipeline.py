"""A pipelined loop whose trips share nothing: each makes and stores its own tile of C."""

from scalebox.ir import language as pl

M = pl.param("M", 80)
STAGE = pl.param("STAGE", 2)


@pl.program
class StoresInPipeline:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[M, 64], pl.FP4],
        sa: pl.Tensor[[M, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP4],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, 32], pl.FP32]],
        d: pl.Out[pl.Tensor[[M, 32], pl.BF16]],
    ):
        bt = pl.load(b, [0, 0], [64, 32])
        tt = pl.load(sb, [0, 0], [2, 32])
        for i in pl.pipeline(0, M, 16, stage=STAGE):
            acc = pl.matmul_mx(pl.load(a, [i, 0], [16, 64]), pl.load(sa, [i, 0], [16, 2]), bt, tt)
            c = pl.store(acc, [i, 0], c)
            d = pl.store(acc, [i, 0], d)
        return c, d
