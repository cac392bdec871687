# Partial boxes count whole: 8 x 48 bytes take boxes of 16 rows by 32 bytes, 1,024 bytes. A row has no boxes:
# 20 sums of 4 bytes are rounded up to 96. 16 x 4 scales are two boxes of 32.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[16, 512], pl.FP8E4M3FN],
    sa: pl.Tensor[[16, 16], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
    sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
    bias: pl.Tensor[[1, 32], pl.FP32],
):
    t = pl.load(a, [0, 0], [8, 48], target_memory=pl.Mem.Mat)
    d = pl.load(bias, [0, 0], [1, 20], target_memory=pl.Mem.Mat)
    s = pl.load(sa, [0, 0], [16, 4])
