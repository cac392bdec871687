# Inner calls get variables of their own just before the statement, in the order of evaluation; the outer
# call, a store that is a statement, and plain arithmetic stay.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[16, 64], pl.FP8E4M3FN],
    sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
    sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
    c: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
):
    for i in pl.range(0, 32, 16):
        pl.store(
            pl.matmul_mx(
                pl.move(pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left),
                pl.load(sa, [0, 0], [16, 2]),
                pl.load(b, [0, 0], [64, 32]),
                pl.load(sb, [0, 0], [2, 32]),
            ),
            [i * 1 + 0, 0],
            c,
        )
