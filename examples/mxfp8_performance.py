"""The MXFP8 matmul that vendors publish times of: 32 cores, panels of K in L1, all pipes at once.

    scalebox run examples/mxfp8_performance.py
    scalebox run examples/mxfp8_performance.py --param M=4096 --param K=4096 --param N=4096 --timing-only
    scalebox disasm examples/mxfp8_performance.py

C is cut into a grid of regions, one a core, and a region into tiles. A tile is summed up over K in an
accumulator, a step at a time; four steps of A and B are loaded at once, a panel, and scales for eight
panels. Panels, scales and the operands of a step have two slots each: while one is used, the next is
on its way. Which instruction waits for which is the compiler's business.

Any size will do. Tiles at an edge are smaller, and each extent that occurs is a piece of code of its
own; what a size does not need is not compiled.
"""

from scalebox.ir import language as pl

M = pl.param("M", 300, least=1)
K = pl.param("K", 1160, least=1)
N = pl.param("N", 1320, least=1)
E4M3 = pl.param("E4M3", 0)  # 1 for operands of E4M3 in place of E5M2

ELEMENT = pl.FP8E4M3FN if E4M3 else pl.FP8E5M2
TILE_M, TILE_N, STEP = 128, 256, 128  # what one matmul_mx multiplies


def is_whole(down: int, across: int) -> bool:
    """Return whether a grid of so many regions along M and along N has whole tiles only."""
    return M % (down * TILE_M) == N % (across * TILE_N) == 0


IS_TURNED = is_whole(8, 4) and not is_whole(4, 8)
GRID_M = pl.param("GRID_M", 8 if IS_TURNED else 4, least=1)  # regions along M
GRID_N = pl.param("GRID_N", 4 if IS_TURNED else 8, least=1)  # regions along N
PANEL = 4 * STEP  # of K in one load
SCALED = 8 * PANEL  # of K in one load of scales
GROUP = 32  # elements that share a scale


