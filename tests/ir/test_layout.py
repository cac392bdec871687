"""Shapes, strides and layouts: hierarchy, indexing, and queries that never enumerate."""

import copy
import itertools
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir.layout import Layout, Shape, Stride

BILLION = 10**9


def layout(shape: Any, stride: Any) -> Layout:
    return Layout(Shape(shape), Stride(stride))


NESTED = layout([2, [3, 4]], [1, [10, 100]])
FLAT = layout([3, 4], [2, 10])
MODES = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 12)), max_size=4)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Draw a layout of a random hierarchy."""
    tree = st.recursive(
        st.tuples(st.integers(1, 4), st.integers(0, 9)),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    )
    items = draw(st.lists(tree, max_size=3))

    def part(item: Any, which: int) -> Any:
        if isinstance(item, tuple):
            return item[which]  # type: ignore[reportUnknownVariableType]
        return [part(inner, which) for inner in item]

    return layout(part(items, 0), part(items, 1))


def test_items_and_one_iterable_are_the_same_and_hierarchy_matters() -> None:
    assert Shape(2, [3, 4]) == Shape([2, [3, 4]]) == Shape((2, (3, 4))) == Shape(2, Shape(3, 4))
    assert Shape(2, [3, 4]) != Shape(2, 3, 4)
    assert Stride(1, [0, 2]) == Stride([1, iter([0, 2])])
    assert Shape(3) == Shape([3])
    assert Shape([[3, 4]]) != Shape(3, 4)
    assert Shape(2, 3) != Stride(2, 3)


def test_inputs_are_copied() -> None:
    items: list[Any] = [2, [3, 4]]
    shape = Shape(items)
    items[1].append(5)
    assert shape == Shape(2, [3, 4])


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "2", None, [2, 0], [[True]], "23", b"2"])
def test_an_extent_must_be_a_positive_integer(bad: Any) -> None:
    with pytest.raises(ValueError, match="extent of a shape must be"):
        Shape(2, bad)


@pytest.mark.parametrize("bad", [-1, True, 1.5, "2", None, [2, -1]])
def test_a_stride_must_be_a_non_negative_integer(bad: Any) -> None:
    with pytest.raises(ValueError, match="A stride must be"):
        Stride(2, bad)


def test_integers_of_numpy_become_python_integers() -> None:
    shape = Shape(np.array([2, 3]), np.int64(4), np.uint8(5))
    assert shape == Shape([2, 3], 4, 5)
    assert {type(leaf) for leaf in shape.leaves} == {int}
    assert FLAT.index(np.int32(5)) == 14


def test_rank_zero_has_one_coordinate() -> None:
    assert Shape().size == Shape([]).size == 1
    assert layout([], []).cosize == 1
    assert layout([], []).index(0) == layout([], []).index(()) == 0
    assert list(Shape().coordinates()) == [()]
    assert layout([], []).offsets().tolist() == [0]
    assert layout([], []).is_injective


def test_a_part_of_a_shape_is_a_shape() -> None:
    shape = Shape(2, [3, 4], 5)
    assert shape[0] == Shape(2)
    assert shape[1] == Shape(3, 4)
    assert shape[1:] == Shape([3, 4], 5)
    assert shape[-1:] == Shape(5)
    assert type(Stride(1, 2)[1:]) is Stride
    assert NESTED[1] == layout([3, 4], [10, 100])
    assert (len(shape), list(shape), shape.leaves) == (3, [2, (3, 4), 5], (2, 3, 4, 5))


def test_a_layout_needs_a_shape_and_a_stride_of_one_hierarchy() -> None:
    make: Any = Layout
    for shape, stride in (((2,), Stride(1)), (Shape(2), (1,)), (Stride(1), Stride(1)), (2, 1)):
        with pytest.raises(ValueError, match="must be made of a Shape and a Stride"):
            make(shape, stride)
    for stride in (Stride(1, 2, 6), Stride(1), Stride([1, 2], 6), Stride()):
        with pytest.raises(ValueError, match=r"must have the hierarchy of Shape\(2, \(3, 4\)\)"):
            Layout(Shape(2, [3, 4]), stride)


def test_an_index_is_the_sum_of_coordinate_times_stride() -> None:
    assert NESTED.index([1, [2, 3]]) == NESTED((1, (2, 3))) == 321
    assert FLAT.index(5) == FLAT.index((2, 1)) == 14


def test_an_integer_stands_for_any_part_first_mode_fastest() -> None:
    assert Shape(5, [20, 4]).decode(214) == (4, (2, 2))
    assert Shape(5, [20, 4]).encode((4, 42)) == Shape(5, [20, 4]).encode((4, (2, 2))) == 214
    assert Shape(5, [20, 4]).decode((4, 42)) == (4, (2, 2))
    assert NESTED.index((1, 11)) == NESTED.index(23) == 321


@pytest.mark.parametrize("key", [-1, 12, (3, 0), (0, 4), (0, -1), (0,), (0, 0, 0), (0, (1,)), ()])
def test_a_coordinate_outside_missing_or_too_many_is_a_value_error(key: Any) -> None:
    for function in (FLAT.index, FLAT.shape.encode, FLAT.shape.decode):
        with pytest.raises(ValueError, match="A coordinate of"):
            function(key)


@pytest.mark.parametrize("key", [True, 1.0, "1", None, {1}, (0, True), (0, 1.5), Shape(1, 1)])
def test_a_coordinate_of_another_type_is_a_type_error(key: Any) -> None:
    with pytest.raises(TypeError, match="must be an int, a tuple or a list"):
        FLAT.index(key)


def test_size_counts_coordinates_and_cosize_spans_indices() -> None:
    gapped = layout([2, 3], [1, 4])
    assert (gapped.size, gapped.cosize) == (6, 10)
    assert (layout([4, 2], [0, 1]).size, layout([4, 2], [0, 1]).cosize) == (8, 2)
    assert NESTED.cosize == 322


def test_nothing_overflows() -> None:
    huge = layout([10**10, 10**10], [1, 10**10])
    assert huge.size == huge.cosize == 10**20
    assert huge.index((10**10 - 1, 10**10 - 1)) == 10**20 - 1
    assert huge.shape.decode(10**20 - 1) == (10**10 - 1, 10**10 - 1)
    with pytest.raises(
        ValueError, match="must fit 64 bits, but its cosize is 100000000000000000000"
    ):
        huge.offsets()


def test_values_are_immutable_hashable_and_picklable() -> None:
    for value in (Shape(2, [3, 4]), Shape([[3, 4]]), Shape(), Stride(1, [0, 2]), NESTED):
        for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert other == value
            assert hash(other) == hash(value)
            assert type(other) is type(value)
        for name in ("tree", "shape", "stride", "extra"):
            with pytest.raises(AttributeError):
                setattr(value, name, ())
        again: Any = value
        again.__init__(Shape(9), Stride(9))
        assert again == pickle.loads(pickle.dumps(value)) != Shape(9)
    assert len({NESTED, layout([2, [3, 4]], [1, [10, 100]]), FLAT}) == 2


@pytest.mark.parametrize(
    "shape", [Shape(2, [3, 4]), Shape([[3, 4]]), Shape(5), Shape(), Shape([[]])]
)
def test_a_repr_is_the_call_that_makes_the_value(shape: Shape) -> None:
    assert eval(repr(shape)) == shape
    assert repr(NESTED) == "Layout(shape=Shape(2, (3, 4)), stride=Stride(1, (10, 100)))"


@given(layouts().filter(lambda value: value.size <= 4096))
def test_ordinals_coordinates_and_offsets_agree(value: Layout) -> None:
    offsets = value.offsets()
    assert offsets.shape == (value.size,)
    assert offsets.dtype == np.int64
    assert offsets.tolist() == [value.index(ordinal) for ordinal in range(value.size)]
    coordinates = list(value.shape.coordinates())
    assert [value.shape.encode(coordinate) for coordinate in coordinates] == list(range(value.size))
    assert offsets.tolist() == [value.index(coordinate) for coordinate in coordinates]
    assert offsets.max() + 1 == value.cosize


def test_coordinates_run_with_the_first_mode_fastest() -> None:
    expected = [(a, (b, c)) for c, b, a in itertools.product(range(2), range(3), range(2))]
    assert list(Shape(2, [3, 2]).coordinates()) == expected


@pytest.mark.parametrize(
    ("shape", "stride", "expected"),
    [
        ([2, 3], [1, 4], True),
        ([4, 2], [0, 1], False),
        ([4, 2], [1, 1], False),
        ([3, 2], [2, 3], True),
        ([4, 2], [2, 3], True),
        ([4, 3], [2, 3], False),
        ([1, 4], [0, 1], True),
        ([2, [3, 4]], [1, [10, 100]], True),
    ],
)
def test_injectivity_is_about_collisions_not_holes(shape: Any, stride: Any, expected: bool) -> None:
    assert layout(shape, stride).is_injective is expected


@given(layouts())
def test_injectivity_agrees_with_enumeration(value: Layout) -> None:
    assert value.is_injective == (len(set(value.offsets().tolist())) == value.size)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 40)), min_size=3, max_size=4))
def test_injectivity_of_interleaved_strides_agrees_with_enumeration(
    modes: list[tuple[int, int]],
) -> None:
    value = layout([extent for extent, _ in modes], [step for _, step in modes])
    assert value.is_injective == (len(set(value.offsets().tolist())) == value.size)


@pytest.mark.parametrize(
    ("shape", "stride", "expected"),
    [
        ([BILLION, BILLION], [1, BILLION], True),
        ([BILLION, BILLION], [BILLION - 1, BILLION], True),
        ([BILLION, BILLION], [BILLION - 2, BILLION - 1], False),
        ([BILLION, BILLION, BILLION], [2, 3, 7], False),
        ([BILLION, BILLION], [0, 1], False),
    ],
)
def test_injectivity_of_huge_layouts_is_decided_without_enumeration(
    shape: Any, stride: Any, expected: bool
) -> None:
    assert layout(shape, stride).is_injective is expected


@pytest.mark.parametrize(
    ("shape", "stride", "target", "expected"),
    [
        ([4, 3], [0, 1], [3], 4),
        ([3, 4], [1, 0], [3], 4),
        ([2, 2], [1, 1], [3], None),
        ([4, 3], [0, 2], [3], None),
        ([4, 3], [0, 1], [4], None),
        ([4, 3], [0, 1], [6], None),
        ([3, 2], [2, 1], [2, 3], 1),
        ([1, 5], [7, 0], [], 5),
        ([4, (32, 8)], [1, (0, 4)], [4, 8], 32),
    ],
)
def test_the_uniform_preimage_extent(
    shape: Any, stride: Any, target: Any, expected: int | None
) -> None:
    assert layout(shape, stride).uniform_preimage_extent(Shape(target)) == expected


def test_the_uniform_preimage_extent_is_exhaustively_that_of_counting() -> None:
    checked = 0
    for extents in itertools.product(range(1, 5), repeat=3):
        for steps in itertools.product((0, 1, 2, 3, 4, 6), repeat=3):
            value = layout(extents, steps)
            counts = Counter(
                sum(map(int.__mul__, coordinate, steps))
                for coordinate in itertools.product(*map(range, extents))
            )
            groups = set(counts.values())
            size = len(counts)
            full = len(groups) == 1 and value.cosize == size
            assert value.uniform_preimage_extent(Shape(size)) == (groups.pop() if full else None)
            assert value.uniform_preimage_extent(Shape(size + 1)) is None
            if size > 1:  # what lies beyond the target has no ordinal there
                assert value.uniform_preimage_extent(Shape(size - 1)) is None
            checked += 1
    assert checked == 13824


def test_the_uniform_preimage_extent_never_enumerates() -> None:
    assert layout([BILLION, BILLION], [0, 1]).uniform_preimage_extent(Shape(BILLION)) == BILLION
    assert layout([BILLION, BILLION], [1, 1]).uniform_preimage_extent(Shape(BILLION)) is None


@pytest.mark.parametrize("target", [3, (3,), None, Stride(3)])
def test_the_target_of_a_query_must_be_a_shape(target: Any) -> None:
    for method in (FLAT.uniform_preimage_extent, FLAT.broadcast_to):
        with pytest.raises(TypeError, match="target must be a Shape, not"):
            method(target)


def test_permute_moves_whole_modes() -> None:
    value = layout([2, [3, 4], 5], [1, [2, 6], 24])
    assert value.permute(1, 0, 2) == value.permute([1, 0, 2])
    assert value.permute(1, 0, 2) == layout([[3, 4], 2, 5], [[2, 6], 1, 24])
    assert value.permute(2, 0, 1).permute(1, 2, 0) == value
    assert layout([], []).permute() == layout([], [])
    for order in ((0, 1), (0, 0, 1), (0, 1, 3), (0, 1, -1)):
        with pytest.raises(ValueError, match="must name each of the 3 modes once"):
            value.permute(*order)
    for order in ((0, 1, 2.0), (0, 1, True), (0, 1, "2")):
        with pytest.raises(TypeError, match="order of modes must be integers"):
            value.permute(*order)


def test_broadcast_repeats_extents_of_one() -> None:
    value = layout([2, [1, 3]], [1, [2, 2]])
    assert value.broadcast_to(Shape(2, [4, 3])) == layout([2, [4, 3]], [1, [0, 2]])
    assert value.broadcast_to(value.shape) == value
    with pytest.raises(ValueError, match="extent must be 1 to be broadcast, not 2"):
        value.broadcast_to(Shape(4, [1, 3]))
    with pytest.raises(ValueError, match="must have the hierarchy of"):
        value.broadcast_to(Shape(2, 4, 3))


def test_a_coordinate_is_found_among_billions_without_enumeration() -> None:
    assert layout([BILLION, BILLION], [1, BILLION]).index(BILLION**2 - 1) == BILLION**2 - 1
