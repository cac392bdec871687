"""Tensors of block-scaled dtypes: where elements and scales lie, which axis is grouped, and tiles."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scalebox.ir import mx_types, numerics
from scalebox.ir.dtypes import (
    BlockScaledDType,
    DType,
    Generic,
    Layout,
    Level,
    RepresentationType,
    Shape,
    Stride,
    Subtensor,
    TensorRepresentation,
)
from scalebox.ir.errors import IRTypeError, IRValueError, UserError
from scalebox.ir.mx_types import (
    Plane,
    Side,
    boxed,
    check_operand,
    grouped_axis,
    operand,
    plane_shapes,
    representation_of,
    tile_of,
    tile_view,
)

MX, NV = DType.MXFP8_E4M3, DType.NVFP4
MX_FORMATS = (
    DType.MXFP8_E4M3,
    DType.MXFP8_E5M2,
    DType.MXFP6_E3M2,
    DType.MXFP6_E2M3,
    DType.MXFP4,
    DType.MXINT8,
)
M, K, N = 48, 256, 32
G = K // 32


def layout(shape: Any, stride: Any) -> Layout:
    return Layout(Shape(shape), Stride(stride))


def refusal(kind: type[UserError], action: Callable[..., object], *args: object) -> str:
    with pytest.raises(kind) as caught:
        action(*args)
    return caught.value.message


class TestLayouts:
    """The published table of planes, placements and adjacent layouts; G is K / 32."""

    @pytest.mark.parametrize("dtype", MX_FORMATS, ids=lambda d: d.name)
    def test_a_left_operand(self, dtype: BlockScaledDType) -> None:
        made = operand(dtype, (M, K), Side.LEFT)
        elements = layout([M, (32, G)], [K, (1, 32)])
        assert made.placements == (elements, layout([M, G], [G, 1]))
        assert made.adjacent_layouts == (layout([M, (32, G)], [1, (0, M)]),)
        assert made.storage_bits() == M * K * float(str(dtype.bits_per_element))

    @pytest.mark.parametrize("dtype", MX_FORMATS, ids=lambda d: d.name)
    def test_a_right_operand(self, dtype: BlockScaledDType) -> None:
        made = operand(dtype, (K, N), Side.RIGHT)
        elements = layout([(32, G), N], [(N, 32 * N), 1])
        assert made.placements == (elements, layout([G, N], [N, 1]))
        assert made.adjacent_layouts == (layout([(32, G), N], [(0, 1), G]),)

    def test_nvfp4_has_a_third_plane_that_everything_shares(self) -> None:
        groups = K // 16
        made = operand(NV, (M, K), Side.LEFT)
        assert made.placements == (
            layout([M, (16, groups)], [K, (1, 16)]),
            layout([M, groups], [groups, 1]),
            layout([1], [1]),
        )
        assert made.adjacent_layouts == (
            layout([M, (16, groups)], [1, (0, M)]),
            layout([M, groups], [0, 0]),
        )
        assert made.storage_bits() == M * K * 4.5 + 32

    def test_a_batch_of_matrices(self) -> None:
        made = representation_of(MX, (3, M, K), 2)
        assert made.placements[0] == layout([3, M, (32, G)], [M * K, K, (1, 32)])
        assert made.placements[1] == layout([3, M, G], [M * G, G, 1])
        assert made.adjacent_layouts[0] == layout([3, M, (32, G)], [1, 3, (0, 3 * M)])

    def test_one_block_alone(self) -> None:
        made = representation_of(MX, (32,), 0)
        assert made.adjacent_layouts[0].cosize == 1
        assert plane_shapes(made) == (Plane(DType.E4M3, (32,)), Plane(DType.E8M0, (1,)))

    def test_the_planes_by_their_extents(self) -> None:
        right = operand(DType.MXFP4, (K, N), Side.RIGHT)
        planes = (Plane(DType.E2M1, (K, N)), Plane(DType.E8M0, (G, N)))
        assert plane_shapes(right) == planes
        assert plane_shapes(boxed(right)) == planes
        assert plane_shapes(operand(NV, (M, K), Side.LEFT))[1:] == (
            Plane(DType.E4M3, (M, K // 16)),
            Plane(DType.Float32, (1,)),
        )

    def test_a_huge_tensor_takes_no_time(self) -> None:
        assert operand(MX, (10**9, 32 * 10**9), Side.LEFT).size == 32 * 10**18

    @pytest.mark.parametrize(
        ("args", "sentence"),
        [
            (
                (MX, (4, 40), 1),
                "The grouped axis of MXFP8_E4M3 must be a multiple of 32, the elements of a block, "
                "not 40",
            ),
            (
                (NV, (24, 4), 0),
                "The grouped axis of NVFP4 must be a multiple of 16, the elements of a block, "
                "not 24",
            ),
            ((MX, (4, 32), 2), "The grouped axis must be in 0..1, not 2"),
            ((MX, (4, 32), -1), "The grouped axis must be in 0..1, not -1"),
        ],
    )
    def test_what_cannot_be(self, args: tuple[Any, ...], sentence: str) -> None:
        assert refusal(IRValueError, representation_of, *args) == sentence

    def test_other_dtypes(self) -> None:
        wrong: Any = DType.E4M3
        sentence = "The dtype must be a block-scaled format, not E4M3"
        assert refusal(IRTypeError, representation_of, wrong, (4, 32), 1) == sentence
        sentence = "An operand of a matmul must have rank 2, not 3"
        assert refusal(IRValueError, operand, MX, (2, 4, 32), Side.LEFT) == sentence


class TestBoxes:
    """Scales in boxes of 16 rows by 2 groups: `[1, rows / 16, G / 2, 16, 2]`."""

    def test_a_left_operand(self) -> None:
        plain = operand(MX, (M, K), Side.LEFT)
        made = boxed(plain)
        assert made.placements[1] == layout([(16, M // 16), (2, G // 2)], [(2, 16 * G), (1, 32)])
        for m, g in itertools.product(range(M), range(G)):
            offset = ((m // 16) * (G // 2) + g // 2) * 32 + (m % 16) * 2 + g % 2
            assert made.placements[1]((m, g)) == offset

    def test_a_right_operand(self) -> None:
        made = boxed(operand(MX, (K, N), Side.RIGHT))
        assert made.placements[1] == layout([(2, G // 2), (16, N // 16)], [(1, 32), (2, 16 * G)])
        for g, n in itertools.product(range(G), range(N)):
            offset = ((n // 16) * (G // 2) + g // 2) * 32 + (n % 16) * 2 + g % 2
            assert made.placements[1]((g, n)) == offset

    @pytest.mark.parametrize("side", Side)
    def test_only_the_place_of_the_scales_changes(self, side: Side) -> None:
        plain = operand(MX, (64, 128), side)
        made = boxed(plain)
        assert made.adjacent_layouts == plain.adjacent_layouts
        assert made.placements[0] == plain.placements[0]
        assert made.level_shapes[1].size == plain.level_shapes[1].size
        assert made.placements[1] != plain.placements[1]
        assert made.placements[1].is_injective
        assert made.placements[1].cosize == made.placements[1].size
        check_operand(made, side)

    def test_the_boxes_are_those_of_packing(self) -> None:
        codes = np.arange(M * G, dtype=np.int64).reshape(M, G).astype(np.uint8)
        places = boxed(operand(MX, (M, K), Side.LEFT)).placements[1]
        packed = numerics.pack_scales_a(codes).reshape(-1)
        assert all(packed[places((m, g))] == codes[m, g] for m in range(M) for g in range(G))
        codes = codes[:32].T
        places = boxed(operand(MX, (K, N), Side.RIGHT)).placements[1]
        packed = numerics.pack_scales_b(codes).reshape(-1)
        assert all(packed[places((g, n))] == codes[g, n] for g in range(G) for n in range(N))

    @pytest.mark.parametrize(
        ("made", "sentence"),
        [
            (
                operand(MX, (40, 64), Side.LEFT),
                "Scales must be whole boxes of 16 rows by 2 groups, not 40 rows by 2 groups",
            ),
            (
                operand(MX, (32, 16), Side.RIGHT),
                "Scales must be whole boxes of 16 rows by 2 groups, not 16 rows by 1 groups",
            ),
            (
                representation_of(MX, (2, 16, 64), 2),
                "Scales must have rank 2 to stand in boxes, not 3",
            ),
        ],
    )
    def test_what_has_no_whole_boxes(self, made: RepresentationType, sentence: str) -> None:
        assert refusal(IRValueError, boxed, made) == sentence

    def test_two_levels_of_scales_have_no_boxes(self) -> None:
        sentence = (
            "Scales must be one level of E8M0 to stand in boxes, which those of NVFP4 are not"
        )
        assert refusal(IRTypeError, boxed, operand(NV, (16, 64), Side.LEFT)) == sentence


def by_hand(elements: Layout, scales: Layout, edge: Layout) -> RepresentationType:
    """Return a tensor that the dtype's own rules accept, whatever its form."""
    return RepresentationType(MX, (elements, scales), (edge,))