def rounded(size: int, unit: int) -> int:
    """Return the multiple of `unit` that holds `size`."""
    return -(-size // unit) * unit


def extents(size: int, region: int, tile: int) -> list[int]:
    """Return the extents of tiles that occur along an axis, largest first; 0 where some are empty."""
    tiles = [(first, at) for first in range(0, size, region) for at in range(0, region, tile)]
    return sorted({max(0, min(tile, region - at, size - first - at)) for first, at in tiles})[::-1]


REGION_M = rounded(-(-M // GRID_M), 16)
REGION_N = rounded(-(-N // GRID_N), 32)
ROW_TILES, COL_TILES = -(-REGION_M // TILE_M), -(-REGION_N // TILE_N)
HEIGHTS = extents(M, REGION_M, TILE_M) + [0] * (REGION_M * (GRID_M - 1) >= M)
WIDTHS = extents(N, REGION_N, TILE_N) + [0] * (REGION_N * (GRID_N - 1) >= N)
SAME_HEIGHT, SAME_WIDTH = len(HEIGHTS) == 1, len(WIDTHS) == 1
H0, H1, H2 = ([size for size in HEIGHTS if size] + HEIGHTS[:1] * 2)[:3]
W0, W1, W2 = ([size for size in WIDTHS if size] + WIDTHS[:1] * 2)[:3]

SCALE_M, GROUPS, SCALE_N = rounded(M, 16), rounded(K, 64) // GROUP, rounded(N, 32)
LOADS = -(-K // SCALED)  # of scales for a tile
LAST = K - (LOADS - 1) * SCALED  # of K that the last of them is for

scales_a = pl.MemRef(slots=2)
scales_b = pl.MemRef(slots=2)
panels_a = pl.MemRef(slots=2)
panels_b = pl.MemRef(slots=2)
left = pl.MemRef(slots=2)
right = pl.MemRef(slots=2)
sums = pl.MemRef(slots=1)


@pl.inline
def multiply(acc, a_panel, a_scales, b_panel, b_scales, begin, at, k, rows, cols, depth):
    """Add one step of K, `depth` of it, to the accumulator; the first one begins the sum."""
    a_left: pl.Tile[
        [-(-rows // 16) * 16, -(-depth // 64) * 64], ELEMENT, pl.Mem.Left, left[k // STEP % 2]
    ] = pl.tile.extract(
        a_panel, 0, k, [-(-rows // 16) * 16, -(-depth // 64) * 64], target_memory=pl.Mem.Left
    )
    as_left = pl.tile.extract(
        a_scales,
        0,
        (at + k) // GROUP,
        [-(-rows // 16) * 16, -(-depth // 64) * 2],
        target_memory=pl.Mem.LeftScale,
    )
    b_right: pl.Tile[
        [-(-depth // 64) * 64, -(-cols // 32) * 32], ELEMENT, pl.Mem.Right, right[k // STEP % 2]
    ] = pl.tile.extract(
        b_panel, k, 0, [-(-depth // 64) * 64, -(-cols // 32) * 32], target_memory=pl.Mem.Right
    )
    bs_right = pl.tile.extract(
        b_scales,
        (at + k) // GROUP,
        0,
        [-(-depth // 64) * 2, -(-cols // 32) * 32],
        target_memory=pl.Mem.RightScale,
    )
    if begin > 0 or at + k > 0:
        acc = pl.matmul_mx_acc(acc, a_left, as_left, b_right, bs_right)
    else:
        begun: pl.Tile[[-(-rows // 16) * 16, -(-cols // 32) * 32], pl.FP32, pl.Mem.Acc, sums[0]] = (
            pl.matmul_mx(a_left, as_left, b_right, bs_right)
        )
        acc = begun
    return acc


@pl.inline
def add_panel(acc, a, a_scales, b, b_scales, row, col, begin, at, rows, cols, depth):
    """Add a panel, `depth` of K from `begin` + `at` on."""
    a_panel: pl.Tile[
        [-(-rows // 16) * 16, -(-depth // 64) * 64], ELEMENT, pl.Mem.Mat, panels_a[at // PANEL % 2]
    ] = pl.load(
        a,
        [row, begin + at],
        [-(-rows // 16) * 16, -(-depth // 64) * 64],
        [rows, depth],
        target_memory=pl.Mem.Mat,
    )
    b_panel: pl.Tile[
        [-(-depth // 64) * 64, -(-cols // 32) * 32], ELEMENT, pl.Mem.Mat, panels_b[at // PANEL % 2]
    ] = pl.load(
        b,
        [begin + at, col],
        [-(-depth // 64) * 64, -(-cols // 32) * 32],
        [depth, cols],
        target_memory=pl.Mem.Mat,
    )
    if depth >= STEP:
        for k in pl.range(0, depth // STEP * STEP, STEP):
            acc = multiply(
                acc, a_panel, a_scales, b_panel, b_scales, begin, at, k, rows, cols, STEP
            )
    if depth % STEP > 0:
        acc = multiply(
            acc,
            a_panel,
            a_scales,
            b_panel,
            b_scales,
            begin,
            at,
            depth // STEP * STEP,
            rows,
            cols,
            depth % STEP,
        )
    return acc


@pl.inline
def add_scaled(acc, a, a_scale, b, b_scale, row, col, begin, turn, unit, rows, cols, depth):
    """Add what one load of scales is for, `depth` of K from `begin` on."""
    a_scales: pl.Tile[
        [-(-rows // 16) * 16, -(-depth // 64) * 2],
        pl.FP8E8M0,
        pl.Mem.Mat,
        scales_a[turn // unit % 2],
    ] = pl.load(
        a_scale,
        [row, begin // GROUP],
        [-(-rows // 16) * 16, -(-depth // 64) * 2],
        [rows, -(-depth // GROUP)],
        target_memory=pl.Mem.Mat,
    )
    b_scales: pl.Tile[
        [-(-depth // 64) * 2, -(-cols // 32) * 32],
        pl.FP8E8M0,
        pl.Mem.Mat,
        scales_b[turn // unit % 2],
    ] = pl.load(
        b_scale,
        [begin // GROUP, col],
        [-(-depth // 64) * 2, -(-cols // 32) * 32],
        [-(-depth // GROUP), cols],
        target_memory=pl.Mem.Mat,
    )
    if depth >= PANEL:
        for at in pl.range(0, depth // PANEL * PANEL, PANEL):
            acc = add_panel(acc, a, a_scales, b, b_scales, row, col, begin, at, rows, cols, PANEL)
    if depth % PANEL > 0:
        acc = add_panel(
            acc,
            a,
            a_scales,
            b,
            b_scales,
            row,
            col,
            begin,
            depth // PANEL * PANEL,
            rows,
            cols,
            depth % PANEL,
        )
    return acc


@pl.inline
def make_tile(a, a_scale, b, b_scale, c, tile, row, col, rows, cols):
    """Make the tile of C at (row, col)."""
    full: pl.Tile[[-(-rows // 16) * 16, -(-cols // 32) * 32], pl.FP32, pl.Mem.Acc, sums[0]] = (
        pl.create_tile(
            [-(-rows // 16) * 16, -(-cols // 32) * 32], dtype=pl.FP32, target_memory=pl.Mem.Acc
        )
    )
    acc = pl.set_validshape(full, rows, cols)
    if LOADS == 1:
        acc = add_scaled(acc, a, a_scale, b, b_scale, row, col, 0, tile, 1, rows, cols, LAST)
    else:
        for begin in pl.range(0, (LOADS - 1) * SCALED, SCALED):
            acc = add_scaled(
                acc, a, a_scale, b, b_scale, row, col, begin, begin, SCALED, rows, cols, SCALED
            )
        acc = add_scaled(
            acc,
            a,
            a_scale,
            b,
            b_scale,
            row,
            col,
            (LOADS - 1) * SCALED,
            LOADS - 1,
            1,
            rows,
            cols,
            LAST,
        )
    c = pl.store(acc, [row, col], c)
    return c


@pl.inline
def make_row(a, a_scale, b, b_scale, c, tile, row, col, width, rows):
    """Make the tile of C at (row, col), of which the rows are known."""
    if SAME_WIDTH or width == W0:
        c = make_tile(a, a_scale, b, b_scale, c, tile, row, col, rows, W0)
    if W1 < W0 and width == W1:
        c = make_tile(a, a_scale, b, b_scale, c, tile, row, col, rows, W1)
    if W2 < W1 and width == W2:
        c = make_tile(a, a_scale, b, b_scale, c, tile, row, col, rows, W2)
    return c


@pl.inline
def make_any(a, a_scale, b, b_scale, c, tile, row, col, height, width):
    """Make the tile of C at (row, col), height x width of it, which may be nothing."""
    if SAME_HEIGHT or height == H0:
        c = make_row(a, a_scale, b, b_scale, c, tile, row, col, width, H0)
    if H1 < H0 and height == H1:
        c = make_row(a, a_scale, b, b_scale, c, tile, row, col, width, H1)
    if H2 < H1 and height == H2:
        c = make_row(a, a_scale, b, b_scale, c, tile, row, col, width, H2)
    return c


@pl.program
class Mxfp8Performance:
    """One launch of a grid; each block makes a region of C."""

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], ELEMENT],
        a_scale: pl.Tensor[[SCALE_M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], ELEMENT, pl.TensorView(stride=[1, K], layout=pl.DN)],
        b_scale: pl.Tensor[[GROUPS, SCALE_N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.BF16]],
    ):
        """Launch the grid. B lies transposed, N rows of K."""
        for block in pl.spmd(GRID_M * GRID_N, name_hint="gemm"):
            for tile in pl.range(ROW_TILES * COL_TILES):
                down = tile // COL_TILES * TILE_M
                across = tile % COL_TILES * TILE_N
                row = block // GRID_N * REGION_M + down
                col = block % GRID_N * REGION_N + across
                height = pl.min(pl.min(TILE_M, REGION_M - down), M - row)
                width = pl.min(pl.min(TILE_N, REGION_N - across), N - col)
                c = make_any(a, a_scale, b, b_scale, c, tile, row, col, height, width)
        return c
