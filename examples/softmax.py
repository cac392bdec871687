"""Attention weights, softmax(Q · Kᵀ / √D): the cube multiplies, a vector core does the rest.

    scalebox run examples/softmax.py
    scalebox run examples/softmax.py --param KEYS=128
    scalebox compile examples/softmax.py --print-after ConvertTensorToTileOps

The kernel is written with whole tensors. Loads, moves and the store are put in by the compiler, which
also decides what each core does. A fresh tensor that is returned, such as `p`, becomes an output.

The largest score of each row is taken off before `exp`, so that nothing overflows: that is what
`row_expand_expdif` does in one step. Sums go from left to right, in float32.
"""

from scalebox.ir import language as pl

ROWS = pl.param("ROWS", 64)  # queries
KEYS = pl.param("KEYS", 64)
D = pl.param("D", 64)  # numbers of a query, and of a key
FACTOR = D**-0.5


@pl.program
class Softmax:
    """One kernel, and the orchestration function that launches it."""

    @pl.function(type=pl.FunctionType.InCore)
    def attend(self, q: pl.Tensor[[ROWS, D], pl.BF16], k: pl.Tensor[[KEYS, D], pl.BF16]):
        """Return how much each query looks at each key: rows that add up to 1."""
        scores = pl.mul(pl.matmul(q, k, b_trans=True, out_dtype=pl.FP32), FACTOR)
        e = pl.row_expand_expdif(scores, pl.row_max(scores))
        p = pl.row_expand_div(e, pl.row_sum(e))
        return p

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, q: pl.Tensor[[ROWS, D], pl.BF16], k: pl.Tensor[[KEYS, D], pl.BF16]):
        """Launch the kernel once."""
        p = self.attend(q, k)
        return p