class TestOperands:
    """What the dtype does not say: its rules accept all of these, a matmul does not."""

    def test_the_grouped_axis(self) -> None:
        assert grouped_axis(representation_of(MX, (4, 64), 1)) == 1
        assert grouped_axis(representation_of(MX, (64, 4), 0)) == 0
        assert grouped_axis(boxed(representation_of(MX, (64, 64), 0))) == 0
        assert grouped_axis(representation_of(NV, (2, 64, 4), 1)) == 1

    @pytest.mark.parametrize("side", Side)
    def test_the_groups_must_lie_along_k(self, side: Side) -> None:
        check_operand(representation_of(MX, (64, 64), side.grouped_axis), side)
        other = representation_of(MX, (64, 64), 1 - side.grouped_axis)
        assert refusal(IRValueError, check_operand, other, side) == (
            f"The {side.value} operand of a matmul must be grouped along axis "
            f"{side.grouped_axis}, which is its K, not along axis {1 - side.grouped_axis}"
        )

    def test_a_block_of_4_by_8(self) -> None:
        tile = by_hand(layout([4, 8], [8, 1]), layout([1], [1]), layout([4, 8], [0, 0]))
        sentence = "The blocks of MXFP8_E4M3 must lie along one axis, not along axes 0 and 1"
        assert refusal(IRValueError, grouped_axis, tile) == sentence
        assert refusal(IRValueError, check_operand, tile, Side.LEFT) == sentence

    def test_interleaved_blocks(self) -> None:
        # Element k belongs to block k % 4.
        mixed = by_hand(
            layout([8, (4, 32)], [128, (1, 4)]),
            layout([8, 4], [4, 1]),
            layout([8, (4, 32)], [1, (8, 0)]),
        )
        assert refusal(IRValueError, check_operand, mixed, Side.LEFT) == (
            "A block of MXFP8_E4M3 must be contiguous along axis 1: 32 neighbouring elements, not "
            "1 and others from farther off"
        )

    def test_blocks_in_two_halves(self) -> None:
        halves = by_hand(
            layout([8, (16, 4, 2)], [128, (1, 16, 64)]),
            layout([8, 4], [4, 1]),
            layout([8, (16, 4, 2)], [1, (0, 8, 0)]),
        )
        assert refusal(IRValueError, check_operand, halves, Side.LEFT).endswith(
            "32 neighbouring elements, not 16 and others from farther off"
        )

    def test_a_block_may_be_written_in_parts(self) -> None:
        parts = by_hand(
            layout([8, (8, 4, 4)], [128, (1, 8, 32)]),
            layout([8, 4], [4, 1]),
            layout([8, (8, 4, 4)], [1, (0, 0, 8)]),
        )
        check_operand(parts, Side.LEFT)

    def test_scales_in_another_order_than_the_elements(self) -> None:
        # Row m, group g reaches the scale of ordinal 4 m + g of a level that counts m + 8 g.
        turned = by_hand(
            layout([8, (32, 4)], [128, (1, 32)]),
            layout([8, 4], [4, 1]),
            layout([8, (32, 4)], [4, (0, 1)]),
        )
        assert refusal(IRValueError, check_operand, turned, Side.LEFT) == (
            "The scales of MXFP8_E4M3 must follow one another as its elements do along axis 0, in "
            "steps of 1, not of 4"
        )

    def test_scales_of_another_rank(self) -> None:
        flat = by_hand(
            layout([8, (32, 4)], [128, (1, 32)]),
            layout([32], [1]),
            layout([8, (32, 4)], [1, (0, 8)]),
        )
        sentence = "The scales of MXFP8_E4M3 must have the 2 axes of its elements, not 1"
        assert refusal(IRValueError, check_operand, flat, Side.LEFT) == sentence

    def test_a_row_of_blocks_is_no_matrix(self) -> None:
        sentence = "An operand of a matmul must have rank 2, not 1"
        one = representation_of(MX, (64,), 0)
        assert refusal(IRValueError, check_operand, one, Side.RIGHT) == sentence


