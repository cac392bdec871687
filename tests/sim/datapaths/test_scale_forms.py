"""Scales and operands that do not stand in boxes as they mostly do, against plain numpy."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.executable import Layout, View
from scalebox.codegen.isa.asm import parse_program
from scalebox.codegen.isa.vocabulary import Space
from scalebox.ir.errors import ExecutableError, SimulationFault
from scalebox.sim import decode
from scalebox.sim.costs import moved_bytes, occupancy
from scalebox.sim.faultcodes import FaultCode

Bytes = npt.NDArray[np.uint8]
STALE = 0xA5
ROWS, GROUPS = 48, 8


def boxes(by_rows: Bytes) -> Bytes:
    """Return scales [rows, groups] as boxes of 16 rows by 2 groups, rows of boxes outside."""
    rows, groups = by_rows.shape
    return by_rows.reshape(rows // 16, 16, groups // 2, 2).transpose(0, 2, 1, 3).reshape(-1)


def in_memory(layout: str, by_rows: Bytes) -> Bytes:
    """Return the bytes of scales [rows, groups]: [M][G], [G/2][M][2], [G/2][N][2] or [N][G]."""
    rows, groups = by_rows.shape
    if layout in ("a_nd", "b_dn"):
        return by_rows.reshape(-1)
    return by_rows.reshape(rows, groups // 2, 2).transpose(1, 0, 2).reshape(-1)


def view_of(layout: str, rows: int, groups: int) -> View:
    """Return the view of the whole of them: [1, 1, r, c/2, 2] or [1, 1, c/2, r, 2]."""
    total, order = rows * groups, Layout(layout[2:])
    if layout in ("a_nd", "b_dn"):
        return View(0, order, 8, (1, 1, rows, groups // 2, 2), (total, total, groups, 2, 1))
    return View(0, order, 8, (1, 1, groups // 2, rows, 2), (total, total, 2 * rows, 2, 1))


@pytest.mark.parametrize("layout", ["a_nd", "a_dn", "b_nd", "b_dn"])
@pytest.mark.parametrize(
    ("row", "pair", "rows", "pairs", "pitch"),
    [(0, 0, 48, 4, 4), (16, 1, 32, 3, 3), (16, 1, 32, 2, 5), (7, 2, 21, 1, 4), (47, 3, 1, 1, 1)],
)
def test_scales_in_rows_become_boxes_and_other_bytes_stay(
    bench: Any,
    rng: np.random.Generator,
    layout: str,
    row: int,
    pair: int,
    rows: int,
    pairs: int,
    pitch: int,
) -> None:
    scales = rng.integers(0, 256, (ROWS, GROUPS), dtype=np.uint8)
    by_rows = layout in ("a_nd", "b_dn")
    window = f"ni={rows}, nj={pairs}" if by_rows else f"ni={pairs}, nj={rows}"
    first, second = (row, pair) if by_rows else (pair, row)
    core, _, found = bench.apply(
        f"movi x1, {first}\nmovi x2, {second}\n"
        f"gm_to_l1_scales v0, x1, x2, l1[64], layout={layout}, {window}, l1_nj={pitch}",
        [bench.tensor("s", "E8M0", (ROWS, GROUPS))],
        [view_of(layout, ROWS, GROUPS)],
        images={"s": in_memory(layout, scales)},
        preset={Space.L1: np.full(4096, STALE, np.uint8)},
    )
    assert not found
    expected = np.full(4096, STALE, np.uint8)
    for r in range(rows):
        for p in range(pairs):
            at = 64 + (r // 16 * pitch + p) * 32 + r % 16 * 2
            expected[at : at + 2] = scales[row + r, 2 * (pair + p) : 2 * (pair + p) + 2]
    np.testing.assert_array_equal(core.local.view(Space.L1)[:4096], expected)


@pytest.mark.parametrize("layout", ["a_nd", "a_dn", "b_nd", "b_dn"])
def test_a_whole_tensor_comes_to_stand_as_packed_boxes_do(
    bench: Any, rng: np.random.Generator, layout: str
) -> None:
    scales = rng.integers(0, 256, (ROWS, GROUPS), dtype=np.uint8)
    window = "ni=48, nj=4" if layout in ("a_nd", "b_dn") else "ni=4, nj=48"
    text = f"gm_to_l1_scales v0, x0, x0, l1[0], layout={layout}, {window}, l1_nj=4"
    params = [bench.tensor("s", "E8M0", (ROWS, GROUPS))]
    views = [view_of(layout, ROWS, GROUPS)]
    core, _, found = bench.apply(text, params, views, images={"s": in_memory(layout, scales)})
    assert not found
    np.testing.assert_array_equal(core.local.view(Space.L1)[: ROWS * GROUPS], boxes(scales))
    kernel = bench.kernel(text, params, views)
    assert moved_bytes(kernel).tolist() == [ROWS * GROUPS, 0]
    assert occupancy(kernel, bench.target)[0] >= ROWS * GROUPS / 128


def test_the_l2_sees_the_rows_of_a_window_of_scales(bench: Any) -> None:
    kernel = bench.kernel(
        "gm_to_l1_scales v0, x1, x2, l1[0], layout=a_nd, ni=5, nj=3, l1_nj=3\n"
        "gm_to_l1_scales v1, x1, x2, l1[0], layout=a_dn, ni=3, nj=5, l1_nj=3",
        [bench.tensor("s", "E8M0", (ROWS, GROUPS))],
        [view_of("a_nd", ROWS, GROUPS), view_of("a_dn", ROWS, GROUPS)],
    )
    table = decode.transfers(decode.decode(kernel))
    assert table[0].tolist() == [1, 0, 8 * GROUPS, 16, 5, GROUPS, 6]
    assert table[1].tolist() == [1, 0, 16 * ROWS, 16, 3, 2 * ROWS, 10]


@pytest.mark.parametrize(
    ("operands", "clause"),
    [
        (
            "layout=a_nd, ni=16, nj=3, l1_nj=2",
            "nj, the pairs, must be at most l1_nj (2), not 3",
        ),
        (
            "layout=b_nd, ni=3, nj=16, l1_nj=2",
            "ni, the pairs, must be at most l1_nj (2), not 3",
        ),
        (
            "layout=a_nd, ni=8193, nj=1, l1_nj=32",
            "a tile of scales must have at most 524288 of them, not 525312",
        ),
    ],
)
def test_a_tile_that_holds_no_such_scales_is_refused(operands: str, clause: str) -> None:
    with pytest.raises(ExecutableError) as caught:
        parse_program(f"gm_to_l1_scales v0, x0, x0, l1[0], {operands}")
    assert caught.value.message == f"In line 1, in gm_to_l1_scales, {clause}."


@pytest.mark.parametrize(
    ("layout", "view"),
    [
        ("a_nd", view_of("a_dn", 48, 8)),
        ("b_dn", view_of("b_nd", 48, 8)),
        ("a_dn", view_of("a_nd", 48, 8)),
        ("b_nd", view_of("b_dn", 48, 8)),
        ("a_dn", View(0, Layout.DN, 8, (1, 1, 4, 16, 2), (384, 384, 2, 8, 1))),
        ("a_nd", View(0, Layout.MX_A_ZZ, 8, (1, 3, 4, 16, 2), (384, 128, 32, 2, 1))),
        ("a_nd", View(0, Layout.ND, 8, (1, 2, 16, 4, 2), (256, 128, 8, 2, 1))),
        ("a_nd", View(0, Layout.ND, 8, (1, 1, 16, 4, 1), (384, 384, 8, 2, 1))),
    ],
)
def test_a_view_of_another_order_is_refused(bench: Any, layout: str, view: View) -> None:
    text = f"gm_to_l1_scales v0, x0, x0, l1[0], layout={layout}, ni=1, nj=1, l1_nj=1"
    kernel = bench.kernel(text, [bench.tensor("s", "E8M0", (48, 8))], [view])
    order = "rows, pairs" if layout in ("a_nd", "b_dn") else "pairs, rows"
    with pytest.raises(ExecutableError) as caught:
        decode.decode(kernel)
    assert caught.value.message == (
        "Instruction 0 (gm_to_l1_scales) of kernel 'k' must use a view in "
        f"{layout[2:].upper()} of 8-bit elements and dimensions [1, 1, {order}, 2] with strides 2 and 1 "
        f"at the end, as {layout} has them, not in {view.layout.name} of 8-bit elements, dimensions {list(view.dims)} and strides {list(view.strides)}."
    )


def test_scales_beyond_the_view_or_the_memory_are_out_of_bounds(bench: Any) -> None:
    params, views = [bench.tensor("s", "E8M0", (48, 8))], [view_of("a_nd", 48, 8)]
    text = "gm_to_l1_scales v0, x1, x0, l1[{}], layout=a_nd, ni=33, nj=4, l1_nj=4"
    _, _, found = bench.apply("movi x1, 16\n" + text.format(0), params, views)
    assert found[0].fault[:5] == (FaultCode.VIEW_RANGE, 2, 16, 33, 48)
    end = bench.target.l1_bytes - 352
    _, _, found = bench.apply("movi x1, 0\n" + text.format(end), params, views)
    assert found[0].fault[:5] == (FaultCode.LOCAL_RANGE, Space.L1, end, 384, end + 352)


@pytest.mark.parametrize("side", ["a", "b"])
def test_scale_boxes_beyond_what_is_loaded_stay_as_they_were(
    bench: Any, rng: np.random.Generator, side: str
) -> None:
    scales = rng.integers(0, 256, (ROWS, GROUPS), dtype=np.uint8)
    stale = rng.integers(0, 256, 4096, dtype=np.uint8)
    core, _, found = bench.apply(
        "gm_to_l1_boxes v0, x0, x0, l1[0], ni=2, nj=2, l1_nj=4\n"
        f"l1_to_scale_{side} l1[32], scale_{side}[64], row_boxes=2, col_boxes=1, src_pitch=4",
        [bench.tensor("s", "E8M0", (ROWS, GROUPS))],
        [bench.boxes(0, ROWS, GROUPS)],
        images={"s": boxes(scales)},
        preset={Space.L1: stale, Space[f"SCALE_{side.upper()}"]: stale},
    )
    assert not found
    packed = boxes(scales).reshape(3, 4, 32)
    tile = stale.copy()
    for i, j in np.ndindex(2, 2):
        tile[(i * 4 + j) * 32 :][:32] = packed[i, j]
    np.testing.assert_array_equal(core.local.view(Space.L1)[:4096], tile)
    moved = stale.copy()
    moved[64:96], moved[96:128] = packed[0, 1], packed[1, 1]
    np.testing.assert_array_equal(core.local.view(Space[f"SCALE_{side.upper()}"]), moved)


@pytest.mark.parametrize("field", ["row_boxes", "col_boxes"])
def test_a_move_of_scales_takes_at_most_255_boxes_along_an_axis(field: str) -> None:
    counts = {"row_boxes": 1, "col_boxes": 1, field: 256}
    text = ", ".join(f"{name}={count}" for name, count in counts.items())
    with pytest.raises(ExecutableError) as caught:
        parse_program(f"l1_to_scale_a l1[0], scale_a[0], {text}, src_pitch=256")
    wanted = f"In line 1, in l1_to_scale_a, {field} must be 1 to 255, not 256."
    assert caught.value.message == wanted


# --------------------------------------------------------------------------- operands


def nz(codes: npt.NDArray[Any], bits: int) -> Bytes:
    """Return codes [rows, cols] as boxes of 16 rows by 32 bytes, column of boxes by column."""
    wide = 256 // bits
    rows, cols = -(-codes.shape[0] // 16) * 16, -(-codes.shape[1] // wide) * wide
    whole = np.zeros((rows, cols), codes.dtype)
    whole[: codes.shape[0], : codes.shape[1]] = codes
    if bits == 4:
        whole = (whole[:, 0::2] | whole[:, 1::2] << 4).astype(np.uint8)
    lines = whole.view(np.uint8).reshape(rows, -1, 32)
    return lines.transpose(1, 0, 2).reshape(-1)


def draw(rng: np.random.Generator, bits: int, shape: tuple[int, int]) -> npt.NDArray[Any]:
    kind = {4: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32}[bits]
    return rng.integers(1, 1 << min(bits, 31), shape).astype(kind)


@pytest.mark.parametrize("bits", [4, 8, 16, 32])
@pytest.mark.parametrize(("k", "m"), [(64, 32), (50, 18), (3, 48)])
def test_a_left_operand_with_k_along_its_rows_is_transposed(
    bench: Any, rng: np.random.Generator, bits: int, k: int, m: int
) -> None:
    tile = draw(rng, bits, (80, 64))
    core, _, found = bench.apply(
        f"movi x1, 16\n"
        f"l1_to_l0a_turned_at l1[0], l0a[512], bits=b{bits}, k={k}, m={m}, src_k=80, x1",
        preset={Space.L1: nz(tile, bits), Space.L0A: np.full(65536, STALE, np.uint8)},
    )
    assert not found
    wanted = nz(np.ascontiguousarray(tile[16 : 16 + k, :m].T), bits)
    got = core.local.view(Space.L0A)
    np.testing.assert_array_equal(got[512 : 512 + len(wanted)], wanted)
    assert (got[:512] == STALE).all()
    assert (got[512 + len(wanted) :] == STALE).all()


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_a_right_operand_with_k_along_its_columns_is_copied_as_it_stands(
    bench: Any, rng: np.random.Generator, bits: int
) -> None:
    wide = 256 // bits
    tile = draw(rng, bits, (48, 3 * wide))
    core, _, found = bench.apply(
        "l1_to_l0b_boxes l1[2048], l0b[0], row_boxes=2, col_boxes=2, src_pitch=3, dst_pitch=2",
        preset={Space.L1: nz(tile, bits)},
    )
    assert not found
    # Element (k, n) of the operand is element (n, k) of the tile, from row 16 and column wide on.
    wanted = nz(np.ascontiguousarray(tile[16:48, wide:]), bits)
    np.testing.assert_array_equal(core.local.view(Space.L0B)[: len(wanted)], wanted)


def test_changed_axes_cost_as_much_as_others(bench: Any) -> None:
    kernel = bench.kernel(
        "l1_to_l0a_turned l1[0], l0a[0], bits=b8, k=64, m=40, src_k=64\n"
        "l1_to_l0a l1[0], l0a[0], row_boxes=3, col_boxes=2, src_pitch=3, dst_pitch=3\n"
        "l1_to_l0b_boxes l1[0], l0b[0], row_boxes=3, col_boxes=2, src_pitch=3, dst_pitch=3\n"
        "l1_to_l0b l1[0], l0b[0], bits=b8, k=64, n=40, src_k=64"
    )
    assert moved_bytes(kernel).tolist() == [6 * 512] * 4 + [0]
    first, second, third, fourth, _ = occupancy(kernel, bench.target)
    assert (first, third) == (second, fourth)


@pytest.mark.parametrize(
    ("text", "space"),
    [
        ("l1_to_l0a_turned l1[0], l0a[65024], bits=b8, k=32, m=17, src_k=32", Space.L0A),
        (
            "l1_to_l0b_boxes l1[0], l0b[65024], row_boxes=2, col_boxes=1, src_pitch=2, dst_pitch=2",
            Space.L0B,
        ),
        ("l1_to_fixp l1[0], fixp[4064], bytes=36", Space.FIXP),
    ],
)
def test_what_does_not_fit_is_out_of_bounds(bench: Any, text: str, space: Space) -> None:
    _, _, found = bench.apply(text)
    assert found[0].fault[:2] == (FaultCode.LOCAL_RANGE, space)


@pytest.mark.parametrize("kind", ["e4m3", "e2m1"])
@pytest.mark.parametrize("order", ["nd", "dn"])
def test_a_product_of_operands_and_scales_given_the_other_way_round(
    bench: Any, rng: np.random.Generator, kind: str, order: str
) -> None:
    m, k, n = 32, 128, 48
    groups, bits = k // 32, 8 if kind == "e4m3" else 4
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    a, b = (values[rng.integers(0, 8, shape)] for shape in ((k, m), (n, k)))
    scales_a = rng.integers(120, 134, (m, groups), dtype=np.uint8)
    scales_b = rng.integers(120, 134, (n, groups), dtype=np.uint8)

    def codes(numbers: npt.NDArray[Any]) -> Bytes:
        if bits == 4:
            return np.searchsorted(values, numbers).astype(np.uint8)
        return numbers.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)

    layout_a, layout_b = f"a_{order}", f"b_{order}"
    window_a, window_b = (
        ("ni=32, nj=2", "ni=2, nj=48") if order == "nd" else ("ni=2, nj=32", "ni=48, nj=2")
    )
    deep = 512 * -(-k * bits // 256)
    core, _, found = bench.apply(
        f"""
        gm_to_l1_scales v0, x0, x0, l1[0x8000], layout={layout_a}, {window_a}, l1_nj=2
        gm_to_l1_scales v1, x0, x0, l1[0x9000], layout={layout_b}, {window_b}, l1_nj=2
        l1_to_l0a_turned l1[0], l0a[1024], bits=b{bits}, k={k}, m={m}, src_k={k}
        l1_to_l0b_boxes l1[0x4000], l0b[512], row_boxes=3, col_boxes={deep // 512}, src_pitch=3, dst_pitch=3
        l1_to_scale_a l1[0x8000], scale_a[64], row_boxes=2, col_boxes=2, src_pitch=2
        l1_to_scale_b l1[0x9000], scale_b[32], row_boxes=3, col_boxes=2, src_pitch=2
        mad_mx l0c[0], l0a[1024], l0b[512], bias[0], m={m}, k={k}, n={n}, a_type={kind}, b_type={kind}, init=zero
        """,
        [bench.tensor("sa", "E8M0", (m, groups)), bench.tensor("sb", "E8M0", (groups, n))],
        [
            view_of(layout_a, m, groups),
            View(1, *_fields(view_of(layout_b, n, groups))),
        ],
        images={"sa": in_memory(layout_a, scales_a), "sb": in_memory(layout_b, scales_b)},
        preset={Space.L1: np.concatenate([_padded(nz(codes(a), bits)), nz(codes(b), bits)])},
    )
    assert not found
    wide_a = 2.0 ** (scales_a.astype(np.float64) - 127).repeat(32, axis=1)
    wide_b = 2.0 ** (scales_b.astype(np.float64) - 127).repeat(32, axis=1)
    # Every partial sum is a multiple of 2^-16 below 2^8 · 2^16 · 36: exact in FP64, and rounded as the
    # machine does it group by group.
    total = np.zeros((m, n), np.float32)
    for group in range(groups):
        part = slice(group * 32, group * 32 + 32)
        term = (a.T * wide_a)[:, part] @ (b * wide_b)[:, part].T
        total = (total + term.astype(np.float32)).astype(np.float32)
    words = core.local.view(Space.L0C)[: m * n * 4].view(np.float32)
    got = words.reshape(n // 16, m, 16).transpose(1, 0, 2).reshape(m, n)
    np.testing.assert_array_equal(got, total)


def _fields(view: View) -> tuple[Layout, int, tuple[int, ...], tuple[int, ...]]:
    return view.layout, view.bits, view.dims, view.strides


def _padded(data: Bytes) -> Bytes:
    return np.concatenate([data, np.zeros(0x4000 - len(data), np.uint8)])


def test_what_the_instructions_of_this_page_touch_is_known_to_the_checks(bench: Any) -> None:
    scales = np.arange(128, dtype=np.uint8)
    kernel = bench.kernel(
        """
        gm_to_l1_scales v0, x0, x0, l1[0], layout=a_nd, ni=32, nj=2, l1_nj=2
        set_flag src=mte2, dst=mte1, id=0
        wait_flag src=mte2, dst=mte1, id=0
        l1_to_scale_a l1[0], scale_a[0], row_boxes=2, col_boxes=2, src_pitch=2
        l1_to_l0a_turned l1[0], l0a[0], bits=b8, k=16, m=8, src_k=16
        l1_to_l0b_boxes l1[0], l0b[0], row_boxes=1, col_boxes=1, src_pitch=1, dst_pitch=1
        """,
        [bench.tensor("s", "E8M0", (32, 4))],
        [view_of("a_nd", 32, 4)],
    )
    assert bench.run(kernel, {"s": scales}, checks="warn").cycles > 0
    unordered = bench.kernel(
        "gm_to_l1_scales v0, x0, x0, l1[0], layout=a_nd, ni=32, nj=2, l1_nj=2\n"
        "l1_to_l0a_turned l1[0], l0a[0], bits=b8, k=16, m=8, src_k=16",
        [bench.tensor("s", "E8M0", (32, 4))],
        [view_of("a_nd", 32, 4)],
    )
    with pytest.raises(SimulationFault, match="nothing orders"):
        bench.run(unordered, {"s": scales})
