"""Representation rules: structural identity, immutability, and the context that they are told."""

import copy
import pickle
from dataclasses import FrozenInstanceError
from typing import Any, cast, get_type_hints

import pytest

from scalebox.ir.dtypes import (
    CompoundDType,
    DType,
    Layout,
    Level,
    LevelExtent,
    RepresentationRule,
    RepresentationType,
    RepresentationValidationContext,
    Shape,
    Stride,
    Whole,
)

NAN = float("nan")
new_class: Any = type(RepresentationRule)
LINE = Layout(Shape(2), Stride(1))


class Planar(CompoundDType, abstract=False):
    """Two planes under given rules."""

    __slots__ = ()

    def __init__(self, name: str, *rules: RepresentationRule) -> None:
        super().__init__(
            name, simple_types=(DType.Float32, DType.Int32), representation_rules=rules
        )


class Tagged(RepresentationRule):
    """A rule whose extension is whatever it was given."""

    __slots__ = ("_extension",)

    def __init__(self, extension: Any) -> None:
        self._extension = extension

    def structure_extension(self) -> tuple[object, ...]:
        return self._extension

    def validate(self, context: RepresentationValidationContext) -> None:
        pass


class Loose(RepresentationRule):
    """A rule with a dictionary."""

    def __init__(self, note: str) -> None:
        self.note = note

    def structure_extension(self) -> tuple[object, ...]:
        return (self.note,)

    def validate(self, context: RepresentationValidationContext) -> None:
        pass


def _changed(rule: RepresentationRule) -> tuple[object, ...]:
    return ("changed",)


def represent(dtype: DType) -> RepresentationType:
    return RepresentationType(dtype, (LINE, LINE), (LINE,))


def test_r15_the_base_class_is_abstract() -> None:
    with pytest.raises(TypeError, match="must define validate"):
        cast("Any", RepresentationRule)()


def test_r16_class_and_extension_are_the_structure() -> None:
    class Other(Tagged):
        __slots__ = ()

    assert Tagged((1, "a")).structure() == Tagged((1, "a")).structure()
    assert Tagged((1, "a")).structure() != Tagged((1, "b")).structure()
    assert Tagged((1, "a")).structure() != Other((1, "a")).structure()
    assert hash(Tagged((1,)).structure()) == hash(Tagged((1,)).structure())
    assert LevelExtent(0, 32) != LevelExtent(0, 32)


def test_r16_the_structure_is_recorded_once() -> None:
    answers = iter([("first",), ("second",)])

    class Fickle(Tagged):
        __slots__ = ()

        def structure_extension(self) -> tuple[object, ...]:
            return next(answers)

    rule = Fickle(())
    assert rule.structure() is rule.structure()
    assert next(answers) == ("second",)


def test_r17_the_extension_is_empty_by_default() -> None:
    class Plain(RepresentationRule):
        __slots__ = ()

        def validate(self, context: RepresentationValidationContext) -> None:
            pass

    assert Plain().structure_extension() == ()
    assert Plain().structure()[-1] == ()


@pytest.mark.parametrize(
    "value", ["text", "", 0, -(10**30), 1.5, NAN, True, None, Whole, (), ((1, ("a",)),)]
)
def test_r17_permitted_values_are_recorded(value: object) -> None:
    assert Tagged((value,)).structure() == Tagged((value,)).structure()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (True, 1),
        (False, 0),
        (1, 1.0),
        (0.0, -0.0),
        ("1", 1),
        (None, "none"),
        (Whole, "whole"),
        (NAN, "nan"),
        ((), "()"),
        ((1, 2), ((1,), 2)),
        ("int:0x1", 1),
    ],
)
def test_r17_values_of_different_types_stay_apart(first: object, second: object) -> None:
    assert Tagged((first,)).structure() != Tagged((second,)).structure()


@pytest.mark.parametrize(
    "extension", [None, 5, [1], "tag", iter(()), {1}, type("T", (tuple,), {})()]
)
def test_r17_an_extension_that_is_no_exact_tuple_is_a_type_error(extension: object) -> None:
    with pytest.raises(TypeError, match=r"structure_extension\(\) must return a tuple"):
        Tagged(extension)


@pytest.mark.parametrize(
    "value",
    [
        DType.Float32,
        Level(DType.E8M0, 32),
        LevelExtent(0, 1),
        [1],
        {"a": 1},
        {1},
        b"bytes",
        1j,
        type("Text", (str,), {})("a"),
        type("Number", (int,), {})(1),
        type("Pair", (tuple,), {})(),
        (1, [2]),
        object(),
    ],
)
def test_r17_an_unsupported_value_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError, match="must be a str, int, float, bool, None, Whole or a tuple"):
        Tagged((value,))


def test_r17_an_integer_of_any_size_is_recorded() -> None:
    assert Tagged((10**5000,)).structure() != Tagged((10**5000 + 1,)).structure()


