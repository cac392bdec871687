"""A matmul of two tensors of a compound dtype: elements and scales in one, multiplied in one line.

    scalebox run examples/mx_compound.py
    scalebox run examples/mx_compound.py --param M=256 --param N=256

`pl.MXFP8_E4M3` is a dtype of two planes: 8-bit floats, and one scale a block of 32 along K. What a
caller gives is one array, `numerics.quantize(x, pl.MXFP8_E4M3, axis=1)`; which axis the blocks lie along
follows from the use. The compiler takes the planes apart: `a` becomes the elements and `a_scale` the
scales in box order, `pl.matmul` becomes loads, `pl.matmul_mx` and a store, cut to what the cube's
buffers hold. The other examples write down what is done here for you. Both operands must fit into L1
together; of larger ones, `a[:, k : k + 256]` takes a window, and `pl.matmul_acc` adds up products.
"""

from scalebox.ir import language as pl

M = pl.param("M", 128)  # rows of A and C: a multiple of 16
K = pl.param("K", 512)  # columns of A, rows of B: a multiple of 64
N = pl.param("N", 128)  # columns of B and C: a multiple of 32


@pl.program
class MxCompound:
    """One kernel, and the orchestration function that launches it."""

    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, a: pl.Tensor[[M, K], pl.MXFP8_E4M3], b: pl.Tensor[[K, N], pl.MXFP8_E4M3]):
        """Multiply; the product is a fresh tensor, which the compiler makes an output of."""
        c = pl.matmul(a, b)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[M, K], pl.MXFP8_E4M3], b: pl.Tensor[[K, N], pl.MXFP8_E4M3]):
        """Launch the kernel once."""
        c = self.gemm(a, b)
        return c
