"""Compound dtypes: an ordered storage schema and rules, owned by the descriptor."""

import pickle
from typing import Any, cast

import pytest

from scalebox.ir.dtypes import (
    CompoundDType,
    DType,
    DTypeCategory,
    Generic,
    LevelExtent,
    RepresentationRule,
    RepresentationValidationContext,
    SimpleDType,
    Subtensor,
    TensorRepresentation,
)
from scalebox.ir.layout import Layout, Shape, Stride

PAIR = (DType.Float32, DType.Int32)


class Planar(CompoundDType, abstract=False):
    """An extension written with public names only."""

    __slots__ = ()


class Silent(RepresentationRule):
    """A rule that accepts everything."""

    __slots__ = ()

    def validate(self, context: RepresentationValidationContext) -> None:
        pass


def leaked(cls: type[DType], name: str, **keywords: Any) -> DType:
    """Return a descriptor whose constructor failed after its base had finished."""
    kept: list[DType] = []

    def init(self: DType, *args: Any, **kw: Any) -> None:
        cls.__init__(self, *args, **kw)
        kept.append(self)
        raise RuntimeError

    metaclass: Any = type(cls)
    failing = metaclass("Failing", (cls,), {"__init__": init, "__slots__": ()}, abstract=False)
    with pytest.raises(RuntimeError):
        failing(name, **keywords)
    return kept[0]


def test_r1_a_compound_class_is_abstract_unless_it_says_otherwise(fresh: Any) -> None:
    class Abstract(CompoundDType):
        __slots__ = ()

    class Below(Planar):
        __slots__ = ()

    for cls in (DType, CompoundDType, Abstract, Below):
        with pytest.raises(TypeError, match=f"but {cls.__name__} is abstract"):
            cast("Any", cls)("never", "looked", at=object())
    assert Planar(fresh(), simple_types=PAIR).is_compound()


def test_r1_the_constructor_takes_a_name_and_keywords(fresh: Any) -> None:
    make: Any = Planar
    name = fresh()
    for wrong in (
        lambda: make(name),
        lambda: make(name, PAIR),
        lambda: make(name, None, simple_types=PAIR),
        lambda: make(name, simple_types=PAIR, planes=PAIR),
    ):
        with pytest.raises(TypeError):
            wrong()
    assert Planar(name, simple_types=PAIR).name == name


@pytest.mark.parametrize("name", ["", None, 3, b"name", ("a",), type("Sub", (str,), {})("")])
def test_r2_a_name_that_is_no_non_empty_string_is_a_value_error(name: Any) -> None:
    with pytest.raises(ValueError, match="name must be a non-empty string"):
        Planar(name, supertype=cast("Any", "bad"), simple_types=cast("Any", None))


def test_r2_a_taken_name_is_found_out_last(fresh: Any) -> None:
    with pytest.raises(ValueError, match="'Float32' is registered already"):
        Planar("Float32", simple_types=PAIR)
    with pytest.raises(TypeError):
        Planar("Float32", simple_types=PAIR, representation_rules=cast("Any", [1]))
    name = fresh()
    first = Planar(name, simple_types=PAIR)
    with pytest.raises(ValueError, match="registered already"):
        SimpleDType(name, bits=8, supertype=DType.Any)
    assert DType.from_name(name) is first


def test_r2_a_string_subclass_is_reduced_to_a_plain_string(fresh: Any) -> None:
    class Name(str):
        __slots__ = ()

        def __hash__(self) -> int:
            raise AssertionError

    text = fresh()
    dtype = Planar(Name(text), simple_types=PAIR)
    assert type(dtype.name) is str
    assert DType.from_name(text) is dtype


def test_r3_a_supertype_is_optional_and_none_by_default(fresh: Any) -> None:
    assert Planar(fresh(), simple_types=PAIR).supertype is None
    assert Planar(fresh(), supertype=DType.Integer, simple_types=PAIR).supertype is DType.Integer


def test_r4_planes_come_from_any_iterable_in_order(fresh: Any) -> None:
    planes = (DType.Int8, DType.Float32)
    for iterable in (
        planes,
        list(planes),
        iter(planes),
        (p for p in planes),
        dict.fromkeys(planes),
    ):
        dtype = Planar(fresh(), simple_types=iterable)
        assert type(dtype.simple_types) is tuple
        assert dtype.simple_types == planes


