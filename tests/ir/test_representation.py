"""Representations: universal validation in order, then the dtype's rules; MX and NVFP4 tensors."""

import gc
import pickle
import weakref
from typing import Any, cast

import pytest

from scalebox.ir.carriers import Carrier
from scalebox.ir.dtypes import (
    CompoundDType,
    DType,
    Generic,
    Layout,
    LevelExtent,
    RepresentationRule,
    RepresentationType,
    RepresentationValidationContext,
    Shape,
    SimpleDType,
    Stride,
    Subtensor,
    TensorRepresentation,
)

BILLION = 10**9


class Virtual(Carrier):
    """A carrier of any size without storage."""

    def __init__(self, size: int, dtype: DType) -> None:
        self._size = size
        self._dtype = dtype

    def size(self) -> int:
        return self._size

    def dtype(self) -> DType:
        return self._dtype

    def get_value(self, index: Any) -> Any:
        raise AssertionError


class BelowVirtual(Virtual):
    """Another exact class."""


class NeverReached(RepresentationRule):
    """A rule that universal validation must come before."""

    __slots__ = ()

    def validate(self, context: RepresentationValidationContext) -> None:
        raise AssertionError


class Planar(CompoundDType, abstract=False):
    """A compound of any planes and rules."""

    __slots__ = ()


def layout(shape: Any, stride: Any) -> Layout:
    return Layout(Shape(shape), Stride(stride))


SQUARE = layout((2, 2), (1, 2))
PAIR = layout((2,), (1,))
EDGE = layout((2, 2), (0, 1))
GUARDED = Planar(
    "RepresentationGuarded",
    simple_types=(DType.Float32, DType.Int32),
    representation_rules=[NeverReached()],
)
PLAIN = Planar("RepresentationPlain", simple_types=(DType.Float32, DType.Int32))
GROUPED = Planar(
    "RepresentationGrouped",
    simple_types=(DType.Float32, DType.Int32),
    representation_rules=[LevelExtent(0, 2)],
)


def plane(number: int, **changes: Any) -> Subtensor:
    """Return a valid plane of the dtypes above, with some fields changed."""
    dtype = (DType.Float32, DType.Int32)[number]
    fields = {
        "dtype": dtype,
        "carrier": Virtual((4, 2)[number], dtype),
        "offset": 0,
        "layout": (SQUARE, PAIR)[number],
    }
    return Subtensor(**cast("Any", fields | changes))


def represent(
    dtype: Any = GUARDED, planes: Any = None, edges: Any = (EDGE,)
) -> TensorRepresentation:
    return TensorRepresentation(dtype, [plane(0), plane(1)] if planes is None else planes, edges)


def test_a_valid_representation_keeps_what_it_was_given() -> None:
    planes = [plane(0), plane(1)]
    made = TensorRepresentation(PLAIN, iter(planes), iter([EDGE]))
    assert made.logical_dtype is PLAIN
    assert made.subtensors == tuple(planes)
    assert made.adjacent_layouts == (EDGE,)
    assert made.primary is planes[0]
    assert not made.is_single_subtensor
    assert made.type == RepresentationType(PLAIN, (SQUARE, PAIR), (EDGE,))
    for name in ("logical_dtype", "subtensors", "type", "extra"):
        with pytest.raises(AttributeError):
            setattr(made, name, None)
    again: Any = made
    again.__init__(DType.Float32, [], [])
    assert again.subtensors == tuple(planes)


def test_a_pickled_representation_has_carriers_of_its_own() -> None:
    carrier = Generic([1, 2, 3, 4], dtype=DType.Float32)
    made = TensorRepresentation(DType.Float32, [Subtensor(DType.Float32, carrier, 0, SQUARE)])
    loaded = pickle.loads(pickle.dumps(made))
    assert loaded.type == made.type
    assert [loaded.primary.carrier[index] for index in range(4)] == [1, 2, 3, 4]
    loaded.primary.carrier[0] = 5
    assert carrier[0] == 1


