# Bytes viewed as boxes: the shape and the type of the view are blocked, the source is not. Boxes viewed
# as bytes: the view stays as it is, its source is blocked.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(flat: pl.Tensor[[1, 64], pl.FP8E8M0], s: pl.Tensor[[4, 32], pl.FP8E8M0, pl.MX_B_NN]):
    boxes = pl.tensor.view(flat, [32, 2], layout=pl.MX_A_ZZ)
    t = pl.load(boxes, [16, 0], [16, 2])
    bytes_ = pl.tensor.view(s, [1, 128])
    u = pl.load(bytes_, [0, 0], [1, 128])
