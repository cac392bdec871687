# Without MX tensors nothing changes but the stamp.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[64, 4], pl.FP8E8M0]):
    t = pl.load(x, [8, 1], [16, 3])
