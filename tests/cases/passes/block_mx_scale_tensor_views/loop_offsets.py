# Symbolic offsets are divided as they are, never simplified: row // 16 is not i, and k // 32 // 2
# not k // 64. [64, 32] -> [1, 4, 16, 16, 2].
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(s: pl.Tensor[[64, 32], pl.FP8E8M0, pl.MX_A_ZZ]):
    for i in pl.range(4):
        for k in pl.range(0, 1024, 256):
            row = i * 16
            t = pl.load(s, [row, k // 32], [16, 8])
