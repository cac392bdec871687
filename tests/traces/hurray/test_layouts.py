"""Elements are found where the format says they stand."""

import itertools
import math
from random import Random
from typing import Any

import numpy as np
import pytest

from scalebox.traces import hurray

from .generated import size_in_bytes


def offset(layout: Any, shape: tuple[int, ...], index: tuple[int, ...]) -> int:
    """Return the element offset of an index, as the format defines it for each layout."""
    match layout.name:
        case "row_major":
            found = 0
            for extent, i in zip(shape, index, strict=True):
                found = found * extent + i
            return found
        case "col_major":
            return offset(hurray.RowMajorLayout(), shape[::-1], index[::-1])
        case "strided":
            return sum(i * stride for i, stride in zip(index, layout.strides, strict=True))
        case _:
            tile = layout.tile_shape
            grid = tuple(math.ceil(e / t) for e, t in zip(shape, tile, strict=True))
            tiles = offset(
                named(layout.outer_layout, layout.outer_strides),
                grid,
                tuple(i // t for i, t in zip(index, tile, strict=True)),
            )
            inner = layout.inner_tiled or named(layout.inner_layout, layout.inner_strides)
            within = tuple(i % t for i, t in zip(index, tile, strict=True))
            return tiles * math.prod(tile) + offset(inner, tile, within)


def named(order: str, strides: tuple[int, ...] | None) -> Any:
    if strides is not None:
        return hurray.StridedLayout(strides)
    return hurray.ColMajorLayout() if order == "col_major" else hurray.RowMajorLayout()


LAYOUTS: list[tuple[Any, list[int]]] = [
    (hurray.RowMajorLayout(), [3, 4, 2]),
    (hurray.ColMajorLayout(), [3, 4, 2]),
    (hurray.RowMajorLayout(), []),
    (hurray.StridedLayout([8, 2]), [3, 4]),
    (hurray.StridedLayout([0, 1]), [3, 4]),
    (hurray.StridedLayout([1, 1]), [3, 4]),
    (hurray.TiledLayout([2, 3]), [3, 4]),
    (hurray.TiledLayout([2, 3], "col_major", "col_major"), [3, 7]),
    (hurray.TiledLayout([2, 3], "col_major", "row_major"), [4, 6]),
    (hurray.TiledLayout([2, 2, 2]), [3, 4, 5]),
    (hurray.TiledLayout([2, 3], "strided", outer_strides=[1, 2]), [3, 4]),
    (hurray.TiledLayout([2, 3], inner_layout="strided", inner_strides=[1, 2]), [3, 4]),
    (
        hurray.TiledLayout(
            [4, 6],
            "col_major",
            "tiled",
            inner_tiled=hurray.TiledLayout([2, 3], inner_layout="col_major"),
        ),
        [7, 11],
    ),
    (
        hurray.TiledLayout(
            [8, 8],
            inner_layout="tiled",
            inner_tiled=hurray.TiledLayout(
                [4, 2], "col_major", "tiled", inner_tiled=hurray.TiledLayout([2, 1])
            ),
        ),
        [9, 17],
    ),
]


@pytest.mark.parametrize("bits", [1, 2, 4, 6, 8, 16, 32, 64])
@pytest.mark.parametrize(("layout", "shape"), LAYOUTS)
@pytest.mark.parametrize("start", [0, 3])
def test_an_element_stands_at_its_offset(
    layout: Any, shape: list[int], bits: int, start: int
) -> None:
    dtypes = {
        1: hurray.bool, 2: hurray.uint2, 4: hurray.uint4, 6: hurray.float6_e3m2, 8: hurray.uint8,
        16: hurray.uint16, 32: hurray.uint32, 64: hurray.uint64,
    }  # fmt: skip
    start *= max(1, bits // 8)
    indices = list(itertools.product(*(range(extent) for extent in shape)))
    places = 1 + max(offset(layout, tuple(shape), index) for index in indices)
    if layout.name == "tiled":
        tile = layout.tile_shape
        grid = [math.ceil(e / t) for e, t in zip(shape, tile, strict=True)]
        places = max(places, math.prod(grid) * math.prod(tile))
    data = bytes(start) + Random(bits).randbytes(size_in_bytes(bits, places))
    tensor = hurray.Tensor(data, dtypes[bits], shape, layout=layout, byte_offset=start)
    codes = tensor.codes()
    assert codes.shape == tuple(shape)
    stream = int.from_bytes(data[start:], "little")
    for index in indices:
        at = offset(layout, tuple(shape), index) * bits
        assert codes[index] == stream >> at & (1 << bits) - 1


def random_layout(rng: Random, rank: int, depth: int = 0) -> Any:
    orders = ["row_major", "col_major", "strided"]
    outer, inner = rng.choice(orders), rng.choice([*orders, "tiled"][: 4 if depth < 3 else 3])
    strides = [[rng.randint(-3, 6) for _ in range(rank)] for _ in range(2)]
    return hurray.TiledLayout(
        [rng.randint(1, 4) for _ in range(rank)],
        outer,
        inner,
        strides[0] if outer == "strided" else None,
        strides[1] if inner == "strided" else None,
        random_layout(rng, rank, depth + 1) if inner == "tiled" else None,
    )


def test_elements_of_random_tiles_stand_at_their_offsets_inside_the_buffer() -> None:
    rng = Random(3)
    found = 0
    for _ in range(1500):
        shape = [rng.randint(1, 5) for _ in range(rng.randint(0, 3))]
        layout = random_layout(rng, len(shape))
        data = rng.randbytes(rng.choice([30, 100, 400]))
        start = rng.choice([0, 12, 60])
        try:
            tensor = hurray.Tensor(data, hurray.uint4, shape, layout=layout, byte_offset=start)
            codes = tensor.codes()
        except (hurray.BufferError, hurray.InvalidDescriptorError, hurray.UnsupportedError):
            continue  # too small, before the buffer, or overlapping
        found += 1
        for index in itertools.product(*(range(extent) for extent in shape)):
            at = 2 * start + offset(layout, tuple(shape), index)
            assert 0 <= at < 2 * len(data)
            assert codes[index] == data[at // 2] >> 4 * (at % 2) & 0xF
    assert found > 500


def test_extents_that_numpy_cannot_hold_are_refused() -> None:
    for shape, strides in (([0, (1 << 64) - 2], [1, 1]), ([1 << 40, 1 << 40], [0, 0])):
        tensor = hurray.Tensor(
            bytes(4), hurray.float32, shape, layout=hurray.StridedLayout(strides)
        )
        with pytest.raises(hurray.UnsupportedError, match="must be ones that numpy can hold"):
            tensor.numpy()


def test_a_reversed_axis_is_read_from_its_byte_offset() -> None:
    numbers = np.arange(12, dtype=np.float32)
    tensor = hurray.Tensor(
        numbers, hurray.float32, [3, 4], layout=hurray.StridedLayout([-4, 1]), byte_offset=32
    )
    np.testing.assert_array_equal(tensor.numpy(), numbers.reshape(3, 4)[::-1])


def test_elements_before_the_buffer_are_refused_when_they_are_read() -> None:
    tensor = hurray.Tensor(bytes(48), hurray.float32, [3, 4], layout=hurray.StridedLayout([-4, 1]))
    with pytest.raises(hurray.BufferError, match="are 32 bytes before its first byte"):
        tensor.numpy()


def test_a_reversed_axis_of_narrow_elements_is_read() -> None:
    tensor = hurray.Tensor(
        bytes([0x10, 0x32, 0x54]),
        hurray.uint4,
        [5],
        layout=hurray.StridedLayout([-1]),
        byte_offset=2,
    )
    np.testing.assert_array_equal(tensor.codes(), [4, 3, 2, 1, 0])


def test_a_broadcast_costs_no_memory() -> None:
    tensor = hurray.Tensor(
        bytes(4), hurray.float32, [1 << 20, 1 << 20], layout=hurray.StridedLayout([0, 0])
    )
    assert tensor.numpy().strides == (0, 0)


def test_tiles_that_overlap_are_not_spread() -> None:
    tensor = hurray.Tensor(
        bytes(4096),
        hurray.float32,
        [1 << 30, 4],
        layout=hurray.TiledLayout([1 << 30, 4], inner_layout="strided", inner_strides=[0, 1]),
    )
    with pytest.raises(hurray.UnsupportedError, match="must not overlap"):
        tensor.numpy()


def test_whole_bytes_in_strides_are_views() -> None:
    data = bytearray(range(48))
    for layout in (hurray.RowMajorLayout(), hurray.ColMajorLayout(), hurray.StridedLayout([4, 1])):
        array = hurray.Tensor(data, hurray.uint32, [3, 4], layout=layout).numpy()
        assert np.shares_memory(array, np.frombuffer(data, np.uint8))
        assert not array.flags.writeable


def test_six_bit_elements_fill_groups_of_three_bytes() -> None:
    tensor = hurray.Tensor(b"\x81\x40\x20", hurray.float6_e3m2, [4])
    np.testing.assert_array_equal(tensor.codes(), [1, 2, 4, 8])
    sizes = [hurray.buffer_size_bytes(hurray.float6_e2m3, n) for n in range(9)]
    assert sizes == [0, 3, 3, 3, 3, 6, 6, 6, 6]


def test_what_cannot_be_looked_up_is_refused_by_name() -> None:
    cases: list[tuple[hurray.Tensor, str]] = [
        (hurray.Tensor(b"", hurray.float32, [None]), "Every extent of an array must be known"),
        (
            hurray.Tensor(bytes(16), hurray.float32, [4], hurray.Device("cuda")),
            "must be on the CPU, not on cuda",
        ),
        (
            hurray.Tensor(b"", hurray.float32, [4], layout=hurray.PrivateExtensionLayout(0xF0, 7)),
            "not extension, whose elements are carried",
        ),
        (hurray.Tensor(bytes(16), hurray.float128, [1]), "numpy has no such type"),
        (
            hurray.Tensor(
                bytes(3),
                hurray.Dtype.from_tag(0xF2),
                [1],
                extension_type=hurray.ExtensionType(24),
            ),
            "its values are private",
        ),
    ]
    for tensor, message in cases:
        with pytest.raises(hurray.UnsupportedError, match=message):
            tensor.numpy()
