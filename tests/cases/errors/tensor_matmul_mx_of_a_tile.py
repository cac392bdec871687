from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 128], pl.FP8E4M3FN], sa: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ], b: pl.Tensor[[128, 32], pl.FP8E4M3FN], sb: pl.Tensor[[4, 32], pl.FP8E8M0, pl.MX_B_NN]):
        t = pl.load(b, [0, 0], [128, 32])
        c = pl.matmul_mx(a, sa, t, sb)
        return c
