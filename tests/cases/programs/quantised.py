"""Numbers are quantised, multiplied at once, and handed on: elements as they are, scales as MX tensors."""

from scalebox.ir import language as pl

M, K, N = 32, 128, 64
G = K // 32


@pl.program
class Quantised:
    @pl.function(type=pl.FunctionType.InCore)
    def quantise(self, x: pl.Tensor[[M, K], pl.FP32], y: pl.Tensor[[N, K], pl.BF16]):
        a, a_scale = pl.quant_mx(x, group_axis=1)
        b, b_scale = pl.quant_mx(y, group_axis=0, rule="nv")
        c = pl.matmul_mx(a, a_scale, b, b_scale)
        return c, a, a_scale, b, b_scale

    @pl.function(type=pl.FunctionType.InCore)
    def tiles(
        self,
        x: pl.Tensor[[M, K], pl.FP32],
        a: pl.Out[pl.Tensor[[M, K], pl.FP8E4M3FN]],
        row: pl.Out[pl.Tensor[[1, M * G], pl.FP8E8M0]],
    ):
        tile = pl.load(x, [0, 0], [M, K], target_memory=pl.Mem.Vec)
        elements, scales = pl.quant_mx(tile, layout=pl.MX_A_ZZ)
        a = pl.store(elements, [0, 0], a)
        row = pl.store(scales, [0, 0], row, [1, M * G])
        return a, row

    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
    ):
        d = pl.matmul_mx(a, a_scale, b, b_scale)
        return d

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, K], pl.FP32], y: pl.Tensor[[N, K], pl.BF16]):
        c, a, a_scale, b, b_scale = self.quantise(x, y)
        d = self.gemm(a, a_scale, b, b_scale)
        elements = pl.create_tensor([M, K], dtype=pl.FP8E4M3FN)
        row = pl.create_tensor([1, M * G], dtype=pl.FP8E8M0)
        elements, row = self.tiles(x, elements, row)
        e = self.gemm(elements, pl.tensor.view(row, [M, G], layout=pl.MX_A_ZZ), b, b_scale)
        return c, d, e, b_scale
