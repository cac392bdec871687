# A [64, 8] -> [1, 4, 4, 16, 2]: rows 32 are box row 2, groups 4 box column 2; the window [16, 4] is one
# box row of two boxes. B [8, 64] -> [1, 4, 4, 16, 2]: columns 48 are box row 3, groups 2 box column 1.
# The tiles stay logical.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    sa: pl.Tensor[[64, 8], pl.FP8E8M0, pl.MX_A_ZZ], sb: pl.Tensor[[8, 64], pl.FP8E8M0, pl.MX_B_NN]
):
    p = pl.load(sa, [32, 4], [16, 4])
    q = pl.load(sb, [2, 48], [2, 16])
