# A grid becomes two functions, the launch of its blocks and what a block runs; scalars pass both argument lists.
from scalebox.ir import language as pl


@pl.program
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        sa: pl.Tensor[[256, 4], pl.FP8E8M0, pl.MX_A_ZZ],
        out: pl.InOut[pl.Tensor[[256, 4], pl.FP32]],
        n: pl.Scalar[pl.INDEX],
    ):
        for half in pl.range(2):
            base = half * 128
            for i in pl.spmd(n + 1, name_hint="rows"):
                s = pl.load(sa, [base + i * 16, 0], [16, 4], target_memory=pl.Mem.Mat)
        return out
