"""Whole, Level and LevelExtent."""

import copy
import pickle
from collections import Counter
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir.dtypes import (
    CompoundDType,
    DType,
    Layout,
    Level,
    LevelExtent,
    RepresentationType,
    RepresentationValidationContext,
    Shape,
    SimpleDType,
    Stride,
    Whole,
    WholeExtent,
)

BILLION = 10**9


class Context:
    """A context of two levels, written by hand."""

    logical_dtype = DType.MXFP4
    storage_dtypes = DType.MXFP4.simple_types

    def __init__(self, edge: Layout, target: Shape) -> None:
        self.adjacent_layouts = (edge,)
        self.level_shapes = (edge.shape, target)
        self.placement_layouts = (edge, Layout(target, Stride(target.tree)))


def context(shape: Any, stride: Any, target: Any) -> RepresentationValidationContext:
    return cast("Any", Context(Layout(Shape(shape), Stride(stride)), Shape(target)))


def test_r28_constructing_a_whole_extent_gives_whole() -> None:
    assert WholeExtent() is Whole is WholeExtent()
    assert isinstance(Whole, WholeExtent)
    with pytest.raises(TypeError, match="must stay the class of one object"):
        type("Second", (WholeExtent,), {})


def test_r29_whole_keeps_its_identity(in_another_process: Any) -> None:
    assert copy.copy(Whole) is Whole
    assert copy.deepcopy({"a": [Whole]})["a"][0] is Whole
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(Whole, protocol)) is Whole
        assert pickle.loads(pickle.dumps([(Whole,)], protocol))[0][0] is Whole
    level = Level(DType.Float32, Whole)
    report = "loaded[0] is Whole and loaded[1].block is Whole and loaded[1].scale is DType.Float32"
    assert in_another_process((Whole, level), "", report) == "True"


def test_r30_the_repr_of_whole() -> None:
    assert repr(Whole) == "Whole"


def test_r31_a_level_is_an_immutable_hashable_value() -> None:
    level = Level(DType.E8M0, 32)
    assert level == Level(scale=DType.E8M0, block=32)
    assert hash(level) == hash(Level(DType.E8M0, 32))
    assert level != Level(DType.E8M0, 16)
    assert level != Level(DType.E4M3, 32)
    assert Level(DType.E8M0, Whole) == Level(DType.E8M0, WholeExtent())
    assert repr(level) == "Level(scale=SimpleDType('E8M0'), block=32)"
    for name in ("scale", "block", "unknown"):
        with pytest.raises(AttributeError):
            setattr(level, name, 1)
        with pytest.raises(AttributeError):
            delattr(level, name)


def test_r31_running_a_constructor_again_changes_no_level() -> None:
    level: Any = DType.MXFP4.levels[0]
    level.__init__(DType.E4M3, 16)
    assert level == Level(DType.E8M0, 32)


def test_r31_a_level_survives_copy_and_pickle() -> None:
    level = Level(DType.E8M0, 32)
    for other in (copy.copy(level), copy.deepcopy(level), pickle.loads(pickle.dumps(level))):
        assert other == level
        assert other.scale is DType.E8M0


@pytest.mark.parametrize("scale", [DType.Floating, DType.MXFP4, SimpleDType, "E8M0", None])
def test_r32_the_scale_must_be_a_simple_dtype(scale: Any) -> None:
    with pytest.raises(TypeError, match="scale of a level must be a SimpleDType, not"):
        Level(scale, 0)


@pytest.mark.parametrize("block", [1.5, 32.0, True, False, "32", None, (32,)])
def test_r33_the_block_must_be_an_integer_or_whole(block: Any) -> None:
    with pytest.raises(TypeError, match="block of a level must be an int or Whole, not"):
        Level(DType.E8M0, block)


def test_r33_an_integer_subclass_becomes_an_exact_integer() -> None:
    class Extent(int):
        pass

    assert type(Level(DType.E8M0, Extent(8)).block) is int


@pytest.mark.parametrize("block", [0, -4])
def test_r34_the_block_must_be_positive(block: int) -> None:
    with pytest.raises(ValueError, match=f"must be 1 or more, not {block}"):
        Level(DType.E8M0, block)


def test_r35_is_whole() -> None:
    assert Level(DType.E8M0, Whole).is_whole() is True
    assert Level(DType.E8M0, 32).is_whole() is False


def test_r36_a_level_extent_takes_its_two_parameters_by_name() -> None:
    rule = LevelExtent(level=1, extent=4)
    with pytest.raises(AttributeError):
        setattr(rule, "level", 2)  # noqa: B010 - read-only for a type checker too
    assert repr(rule) == "LevelExtent(1, 4)"


class Number(int):
    """An integer that is not exact."""


