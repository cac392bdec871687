from scalebox.ir import language as pl


@pl.program
class NoPlacement:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[64, 128], pl.FP8E5M2],
        sa: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[128, 128], pl.FP8E4M3FN],
        sb: pl.Tensor[[4, 128], pl.FP8E8M0, pl.MX_B_NN],
        bias: pl.Tensor[[1, 128], pl.FP32],
        c: pl.Out[pl.Tensor[[64, 128], pl.BF16]],
    ) -> pl.Tensor[[64, 128], pl.BF16]:
        """No tile but a scale tile says where it lies."""
        left = pl.load(a, [0, 0], [64, 128])
        left_scale = pl.load(sa, [0, 0], [64, 4])
        right = pl.load(b, [0, 0], [128, 128])
        right_scale = pl.load(sb, [0, 0], [4, 128])
        row = pl.load(bias, [0, 0], [1, 128])
        acc = pl.matmul_mx_bias(left, left_scale, right, right_scale, row)
        return pl.store(acc, [0, 0], c)
