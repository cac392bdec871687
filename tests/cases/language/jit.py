import scalebox.ir.language as anything
from scalebox.ir.language import FP32, Out, Tensor, jit, load

ROWS = 64


@jit
def entry(x: Tensor[[ROWS, 128], FP32], n: anything.INDEX, out: Out[Tensor[[ROWS, 128], FP32]]):
    m, k = x.shape
    with anything.spmd(m // 16):
        out = copy(x, n, out)
    with anything.at(level=anything.Level.CORE_GROUP):
        rows = x.shape[0]
        t = load(x, [0, 0], [rows, k], target_memory=anything.Mem.Mat)
        out = anything.store(t, [0, 0], out)
    return out


@jit.incore
def copy(x: Tensor[[ROWS, 128], FP32], n: anything.INDEX, out: Out[Tensor[[ROWS, 128], FP32]]):
    i = anything.get_block_idx()
    t = load(x, [i * 16, n], [16, x.shape[1]], target_memory=anything.Mem.Mat)
    out = anything.store(t, [i * 16, n], out)
    return out
