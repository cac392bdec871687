"""Scales that arrive as plain bytes are viewed as boxes; those that arrive as boxes are viewed as bytes."""

from scalebox.ir import language as pl


@pl.program
class Views:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[32, 128], pl.FP8E4M3FN],
        sa: pl.Tensor[[1, 128], pl.FP8E8M0],
        b: pl.Tensor[[128, 64], pl.FP8E4M3FN],
        sb: pl.Tensor[[4, 64], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ):
        sa_boxes = pl.tensor.view(sa, [32, 4], layout=pl.MX_A_ZZ)
        sb_bytes = pl.tensor.view(sb, [2, 128], layout=pl.ND)
        sb_boxes = pl.tensor.view(sb_bytes, [4, 64], layout=pl.MX_B_NN)
        acc = pl.matmul_mx(
            pl.load(a, [0, 0], [32, 64]),
            pl.load(sa_boxes, [0, 0], [32, 2]),
            pl.load(b, [0, 0], [64, 64]),
            pl.load(sb_boxes, [0, 0], [2, 64]),
        )
        acc = pl.matmul_mx_acc(
            acc,
            pl.load(a, [0, 64], [32, 64]),
            pl.load(sa_boxes, [0, 2], [32, 2]),
            pl.load(b, [64, 0], [64, 64]),
            pl.load(sb, [2, 0], [2, 64]),
        )
        c = pl.store(acc, [0, 0], c)
        return c