def test_r4_planes_may_repeat(fresh: Any) -> None:
    assert Planar(fresh(), simple_types=[DType.Int8] * 3).simple_types == (DType.Int8,) * 3


def test_r5_rules_keep_their_order_and_identity(fresh: Any) -> None:
    rules = [Silent(), LevelExtent(0, 2), Silent()]
    dtype = Planar(fresh(), simple_types=PAIR, representation_rules=iter(rules))
    assert type(dtype.representation_rules) is tuple
    assert [id(rule) for rule in dtype.representation_rules] == [id(rule) for rule in rules]
    assert Planar(fresh(), simple_types=PAIR).representation_rules == ()


def test_r6_the_caller_s_collections_are_copied(fresh: Any) -> None:
    planes, rules = list(PAIR), [Silent()]
    dtype = Planar(fresh(), simple_types=planes, representation_rules=rules)
    structure, text = dtype.structure(), pickle.dumps(dtype)
    planes[0] = DType.Int8
    planes.append(DType.Int8)
    rules.clear()
    assert dtype.simple_types == PAIR
    assert dtype.num_carriers == 2
    assert len(dtype.representation_rules) == 1
    assert dtype.structure() == structure
    assert pickle.loads(text) is dtype


@pytest.mark.parametrize("supertype", [DType.Float32, DType.MXFP4, DTypeCategory, "Any", 0, False])
def test_r7_a_supertype_must_be_none_or_a_category(supertype: Any, fresh: Any) -> None:
    name = fresh()
    with pytest.raises(TypeError, match="must be None or a DTypeCategory, not"):
        Planar(name, supertype=supertype, simple_types=cast("Any", None))
    assert Planar(name, simple_types=PAIR).name == name


def test_r7_an_unregistered_category_is_both_a_type_and_a_value_error(fresh: Any) -> None:
    category = leaked(DTypeCategory, fresh())
    name = fresh()
    for error in (TypeError, ValueError):
        with pytest.raises(error, match="must be a registered dtype, but Failing"):
            Planar(name, supertype=cast("Any", category), simple_types=PAIR)
    assert Planar(name, simple_types=PAIR).name == name


@pytest.mark.parametrize(
    "planes",
    [
        None,
        3,
        DType.Float32,
        "Float32",
        [DType.Float32, DType.Floating],
        [DType.MXFP4],
        [SimpleDType],
        [None],
    ],
)
def test_r8_planes_must_be_an_iterable_of_simple_dtypes(planes: Any, fresh: Any) -> None:
    name = fresh()
    with pytest.raises(TypeError, match=r"simple_types(\[\d\])? must be"):
        Planar(name, simple_types=planes)
    assert Planar(name, simple_types=PAIR).name == name


def test_r8_an_unregistered_plane_is_both_a_type_and_a_value_error(fresh: Any) -> None:
    plane = leaked(SimpleDType, fresh(), bits=8, supertype=DType.Any)
    for error in (TypeError, ValueError):
        with pytest.raises(error, match=r"simple_types\[1\] must be a registered dtype"):
            Planar(fresh(), simple_types=[DType.Float32, cast("Any", plane)])


@pytest.mark.parametrize("planes", [(), [], iter(()), "", {}])
def test_r9_no_planes_are_a_value_error(planes: Any, fresh: Any) -> None:
    name = fresh()
    with pytest.raises(ValueError, match="simple_types must hold at least one plane"):
        Planar(name, simple_types=planes)
    assert Planar(name, simple_types=PAIR).name == name


@pytest.mark.parametrize("rules", [None, 3, Silent(), [Silent], [None], [DType.Any], "x"])
def test_r10_rules_must_be_an_iterable_of_rules(rules: Any, fresh: Any) -> None:
    name = fresh()
    with pytest.raises(TypeError, match=r"representation_rules(\[\d\])? must be"):
        Planar(name, simple_types=PAIR, representation_rules=rules)
    assert Planar(name, simple_types=PAIR).name == name


def test_r10_a_virtual_subclass_is_no_rule(fresh: Any) -> None:
    class Impostor:
        pass

    Silent.register(Impostor)
    assert isinstance(Impostor(), RepresentationRule)
    with pytest.raises(TypeError, match="must be a RepresentationRule, not an object of type"):
        Planar(fresh(), simple_types=PAIR, representation_rules=[cast("Any", Impostor())])


