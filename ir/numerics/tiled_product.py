"""A block-scaled product cut into tiles, which threads take one after the other.

For each cut of K, in ascending order, a thread packs its tile's operands into panels (`panels`) and
adds their product (`panel_product`). Every bit follows from exact group sums and the order of the
groups alone, not from the cuts or the number of threads.
"""

from __future__ import annotations

import ctypes
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numba
import numpy as np
from numba.core import config as numba_config
from numba.np.ufunc import parallel as numba_parallel

from ..dtypes.boxes import GROUP
from .panel_product import (
    EDGE_WORDS,
    multiply_in_order,
    multiply_panels,
    multiply_scaled_panels,
)
from .panels import (
    GROUP_LINES,
    LEFT_LANES,
    RIGHT_LANES,
    SCRATCH_BYTES,
    Places,
    element_form,
    is_single,
    is_wide,
    pack_panels,
    scale_factors,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dtypes import DType
    from .arguments import MatmulOperands

    Codes = npt.NDArray[np.uint8]
    Doubles = npt.NDArray[np.float64]

_TILE_ROWS: Final = 512
_TILE_COLUMNS: Final = 1024
_TILE_DEPTH: Final = 256
"""The largest tile: its left panels are about 1 MB, its right ones 2 MB, and a pair of them fits the
nearest cache."""
_ALONE: Final = 1 << 21
"""Products that one thread computes sooner than several could be set to work."""


class TensorScaling(NamedTuple):
    """What two levels of scales have that one has not.

    Attributes:
        block: Elements along K that share a scale, at most 32.
        factors: What each scale code is worth, float64 `[256]`.
        upper: One part of the scale of both tensors; its product with a group's sum is exact.
        lower: The other part.
    """

    block: int
    factors: Doubles
    upper: float
    lower: float


class _Tile(NamedTuple):
    """A part of the output: its first row and column, and how many of either."""

    row: int
    column: int
    rows: int
    columns: int


class _Panels:
    """Room for a tile's panels of one type; `shape` is its rows, columns and groups."""

    def __init__(self, real: type[Any], shape: tuple[int, int, int], factors: Any) -> None:
        rows, columns, groups = shape
        lines = groups * GROUP_LINES
        self.left = np.empty(-(-rows // LEFT_LANES) * LEFT_LANES * lines, real)
        self.right = np.empty(-(-columns // RIGHT_LANES) * RIGHT_LANES * lines, real)
        self.factors = factors


class _Workspace:
    """What one thread works in.

    Args:
        shape: Rows, columns and groups of a tile.
        factors: What each scale code is worth, if it is no E8M0 code.
    """

    def __init__(self, shape: tuple[int, int, int], factors: Doubles | None) -> None:
        self.shape = shape
        self.factors = factors
        self.scratch = np.empty(SCRATCH_BYTES, np.uint8)
        self.edge = np.zeros(EDGE_WORDS, np.uint32)
        self._panels: dict[type[Any], _Panels] = {}

    def panels(self, real: type[Any]) -> _Panels:
        """Return room for panels of a type, made when it is first wanted."""
        if real not in self._panels:
            factors = scale_factors(real) if self.factors is None else self.factors
            self._panels[real] = _Panels(real, self.shape, factors)
        return self._panels[real]


class _Side:
    """One operand, its lanes first: its bytes, how they lie there, and its scales."""

    def __init__(self, codes: Codes, scales: Codes, dtype: DType, *, width: int, span: int) -> None:
        # A step of 0 along K would mean codes that share a byte.
        self.codes = codes if min(codes.strides) > 0 else codes.copy(order="C")
        self.scales = scales
        self.form = element_form(dtype)._replace(span=span)
        self.width = width
        self.span = span
        self.lane_step, self.depth_step = self.codes.strides
        self.bytes = _bytes_of(self.codes)

    def pack(
        self, lane: int, lanes: int, first: int, depth: int, panels: _Panels, work: _Workspace
    ) -> bool:
        """Pack lanes and elements from `first` on, a whole group's; return whether it is exact."""
        groups = -(-depth // self.span)
        count = -(-lanes // self.width)
        places = Places(
            start=lane * self.lane_step + first * self.depth_step,
            panel_step=self.width * self.lane_step,
            lane_step=self.lane_step,
            depth_step=self.depth_step,
            parts=1,
            line_step=self.span * self.depth_step,
            part_step=0,
        )
        scales = np.zeros((count * self.width, groups), np.uint8)
        group = first // self.span
        scales[:lanes] = self.scales[lane : lane + lanes, group : group + groups]
        in_order = scales.reshape(count, self.width, groups).transpose(0, 2, 1).reshape(-1)
        target = panels.left if self.width == LEFT_LANES else panels.right
        return pack_panels(
            self.bytes, places, lanes, depth, self.width, self.form, in_order,
            panels.factors, target, work.scratch,
        )  # fmt: skip


class TiledProduct:
    """A product that is added to `operands.start`.

    Args:
        operands: The operands, checked.
        a_dtype: Element format of the left one.
        b_dtype: Element format of the right one.
        in_order: Whether each product is rounded and added for itself.
        scaling: The second level of scales, if there is one.
    """

    def __init__(
        self,
        operands: MatmulOperands,
        a_dtype: DType,
        b_dtype: DType,
        *,
        in_order: bool = False,
        scaling: TensorScaling | None = None,
    ) -> None:
        span = GROUP if scaling is None else scaling.block
        a, b = operands.a, operands.b.T
        self.left = _Side(a, operands.a_scales, a_dtype, width=LEFT_LANES, span=span)
        self.right = _Side(b, operands.b_scales.T, b_dtype, width=RIGHT_LANES, span=span)
        self.span = span
        self.depth = a.shape[1]
        self.shape = operands.start.shape
        self.words = operands.start.reshape(-1).view(np.uint32)
        self.in_order = in_order
        self.scaling = scaling
        self.is_wide = is_wide(a_dtype, b_dtype)
        self.is_single = is_single(a_dtype, b_dtype) and not in_order and scaling is None

    def compute(self, threads: int | None) -> None:
        """Add the product to the output, on so many threads or as many as numba may use."""
        rows, columns = self.shape
        if rows == 0 or columns == 0:
            return
        if rows * columns * self.depth < _ALONE:
            threads = 1
        elif threads is None:
            threads = _thread_count()
        down, across = _tile_shape(rows, columns, threads)
        tiles = deque(
            _Tile(row, column, min(down, rows - row), min(across, columns - column))
            for row, column in product(range(0, rows, down), range(0, columns, across))
        )
        cut = _TILE_DEPTH // self.span * self.span
        groups = -(-min(self.depth, cut) // self.span)
        factors = None if self.scaling is None else self.scaling.factors

        def work() -> None:
            workspace = _Workspace((down, across, groups), factors)
            while True:
                try:
                    tile = tiles.popleft()
                except IndexError:
                    return
                self._add_tile(tile, cut, workspace)

        helpers = min(threads, len(tiles)) - 1
        if helpers < 1:
            work()
            return
        with ThreadPoolExecutor(helpers) as pool:
            others = [pool.submit(work) for _ in range(helpers)]
            try:
                work()
            finally:
                tiles.clear()
            for other in others:
                other.result()

    def _add_tile(self, tile: _Tile, cut: int, work: _Workspace) -> None:
        for first in range(0, self.depth, cut):
            depth = min(cut, self.depth - first)
            panels = work.panels(np.float32 if self.is_single else np.float64)
            if not self._pack(tile, first, depth, panels, work):
                panels = work.panels(np.float64)
                self._pack(tile, first, depth, panels, work)
            self._multiply(tile, depth, panels, work)

    def _pack(self, tile: _Tile, first: int, depth: int, panels: _Panels, work: _Workspace) -> bool:
        left = self.left.pack(tile.row, tile.rows, first, depth, panels, work)
        return left and self.right.pack(tile.column, tile.columns, first, depth, panels, work)

    def _multiply(self, tile: _Tile, depth: int, panels: _Panels, work: _Workspace) -> None:
        columns = self.shape[1]
        place, groups = tile.row * columns + tile.column, -(-depth // self.span)
        if self.in_order:
            multiply_in_order(
                panels.left, panels.right, self.words, place, columns, RIGHT_LANES,
                tile.rows, tile.columns, depth,
            )  # fmt: skip
        elif self.scaling is None:
            multiply_panels(
                panels.left, panels.right, self.words, place, columns, RIGHT_LANES,
                tile.rows, tile.columns, groups, self.is_wide, work.edge,
            )  # fmt: skip
        else:
            multiply_scaled_panels(
                panels.left, panels.right, self.words, place, columns, RIGHT_LANES,
                tile.rows, tile.columns, groups, self.span,
                self.scaling.upper, self.scaling.lower, work.edge,
            )  # fmt: skip


def _thread_count() -> int:
    """Return how many threads numba may use, without making it start any."""
    config: Any = numba_config
    state: Any = numba_parallel
    # There is no public way to ask whether somebody has called numba.set_num_threads.
    started: bool = state._is_initialized  # noqa: SLF001
    return numba.get_num_threads() if started else int(config.NUMBA_NUM_THREADS)


def _tile_shape(rows: int, columns: int, threads: int) -> tuple[int, int]:
    """Return rows and columns of a tile: large, but so that every thread finds work."""
    across = min(_TILE_COLUMNS, -(-columns // RIGHT_LANES) * RIGHT_LANES)
    shares = 2 * threads if threads > 1 else 1
    wanted = -(-shares // -(-columns // across))
    down = -(-rows // wanted)
    return min(_TILE_ROWS, -(-down // LEFT_LANES) * LEFT_LANES), across


def _bytes_of(codes: Codes) -> Codes:
    """Return the bytes of a matrix, from its first to its last, under one type.

    numba would compile anew for an array that is read-only or has gaps, though it is only read, and
    byte by byte at that.
    """
    length = 1 + sum((n - 1) * step for n, step in zip(codes.shape, codes.strides, strict=True))
    span = (ctypes.c_uint8 * length).from_address(codes.ctypes.data)
    return np.frombuffer(memoryview(span), np.uint8)
