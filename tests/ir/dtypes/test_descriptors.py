"""What every descriptor is: an identity with a name, a kind, categories above it, and a seal."""

import copy
import pickle
from typing import Any, cast

import pytest

from scalebox.ir import dtypes
from scalebox.ir.dtypes import (
    BlockScaledDType,
    CompoundDType,
    DType,
    DTypeCategory,
    SimpleDType,
)
from scalebox.ir.errors import UserError

CATEGORIES = {
    # name: supertype, opaque storage
    "Any": (None, True),
    "Floating": ("Any", True),
    "Integer": ("Any", False),
}
SIMPLE = {
    # name: bits, supertype
    "Bool": (8, "Any"),
    "Int32": (32, "Integer"),
    "Int8": (8, "Integer"),
    "Float32": (32, "Floating"),
    "Float64": (64, "Floating"),
    "E8M0": (8, "Floating"),
    "E5M2": (8, "Floating"),
    "E4M3": (8, "Floating"),
    "E3M2": (6, "Floating"),
    "E2M3": (6, "Floating"),
    "E2M1": (4, "Floating"),
}
BLOCK_SCALED = (
    "MXFP8_E4M3",
    "MXFP8_E5M2",
    "MXFP6_E3M2",
    "MXFP6_E2M3",
    "MXFP4",
    "MXINT8",
    "NVFP4",
)
OURS = {
    "Float16": (16, "Floating"),
    "BFloat16": (16, "Floating"),
    "E1M2": (4, "Floating"),
    "Int4": (4, "Integer"),
    "UInt4": (4, "Integer"),
    "UInt8": (8, "Integer"),
    "Int16": (16, "Integer"),
    "UInt16": (16, "Integer"),
    "UInt32": (32, "Integer"),
    "Int64": (64, "Integer"),
    "UInt64": (64, "Integer"),
    "Index": (64, "Integer"),
    "TaskId": (64, "Any"),
}
BUILT_IN = (*CATEGORIES, *SIMPLE, *BLOCK_SCALED)


def built_in(name: str) -> DType:
    return getattr(DType, name)


def test_the_attributes_of_dtype_are_exactly_the_built_in_descriptors() -> None:
    exposed = {name for name, value in vars(DType).items() if isinstance(value, DType)}
    assert exposed == set(BUILT_IN)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_descriptor_is_found_by_its_name(name: str) -> None:
    dtype = built_in(name)
    assert DType.from_name(name) is dtype
    assert dtype.name == dtype.value == name
    assert repr(dtype) == f"{type(dtype).__name__}({name!r})"


@pytest.mark.parametrize("name", CATEGORIES)
def test_a_built_in_category(name: str) -> None:
    supertype, opaque = CATEGORIES[name]
    category = built_in(name)
    assert type(category) is DTypeCategory
    assert (category.is_category(), category.is_simple(), category.is_compound()) == (1, 0, 0)
    assert category.is_opaque_storage() is opaque
    assert category.supertype is (supertype and built_in(supertype))
    assert not hasattr(category, "bits")


@pytest.mark.parametrize("name", [*SIMPLE, *OURS])
def test_a_simple_dtype_has_its_width_and_category(name: str) -> None:
    bits, supertype = (SIMPLE | OURS)[name]
    dtype = SimpleDType.from_name(name)
    assert type(dtype) is SimpleDType
    assert (dtype.is_category(), dtype.is_simple(), dtype.is_compound()) == (0, 1, 0)
    assert not dtype.is_opaque_storage()
    assert dtype.bits == bits
    assert dtype.supertype is built_in(supertype)
    assert dtype.representation_rules == ()


@pytest.mark.parametrize("name", OURS)
def test_a_dtype_of_the_machine_is_no_attribute_of_dtype_but_of_the_package(name: str) -> None:
    assert getattr(dtypes, name) is DType.from_name(name)
    assert not hasattr(DType, name)


