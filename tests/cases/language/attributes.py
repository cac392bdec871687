from scalebox.ir import language as pl


@pl.program
class Attributes:
    @pl.function(type=pl.FunctionType.AIC, attrs={"order": 3})
    def tagged(self, x: pl.Tensor[[16, 16], pl.INT8], n: pl.Scalar[pl.INDEX]):
        pl.func_attr(
            {
                "flag": True,
                "size": n,
                "text": 'it is "quoted"',
                "layouts": [pl.MX_A_ZZ, pl.ND],
                "pair": (1, 2.5),
                "one": (pl.FP16,),
                "none": None,
            }
        )
        for i in pl.pipeline(0, 16, 4, stage=3, attrs={"hint": {"depth": 2}}):
            tile = pl.load(x, [i, 0], [4, 16], target_memory=pl.Mem.Vec, attrs={"dump_vars": [x]})

    @pl.function(level=pl.Level.HOST)
    def placed(self, x: pl.Tensor[[16, 16], pl.INT8]):
        self.tagged(x, 4, attrs={"arg_directions": [pl.ParamDirection.In, pl.ParamDirection.In]})