@pytest.mark.parametrize("level", [True, 1.0, "0", None, Whole, Number(0)])
def test_r37_the_level_must_be_an_exact_integer(level: Any) -> None:
    with pytest.raises(TypeError, match="level of a LevelExtent must be an exact int, not"):
        LevelExtent(level, cast("Any", "not looked at"))


@pytest.mark.parametrize("extent", [True, 1.0, "1", None, Number(1)])
def test_r38_the_extent_must_be_an_exact_integer_or_whole(extent: Any) -> None:
    with pytest.raises(TypeError, match="extent of a LevelExtent must be an exact int or Whole"):
        LevelExtent(0, extent)


def test_r39_ranges() -> None:
    with pytest.raises(ValueError, match="level of a LevelExtent must be 0 or more, not -1"):
        LevelExtent(-1, cast("Any", "not looked at"))
    for extent in (0, -1):
        with pytest.raises(ValueError, match=f"must be 1 or more, not {extent}"):
            LevelExtent(0, extent)


def test_r40_level_and_extent_are_returned() -> None:
    assert (LevelExtent(3, 32).level, LevelExtent(3, 32).extent) == (3, 32)
    assert LevelExtent(0, Whole).extent is Whole


@pytest.mark.parametrize(
    ("shape", "stride", "target"),
    [
        ((32, 4), (0, 1), (4,)),
        ((4, 32), (1, 0), (4,)),
        ((4, (32, 2)), (1, (0, 4)), (4, 2)),
        (((2, 4), (8, 4)), ((0, 4), (0, 1)), (16,)),
        ((16, 2, 3), (0, 0, 1), ((3,),)),
    ],
)
def test_r41_any_uniform_grouping_is_accepted(shape: Any, stride: Any, target: Any) -> None:
    extent = Shape(shape).size // Shape(target).size
    assert LevelExtent(0, extent).validate(context(shape, stride, target)) is None


def test_r41_nothing_is_enumerated() -> None:
    shape, stride = (BILLION, BILLION), (0, 1)
    assert LevelExtent(0, BILLION).validate(context(shape, stride, (BILLION,))) is None


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 6)), max_size=4),
    st.integers(1, 12),
    st.integers(1, 8),
)
def test_r41_r43_agrees_with_counting(
    modes: list[tuple[int, int]], target: int, extent: int
) -> None:
    edge = Layout(Shape([extent for extent, _ in modes]), Stride([step for _, step in modes]))
    counts = Counter(edge.index(ordinal) for ordinal in range(edge.size))
    valid = counts == dict.fromkeys(range(target), extent)
    rule, facts = LevelExtent(0, extent), cast("Any", Context(edge, Shape(target)))
    if valid:
        rule.validate(facts)
    else:
        with pytest.raises(ValueError, match="MXFP4, level 0: "):
            rule.validate(facts)


@pytest.mark.parametrize("target", [(1,), (1, 1), ()])
def test_r42_whole_groups_everything_into_one_coordinate(target: Any) -> None:
    assert LevelExtent(0, Whole).validate(context((5, (3, 2)), (0, (0, 0)), target)) is None


def test_r42_whole_refuses_more_than_one_target_coordinate() -> None:
    with pytest.raises(ValueError, match="must have one target coordinate, not 2"):
        LevelExtent(0, Whole).validate(context((4, 2), (0, 1), (2,)))
    with pytest.raises(ValueError, match="must have one target coordinate, not 2"):
        LevelExtent(0, Whole).validate(context((4, 2), (0, 0), (2,)))


@pytest.mark.parametrize("extent", [2, Whole])
def test_r43_a_missing_edge_is_found_first(extent: Any) -> None:
    with pytest.raises(ValueError, match="must have an adjacent layout 1, but it has only 1"):
        LevelExtent(1, extent).validate(context((3, 2), (0, 1), (9,)))


def test_r43_wrong_cardinality_and_uneven_groups_are_told_apart() -> None:
    rule = LevelExtent(0, 2)
    with pytest.raises(ValueError, match="must come from 6 source coordinates, not 4"):
        rule.validate(context((2, 2), (0, 1), (3,)))
    with pytest.raises(ValueError, match="must group 2 sources, not groups of unequal size"):
        rule.validate(context((2, 2), (0, 0), (2,)))
    with pytest.raises(ValueError, match="must group 2 sources, not groups of unequal size"):
        rule.validate(context((2, 2, 2), (0, 1, 1), (4,)))


def test_r43_the_message_names_the_dtype(fresh: Any) -> None:
    class Grouped(CompoundDType, abstract=False):
        __slots__ = ()

    dtype = Grouped(
        fresh(),
        simple_types=(DType.Float32, DType.Int32),
        representation_rules=[LevelExtent(0, 4)],
    )
    line = Layout(Shape(4), Stride(1))
    with pytest.raises(ValueError, match=f"{dtype.name}, level 0: 4 target coordinates of 4"):
        RepresentationType(dtype, (line, line), (line,))
