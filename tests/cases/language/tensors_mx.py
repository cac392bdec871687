from scalebox.ir import language as pl

M, K, N = 64, 128, 64
G = K // 32


@pl.program
class TensorsMx:
    @pl.function(type=pl.FunctionType.InCore)
    def products(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E5M2],
        b_scale: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
        bias: pl.Tensor[[1, N], pl.FP32],
        out: pl.Out[pl.Tensor[[M, 2 * N], pl.FP16]],
    ):
        c: pl.Tensor[[M, N], pl.FP32] = pl.matmul_mx(a, a_scale, b, b_scale)
        d = pl.matmul_mx_acc(c, a, a_scale, b, b_scale)
        e = pl.tensor.matmul_mx_bias(a, a_scale, b, b_scale, bias)
        out = pl.assemble(out, d, [0, N])
        pl.tensor.assemble(target=out, source=e, offset=[0, 0])
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def quantised(self, x: pl.Tensor[[M, K], pl.FP32], y: pl.Tensor[[N, K], pl.BF16], z: pl.Tensor[[N, K], pl.FP16]):
        a, a_scale = pl.quant_mx(x, group_axis=1)
        b, b_scale = pl.quant_mx(y, group_axis=0, dtype=pl.FP8E4M3FN, rule="nv")
        tile, scale = pl.quant_mx(pl.load(z, [0, 0], [N, K], target_memory=pl.Mem.Vec), layout=pl.MX_B_NN, dtype=pl.FP4)
        return a, a_scale, b, b_scale

    @pl.function(type=pl.FunctionType.InCore)
    def windows(self, a: pl.Tensor[[M, K], pl.MXFP4], b: pl.Tensor[[K, N], pl.MXFP4], k: pl.Scalar[pl.INDEX]):
        left = pl.slice(a, [16, 64], [32, k])
        right = pl.slice(tensor=b, shape=[64, N], offset=[k, 0])
        return pl.matmul(left, right)

    @pl.function(type=pl.FunctionType.InCore)
    def brackets(self, a: pl.Tensor[[M, K], pl.MXFP4], b: pl.Tensor[[K, N], pl.MXFP4], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
        for m in pl.range(0, M, 16):
            out[m : m + 16, :] = pl.matmul(a[m : m + 16, 64:], b[64:K])
        out[:] = pl.matmul(a, b)
        return out
