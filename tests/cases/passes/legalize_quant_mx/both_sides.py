# Both sides of a product: the right one leaves transposed, and each has its own boxes of scales.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def both(
    x: pl.Tensor[[64, 128], pl.BF16],
    a: pl.Out[pl.Tensor[[64, 128], pl.FP4]],
    a_scales: pl.Out[pl.Tensor[[1, 256], pl.FP8E8M0]],
    b: pl.Out[pl.Tensor[[128, 64], pl.FP8E4M3FN]],
):
    t = pl.load(x, [0, 0], [64, 128], target_memory=pl.Mem.Vec)
    left, scales = pl.quant_mx(t, group_axis=1, dtype=pl.FP4, rule="nv")
    a = pl.store(left, [0, 0], a)
    a_scales = pl.store(scales, [0, 0], a_scales, [1, 256])
    right = pl.quant_mx(t, group_axis=0)
    b = pl.store(right[0], [0, 0], b)
    return a, a_scales, b
