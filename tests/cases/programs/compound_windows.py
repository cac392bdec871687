"""Windows of compound tensors, one within another, multiplied and put together tile by tile."""

from scalebox.ir import language as pl

M, K, N = 64, 256, 64
STEP = pl.param("STEP", 16)


@pl.program
class CompoundWindows:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.MXFP8_E4M3],
        b: pl.Tensor[[K, N], pl.MXFP8_E4M3],
        rows: pl.Out[pl.Tensor[[M, N], pl.FP32]],
        steps: pl.Out[pl.Tensor[[M * K // 64, N // 2], pl.BF16]],
        whole: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        right = pl.slice(b, [128, N], [128, 0])
        for m in pl.range(0, M, STEP):
            left = pl.slice(pl.slice(a, [STEP, 192], [m, 64]), [STEP, 128], [0, 64])
            rows = pl.assemble(rows, pl.matmul(left, right), [m, 0])
        for k in pl.pipeline(0, K, 64, stage=2):
            column = pl.slice(a, [M, 64], [0, k])
            part = pl.matmul(column, pl.slice(b, [64, N // 2], [k, N // 2]))
            steps = pl.assemble(steps, part, [k, 0])
        total = pl.matmul(a[:, 0:64], b[0:64])
        for k in pl.pipeline(64, K, 64, stage=2):
            total = pl.matmul_acc(total, a[:, k : k + 64], b[k : k + 64])
        whole[:] = total
        return rows, steps, whole
