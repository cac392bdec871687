from scalebox.ir import language as pl

SHAPE = [64, 4]
BOXES = pl.Tensor[SHAPE, pl.FP8E8M0, pl.MX_A_ZZ]
TRANSPOSED = pl.TensorView(stride=[1, 128], layout=pl.DN)


@pl.program
class Views:
    @pl.function(type=pl.FunctionType.InCore)
    def boxes(
        self,
        flat: pl.Tensor[[1, 256], pl.FP8E8M0],
        boxes: BOXES,
        right: pl.Tensor[[4, 64], pl.FP8E8M0, pl.TensorLayout.MX_B_NN],
        plain: pl.Tensor[[64, 128], pl.FP4, pl.ND],
        weight: pl.Tensor[[128, 64], pl.FP8E4M3FN, TRANSPOSED],
        short: pl.Tensor[[64, 128], pl.FP32, pl.TensorView(layout=pl.ND, valid_shape=[40, 128])],
    ):
        as_boxes = pl.tensor.view(flat, SHAPE, layout=pl.MX_A_ZZ)
        tile = pl.load(as_boxes, [0, 0], SHAPE)
        other = pl.load(boxes, [16, 2], [48, 2], [40, 1])
        as_bytes = pl.tensor.view(right, [1, 256], layout=pl.ND)
        row: pl.Tile[[1, 64], pl.FP8E8M0] = pl.load(as_bytes, [0, 0], [1, 64])
        few = pl.load(plain, [0, 0], [16, 64], valid_shape=[10, 60], target_memory=pl.Mem.Mat)
        wide = pl.load(short, [0, 0], [64, 128], target_memory=pl.Mem.Mat, clamp=True)
        down: pl.Tile[[128, 64], pl.FP8E4M3FN, pl.Mem.Mat] = pl.load(
            weight, [0, 0], [128, 64], target_memory=pl.Mem.Mat
        )
        left: pl.Tile[
            [16, 64], pl.FP4, pl.Mem.Left, pl.TileView(valid_shape=[10, 60])
        ] = pl.move(few, pl.Mem.Left)