def test_r18_a_class_without_validate_is_abstract() -> None:
    class Unfinished(RepresentationRule):
        __slots__ = ()

    with pytest.raises(TypeError, match="must define validate, but Unfinished does not"):
        cast("Any", Unfinished)()


def test_r19_completed_validation_returns_none(fresh: Any) -> None:
    assert LevelExtent(0, 1).validate(context_of(fresh())) is None


def test_r19_what_validate_returns_is_not_looked_at(fresh: Any) -> None:
    class Talkative(Tagged):
        __slots__ = ()

        def validate(self, context: RepresentationValidationContext) -> Any:
            return False

    assert represent(Planar(fresh(), Talkative(()))).size == 2


@pytest.mark.parametrize("name", ["_extension", "note", "structure", "_structure", "extra"])
@pytest.mark.parametrize("rule", [Tagged(()), Loose("a"), LevelExtent(0, 1)])
def test_r20_a_constructed_rule_refuses_assignment_and_deletion(
    rule: RepresentationRule, name: str
) -> None:
    with pytest.raises(AttributeError, match="must stay as it is, for it is sealed"):
        setattr(rule, name, 1)
    with pytest.raises(AttributeError, match="must stay as it is, for it is sealed"):
        delattr(rule, name)


def test_r20_running_the_constructor_again_fails() -> None:
    rule, tagged = LevelExtent(0, 1), Tagged((1,))
    with pytest.raises(AttributeError):
        rule.__init__(1, 2)
    with pytest.raises(AttributeError):
        tagged.__init__((2,))
    assert (rule.level, rule.extent) == (0, 1)
    assert tagged.structure_extension() == (1,)


@pytest.mark.parametrize("rule", [Tagged(()), Loose("a"), LevelExtent(0, Whole)])
def test_r21_copies_are_the_rule_itself(rule: RepresentationRule) -> None:
    assert copy.copy(rule) is rule
    assert copy.deepcopy(rule) is rule
    assert copy.deepcopy([rule]) == [rule]


@pytest.mark.parametrize("rule", [Tagged((1, "a")), Loose("a"), LevelExtent(1, Whole)])
def test_r21_a_pickled_rule_loads_as_an_equal_sealed_rule(rule: RepresentationRule) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        loaded = pickle.loads(pickle.dumps(rule, protocol))
        assert type(loaded) is type(rule)
        assert loaded.structure() == rule.structure()
        assert loaded.structure_extension() == rule.structure_extension()
        with pytest.raises(AttributeError):
            loaded.note = 3


def test_r21_a_pickle_of_another_structure_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pickle.dumps(Tagged((1,)))
    monkeypatch.setattr(Tagged, "structure_extension", _changed)
    with pytest.raises(ValueError, match="must have the structure that its class gives it here"):
        pickle.loads(text)


@pytest.mark.parametrize(
    "member",
    [
        "structure",
        "_structure",
        "__setattr__",
        "__delattr__",
        "__getattribute__",
        "__getattr__",
        "__copy__",
        "__deepcopy__",
        "__class__",
    ],
)
def test_r22_a_rule_class_may_not_shadow_what_the_framework_owns(member: str) -> None:
    namespace: dict[str, Any] = {member: lambda self, *args: None}  # type: ignore[misc]
    with pytest.raises(TypeError, match=f"must leave '{member}' to the framework"):
        new_class("Shadow", (Tagged,), dict(namespace))
    mixin = type("Mixin", (), dict(namespace))
    for bases in ((mixin, Tagged), (Tagged, mixin), (type("Below", (mixin,), {}), Tagged)):
        with pytest.raises(TypeError, match=f"must leave '{member}' to the framework"):
            new_class("Shadow", bases, {})


def test_r22_a_slot_named_like_an_owned_member_is_refused() -> None:
    with pytest.raises(TypeError, match="must leave '_structure' to the framework"):
        new_class("Shadow", (Tagged,), {"__slots__": ("_structure",)})
    with pytest.raises(TypeError, match="must leave '_level' to the framework"):
        new_class("Shadow", (LevelExtent,), {"__slots__": ("_level",)})


@pytest.mark.parametrize("member", ["structure", "_structure", "__deepcopy__", "__class__"])
def test_r22_an_instance_attribute_may_not_shadow_what_the_framework_owns(member: str) -> None:
    class Assigns(Loose):
        def __init__(self) -> None:
            setattr(self, member, lambda: ())

    class Writes(Loose):
        def __init__(self) -> None:
            vars(self)[member] = lambda: ()

    class WritesLate(Loose):
        def structure_extension(self) -> tuple[object, ...]:
            vars(self)[member] = lambda: ()
            return ()

    for make in (Assigns, Writes, lambda: WritesLate("note")):
        with pytest.raises(TypeError, match=f"must leave '{member}' to the framework"):
            make()


