"""Windows wider than what is valid: K ends inside a group, M inside a box, N at 48 of 64."""

from scalebox.ir import language as pl

VM = pl.param("VM", 20)
VK = pl.param("VK", 72)
VN = pl.param("VN", 48)
G = (VK + 31) // 32


@pl.program
class Narrowed:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[32, 128], pl.FP8E4M3FN],
        sa: pl.Tensor[[32, 4], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[128, 64], pl.FP8E4M3FN],
        sb: pl.Tensor[[4, 64], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ):
        acc = pl.matmul_mx(
            pl.load(a, [0, 0], [32, 128], [VM, VK]),
            pl.load(sa, [0, 0], [32, 4], [VM, G]),
            pl.load(b, [0, 0], [128, 64], [VK, VN]),
            pl.load(sb, [0, 0], [4, 64], [G, VN]),
        )
        c = pl.store(acc, [0, 0], c)
        return c
