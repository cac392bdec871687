from scalebox.ir import language as pl

M, K, N = 64, 128, 32


@pl.program
class Compound:
    @pl.function(type=pl.FunctionType.InCore)
    def narrow(self, a: pl.Tensor[[M, K], pl.MXFP6_E3M2], b: pl.Tensor[[K, N], pl.MXINT8]) -> pl.Tensor[[M, N], pl.FP32]:
        product: pl.Tensor[[M, N], pl.FP32] = pl.matmul(a, b, out_dtype=pl.FP32, a_trans=False)
        return product

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.MXFP8_E4M3],
        b: pl.Tensor[[K, N], pl.MXFP4],
        c: pl.Tensor[[M, K], pl.MXFP6_E3M2],
        d: pl.Tensor[[K, N], pl.MXINT8],
        e: pl.Tensor[[M, K], pl.NVFP4],
        f: pl.Tensor[[K, N], pl.NVFP4],
        n: pl.Scalar[pl.INDEX],
    ):
        first = pl.matmul(a, b)
        second = self.narrow(c, d)
        if n > 0:
            left = e
        else:
            left = e
        for i, (x,) in pl.range(2, init_values=(f,)):
            y = pl.yield_(x)
        third = pl.tensor.matmul(left, y)
        return first, second, third
