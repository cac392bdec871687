"""Two operand tiles change their names from trip to trip, and a name is used after its loop."""

from scalebox.ir import language as pl

TRIPS = pl.param("TRIPS", 3)


@pl.program
class Renamed:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 256], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        p = pl.load(sa, [0, 0], [16, 2])
        q = pl.load(sb, [0, 0], [2, 32])
        bt = pl.load(b, [0, 0], [64, 32])
        now = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        acc = pl.matmul_mx(now, p, bt, q)
        for i in pl.range(TRIPS):
            now = pl.load(a, [0, i * 64], [16, 64], target_memory=pl.Mem.Mat)
            acc = pl.matmul_mx_acc(acc, now, p, bt, q)
        acc = pl.matmul_mx_acc(acc, now, p, bt, q)
        c = pl.store(acc, [0, 0], c)
        return c