# The order of the checks: of two faults the earlier one is told.
FAULTS: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("planes not iterable", {"planes": 3, "dtype": "x"}, TypeError, "subtensors .* iterable"),
    (
        "edges not iterable",
        {"edges": None, "dtype": "x"},
        TypeError,
        "adjacent layouts .* iterable",
    ),
    ("no dtype", {"dtype": "x", "planes": [1]}, TypeError, "must be a DType, not the string"),
    ("no plane", {"planes": [plane(0), 1], "edges": ()}, TypeError, "Entry 1 must be a Subtensor"),
    ("no schema", {"dtype": DType.Integer, "planes": []}, ValueError, "must have a storage schema"),
    ("plane count", {"planes": [plane(0)], "edges": ()}, ValueError, "must have 2 planes, not 1"),
    ("edge count", {"planes": [plane(0, dtype=1)] * 2, "edges": ()}, ValueError, "1 adjacent lay"),
]
PLANE_FAULTS: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("plane dtype", {"dtype": "x", "carrier": 1}, TypeError, "dtype of plane 1 must be a DType"),
    ("schema", {"dtype": DType.Int8, "carrier": 1}, ValueError, "plane 1 must be Int32, not Int8"),
    ("carrier", {"carrier": 1, "offset": "x"}, TypeError, "of plane 1 must be a Carrier, not 1"),
    (
        "carrier dtype",
        {"carrier": Virtual(2, DType.Int8), "offset": "x"},
        ValueError,
        "carrier of plane 1 must store Int32, not SimpleDType",
    ),
    ("offset float", {"offset": 0.0, "layout": 1}, TypeError, "offset of plane 1 must be an exact"),
    ("offset bool", {"offset": False, "layout": 1}, TypeError, "must be an exact int, not False"),
    ("offset range", {"offset": -1, "layout": 1}, ValueError, "must be 0 or more, not -1"),
    (
        "placement",
        {"layout": 1, "carrier": Virtual(-1, DType.Int32)},
        TypeError,
        "placement of plane 1 must be a Layout",
    ),
    ("size", {"carrier": Virtual(-1, DType.Int32)}, ValueError, "must have a size of 0 or more"),
    (
        "bounds",
        {"offset": 1, "carrier": BelowVirtual(2, DType.Int32)},
        ValueError,
        "must end within its carrier of 2 slots, not at 3",
    ),
    (
        "class",
        {"carrier": BelowVirtual(2, DType.Int32)},
        TypeError,
        "exactly one class, but plane 1 has a BelowVirtual and plane 0 a Virtual",
    ),
]
EDGE_FAULTS: list[tuple[str, Any, type[Exception], str]] = [
    ("type", 3, TypeError, "Adjacent layout 0 must be a Layout, not 3"),
    ("flat", layout((4,), (0,)), ValueError, "must have the shape of level 0"),
    ("nested", layout(((2, 2),), ((0, 1),)), ValueError, "must have the shape of level 0"),
    ("reach", layout((2, 2), (0, 2)), ValueError, "must stay below 2, the size of level 1"),
]