def whole(side: Side, dtype: BlockScaledDType = MX) -> RepresentationType:
    return operand(dtype, (64, 512) if side is Side.LEFT else (512, 64), side)


TILES = (((0, 0), (16, 64)), ((16, 64), (32, 128)), ((48, 448), (16, 64)))


class TestTiles:
    @pytest.mark.parametrize("is_boxed", [False, True])
    @pytest.mark.parametrize("side", Side)
    @pytest.mark.parametrize(("origin", "shape"), TILES)
    def test_every_element_reaches_the_scale_that_it_has_in_the_whole(
        self, side: Side, is_boxed: bool, origin: tuple[int, ...], shape: tuple[int, ...]
    ) -> None:
        if side is Side.RIGHT:
            origin, shape = origin[::-1], shape[::-1]
        full = boxed(whole(side)) if is_boxed else whole(side)
        tile = tile_view(full, origin, shape)
        self.same_slots(full, tile, origin, shape)
        assert tile.type.placements[0].stride == full.placements[0].stride
        assert tile.type.placements[1].stride == full.placements[1].stride
        check_operand(tile.type, side)

    @pytest.mark.parametrize(("origin", "shape"), TILES)
    def test_a_tile_of_nvfp4_shares_the_scale_of_the_tensor(
        self, origin: tuple[int, int], shape: tuple[int, int]
    ) -> None:
        full = whole(Side.LEFT, NV)
        tile = tile_view(full, (origin[0], origin[1] + 16), (shape[0], 48))
        self.same_slots(full, tile, (origin[0], origin[1] + 16), (shape[0], 48))
        assert tile.offsets[2] == 0
        assert tile.type.placements[2] == full.placements[2]

    def test_a_tile_of_a_batch(self) -> None:
        full = representation_of(DType.MXFP4, (3, 8, 128), 2)
        tile = tile_view(full, (1, 3, 64), (2, 5, 32))
        self.same_slots(full, tile, (1, 3, 64), (2, 5, 32))

    def test_a_tile_of_a_tile(self) -> None:
        full = boxed(whole(Side.LEFT))
        outer = tile_view(full, (16, 128), (48, 256))
        inner = tile_view(outer.type, (16, 64), (16, 128))
        direct = tile_view(full, (32, 192), (16, 128))
        assert inner.type == direct.type
        sums = tuple(a + b for a, b in zip(outer.offsets, inner.offsets, strict=True))
        assert sums == direct.offsets

    @staticmethod
    def same_slots(
        full: RepresentationType, tile: Any, origin: tuple[int, ...], shape: tuple[int, ...]
    ) -> None:
        for inside in itertools.product(*map(range, shape)):
            outside = tuple(o + i for o, i in zip(origin, inside, strict=True))
            slots = [
                [layout(edge) for layout, edge in zip(t.placements[:2], (at, e(at)), strict=True)]
                for t, at, e in (
                    (full, outside, full.adjacent_layouts[0]),
                    (tile.type, inside, tile.type.adjacent_layouts[0]),
                )
            ]
            assert slots[0] == [a + b for a, b in zip(tile.offsets, slots[1], strict=False)]

    @pytest.mark.parametrize(
        ("origin", "shape", "sentence"),
        [
            (
                (0, 16),
                (16, 64),
                "A tile must not cut a block: along axis 1 its origin and its extent must be "
                "multiples of 32, not 16 and 64",
            ),
            (
                (0, 32),
                (16, 40),
                "A tile must not cut a block: along axis 1 its origin and its extent must be "
                "multiples of 32, not 32 and 40",
            ),
            (
                (0, 480),
                (16, 64),
                "A tile must lie within axis 1, which has 512 elements, not take 64 from 480",
            ),
            (
                (-16, 0),
                (16, 64),
                "A tile must lie within axis 0, which has 64 elements, not take 16 from -16",
            ),
            (
                (0, 0),
                (0, 64),
                "A tile must lie within axis 0, which has 64 elements, not take 0 from 0",
            ),
            (
                (0,),
                (16, 64),
                "A tile must have an origin and a shape of rank 2, one number an axis",
            ),
        ],
    )
    def test_windows_that_are_no_tile(
        self, origin: tuple[int, ...], shape: tuple[int, ...], sentence: str
    ) -> None:
        assert refusal(IRValueError, tile_view, whole(Side.LEFT), origin, shape) == sentence

    @pytest.mark.parametrize(
        ("origin", "shape", "axis", "unit"),
        [
            ((8, 0), (16, 64), 0, 16),
            ((16, 0), (24, 64), 0, 16),
            ((0, 32), (16, 64), 1, 64),
            ((0, 64), (16, 96), 1, 64),
        ],
    )
    def test_a_tile_must_not_cut_a_box(
        self, origin: tuple[int, int], shape: tuple[int, int], axis: int, unit: int
    ) -> None:
        tile_view(whole(Side.LEFT), origin, shape)  # not in boxes, it could be cut here
        sentence = refusal(IRValueError, tile_view, boxed(whole(Side.LEFT)), origin, shape)
        assert sentence == (
            f"A tile must not cut a scale box: along axis {axis} its origin and its extent must be "
            f"multiples of {unit}, not {origin[axis]} and {shape[axis]}"
        )

    def test_tensors_of_another_form(self) -> None:
        mixed = by_hand(
            layout([8, (4, 32)], [128, (1, 4)]),
            layout([8, 4], [4, 1]),
            layout([8, (4, 32)], [1, (8, 0)]),
        )
        assert "must be contiguous" in refusal(IRValueError, tile_view, mixed, (0, 0), (8, 32))
        deep = by_hand(
            layout([8, (32, 4)], [128, (1, 32)]),
            layout([(2, 2, 2), 4], [(1, 2, 4), 8]),
            layout([8, (32, 4)], [1, (0, 8)]),
        )
        sentence = refusal(IRValueError, tile_view, deep, (0, 0), (8, 32))
        assert sentence == (
            "The scales of an axis must be one extent or boxes of one, not (2, 2, 2)"
        )