def test_categories_above_come_nearest_first() -> None:
    assert DType.Float32.supertypes() == (DType.Floating, DType.Any)
    assert DType.Any.supertypes() == ()


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ("Float32", "Float32", True),
        ("Float32", "Floating", True),
        ("Float32", "Any", True),
        ("Float32", "Integer", False),
        ("Floating", "Float32", False),
        ("MXFP4", "Any", True),
        ("MXFP4", "Floating", False),
    ],
)
def test_is_subtype_of_is_reflexive_and_follows_the_categories(
    lower: str, upper: str, expected: bool
) -> None:
    assert built_in(lower).is_subtype_of(built_in(upper)) is expected


def test_is_subtype_of_asks_for_a_descriptor() -> None:
    with pytest.raises(TypeError, match="must be given a DType, not the string 'Floating'"):
        DType.Float32.is_subtype_of(cast("Any", "Floating"))


def test_a_new_category_and_a_simple_dtype_in_it_join_the_hierarchy(fresh: Any) -> None:
    category = DTypeCategory(fresh(), supertype=DType.Floating, opaque_storage=True)
    dtype = SimpleDType(fresh(), bits=24, supertype=category)
    assert category.is_opaque_storage()
    assert dtype.supertypes() == (category, DType.Floating, DType.Any)
    assert dtype in DType.registered()
    assert dtype in SimpleDType.registered()
    assert dtype not in DTypeCategory.registered()
    assert not hasattr(DType, dtype.name)


@pytest.mark.parametrize("bits", [0, -1, True, 8.0, "8", None])
def test_a_width_must_be_a_positive_integer(bits: Any, fresh: Any) -> None:
    name = fresh()
    with pytest.raises(ValueError, match="bits of a simple dtype must be a positive integer"):
        SimpleDType(name, bits=bits, supertype=DType.Floating)
    assert SimpleDType(name, bits=8, supertype=DType.Floating).bits == 8


def test_an_integer_subclass_is_stored_as_an_exact_integer(fresh: Any) -> None:
    class Width(int):
        pass

    dtype = SimpleDType(fresh(), bits=Width(7), supertype=DType.Any)
    assert type(dtype.bits) is int
    assert dtype.bits == 7


@pytest.mark.parametrize("supertype", [None, DType.Float32, DType.MXFP4, "Any", 3])
def test_a_simple_dtype_needs_a_category_and_says_so_before_its_width(
    supertype: Any, fresh: Any
) -> None:
    with pytest.raises(TypeError, match="supertype of a dtype must be a DTypeCategory, not"):
        SimpleDType(fresh(), bits=0, supertype=supertype)


@pytest.mark.parametrize("supertype", [DType.Float32, DType.MXFP4, "Any"])
def test_a_category_lies_in_none_or_a_category(supertype: Any, fresh: Any) -> None:
    with pytest.raises(TypeError, match="must be None or a DTypeCategory, not"):
        DTypeCategory(fresh(), supertype=supertype)


def test_opaque_storage_must_be_a_bool(fresh: Any) -> None:
    with pytest.raises(TypeError, match="opaque_storage must be True or False, not 1"):
        DTypeCategory(fresh(), opaque_storage=cast("Any", 1))


def test_a_direct_child_of_dtype_is_of_no_kind_and_refused(fresh: Any) -> None:
    class Rootless(DType, abstract=False):
        __slots__ = ()

    name = fresh()
    with pytest.raises(TypeError, match="Rootless must derive from DTypeCategory, SimpleDType or"):
        Rootless(name)
    with pytest.raises(LookupError):
        DType.from_name(name)


def test_lookup_is_narrowed_to_the_class_asked() -> None:
    assert BlockScaledDType.from_name("MXFP4") is DType.MXFP4
    assert CompoundDType.from_name("MXFP4") is DType.MXFP4
    with pytest.raises(LookupError, match="'Floating' must name a SimpleDType, not DTypeCategory"):
        SimpleDType.from_name("Floating")
    with pytest.raises(
        LookupError, match="'Nothing' must name a registered DTypeCategory"
    ) as error:
        DTypeCategory.from_name("Nothing")
    assert "Any, Floating" in cast("UserError", error.value).render()