@pytest.mark.parametrize(("_what", "given", "error", "message"), FAULTS)
def test_the_whole_is_checked_first(
    _what: str, given: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        represent(**given)


@pytest.mark.parametrize(("_what", "changes", "error", "message"), PLANE_FAULTS)
def test_then_each_plane_before_any_edge(
    _what: str, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        represent(planes=[plane(0), plane(1, **changes)], edges=[None])


def test_planes_are_checked_one_after_the_other() -> None:
    with pytest.raises(ValueError, match="offset of plane 0 must be 0 or more"):
        represent(planes=[plane(0, offset=-1), plane(1, dtype="x")])


@pytest.mark.parametrize(("_what", "edge", "error", "message"), EDGE_FAULTS)
def test_then_each_edge_before_any_rule(
    _what: str, edge: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        represent(edges=[edge])
    with pytest.raises(error, match=message):
        RepresentationType(GUARDED, (SQUARE, PAIR), [edge])


def test_the_rules_come_last() -> None:
    with pytest.raises(AssertionError):
        represent()
    with pytest.raises(AssertionError):
        RepresentationType(GUARDED, (SQUARE, PAIR), (EDGE,))


def test_an_offset_of_numpy_is_refused() -> None:
    import numpy as np

    with pytest.raises(TypeError, match="must be an exact int"):
        represent(planes=[plane(0, offset=np.int64(0)), plane(1)])


def test_r13_r27_a_type_alone_runs_the_rules() -> None:
    assert RepresentationType(GROUPED, [SQUARE, PAIR], [EDGE]).size == 4
    with pytest.raises(ValueError, match="RepresentationGrouped, level 0: each target coordinate"):
        RepresentationType(GROUPED, [SQUARE, PAIR], [layout((2, 2), (0, 0))])


@pytest.mark.parametrize("placements", [None, 3, [SQUARE, 3], [SQUARE, None]])
def test_a_type_checks_its_arguments(placements: Any) -> None:
    with pytest.raises(TypeError, match=r"must be (iterable|a Layout)"):
        RepresentationType(PLAIN, placements, (EDGE,))
    with pytest.raises(TypeError, match="must be a DType"):
        RepresentationType(cast("Any", "Float32"), (SQUARE,))


def test_types_are_values() -> None:
    first = RepresentationType(GROUPED, [SQUARE, PAIR], [EDGE])
    second = RepresentationType(GROUPED, (SQUARE, PAIR), (EDGE,))
    assert first == second == pickle.loads(pickle.dumps(first))
    assert hash(first) == hash(second)
    assert first != RepresentationType(PLAIN, (SQUARE, PAIR), (EDGE,))
    assert first.shape == Shape(2, 2)
    assert first.level_shapes == (Shape(2, 2), Shape(2))
    assert first.storage_dtypes == (DType.Float32, DType.Int32)
    with pytest.raises(AttributeError):
        setattr(first, "dtype", PLAIN)  # noqa: B010 - read-only for a type checker too


def test_a_simple_or_opaque_dtype_has_one_plane_of_itself() -> None:
    for dtype in (DType.Float32, DType.Floating, DType.Any, DType.E4M3):
        carrier = Virtual(4, dtype)
        made = TensorRepresentation(dtype, [Subtensor(dtype, carrier, 0, SQUARE)])
        assert made.is_single_subtensor
        assert made.primary.carrier is carrier
        with pytest.raises(ValueError, match="must have 0 adjacent layouts, not 1"):
            TensorRepresentation(dtype, [Subtensor(dtype, carrier, 0, SQUARE)], [SQUARE])


def test_a_dtype_that_is_not_registered_has_no_representation() -> None:
    kept: list[SimpleDType] = []

    class Leaky(SimpleDType, abstract=False):
        __slots__ = ()

        def __init__(self) -> None:
            super().__init__("RepresentationLeaky", bits=8, supertype=DType.Any)
            kept.append(self)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        Leaky()
    for error in (TypeError, ValueError):
        with pytest.raises(error, match="must be a registered dtype"):
            RepresentationType(kept[0], (SQUARE,))


def test_placements_may_alias_and_planes_may_share_a_carrier() -> None:
    shared = Planar("RepresentationShared", simple_types=(DType.Float32, DType.Float32))
    carrier = Generic([0.0] * 3, dtype=DType.Float32)
    made = TensorRepresentation(
        shared,
        [
            Subtensor(DType.Float32, carrier, 0, layout((2, 2), (0, 0))),
            Subtensor(DType.Float32, carrier, 1, PAIR),
        ],
        [EDGE],
    )
    before = made.version_token()
    assert before == ((id(carrier), 0),)
    carrier[0] = 1.0
    assert made.version_token() == ((id(carrier), 1),)


def test_the_version_token_has_each_carrier_once_in_order() -> None:
    three = Planar("RepresentationThree", simple_types=[DType.Int32] * 3)
    first, second = Generic([1], dtype=DType.Int32), Generic([2], dtype=DType.Int32)
    one = layout((1,), (0,))
    planes = [Subtensor(DType.Int32, carrier, 0, one) for carrier in (second, first, second)]
    made = TensorRepresentation(three, planes, [one, one])
    second[0] = 5
    assert made.version_token() == ((id(second), 1), (id(first), 0))


def test_a_representation_keeps_its_carriers_alive_and_never_releases_them() -> None:
    carrier = Generic([1.0] * 4, dtype=DType.Float32)
    made = TensorRepresentation(DType.Float32, [Subtensor(DType.Float32, carrier, 0, SQUARE)])
    seen = weakref.ref(carrier)
    del carrier
    gc.collect()
    kept = seen()
    assert kept is made.primary.carrier
    del made
    gc.collect()
    assert kept is not None
    assert not kept.is_released()


def test_nothing_is_enumerated() -> None:
    dtype = Planar(
        "RepresentationHuge",
        simple_types=(DType.Float32, DType.Int32),
        representation_rules=[LevelExtent(0, BILLION)],
    )
    made = TensorRepresentation(
        dtype,
        [
            Subtensor(
                DType.Float32,
                Virtual(BILLION**2, DType.Float32),
                0,
                layout((BILLION, BILLION), (1, BILLION)),
            ),
            Subtensor(DType.Int32, Virtual(BILLION, DType.Int32), 0, layout((BILLION,), (1,))),
        ],
        [layout((BILLION, BILLION), (0, 1))],
    )
    assert made.type.size == BILLION**2


def test_a_category_has_no_width() -> None:
    with pytest.raises(TypeError, match="must be of a simple dtype to have a width"):
        RepresentationType(DType.Floating, (SQUARE,)).storage_bits()


def test_subtensors_are_records_without_checks() -> None:
    made = Subtensor(*cast("Any", (1, 2, 3, 4)))
    assert (made.dtype, made.carrier, made.offset, made.layout) == (1, 2, 3, 4)
    with pytest.raises(AttributeError):
        setattr(made, "offset", 0)  # noqa: B010 - read-only for a type checker too
