"""What the framework owns: no class, mixin or instance of an extension may redefine or hide it."""

import pickle
from typing import Any

import pytest

from scalebox.ir.dtypes import (
    BlockScaledDType,
    CompoundDType,
    DType,
    DTypeCategory,
    Level,
    SimpleDType,
)

new_class: Any = type(DType)

EVERY_KIND = (
    "_name",
    "_structure",
    "_supertype",
    "name",
    "value",
    "supertype",
    "representation_rules",
    "structure",
    "supertypes",
    "is_subtype_of",
    "is_category",
    "is_simple",
    "is_compound",
    "is_opaque_storage",
    "registered",
    "from_name",
    "Float32",
    "MXFP4",
)
OF_KIND: dict[type, tuple[str, ...]] = {
    DTypeCategory: ("_opaque_storage",),
    SimpleDType: ("_bits", "bits"),
    CompoundDType: ("_simple_types", "simple_types", "num_carriers", "_representation_rules"),
    BlockScaledDType: ("_element", "_levels", "element", "levels", "num_axes", "bits_per_element"),
}
HOOKS = (
    "__getattribute__",
    "__getattr__",
    "__setattr__",
    "__delattr__",
    "__eq__",
    "__hash__",
    "__copy__",
    "__deepcopy__",
    "__reduce__",
    "__reduce_ex__",
    "__class__",
)
PAIRS = [
    (kind, member)
    for kind, own in OF_KIND.items()
    for member in (*EVERY_KIND, *HOOKS, *own, *(OF_KIND[CompoundDType] if "levels" in own else ()))
]


def make(cls: Any, name: str, block: int) -> DType:
    """Construct a descriptor of an extension of any kind."""
    if issubclass(cls, BlockScaledDType):
        return cls(name, element=DType.E4M3, levels=[Level(DType.E8M0, block)])
    if issubclass(cls, CompoundDType):
        return cls(name, simple_types=[DType.Float32])
    if issubclass(cls, SimpleDType):
        return cls(name, bits=8, supertype=DType.Floating)
    return cls(name)


@pytest.mark.parametrize(("kind", "member"), PAIRS)
def test_a_class_body_may_not_redefine_it(kind: type, member: str) -> None:
    for value in (property(id), 4, lambda self: None):  # type: ignore[misc]
        with pytest.raises(TypeError, match=f"must leave '{member}' to the framework"):
            new_class("Shadow", (kind,), {member: value}, abstract=False)


@pytest.mark.parametrize(("kind", "member"), PAIRS)
def test_no_base_of_any_kind_may_bring_it_in(kind: type, member: str) -> None:
    mixin = type("Mixin", (), {member: 4})
    deep = type("Deep", (mixin,), {})
    for bases in ((mixin, kind), (kind, mixin), (deep, kind)):
        with pytest.raises(TypeError, match=f"must leave '{member}' to the framework"):
            new_class("Mixed", bases, {}, abstract=False)


@pytest.mark.parametrize(("kind", "member"), PAIRS)
def test_it_cannot_be_patched_onto_a_class_later(kind: type, member: str) -> None:
    extension = new_class("Extension", (kind,), {}, abstract=False)
    for cls in (kind, extension):
        with pytest.raises(AttributeError):
            setattr(cls, member, property(id))
        with pytest.raises(AttributeError):
            delattr(cls, member)


@pytest.mark.parametrize(("kind", "member"), PAIRS)
def test_an_instance_may_not_hide_it(kind: type, member: str, fresh: Any, fresh_block: Any) -> None:
    def assign(self: Any, *args: Any, **keywords: Any) -> None:
        kind.__init__(self, *args, **keywords)
        setattr(self, member, 4)

    def write(self: Any, *args: Any, **keywords: Any) -> None:
        vars(self)[member] = 4
        kind.__init__(self, *args, **keywords)

    def extend(self: Any) -> tuple[object, ...]:
        vars(self)[member] = 4
        return ()

    name, block = fresh(), fresh_block()
    for namespace in ({"__init__": assign}, {"__init__": write}, {"structure_extension": extend}):
        cls = new_class("Hiding", (kind,), dict[str, Any](namespace), abstract=False)
        with pytest.raises(TypeError, match=f"must leave '{member}' to the framework"):
            make(cls, name, block)
    plain = new_class("Plain", (kind,), {}, abstract=False)
    assert make(plain, name, block) is DType.from_name(name)