def test_r10_a_rule_that_leaked_from_its_constructor_is_refused(fresh: Any) -> None:
    kept: list[RepresentationRule] = []

    class Leaky(Silent):
        __slots__ = ()

        def __init__(self) -> None:
            kept.append(self)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        Leaky()
    with pytest.raises(TypeError, match="must be fully constructed"):
        Planar(fresh(), simple_types=PAIR, representation_rules=kept)


@pytest.mark.parametrize("attribute", ["simple_types", "num_carriers", "representation_rules"])
def test_r12_schema_rules_and_count_are_read_only(attribute: str, fresh: Any) -> None:
    dtype = Planar(fresh(), simple_types=PAIR)
    assert (dtype.simple_types, dtype.num_carriers, dtype.representation_rules) == (PAIR, 2, ())
    with pytest.raises(AttributeError):
        setattr(dtype, attribute, ())
    with pytest.raises(AttributeError):
        delattr(dtype, attribute)


def test_r12_one_plane_is_compound_too(fresh: Any) -> None:
    dtype = Planar(fresh(), simple_types=[DType.Float32])
    assert (dtype.is_compound(), dtype.is_simple(), dtype.is_category()) == (True, False, False)
    assert dtype.num_carriers == 1


def test_r13_plane_i_is_stored_as_the_ith_dtype(fresh: Any) -> None:
    dtype = Planar(fresh(), simple_types=PAIR)
    line = Layout(Shape(2), Stride(1))
    planes = [Subtensor(plane, Generic([1, 2], dtype=plane), 0, line) for plane in PAIR]
    assert TensorRepresentation(dtype, planes, [line]).subtensors == tuple(planes)
    with pytest.raises(ValueError, match="dtype of plane 0 must be Float32, not Int32"):
        TensorRepresentation(dtype, planes[::-1], [line])


def test_r14_no_carrier_stores_a_compound_dtype(fresh: Any) -> None:
    for dtype in (DType.MXFP4, DType.NVFP4, Planar(fresh(), simple_types=PAIR)):
        with pytest.raises(ValueError, match=f"not the compound {dtype.name}: each of its"):
            Generic([1], dtype=dtype)
        assert Generic([1.0]).supports_storage_dtype(dtype) is False


def test_a_constructor_must_call_the_one_of_its_base(fresh: Any) -> None:
    class Skips(CompoundDType, abstract=False):
        __slots__ = ()

        def __init__(self, name: str) -> None:
            DType.__init__(self, name)

    class SkipsAll(SimpleDType, abstract=False):
        __slots__ = ()

        def __init__(self) -> None:
            pass

    name = fresh()
    with pytest.raises(TypeError, match="constructor of Skips must call the one of its base"):
        Skips(name)
    with pytest.raises(TypeError, match="constructor of SkipsAll must call the one of its base"):
        SkipsAll()
    with pytest.raises(LookupError):
        DType.from_name(name)


def test_a_constructor_may_call_its_base_only_once(fresh: Any) -> None:
    class Twice(CompoundDType, abstract=False):
        __slots__ = ()

        def __init__(self, name: str) -> None:
            super().__init__(name, simple_types=PAIR)
            super().__init__(name, simple_types=[DType.Int8])

    with pytest.raises(AttributeError, match="only once"):
        Twice(fresh())


def test_a_constructor_may_try_its_base_again_after_an_error(fresh: Any) -> None:
    class Retries(CompoundDType, abstract=False):
        __slots__ = ()

        def __init__(self, name: str, planes: Any) -> None:
            try:
                super().__init__(name, simple_types=planes)
            except TypeError:
                super().__init__(name, simple_types=PAIR)

    assert Retries(fresh(), None).simple_types == PAIR


def test_the_structure_holds_the_planes_then_the_rules(fresh: Any) -> None:
    rule = LevelExtent(0, 2)
    dtype = Planar(fresh(), simple_types=PAIR, representation_rules=[rule])
    planes = tuple((f"ref:{plane.name}", *plane.structure()) for plane in PAIR)
    assert dtype.structure() == ("DType", "none", "CompoundDType", planes, (rule.structure(),), ())