@pytest.mark.parametrize("name", [None, 3, b"Float32", ["Float32"]])
def test_lookup_asks_for_a_string(name: Any) -> None:
    with pytest.raises(TypeError, match="dtype's name must be a string"):
        DType.from_name(name)


def test_a_name_that_is_a_string_subclass_runs_no_code_of_its_own() -> None:
    class Hostile(str):
        __slots__ = ()

        def __hash__(self) -> int:
            raise AssertionError

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        def __str__(self) -> str:
            raise AssertionError

    assert DType.from_name(Hostile("Float32")) is DType.Float32


def test_registered_is_a_snapshot(fresh: Any) -> None:
    before = DType.registered()
    SimpleDType(fresh(), bits=3, supertype=DType.Any)
    assert len(DType.registered()) == len(before) + 1
    assert DType.registered()[: len(before)] == before


@pytest.mark.parametrize("name", BUILT_IN)
def test_equality_and_hash_are_those_of_the_object(name: str) -> None:
    dtype = built_in(name)
    assert [other for other in BUILT_IN if built_in(other) == dtype] == [name]
    assert hash(dtype) == object.__hash__(dtype)


@pytest.mark.parametrize("name", ["name", "bits", "_bits", "_structure", "extra", "__class__"])
def test_a_registered_descriptor_refuses_assignment_and_deletion(name: str) -> None:
    for dtype in (DType.Float32, DType.Floating, DType.MXFP4):
        with pytest.raises(AttributeError, match="must stay as it is, for it is sealed"):
            setattr(dtype, name, 1)
        with pytest.raises(AttributeError, match="must stay as it is, for it is sealed"):
            delattr(dtype, name)


def test_running_a_constructor_again_changes_nothing() -> None:
    with pytest.raises(AttributeError):
        DType.E4M3.__init__("E4M3", bits=4, supertype=DType.Any)
    assert DType.E4M3.bits == 8
    assert DType.E4M3.supertype is DType.Floating


@pytest.mark.parametrize("name", [*BUILT_IN, *OURS])
def test_copies_and_pickles_are_the_descriptor_itself(name: str) -> None:
    dtype = DType.from_name(name)
    assert copy.copy(dtype) is dtype
    assert copy.deepcopy(dtype) is dtype
    assert copy.deepcopy([dtype, {"key": dtype}]) == [dtype, {"key": dtype}]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(dtype, protocol)) is dtype


@pytest.mark.parametrize("name", ["Float32", "Floating", "MXFP4", "Bool"])
def test_the_built_in_names_are_frozen_also_on_subclasses(name: str) -> None:
    class Extension(SimpleDType, abstract=False):
        __slots__ = ()

    original = built_in(name)
    for cls in (DType, SimpleDType, BlockScaledDType, Extension):
        with pytest.raises(AttributeError):
            setattr(cls, name, DType.Any)
        with pytest.raises(AttributeError):
            delattr(cls, name)
    assert built_in(name) is original is getattr(Extension, name)


def test_no_later_descriptor_becomes_an_attribute_of_a_framework_class(fresh: Any) -> None:
    dtype = SimpleDType(fresh(), bits=16, supertype=DType.Floating)
    for cls in (DType, DTypeCategory, SimpleDType, CompoundDType, BlockScaledDType):
        with pytest.raises(AttributeError, match="must stay as they are"):
            setattr(cls, dtype.name, dtype)
        assert not hasattr(cls, dtype.name)


def test_every_error_is_a_user_error(fresh: Any) -> None:
    for wrong in (
        lambda: SimpleDType("", bits=8, supertype=DType.Any),
        lambda: DType.from_name("Nothing"),
        lambda: setattr(DType.Float32, "bits", 3),
        lambda: type("Shadow", (SimpleDType,), {"bits": 3}),
    ):
        with pytest.raises(UserError):
            wrong()
