"""Block-scaled dtypes: the plane chain, its one identity, its cost, and the built-in formats."""

import copy
import pickle
from typing import TYPE_CHECKING, Any, cast

import pytest

from scalebox.ir.dtypes import (
    BlockScaledDType,
    CompoundDType,
    DType,
    DTypeCategory,
    Level,
    LevelExtent,
    SimpleDType,
    SymbolicBits,
    Whole,
    WholeExtent,
)

if TYPE_CHECKING:
    from collections.abc import Callable

E8M0_32 = Level(DType.E8M0, 32)
MX = {
    # name: element, bits per element
    "MXFP8_E4M3": (DType.E4M3, 8.25),
    "MXFP8_E5M2": (DType.E5M2, 8.25),
    "MXFP6_E3M2": (DType.E3M2, 6.25),
    "MXFP6_E2M3": (DType.E2M3, 6.25),
    "MXFP4": (DType.E2M1, 4.25),
    "MXINT8": (DType.Int8, 8.25),
}


def test_r44_it_is_a_constructible_compound_with_two_keywords(fresh: Any, fresh_block: Any) -> None:
    level = Level(DType.E8M0, fresh_block())
    dtype = BlockScaledDType(fresh(), element=DType.E4M3, levels=[level])
    assert isinstance(dtype, CompoundDType)
    assert dtype.is_compound()
    make: Any = BlockScaledDType
    for wrong in (
        lambda: make(fresh()),
        lambda: make(fresh(), DType.E4M3, [level]),
        lambda: make(fresh(), element=DType.E4M3),
        lambda: make(fresh(), levels=[level]),
        lambda: make(fresh(), element=DType.E4M3, levels=[level], block=32),
    ):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize("name", ["", None, 3])
def test_r45_the_name_contract_holds(name: Any, fresh_block: Any) -> None:
    with pytest.raises(ValueError, match="must be a non-empty string"):
        BlockScaledDType(name, element=DType.E4M3, levels=[Level(DType.E8M0, fresh_block())])


def test_r45_a_taken_name_does_not_reserve_the_structure(fresh: Any, fresh_block: Any) -> None:
    levels = (Level(DType.E8M0, fresh_block()),)
    with pytest.raises(ValueError, match="'MXFP4' is registered already"):
        BlockScaledDType("MXFP4", element=DType.E4M3, levels=levels)
    assert BlockScaledDType(fresh(), element=DType.E4M3, levels=levels).levels == levels


@pytest.mark.parametrize("element", [DType.Floating, DType.MXFP4, SimpleDType, "E4M3", None])
def test_r46_the_element_must_be_simple_and_is_looked_at_first(element: Any) -> None:
    with pytest.raises(TypeError, match="element of a block-scaled dtype must be a SimpleDType"):
        BlockScaledDType("", element=element, levels=cast("Any", None))


@pytest.mark.parametrize("levels", [(), [], iter(())])
def test_r47_there_must_be_a_level(levels: Any, fresh: Any) -> None:
    with pytest.raises(ValueError, match="must have at least one level"):
        BlockScaledDType(fresh(), element=DType.E4M3, levels=levels)


@pytest.mark.parametrize("levels", [None, 3, E8M0_32, [DType.E8M0], [E8M0_32, 32], [Level], "ab"])
def test_r48_levels_must_be_an_iterable_of_levels(levels: Any) -> None:
    with pytest.raises(TypeError, match="levels"):
        BlockScaledDType("", element=DType.E4M3, levels=levels)


def test_r49_only_the_last_level_may_be_whole(fresh: Any) -> None:
    name = fresh()
    whole = Level(DType.Float32, Whole)
    for levels in ([whole, E8M0_32], [E8M0_32, whole, E8M0_32], [whole, whole]):
        with pytest.raises(ValueError, match="Only the last level of a block-scaled dtype may be"):
            BlockScaledDType(name, element=DType.Int32, levels=levels)
    single = BlockScaledDType(name, element=DType.Int32, levels=[whole])
    assert single.levels == (whole,)
    assert single.num_axes == 0


def test_r50_element_and_levels_are_read_only_and_levels_a_tuple(
    fresh: Any, fresh_block: Any
) -> None:
    levels = [Level(DType.E8M0, fresh_block()), Level(DType.Float32, Whole)]
    dtype = BlockScaledDType(fresh(), element=DType.E4M3, levels=iter(levels))
    assert dtype.element is DType.E4M3
    assert dtype.levels == tuple(levels)
    assert type(dtype.levels) is tuple
    for name in ("element", "levels", "num_axes", "bits_per_element"):
        with pytest.raises(AttributeError):
            setattr(dtype, name, None)


def test_r50_a_level_subclass_is_stored_as_a_plain_level(fresh: Any, fresh_block: Any) -> None:
    class Changing(Level):
        pass

    level = Changing(DType.E8M0, fresh_block())
    dtype = BlockScaledDType(fresh(), element=DType.E4M3, levels=[level])
    assert type(dtype.levels[0]) is Level


