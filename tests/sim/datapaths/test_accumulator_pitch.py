"""Sums stand as closely as the product that made them has rows, whatever the reader supposes."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.isa.vocabulary import Space
from scalebox.sim.faultcodes import FaultCode

Array = npt.NDArray[Any]
K = 16
OLD = 7.0
"""What every sum of the accumulator is before."""


def nz(matrix: Array) -> npt.NDArray[np.uint8]:
    """Return FP16 [rows, 16], rows a multiple of 16, as boxes."""
    return np.ascontiguousarray(matrix.astype(np.float16)).reshape(-1).view(np.uint8)


def mad(c: int, m: int, n: int, *, row: int = 0, init: str = "zero") -> str:
    return (
        f"mad l0c[{c}], l0a[{row * 32}], l0b[0], bias[0], m={m}, k={K}, n={n}, a_type=fp16, "
        f"b_type=fp16, init={init}"
    )


def as_read(memory: Array, rows: int, cols: int, boxes: int) -> Array:
    """Return the sums that stand in the places of boxes with a pitch."""
    out = np.zeros((rows, cols), np.float32)
    for r, c in np.ndindex(rows, cols):
        out[r, c] = memory[((c // 16 * boxes + r // 16) * 1024 + r % 16 * 64) // 4 + c % 16]
    return out


@pytest.fixture
def operands(rng: np.random.Generator) -> tuple[Array, Array]:
    return rng.integers(-8, 9, (64, K)).astype(float), rng.integers(-8, 9, (K, 32)).astype(float)


def run(bench: Any, text: str, operands: tuple[Array, Array], *, old: bool, boxes: int = 4) -> Any:
    a, b = operands
    store = f"l0c_to_gm v0, x0, x0, l0c[0], rows={boxes * 16}, cols=32, src_rows={boxes * 16}, convert=fp32"
    preset = {Space.L0A: nz(a), Space.L0B: nz(b.T)}
    if old:
        preset[Space.L0C] = np.full(64 * 32, OLD, np.float32).view(np.uint8)
    return bench.apply(
        f"{text}\n{store}",
        [bench.tensor("o", "FP32", (boxes * 16, 32), "out")],
        [bench.plain(0, 32, boxes * 16, 32)],
        preset=preset,
    )


def test_sums_of_few_rows_read_with_the_pitch_of_a_taller_tile_are_wrong_as_on_the_device(
    bench: Any, operands: tuple[Array, Array]
) -> None:
    a, b = operands
    _, gm, found = run(bench, mad(0, 16, 32), operands, old=True)
    assert not found
    # 16 rows of sums: the second column of boxes follows at once, and stands where the reader looks
    # for rows 16 to 31 of the first one. Its own place has what was there before.
    product = (a[:16] @ b).astype(np.float32)
    wanted = np.full((64, 32), OLD, np.float32)
    wanted[:16, :16], wanted[16:32, :16] = product[:, :16], product[:, 16:]
    np.testing.assert_array_equal(gm.view("o").view(np.float32).reshape(64, 32), wanted)


def test_where_nothing_was_written_before_it_is_reported(
    bench: Any, operands: tuple[Array, Array]
) -> None:
    _, _, found = run(bench, mad(0, 16, 32), operands, old=False)
    assert found[0].fault[:5] == (FaultCode.UNWRITTEN, Space.L0C, 4 * 1024, 0, 16)


def test_a_product_into_a_row_window_of_a_larger_accumulator_stands_elsewhere(
    bench: Any, operands: tuple[Array, Array]
) -> None:
    a, b = operands
    _, gm, found = run(
        bench, f"{mad(0, 32, 32)}\n{mad(1024, 16, 32, row=32)}", operands, old=True, boxes=2
    )
    assert not found
    # Meant were rows 16 to 31 of both columns of boxes. The second half of the sums goes to the box
    # behind the first one: rows 0 to 15 of the second column.
    whole, window = ((part @ b).astype(np.float32) for part in (a[:32], a[32:48]))
    wanted = whole.copy()
    wanted[16:, :16], wanted[:16, 16:] = window[:, :16], window[:, 16:]
    np.testing.assert_array_equal(gm.view("o").view(np.float32).reshape(32, 32), wanted)


def test_a_sum_goes_on_with_its_own_pitch(bench: Any, operands: tuple[Array, Array]) -> None:
    a, b = operands
    text = f"{mad(0, 32, 32)}\n{mad(0, 16, 32, init='acc')}"
    core, _, _ = bench.apply(text, preset={Space.L0A: nz(a), Space.L0B: nz(b.T)})
    whole, part = ((rows @ b).astype(np.float32) for rows in (a[:32], a[:16]))
    # The second product takes the boxes of rows 0 to 31, columns 0 to 15, for those of 16 rows.
    words = core.local.view(Space.L0C)[:4096].view(np.float32)
    wanted = whole.copy()
    wanted[:16, :16] += part[:, :16]
    wanted[16:, :16] += part[:, 16:]
    np.testing.assert_array_equal(as_read(words, 32, 32, 2), wanted)


def test_a_load_pads_inside_of_32_bytes_only(bench: Any) -> None:
    data = np.arange(20 * 40, dtype=np.int64).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    core, _, found = bench.apply(
        "gm_to_l1_nz v0, x0, x0, l1[0], rows=20, cols=40, l1_rows=32",
        [bench.tensor("a", "E4M3", (20, 40))],
        [bench.plain(0, 8, 20, 40)],
        images={"a": data},
        preset={Space.L1: np.full(4096, 0xA5, np.uint8)},
    )
    assert not found
    lines = np.full((4, 32, 32), 0xA5, np.uint8)
    lines[0, :20], lines[1, :20] = data.reshape(20, 40)[:, :32], 0
    lines[1, :20, :8] = data.reshape(20, 40)[:, 32:]
    np.testing.assert_array_equal(core.local.view(Space.L1)[:4096], lines.reshape(-1))
