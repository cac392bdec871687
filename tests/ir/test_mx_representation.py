"""Microscaling and NVFP4 tensors as representations: which scale each element reaches.

G groups of 32 lie along K. Ordinals of a level of shape (M, G) are m + M * g.
"""

import itertools
from typing import Any

import pytest

from scalebox.ir.dtypes import (
    DType,
    Generic,
    Layout,
    RepresentationType,
    Shape,
    Stride,
    Subtensor,
    TensorRepresentation,
)


def layout(shape: Any, stride: Any) -> Layout:
    return Layout(Shape(shape), Stride(stride))


M, K, N = 48, 256, 32
G = K // 32


def left(m: int, k: int) -> tuple[Layout, Layout]:
    """Return placement of elements and adjacent layout of a left operand [m, k], row-major."""
    groups = k // 32
    shape = (m, (32, groups))
    return layout(shape, (k, (1, 32))), layout(shape, (1, (0, m)))


def right(k: int, n: int) -> tuple[Layout, Layout]:
    """Return placement of elements and adjacent layout of a right operand [k, n], row-major."""
    groups = k // 32
    shape = ((32, groups), n)
    return layout(shape, ((n, 32 * n), 1)), layout(shape, ((0, 1), groups))


def boxed_left(m: int, g: int, full_g: int | None = None) -> Layout:
    """Return scales in boxes of 16 rows by 2 groups, in the order [m/16, g/2, 16, 2]."""
    return layout(((16, m // 16), (2, g // 2)), ((2, 16 * (full_g or g)), (1, 32)))


def boxed_right(g: int, n: int) -> Layout:
    """Return scales in boxes of 16 columns by 2 groups, in the order [n/16, g/2, 16, 2]."""
    return layout(((2, g // 2), (16, n // 16)), ((1, 32), (2, 16 * g)))


@pytest.mark.parametrize("scales", [layout((M, G), (G, 1)), boxed_left(M, G)])
def test_a_left_mx_operand_reaches_the_scale_of_its_row_and_group(scales: Layout) -> None:
    elements, edge = left(M, K)
    made = RepresentationType(DType.MXFP8_E4M3, (elements, scales), (edge,))
    assert made.storage_bits() == M * K * 8.25
    for m, k in itertools.product((0, 1, 17, 47), (0, 31, 32, 255)):
        coordinate = (m, (k % 32, k // 32))
        assert elements(coordinate) == m * K + k
        ordinal = edge(coordinate)
        assert ordinal == m + M * (k // 32)
        g = k // 32
        boxed = ((m // 16) * (G // 2) + g // 2) * 32 + (m % 16) * 2 + g % 2
        assert scales(ordinal) == (m * G + g if scales.shape == Shape(M, G) else boxed)


@pytest.mark.parametrize("scales", [layout((G, N), (N, 1)), boxed_right(G, N)])
def test_a_right_mx_operand_reaches_the_scale_of_its_group_and_column(scales: Layout) -> None:
    elements, edge = right(K, N)
    RepresentationType(DType.MXFP4, (elements, scales), (edge,))
    for k, n in itertools.product((0, 31, 32, 255), (0, 1, 17, 31)):
        coordinate = ((k % 32, k // 32), n)
        assert elements(coordinate) == k * N + n
        g = k // 32
        boxed = ((n // 16) * (G // 2) + g // 2) * 32 + (n % 16) * 2 + g % 2
        found = scales(edge(coordinate))
        assert found == (g * N + n if scales.shape == Shape(G, N) else boxed)


def test_boxing_the_scales_changes_only_where_plane_one_lies() -> None:
    elements, edge = left(M, K)
    plain = RepresentationType(DType.MXFP8_E4M3, (elements, layout((M, G), (G, 1))), (edge,))
    boxed = RepresentationType(DType.MXFP8_E4M3, (elements, boxed_left(M, G)), (edge,))
    assert plain.adjacent_layouts == boxed.adjacent_layouts
    assert plain.placements[0] == boxed.placements[0]
    assert plain.level_shapes[1].size == boxed.level_shapes[1].size
    for scales in (boxed.placements[1], boxed_right(G, N)):
        assert scales.is_injective
        assert scales.cosize == scales.size


def test_a_tile_of_an_mx_operand_reaches_the_same_scales() -> None:
    m, k, full_g = 64, 512, 16
    elements, edge = left(m, k)
    for scales, boxed in ((layout((m, full_g), (full_g, 1)), False), (boxed_left(m, full_g), True)):
        RepresentationType(DType.MXFP4, (elements, scales), (edge,))
        for m0, k0, mt, kt in ((0, 0, 16, 64), (16, 64, 32, 128), (48, 448, 16, 64)):
            gt, g0 = kt // 32, k0 // 32
            tile_elements = layout((mt, (32, gt)), (k, (1, 32)))
            tile_edge = layout((mt, (32, gt)), (1, (0, mt)))
            tile_scales = boxed_left(mt, gt, full_g) if boxed else layout((mt, gt), (full_g, 1))
            RepresentationType(DType.MXFP4, (tile_elements, tile_scales), (tile_edge,))
            origin = elements((m0, (0, g0)))
            scale_origin = scales(m0 + m * g0)
            for r, c in itertools.product((0, 1, mt - 1), (0, 33, kt - 1)):
                inside = (r, (c % 32, c // 32))
                full = (m0 + r, (c % 32, g0 + c // 32))
                assert origin + tile_elements(inside) == elements(full)
                assert scale_origin + tile_scales(tile_edge(inside)) == scales(edge(full))


def test_an_nvfp4_tensor_has_two_scales_for_each_element() -> None:
    m, k = 4, 64
    groups = k // 16
    elements = layout((m, (16, groups)), (k, (1, 16)))
    scales = layout((m, groups), (groups, 1))
    edges = (layout((m, (16, groups)), (1, (0, m))), layout((m, groups), (0, 0)))
    for whole in (layout((1,), (1,)), layout((), ())):
        made = TensorRepresentation(
            DType.NVFP4,
            [
                Subtensor(DType.E2M1, Generic([1] * (m * k), dtype=DType.E2M1), 0, elements),
                Subtensor(DType.E4M3, Generic(range(m * groups), dtype=DType.E4M3), 0, scales),
                Subtensor(DType.Float32, Generic([0.5], dtype=DType.Float32), 0, whole),
            ],
            edges,
        )
        slot = scales(edges[0]((3, (5, 2))))
        assert made.subtensors[1].carrier[slot] == 3 * groups + 2
        assert edges[1](scales.shape.decode(edges[0]((3, (5, 2))))) == 0
        assert made.type.storage_bits() == m * k * 4.5 + 32


def test_one_block_alone() -> None:
    made = RepresentationType(
        DType.MXFP8_E5M2, (layout((32,), (1,)), layout((1,), (1,))), (layout((32,), (0,)),)
    )
    assert made.storage_bits() == 264


@pytest.mark.parametrize(
    ("edge", "scales"),
    [
        (layout((M, (32, G)), (1, (0, 0))), layout((M, G), (G, 1))),
        (layout((M, (32, G)), (0, (0, 1))), layout((M, G), (G, 1))),
        (layout((M, (32, G)), (1, (0, M))), layout((M, 2 * G), (2 * G, 1))),
        (layout((M, (32, G)), (1, (0, 2 * M))), layout((M, 2 * G), (2 * G, 1))),
    ],
)
def test_a_grouping_that_is_not_by_32_is_refused(edge: Layout, scales: Layout) -> None:
    elements, _ = left(M, K)
    with pytest.raises(ValueError, match="MXFP8_E4M3, level 0: "):
        RepresentationType(DType.MXFP8_E4M3, (elements, scales), (edge,))