@pytest.mark.parametrize("kind", OF_KIND)
def test_a_dictionary_or_mixin_changed_after_the_fact_hides_nothing(
    kind: type, fresh: Any, fresh_block: Any
) -> None:
    mixin: Any = type("Mixin", (), {})
    cls = new_class("Mixed", (mixin, kind), {}, abstract=False)
    dtype = make(cls, fresh(), fresh_block())
    structure, is_simple = dtype.structure(), dtype.is_simple()
    for member in ("structure", "is_simple", "name", "__reduce_ex__", "__deepcopy__"):
        vars(dtype)[member] = 4
        setattr(mixin, member, 4)
    assert dtype.structure() is structure
    assert dtype.is_simple() is is_simple
    assert DType.from_name(dtype.name) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_an_owned_field_cannot_be_replaced_by_a_constructor(fresh: Any) -> None:
    class Renames(SimpleDType, abstract=False):
        __slots__ = ()

        def __init__(self, name: str) -> None:
            super().__init__(name, bits=8, supertype=DType.Floating)
            self._name = "Float32"

    name = fresh()
    with pytest.raises(TypeError, match="must leave '_name' to the framework"):
        Renames(name)
    assert SimpleDType(name, bits=8, supertype=DType.Floating).name == name


def test_the_slots_of_an_extension_are_owned_against_its_own_subclasses(fresh: Any) -> None:
    class Variant(SimpleDType, abstract=False):
        __slots__ = ("_variant",)

        def __init__(self, name: str) -> None:
            super().__init__(name, bits=8, supertype=DType.Floating)
            self._variant = "own"

    for namespace in ({"__slots__": ("_variant",)}, {"_variant": 4}):
        with pytest.raises(TypeError, match="must leave '_variant' to the framework"):
            new_class("Deeper", (Variant,), dict[str, Any](namespace), abstract=False)
    with pytest.raises(AttributeError):
        setattr(Variant, "_variant", 4)  # noqa: B010 - protected
    deeper = new_class("Deeper", (Variant,), {"__slots__": ()}, abstract=False)
    assert deeper(fresh())._variant == "own"


def test_own_methods_properties_mixins_slots_and_dictionaries_are_welcome(fresh: Any) -> None:
    class Describes:
        __slots__ = ()

        def describe(self: Any) -> str:
            return f"{self.name}: {self.note}, {self.bits} bits"

    class Slotted(Describes, SimpleDType, abstract=False):
        __slots__ = ("_note",)

        def __init__(self, name: str, note: str) -> None:
            super().__init__(name, bits=8, supertype=DType.Floating)
            self._note = note

        @property
        def note(self) -> str:
            return self._note

    class Loose(Describes, SimpleDType, abstract=False):
        def __init__(self, name: str, note: str) -> None:
            self.note = "a first draft"
            super().__init__(name, bits=8, supertype=DType.Floating)
            self.note = note
            self.passing = 1
            del self.passing

        def structure_extension(self) -> tuple[object, ...]:
            return (self.note,)

        def __repr__(self) -> str:
            return "my own"

    for cls in (Slotted, Loose):
        dtype = cls(fresh(), "mine")
        assert dtype.describe() == f"{dtype.name}: mine, 8 bits"
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        for change in (lambda d: setattr(d, "note", 1), lambda d: setattr(d, "other", 1)):  # type: ignore[misc]
            with pytest.raises(AttributeError):
                change(dtype)


def test_a_class_of_an_extension_stays_its_own(fresh: Any) -> None:
    class Extension(SimpleDType, abstract=False):
        __slots__ = ()
        limit = 3

    Extension.limit = 4
    assert Extension(fresh(), bits=8, supertype=DType.Any).limit == 4
    for cls in (DType, SimpleDType, BlockScaledDType):
        with pytest.raises(AttributeError, match="must stay as they are"):
            cls.limit = 4


def test_a_constructor_must_give_a_new_object(fresh: Any) -> None:
    class Reuses(SimpleDType, abstract=False):
        __slots__ = ()

        def __new__(cls, name: str) -> Any:
            return DType.Float32

        def __init__(self, name: str) -> None:
            pass

    with pytest.raises(TypeError, match=r"Reuses\.__new__ must return a new Reuses"):
        Reuses(fresh())


def test_a_constructor_must_not_finish_an_object_a_second_time(fresh: Any) -> None:
    kept: list[Any] = []

    class Kept(SimpleDType, abstract=False):
        __slots__ = ()

        def __new__(cls, name: str) -> Any:
            return kept[0] if kept else super().__new__(cls)

        def __init__(self, name: str) -> None:
            if not kept:
                super().__init__(name, bits=8, supertype=DType.Any)
                kept.append(self)

    name = fresh()
    made = Kept(name)
    structure = made.structure()
    with pytest.raises(TypeError, match=r"Kept\.__new__ must return a new Kept"):
        Kept(fresh())
    assert DType.from_name(name) is made
    assert made.structure() is structure
