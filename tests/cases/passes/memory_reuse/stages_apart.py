# The K-loop whose right tiles are 32,768 bytes of L0B's 65,536: the first step's tile and the two copies of
# the loop want 98,304. The copies stay apart; the first step shares with one of them.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def gemm(
    a: pl.Tensor[[16, 1280], pl.FP8E4M3FN],
    sa: pl.Tensor[[16, 40], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[1280, 128], pl.FP8E4M3FN],
    sb: pl.Tensor[[40, 128], pl.FP8E8M0, pl.MX_B_NN],
    c: pl.Out[pl.Tensor[[16, 128], pl.FP32]],
):
    acc = pl.matmul_mx(
        pl.load(a, [0, 0], [16, 256]),
        pl.load(sa, [0, 0], [16, 8]),
        pl.load(b, [0, 0], [256, 128]),
        pl.load(sb, [0, 0], [8, 128]),
    )
    for k in pl.pipeline(256, 1280, 256, stage=2):
        acc = pl.matmul_mx_acc(
            acc,
            pl.load(a, [0, k], [16, 256]),
            pl.load(sa, [0, k // 32], [16, 8]),
            pl.load(b, [k, 0], [256, 128]),
            pl.load(sb, [k // 32, 0], [8, 128]),
        )
    c = pl.store(acc, [0, 0], c)
