from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 128], pl.FP8E4M3FN], sa: pl.Tensor[[64, 4], pl.FP8E8M0], b: pl.Tensor[[128, 32], pl.FP8E4M3FN], sb: pl.Tensor[[4, 32], pl.FP8E8M0, pl.MX_B_NN]):
        c = pl.matmul_mx(a, sa, b, sb)
        return c