def test_r51_the_planes_are_the_element_and_the_scales(fresh: Any, fresh_block: Any) -> None:
    levels = [Level(DType.E4M3, fresh_block()), Level(DType.Float32, 7)]
    dtype = BlockScaledDType(fresh(), element=DType.E2M1, levels=levels)
    assert dtype.simple_types == (DType.E2M1, DType.E4M3, DType.Float32)
    assert dtype.num_carriers == 3


def test_r52_every_level_has_one_level_extent_rule_and_there_is_no_other() -> None:
    for dtype in BlockScaledDType.registered():
        rules = [rule.structure() for rule in dtype.representation_rules]
        expected = [
            LevelExtent(position, level.block).structure()
            for position, level in enumerate(dtype.levels)
        ]
        assert rules == expected


def test_r53_the_supertype_is_any() -> None:
    for dtype in BlockScaledDType.registered():
        assert dtype.supertype is DType.Any
        assert not dtype.is_subtype_of(DType.Floating)


def test_r54_the_same_element_and_chain_is_refused_whatever_the_name(fresh: Any) -> None:
    for levels in ([E8M0_32], [Level(DType.E8M0, 32)]):
        with pytest.raises(ValueError, match="repeats those of 'MXFP4'"):
            BlockScaledDType(fresh(), element=DType.E2M1, levels=levels)
    with pytest.raises(ValueError, match="repeats those of 'NVFP4'"):
        BlockScaledDType(
            fresh(),
            element=DType.E2M1,
            levels=[Level(DType.E4M3, 16), Level(DType.Float32, WholeExtent())],
        )


def test_r54_no_subclass_or_extension_makes_a_second_identity(fresh: Any) -> None:
    class Plain(BlockScaledDType, abstract=False):
        __slots__ = ()

    class Extended(BlockScaledDType, abstract=False):
        __slots__ = ()

        def structure_extension(self) -> tuple[object, ...]:
            return ("saturating",)

    name = fresh()
    for cls in (Plain, Extended):
        with pytest.raises(ValueError, match="repeats those of 'MXFP4'"):
            cls(name, element=DType.E2M1, levels=[E8M0_32])
    with pytest.raises(LookupError):
        DType.from_name(name)
    assert BlockScaledDType.from_name("MXFP4") is DType.MXFP4


def test_r54_another_part_of_the_chain_is_another_format(fresh: Any, fresh_block: Any) -> None:
    block, other = fresh_block(), fresh_block()
    e8m0, e5m2 = Level(DType.E8M0, block), Level(DType.E5M2, block)
    chains = (
        (DType.E4M3, [e8m0]),
        (DType.E4M3, [e5m2]),
        (DType.E5M2, [e8m0]),
        (DType.E4M3, [Level(DType.E8M0, other)]),
        (DType.E4M3, [e8m0, Level(DType.Float32, other)]),
        (DType.E4M3, [e8m0, Level(DType.Float32, Whole)]),
    )
    made = [BlockScaledDType(fresh(), element=element, levels=chain) for element, chain in chains]
    assert len({dtype.structure() for dtype in made}) == len(made)
    for element, chain in chains:
        with pytest.raises(ValueError, match="repeats those of"):
            BlockScaledDType(fresh(), element=element, levels=chain)


def test_r54_a_plain_compound_of_the_same_planes_and_rules_is_no_duplicate(fresh: Any) -> None:
    class Planar(CompoundDType, abstract=False):
        __slots__ = ()

    twin = Planar(
        fresh(),
        supertype=DType.Any,
        simple_types=DType.MXFP4.simple_types,
        representation_rules=DType.MXFP4.representation_rules,
    )
    assert twin is not DType.MXFP4
    assert twin.structure() != DType.MXFP4.structure()


def test_r55_axes_are_the_levels_with_an_integer_block(fresh: Any, fresh_block: Any) -> None:
    assert DType.MXFP8_E4M3.num_axes == 1
    assert DType.NVFP4.num_axes == 1
    levels = [Level(DType.E8M0, fresh_block()), Level(DType.E8M0, 4), Level(DType.Float32, Whole)]
    assert BlockScaledDType(fresh(), element=DType.E4M3, levels=levels).num_axes == 2


def test_r56_r57_the_cost_adds_each_scale_over_all_that_it_covers(
    fresh: Any, fresh_block: Any
) -> None:
    block = fresh_block()
    levels = [Level(DType.E8M0, block), Level(DType.Float32, 4)]
    cost = BlockScaledDType(fresh(), element=DType.E2M3, levels=levels).bits_per_element
    assert type(cost) is float
    assert cost == 6 + 8 / block + 32 / (block * 4)


@pytest.mark.parametrize("name", MX)
def test_r57_the_cost_of_a_built_in_mx_format(name: str) -> None:
    cost = BlockScaledDType.from_name(name).bits_per_element
    assert type(cost) is float
    assert cost == MX[name][1]


