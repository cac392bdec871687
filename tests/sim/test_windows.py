"""Windows of GM: their bytes, their rows, and the stretches that follow one another."""

from typing import Any

import pytest

from scalebox.codegen.executable import Layout, View
from scalebox.sim import costs
from scalebox.sim.windows import Window

ROW_MAJOR = View(0, Layout.ND, 8, (64, 512), (512, 1))
COLUMN_MAJOR = View(0, Layout.DN, 8, (64, 512), (1, 64))
NARROW = View(0, Layout.ND, 4, (64, 64), (64, 1))
SPARSE = View(0, Layout.ND, 16, (64, 64), (256, 2))
BOXES = View(0, Layout.ND, 8, (1, 4, 8, 16, 2), (1024, 256, 32, 2, 1))


@pytest.mark.parametrize(
    ("window", "size", "by_rows", "runs"),
    [
        pytest.param(Window(ROW_MAJOR, 3, 100, 0), 300, (3, 512, 100), 3, id="part of rows"),
        pytest.param(Window(ROW_MAJOR, 3, 512, 0), 1536, (3, 512, 512), 1, id="whole rows"),
        pytest.param(Window(ROW_MAJOR, 1, 512, 0), 512, (1, 512, 512), 1, id="one row"),
        pytest.param(Window(ROW_MAJOR, 7, 1, 0), 7, (7, 512, 1), 7, id="a column across rows"),
        pytest.param(Window(COLUMN_MAJOR, 3, 100, 0), 300, (100, 64, 3), 100, id="transposed"),
        pytest.param(Window(COLUMN_MAJOR, 64, 100, 0), 6400, (100, 64, 64), 1, id="whole columns"),
        pytest.param(Window(NARROW, 5, 33, 0), 83, (5, 32, 17), 5, id="4-bit rows"),
        pytest.param(Window(NARROW, 5, 64, 0), 160, (5, 32, 32), 1, id="whole 4-bit rows"),
        pytest.param(Window(SPARSE, 2, 10, 0), 40, (2, 512, 38), 20, id="elements apart"),
        pytest.param(Window(BOXES, 2, 3, 1), 192, (2, 256, 96), 2, id="boxes"),
        pytest.param(Window(BOXES, 2, 8, 1), 512, (2, 256, 256), 1, id="all boxes of a row"),
    ],
)
def test_a_window_is_rows_of_bytes(
    window: Window, size: int, by_rows: tuple[int, int, int], runs: int
) -> None:
    assert (window.size_bytes, window.by_rows, window.runs) == (size, by_rows, runs)


def test_a_transfer_takes_its_bytes_and_its_rows(bench: Any) -> None:
    """128 bytes a cycle and 1.7 cycles for every stretch that follows itself in GM."""
    kernel = bench.kernel(
        """
        gm_to_l1_nz v0, x0, x0, l1[0], rows=64, cols=128, l1_rows=64
        gm_to_l1_nz v0, x0, x0, l1[0], rows=64, cols=256, l1_rows=64
        gm_to_l1_boxes v1, x0, x0, l1[0], ni=4, nj=2, l1_nj=2
        """,
        [bench.tensor("a", "E4M3", (64, 256)), bench.tensor("s", "E8M0", (64, 8))],
        [bench.plain(0, 8, 64, 256), bench.boxes(1, 64, 8)],
    )
    assert costs.occupancy(kernel, bench.target).tolist()[:3] == [
        173,  # 8192 / 128 + 64 * 1.7
        130,  # 16384 / 128 + 1.7
        9,  # 256 / 128 + 4 * 1.7
    ]