def stored(mx: numerics.MXArray) -> TensorRepresentation:
    """Return a block-scaled array as a representation with carriers."""
    kind = representation_of(mx.dtype, mx.shape, mx.axis)
    elements = mx.elements.view(np.int8) if mx.dtype.element is DType.Int8 else mx.elements
    values: list[Any] = [elements.reshape(-1), mx.scales.reshape(-1)]
    if mx.tensor_scale is not None:
        values.append(np.array([mx.tensor_scale]))
    planes = [
        Subtensor(dtype, Generic(items.tolist(), dtype=dtype), 0, placement)
        for dtype, items, placement in zip(
            kind.storage_dtypes, values, kind.placements, strict=True
        )
    ]
    return TensorRepresentation(mx.dtype, planes, kind.adjacent_layouts)


def worth(tensor: TensorRepresentation, coordinate: Any) -> float:
    """Return an element times every scale that its adjacent layouts lead to."""
    value, at = 1.0, coordinate
    levels = zip(tensor.subtensors, (*tensor.adjacent_layouts, None), strict=True)
    for plane, edge in levels:
        code: Any = plane.carrier[plane.offset + plane.layout(at)]
        if plane.dtype is DType.Float32:
            value *= code
        elif plane.dtype is DType.Int8:
            value *= code * 2.0**-6  # OCP MX v1.0 counts INT8 elements so
        else:
            value *= float(numerics.decode(np.array([code], np.uint8), plane.dtype)[0])
        at = edge(at) if edge is not None else at
    return value