def test_r58_a_whole_scale_makes_the_cost_symbolic(fresh: Any) -> None:
    assert DType.NVFP4.bits_per_element == SymbolicBits(4.5, 32)
    dtype = BlockScaledDType(fresh(), element=DType.Int8, levels=[Level(DType.E5M2, Whole)])
    cost = dtype.bits_per_element
    assert isinstance(cost, SymbolicBits)
    assert (cost.constant, cost.whole_scale_bits) == (8.0, 8)


def test_r59_r60_symbolic_bits_are_immutable_and_return_what_they_were_given() -> None:
    cost = SymbolicBits(constant=4.5, whole_scale_bits=32)
    assert (cost.constant, cost.whole_scale_bits) == (4.5, 32)
    assert cost == copy.deepcopy(cost) == pickle.loads(pickle.dumps(cost))
    for name in ("constant", "whole_scale_bits", "extra"):
        with pytest.raises(AttributeError):
            setattr(cost, name, 1)
    again: Any = cost
    again.__init__(1.0, 1)
    assert cost == SymbolicBits(4.5, 32)


@pytest.mark.parametrize(("count", "expected"), [(1, 36.5), (32, 5.5), (1024, 4.53125)])
def test_r61_evaluate_spreads_the_whole_scale(count: int, expected: float) -> None:
    cost = DType.NVFP4.bits_per_element
    assert isinstance(cost, SymbolicBits)
    assert cost.evaluate(count) == expected
    assert cost.evaluate(element_count=count) == expected


@pytest.mark.parametrize("count", [1024.0, True, False, None, "32", Whole])
def test_r62_the_element_count_must_be_an_integer(count: Any) -> None:
    with pytest.raises(TypeError, match="element count must be an int, not"):
        SymbolicBits(4.5, 32).evaluate(count)


@pytest.mark.parametrize("count", [0, -1])
def test_r63_the_element_count_must_be_positive(count: int) -> None:
    with pytest.raises(ValueError, match=f"must be 1 or more, not {count}"):
        SymbolicBits(4.5, 32).evaluate(count)


def test_r64_there_are_seven_built_in_formats() -> None:
    built_in = {
        name: value for name, value in vars(DType).items() if isinstance(value, BlockScaledDType)
    }
    assert set(built_in) == {*MX, "NVFP4"}
    assert all(BlockScaledDType.from_name(name) is dtype for name, dtype in built_in.items())


@pytest.mark.parametrize("name", MX)
def test_r65_an_mx_format_has_one_e8m0_scale_per_32(name: str) -> None:
    assert BlockScaledDType.from_name(name).levels == (E8M0_32,)


@pytest.mark.parametrize("name", MX)
def test_r66_an_mx_format_s_element(name: str) -> None:
    dtype = BlockScaledDType.from_name(name)
    assert dtype.element is MX[name][0]
    assert dtype.simple_types == (MX[name][0], DType.E8M0)


def test_r67_nvfp4() -> None:
    assert DType.NVFP4.element is DType.E2M1
    assert DType.NVFP4.levels == (Level(DType.E4M3, 16), Level(DType.Float32, Whole))
    assert DType.NVFP4.simple_types == (DType.E2M1, DType.E4M3, DType.Float32)


def test_a_constructor_cannot_make_the_planes_disagree_with_the_levels(
    fresh: Any, fresh_block: Any
) -> None:
    levels = [Level(DType.E8M0, fresh_block())]

    def first_compound(self: BlockScaledDType, name: str) -> None:
        CompoundDType.__init__(self, name, simple_types=[DType.Int8])
        BlockScaledDType.__init__(self, name, element=DType.E4M3, levels=levels)

    def first_block_scaled(self: BlockScaledDType, name: str) -> None:
        BlockScaledDType.__init__(self, name, element=DType.E4M3, levels=levels)
        CompoundDType.__init__(self, name, simple_types=[DType.Int8])

    def only_compound(self: BlockScaledDType, name: str) -> None:
        CompoundDType.__init__(self, name, simple_types=[DType.Int8])

    new_class: Any = type(BlockScaledDType)
    inits: list[Callable[..., None]] = [first_compound, first_block_scaled, only_compound]
    for init in inits:
        cls = new_class("Wrong", (BlockScaledDType,), {"__init__": init}, abstract=False)
        with pytest.raises((AttributeError, TypeError), match="constructor of Wrong must call"):
            cls(fresh())
    assert BlockScaledDType(fresh(), element=DType.E4M3, levels=levels).num_carriers == 2


def test_an_unregistered_part_is_both_a_type_and_a_value_error(fresh: Any) -> None:
    kept: list[SimpleDType] = []

    class Leaky(SimpleDType, abstract=False):
        __slots__ = ()

        def __init__(self, name: str) -> None:
            super().__init__(name, bits=8, supertype=DType.Any)
            kept.append(self)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        Leaky(fresh())
    for error in (TypeError, ValueError):
        with pytest.raises(error, match="element of a block-scaled dtype must be a registered"):
            BlockScaledDType(fresh(), element=kept[0], levels=[E8M0_32])
        with pytest.raises(error, match="scale of a level must be a registered dtype"):
            Level(kept[0], 32)
    assert DTypeCategory(fresh()).is_category()
