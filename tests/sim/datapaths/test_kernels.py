"""Every datapath puts every byte where the published layouts say, and touches nothing else."""

from typing import Any

import numpy as np
import pytest

from scalebox.codegen.executable import Layout, View
from scalebox.codegen.isa.vocabulary import Space
from scalebox.sim.faultcodes import FaultCode

STALE = 0xA5
DTYPES = {4: "E2M1", 8: "E4M3", 16: "BF16", 32: "FP32"}


def stale(size: int) -> np.ndarray:
    return np.full(size, STALE, np.uint8)


def get_element(data: np.ndarray, bits: int, index: int) -> int:
    """Return element `index` of packed little-endian elements."""
    if bits == 4:
        return int(data[index // 2]) >> index % 2 * 4 & 0xF
    width = bits // 8
    return int.from_bytes(data[index * width : (index + 1) * width].tobytes(), "little")


def put_element(data: np.ndarray, byte: int, bits: int, odd: int, value: int) -> None:
    """Write an element at `byte`; `odd` picks the nibble of a 4-bit one."""
    if bits == 4:
        kept = int(data[byte]) & (0x0F if odd else 0xF0)
        data[byte] = kept | value << odd * 4
    else:
        data[byte : byte + bits // 8] = list(value.to_bytes(bits // 8, "little"))


@pytest.mark.parametrize("bits", [4, 8, 16, 32])
@pytest.mark.parametrize(
    ("xr", "xc", "rows", "cols", "l1_rows"),
    [(0, 0, 16, 64, 16), (3, 8, 21, 70, 48), (5, 2, 1, 2, 16), (0, 30, 33, 66, 64)],
)
def test_nz_load_follows_the_box_formula(
    bench: Any, rng: Any, bits: int, xr: int, xc: int, rows: int, cols: int, l1_rows: int
) -> None:
    height, width, address = 40, 96, 4096
    image = rng.integers(0, 256, height * width * bits // 8).astype(np.uint8)
    core, _, found = bench.apply(
        f"""
        movi x1, {xr}
        movi x2, {xc}
        gm_to_l1_nz v0, x1, x2, l1[{address}], rows={rows}, cols={cols}, l1_rows={l1_rows}
        """,
        [bench.tensor("a", DTYPES[bits], (height, width))],
        [bench.plain(0, bits, height, width)],
        images={"a": image},
        preset={Space.L1: stale(65536)},
    )
    assert not found
    c0 = 256 // bits
    want = stale(65536)
    for r in range(rows):
        for c in range(-(-cols // c0) * c0):
            byte = address + ((c // c0) * (l1_rows // 16) + r // 16) * 512
            byte += (r % 16) * 32 + (c % c0) * bits // 8
            inside = c < cols
            value = get_element(image, bits, (xr + r) * width + xc + c) if inside else 0
            put_element(want, byte, bits, c % 2, value)
    np.testing.assert_array_equal(core.local.view(Space.L1)[:65536], want)


@pytest.mark.parametrize("bits", [4, 8, 16, 32])
@pytest.mark.parametrize(("k", "n", "at"), [(40, 48, 0), (38, 33, 2)])
def test_nz_load_of_a_transposed_view_follows_its_strides(
    bench: Any, rng: Any, bits: int, k: int, n: int, at: int
) -> None:
    # B is stored [N, K] and seen as [K, N].
    image = rng.integers(0, 256, n * k * bits // 8).astype(np.uint8)
    core, _, found = bench.apply(
        f"movi x1, {at}\n movi x2, 0\n"
        f"gm_to_l1_nz v0, x1, x2, l1[0], rows={k - at}, cols={n}, l1_rows=48",
        [bench.tensor("b", DTYPES[bits], (n, k))],
        [View(0, Layout.DN, bits, (k, n), (1, k))],
        images={"b": image},
        preset={Space.L1: stale(32768)},
    )
    assert not found
    want, c0 = stale(32768), 256 // bits
    for r in range(k - at):
        for c in range(-(-n // c0) * c0):
            byte = ((c // c0) * 3 + r // 16) * 512 + (r % 16) * 32 + (c % c0) * bits // 8
            value = get_element(image, bits, c * k + at + r) if c < n else 0
            put_element(want, byte, bits, c % 2, value)
    np.testing.assert_array_equal(core.local.view(Space.L1)[:32768], want)


def test_nz_load_of_transposed_4_bit_elements_needs_columns_of_whole_bytes(bench: Any) -> None:
    _, _, found = bench.apply(
        "movi x1, 1\n movi x2, 0\n gm_to_l1_nz v0, x1, x2, l1[0], rows=4, cols=2, l1_rows=16",
        [bench.tensor("b", "E2M1", (4, 8))],
        [View(0, Layout.DN, 4, (8, 4), (1, 8))],
        images={"b": np.zeros(16, np.uint8)},
    )
    assert found


def test_row_load_is_contiguous_and_clears_the_rest_of_32_bytes(bench: Any, rng: Any) -> None:
    image = rng.integers(0, 256, 3 * 20 * 4).astype(np.uint8)
    core, _, found = bench.apply(
        "movi x1, 2\n movi x2, 5\n gm_to_l1_row v0, x1, x2, l1[64], cols=11",
        [bench.tensor("bias", "FP32", (3, 20))],
        [bench.plain(0, 32, 3, 20)],
        images={"bias": image},
        preset={Space.L1: stale(256)},
    )
    assert not found
    want = stale(256)
    want[64:128] = 0
    want[64 : 64 + 44] = image[(2 * 20 + 5) * 4 : (2 * 20 + 16) * 4]
    np.testing.assert_array_equal(core.local.view(Space.L1)[:256], want)


@pytest.mark.parametrize(("bits", "dtype"), [(8, "E4M3"), (16, "BF16"), (32, "FP32")])
def test_a_load_of_operand_boxes_takes_whole_boxes_column_by_column(
    bench: Any, rng: Any, bits: int, dtype: str
) -> None:
    # 3 columns of 5 boxes in GM; 2 columns of 2 from (1, 3) on, 4 boxes apart in L1.
    c0 = 256 // bits
    image = rng.integers(0, 256, 3 * 5 * 512).astype(np.uint8)
    core, _, found = bench.apply(
        "movi x1, 1\n movi x2, 3\n "
        "gm_to_l1_nz_boxes v0, x1, x2, l1[1024], col_boxes=2, row_boxes=2, dst_pitch=4",
        [bench.tensor("a", dtype, (80, 3 * c0))],
        [View(0, Layout.NZ, bits, (1, 3, 5, 16, c0), (240 * c0, 80 * c0, 16 * c0, c0, 1))],
        images={"a": image},
        preset={Space.L1: stale(8192)},
    )
    assert not found
    want = stale(8192)
    for j in range(2):
        for i in range(2):
            source = ((1 + j) * 5 + 3 + i) * 512
            target = 1024 + (j * 4 + i) * 512
            want[target : target + 512] = image[source : source + 512]
    np.testing.assert_array_equal(core.local.view(Space.L1)[:8192], want)


@pytest.mark.parametrize(("xj", "xi", "axis"), [(2, 0, 1), (-1, 0, 1), (0, 4, 2), (0, -1, 2)])
def test_a_window_of_operand_boxes_must_lie_inside_its_view(
    bench: Any, xj: int, xi: int, axis: int
) -> None:
    _, _, found = bench.apply(
        f"movi x1, {xj}\n movi x2, {xi}\n "
        "gm_to_l1_nz_boxes v0, x1, x2, l1[0], col_boxes=2, row_boxes=2, dst_pitch=2",
        [bench.tensor("a", "E4M3", (80, 96))],
        [View(0, Layout.NZ, 8, (1, 3, 5, 16, 32), (7680, 2560, 512, 32, 1))],
        images={"a": np.zeros(7680, np.uint8)},
    )
    assert [problem.fault[:2] for problem in found] == [(FaultCode.VIEW_RANGE, axis)]


def test_box_load_keeps_the_window_and_its_pitch(bench: Any, rng: Any) -> None:
    rows, groups = 64, 12
    image = rng.integers(0, 256, rows * groups).astype(np.uint8)
    core, _, found = bench.apply(
        "movi x1, 1\n movi x2, 2\n gm_to_l1_boxes v0, x1, x2, l1[320], ni=3, nj=4, l1_nj=5",
        [bench.tensor("s", "E8M0", (rows, groups))],
        [bench.boxes(0, rows, groups)],
        images={"s": image},
        preset={Space.L1: stale(1024)},
    )
    assert not found
    want = stale(1024)
    for i in range(3):
        for j in range(4):
            for byte in range(32):
                source = (1 + i) * 16 * groups + (2 + j) * 32 + byte
                want[320 + (i * 5 + j) * 32 + byte] = image[source]
    np.testing.assert_array_equal(core.local.view(Space.L1)[:1024], want)


def test_l0a_load_copies_boxes_between_pitches(bench: Any, rng: Any) -> None:
    l1 = rng.integers(0, 256, 16384).astype(np.uint8)
    core, _, found = bench.apply(
        "l1_to_l0a l1[512], l0a[1024], row_boxes=2, col_boxes=3, src_pitch=4, dst_pitch=3",
        preset={Space.L1: l1, Space.L0A: stale(16384)},
    )
    assert not found
    want = stale(16384)
    for c in range(3):
        for r in range(2):
            there, here = 1024 + (c * 3 + r) * 512, 512 + (c * 4 + r) * 512
            want[there : there + 512] = l1[here : here + 512]
    np.testing.assert_array_equal(core.local.view(Space.L0A)[:16384], want)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(
    ("k", "n", "src_k"), [(64, 32, 64), (64, 16, 80), (41, 33, 48), (65, 17, 80), (1, 1, 16)]
)
def test_l0b_load_transposes_and_clears_the_rest_of_its_boxes(
    bench: Any, rng: Any, bits: int, k: int, n: int, src_k: int
) -> None:
    l1 = rng.integers(0, 256, 16384).astype(np.uint8)
    core, _, found = bench.apply(
        f"l1_to_l0b l1[1024], l0b[2048], bits=b{bits}, k={k}, n={n}, src_k={src_k}",
        preset={Space.L1: l1, Space.L0B: stale(16384)},
    )
    assert not found
    c0 = 256 // bits
    want = stale(16384)
    for row in range(-(-k // c0) * c0):
        for column in range(-(-n // 16) * 16):
            here = 1024 + ((column // c0) * (src_k // 16) + row // 16) * 512
            here += (row % 16) * 32 + (column % c0) * bits // 8
            there = 2048 + ((row // c0) * -(-n // 16) + column // 16) * 512
            there += (column % 16) * 32 + (row % c0) * bits // 8
            value = 0
            if row < k and column < n:
                value = get_element(l1[here : here + 1], bits, column % 2 if bits == 4 else 0)
            put_element(want, there, bits, row % 2, value)
    np.testing.assert_array_equal(core.local.view(Space.L0B)[:16384], want)


@pytest.mark.parametrize("side", ["a", "b"])
def test_scale_move_packs_boxes_row_by_row(bench: Any, rng: Any, side: str) -> None:
    l1 = rng.integers(0, 256, 4096).astype(np.uint8)
    space = Space.SCALE_A if side == "a" else Space.SCALE_B
    core, _, found = bench.apply(
        f"l1_to_scale_{side} l1[96], scale_{side}[2048], row_boxes=3, col_boxes=2, src_pitch=5",
        preset={Space.L1: l1, space: stale(4096)},
    )
    assert not found
    want = stale(4096)
    for i in range(3):
        for j in range(2):
            there, here = 2048 + (i * 2 + j) * 32, 96 + (i * 5 + j) * 32
            want[there : there + 32] = l1[here : here + 32]
    np.testing.assert_array_equal(core.local.view(space), want)


def test_bias_move_copies_bytes(bench: Any, rng: Any) -> None:
    l1 = rng.integers(0, 256, 512).astype(np.uint8)
    core, _, found = bench.apply(
        "l1_to_bias l1[64], bias[128], bytes=100",
        preset={Space.L1: l1, Space.BIAS: stale(512)},
    )
    assert not found
    want = stale(512)
    want[128:228] = l1[64:164]
    np.testing.assert_array_equal(core.local.view(Space.BIAS)[:512], want)


@pytest.mark.parametrize(
    ("text", "space"),
    [
        (
            "l1_to_l0a{} l1[{}], l0a[1024], row_boxes=2, col_boxes=3, src_pitch=4, dst_pitch=3{}",
            "L0A",
        ),
        ("l1_to_l0b{} l1[{}], l0b[2048], bits=b4, k=65, n=17, src_k=80{}", "L0B"),
        (
            "l1_to_scale_a{} l1[{}], scale_a[2048], row_boxes=3, col_boxes=2, src_pitch=5{}",
            "SCALE_A",
        ),
        (
            "l1_to_scale_b{} l1[{}], scale_b[2048], row_boxes=3, col_boxes=2, src_pitch=5{}",
            "SCALE_B",
        ),
        ("l1_to_bias{} l1[{}], bias[128], bytes=100{}", "BIAS"),
    ],
)
def test_a_register_moves_the_source_by_units_of_32_bytes(
    bench: Any, rng: Any, text: str, space: str
) -> None:
    l1 = rng.integers(0, 256, 16384).astype(np.uint8)
    found: list[Any] = []
    for program in (
        text.format("", 512 + 7 * 32, ""),
        f"movi x3, 7\n{text.format('_at', 512, ', x3')}",
    ):
        core, _, problems = bench.apply(program, preset={Space.L1: l1})
        assert not problems
        found.append(core.local.view(Space[space]).copy())
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize(
    ("text", "space", "limit"),
    [
        ("gm_to_l1_nz v0, x0, x0, l1[523808], rows=17, cols=32, l1_rows=32", Space.L1, 524288),
        ("gm_to_l1_row v0, x0, x0, l1[524256], cols=33", Space.L1, 524288),
        ("gm_to_l1_boxes v1, x0, x0, l1[524224], ni=2, nj=1, l1_nj=2", Space.L1, 524288),
        (
            "l1_to_l0a l1[523776], l0a[0], row_boxes=1, col_boxes=2, src_pitch=1, dst_pitch=1",
            Space.L1,
            524288,
        ),
        (
            "l1_to_l0a l1[0], l0a[65024], row_boxes=1, col_boxes=2, src_pitch=1, dst_pitch=1",
            Space.L0A,
            65536,
        ),
        ("l1_to_l0b l1[524000], l0b[0], bits=b8, k=16, n=16, src_k=16", Space.L1, 524288),
        ("l1_to_l0b l1[0], l0b[65024], bits=b8, k=16, n=17, src_k=16", Space.L0B, 65536),
        (
            "l1_to_scale_a l1[524256], scale_a[0], row_boxes=1, col_boxes=2, src_pitch=2",
            Space.L1,
            524288,
        ),
        (
            "l1_to_scale_a l1[0], scale_a[4064], row_boxes=1, col_boxes=2, src_pitch=2",
            Space.SCALE_A,
            4096,
        ),
        (
            "l1_to_scale_b l1[0], scale_b[4064], row_boxes=2, col_boxes=1, src_pitch=2",
            Space.SCALE_B,
            4096,
        ),
        ("l1_to_bias l1[524256], bias[0], bytes=36", Space.L1, 524288),
        ("l1_to_bias l1[0], bias[4064], bytes=36", Space.BIAS, 4096),
        (
            "l0c_to_gm v2, x0, x0, l0c[261120], rows=1, cols=17, src_rows=16, convert=fp32",
            Space.L0C,
            262144,
        ),
        (
            "mad_mx l0c[0], l0a[65024], l0b[0], bias[0], m=16, k=33, n=16, a_type=e4m3, "
            "b_type=e4m3, init=zero",
            Space.L0A,
            65536,
        ),
        (
            "mad_mx l0c[0], l0a[0], l0b[65024], bias[0], m=16, k=32, n=17, a_type=e4m3, "
            "b_type=e4m3, init=zero",
            Space.L0B,
            65536,
        ),
        (
            "mad_mx l0c[261120], l0a[0], l0b[0], bias[0], m=17, k=32, n=16, a_type=e4m3, "
            "b_type=e4m3, init=zero",
            Space.L0C,
            262144,
        ),
        (
            "mad_mx l0c[0], l0a[0], l0b[0], bias[4064], m=16, k=32, n=9, a_type=e4m3, "
            "b_type=e4m3, init=bias",
            Space.BIAS,
            4096,
        ),
    ],
)
def test_every_local_memory_has_an_end(bench: Any, text: str, space: Space, limit: int) -> None:
    params = [
        bench.tensor("a", "E4M3", (64, 64)),
        bench.tensor("s", "E8M0", (64, 2)),
        bench.tensor("c", "FP32", (64, 64), "out"),
    ]
    views = [bench.plain(0, 8, 64, 64), bench.boxes(1, 64, 2), bench.plain(2, 32, 64, 64)]
    images = {"a": np.zeros(4096, np.uint8), "s": np.zeros(128, np.uint8)}
    _, _, found = bench.apply(text, params, views, images=images)
    assert len(found) == 1
    code, where, _, _, size = found[0].fault[:5]
    assert (code, where, size) == (FaultCode.LOCAL_RANGE, space, limit)


@pytest.mark.parametrize(
    ("xr", "xc", "axis", "first", "extent", "dimension"),
    [
        (-16, 0, 0, -16, 16, 40),
        (-1, 0, 0, -1, 16, 40),
        (25, 0, 0, 25, 16, 40),
        (0, -2, 1, -2, 32, 96),
        (0, 65, 1, 65, 32, 96),
        (2**62, 0, 0, 2**62, 16, 40),
    ],
)
def test_a_window_must_lie_inside_its_view_on_every_axis(
    bench: Any, xr: int, xc: int, axis: int, first: int, extent: int, dimension: int
) -> None:
    _, _, found = bench.apply(
        f"movi x1, {xr}\n movi x2, {xc}\n"
        "gm_to_l1_nz v0, x1, x2, l1[0], rows=16, cols=32, l1_rows=16",
        [bench.tensor("a", "E4M3", (40, 96))],
        [bench.plain(0, 8, 40, 96)],
        images={"a": np.zeros(40 * 96, np.uint8)},
    )
    assert [problem.fault[:5] for problem in found] == [
        (FaultCode.VIEW_RANGE, axis, first, extent, dimension)
    ]


@pytest.mark.parametrize(("xi", "xj", "axis"), [(3, 0, 1), (-1, 0, 1), (0, 5, 2), (0, -1, 2)])
def test_a_window_of_boxes_must_lie_inside_its_view(
    bench: Any, xi: int, xj: int, axis: int
) -> None:
    _, _, found = bench.apply(
        f"movi x1, {xi}\n movi x2, {xj}\n gm_to_l1_boxes v0, x1, x2, l1[0], ni=2, nj=2, l1_nj=2",
        [bench.tensor("s", "E8M0", (64, 12))],
        [bench.boxes(0, 64, 12)],
        images={"s": np.zeros(64 * 12, np.uint8)},
    )
    assert [problem.fault[:2] for problem in found] == [(FaultCode.VIEW_RANGE, axis)]


@pytest.mark.parametrize(
    ("width", "xc", "cols"), [(64, 1, 32), (64, 0, 33), (63, 0, 32)], ids=["start", "end", "pitch"]
)
def test_a_4_bit_window_must_not_split_a_byte(bench: Any, width: int, xc: int, cols: int) -> None:
    _, _, found = bench.apply(
        f"movi x0, 0\n movi x1, {xc}\n"
        f"gm_to_l1_nz v0, x0, x1, l1[0], rows=2, cols={cols}, l1_rows=16",
        [bench.tensor("a", "E2M1", (2, width))],
        [bench.plain(0, 4, 2, width)],
        images={"a": np.zeros(width, np.uint8)},
    )
    assert [problem.fault[0] for problem in found] == [FaultCode.SUBBYTE]


def test_masks_of_written_bits_move_with_the_data(bench: Any) -> None:
    # 41 of 48 rows along K are loaded; the transposed tile knows which nibbles they fill.
    core, _, found = bench.apply(
        "movi x0, 0\n gm_to_l1_nz v0, x0, x0, l1[0], rows=41, cols=16, l1_rows=48\n"
        "l1_to_l0b l1[0], l0b[0], bits=b4, k=48, n=16, src_k=48",
        [bench.tensor("b", "E2M1", (41, 16))],
        [bench.plain(0, 4, 41, 16)],
        images={"b": np.zeros(41 * 8, np.uint8)},
    )
    assert not found
    masks = core.local.written_view(Space.L0B)[:512].reshape(16, 32)
    want = [0xFF] * 20 + [0x0F] + [0] * 3 + [0xFF] * 8
    for line in masks:
        assert line.tolist() == want