@pytest.mark.parametrize("dtype", [*MX_FORMATS, NV], ids=lambda d: d.name)
def test_an_element_is_worth_its_code_times_the_scales_that_it_reaches(
    dtype: BlockScaledDType,
) -> None:
    x = np.random.default_rng(5).standard_normal((6, 96)) * np.exp2(np.arange(6))[:, None]
    for mx in (numerics.quantize(x, dtype), numerics.quantize(x.T, dtype, axis=0)):
        tensor, values = stored(mx), numerics.dequantize(mx)
        for at in itertools.product(*map(range, mx.shape)):
            assert np.float32(worth(tensor, at)) == values[at]
        origin, shape = ((1, 32), (3, 64)) if mx.axis == 1 else ((32, 1), (64, 3))
        tile = tile_of(tensor, origin, shape)
        for at in itertools.product(*map(range, shape)):
            outside = tuple(o + i for o, i in zip(origin, at, strict=True))
            assert np.float32(worth(tile, at)) == values[outside]


def test_the_rules_of_the_dtype_run_on_every_operand(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RepresentationType] = []

    class Spy(RepresentationType):
        def __new__(cls, *args: Any) -> Any:
            seen.append(RepresentationType(*args))
            return seen[-1]

    monkeypatch.setattr(mx_types, "RepresentationType", Spy)
    made = operand(MX, (M, K), Side.LEFT)
    assert seen == [made]
    # The same planes with one scale too many are refused by LevelExtent itself.
    with pytest.raises(ValueError, match="MXFP8_E4M3, level 0: "):
        RepresentationType(
            MX, (made.placements[0], layout([M, G + 1], [G + 1, 1])), made.adjacent_layouts
        )


def test_a_format_of_ones_own() -> None:
    own = BlockScaledDType("TileBlock12", element=DType.E3M2, levels=[Level(DType.E8M0, 12)])
    made = operand(own, (4, 36), Side.LEFT)
    assert plane_shapes(made)[1] == Plane(DType.E8M0, (4, 3))
    assert tile_view(made, (2, 12), (2, 24)).offsets == (2 * 36 + 12, 2 * 3 + 1)