def test_r22_a_dictionary_or_mixin_changed_later_hides_nothing() -> None:
    class Mixin:
        pass

    class Mixed(Mixin, Loose):
        pass

    rule = Mixed("a")
    recorded = rule.structure()
    vars(rule)["structure"] = tuple
    vars(rule)["__deepcopy__"] = lambda memo: None  # type: ignore[misc]
    Mixin.structure = tuple  # type: ignore[attr-defined]
    assert rule.structure() is recorded
    assert copy.deepcopy(rule) is rule


@pytest.mark.parametrize("member", ["structure", "_structure", "__setattr__", "__getattr__"])
def test_r22_a_member_cannot_be_patched_onto_a_class(member: str) -> None:
    for cls in (RepresentationRule, LevelExtent, Tagged):
        with pytest.raises(AttributeError):
            setattr(cls, member, None)
        with pytest.raises(AttributeError):
            delattr(cls, member)


def test_r22_own_members_and_passive_mixins_are_welcome() -> None:
    class Speaks:
        __slots__ = ()

        def speak(self) -> str:
            return type(self).__name__

    class Speaking(Speaks, Tagged):
        __slots__ = ()

    assert Speaking(()).speak() == "Speaking"


def context_of(name: str) -> RepresentationValidationContext:
    seen: list[RepresentationValidationContext] = []

    class Sees(Tagged):
        __slots__ = ()

        def validate(self, context: RepresentationValidationContext) -> None:
            seen.append(context)

    represent(Planar(name, Sees(()), Sees(())))
    assert seen[0] is seen[1]
    return seen[0]


def test_r23_the_context_is_a_protocol_of_five_fields() -> None:
    hints = {
        name: get_type_hints(member.fget)["return"]
        for name, member in vars(RepresentationValidationContext).items()
        if isinstance(member, property)
    }
    assert hints == {
        "logical_dtype": DType,
        "storage_dtypes": tuple[DType, ...],
        "placement_layouts": tuple[Layout, ...],
        "adjacent_layouts": tuple[Layout, ...],
        "level_shapes": tuple[Shape, ...],
    }
    assert get_type_hints(RepresentationRule.validate) == {
        "context": RepresentationValidationContext,
        "return": type(None),
    }


def test_r24_the_context_is_frozen_and_holds_tuples(fresh: Any) -> None:
    context = context_of(fresh())
    for name in ("storage_dtypes", "placement_layouts", "adjacent_layouts", "level_shapes"):
        assert type(getattr(context, name)) is tuple
    for name in ("logical_dtype", "level_shapes", "extra"):
        with pytest.raises(FrozenInstanceError):
            setattr(context, name, ())
        with pytest.raises(FrozenInstanceError):
            delattr(context, name)


def test_r25_the_context_holds_what_was_validated_and_all_rules_get_the_same(fresh: Any) -> None:
    name = fresh()
    context = context_of(name)
    assert context.logical_dtype is DType.from_name(name)
    assert context.storage_dtypes == (DType.Float32, DType.Int32)
    assert context.placement_layouts == (LINE, LINE)
    assert context.adjacent_layouts == (LINE,)
    assert context.level_shapes == (Shape(2), Shape(2))


def test_r25_r27_rules_run_after_universal_validation_in_order(fresh: Any) -> None:
    calls: list[str] = []

    class Logs(Loose):
        def validate(self, context: RepresentationValidationContext) -> None:
            calls.append(self.note)

    dtype = Planar(fresh(), Logs("first"), Logs("second"))
    with pytest.raises(ValueError, match="must have 2 planes"):
        RepresentationType(dtype, (LINE,), ())
    assert calls == []
    represent(dtype)
    assert calls == ["first", "second"]


def test_r26_a_rule_leaves_descriptors_layouts_and_context_unchanged(fresh: Any) -> None:
    context = context_of(fresh())
    before = (context.logical_dtype.structure(), pickle.dumps(context.placement_layouts))
    LevelExtent(0, 1).validate(context)
    assert before == (context.logical_dtype.structure(), pickle.dumps(context.placement_layouts))


def test_r27_a_rule_s_exception_passes_through_and_later_rules_do_not_run(fresh: Any) -> None:
    class UnusualError(Exception):
        pass

    class Fails(Tagged):
        __slots__ = ()

        def validate(self, context: RepresentationValidationContext) -> None:
            raise UnusualError

    class NeverRuns(Tagged):
        __slots__ = ()

        def validate(self, context: RepresentationValidationContext) -> None:
            raise AssertionError

    with pytest.raises(UnusualError):
        represent(Planar(fresh(), Fails(()), NeverRuns(())))


def test_a_rule_is_used_by_more_than_one_dtype(fresh: Any) -> None:
    rule = LevelExtent(0, 1)
    first, second = Planar(fresh(), rule), Planar(fresh(), rule)
    assert first.representation_rules[0] is second.representation_rules[0]
    assert represent(first) != represent(second)
