"""Representations: how the planes of a logical value belong together, with and without storage.

A representation is one placement layout for each plane of the dtype's storage schema, and one
adjacent layout between consecutive planes. Placement i maps the coordinates of level i to slots of
carrier i, from an offset on; adjacent layout i maps the same coordinates to ordinals of the shape
of level i + 1, first mode fastest. `RepresentationType` is all of that which needs no storage;
`TensorRepresentation` adds carriers and offsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from .carriers import Carrier
from .dtypes.compound import CompoundDType, elements_of
from .dtypes.descriptors import DType, SimpleDType, checked_registered, is_kind, spell
from .dtypes.structure import describe
from .errors import IRTypeError, IRValueError
from .layout import Layout, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self


@dataclass(frozen=True)
class _ValidatedContext:
    """What the rules of a dtype are told; see RepresentationValidationContext."""

    logical_dtype: DType
    storage_dtypes: tuple[DType, ...]
    placement_layouts: tuple[Layout, ...]
    adjacent_layouts: tuple[Layout, ...]
    level_shapes: tuple[Shape, ...]


@dataclass(frozen=True, init=False)
class RepresentationType:
    """A dtype with the layouts of its planes: a representation before it has storage.

    Two of them are equal if dtype and layouts are.

    Args:
        dtype: Of the logical value: compound, simple, or a category of opaque storage.
        placements: One layout for each plane of the dtype.
        adjacent_layouts: One fewer.

    Raises:
        TypeError: If an argument or an entry of one is of the wrong type.
        ValueError: If the dtype has no storage schema, a count is wrong, or an adjacent layout
            does not fit the levels that it joins. What the dtype's own rules raise passes through.
    """

    dtype: DType
    placements: tuple[Layout, ...]
    adjacent_layouts: tuple[Layout, ...] = ()

    def __new__(  # noqa: D102 - above
        cls, dtype: DType, placements: Iterable[Layout], adjacent_layouts: Iterable[Layout] = ()
    ) -> Self:
        levels = elements_of(placements, "The placements of a representation")
        edges = elements_of(adjacent_layouts, "The adjacent layouts of a representation")
        schema = _storage_schema(dtype)
        _check_counts(dtype, len(schema), len(levels), len(edges))
        for position, placement in enumerate(levels):
            _check_layout(placement, f"The placement of plane {position}")
        shapes = tuple(placement.shape for placement in levels)
        for position, edge in enumerate(edges):
            _check_edge(edge, position, shapes[position], shapes[position + 1])
        context = _ValidatedContext(dtype, schema, levels, edges, shapes)
        for rule in dtype.representation_rules:
            rule.validate(cast("Any", context))
        made = super().__new__(cls)
        object.__setattr__(made, "dtype", dtype)
        object.__setattr__(made, "placements", levels)
        object.__setattr__(made, "adjacent_layouts", edges)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return RepresentationType, (self.dtype, self.placements, self.adjacent_layouts)

    @property
    def storage_dtypes(self) -> tuple[DType, ...]:
        """The dtype of each plane."""
        return _storage_schema(self.dtype)

    @property
    def level_shapes(self) -> tuple[Shape, ...]:
        """The shape of each level."""
        return tuple(placement.shape for placement in self.placements)

    @property
    def shape(self) -> Shape:
        """The shape of the logical value: that of level 0."""
        return self.placements[0].shape

    @property
    def size(self) -> int:
        """The number of logical elements."""
        return self.shape.size

    def storage_bits(self) -> int:
        """Return the bits of all planes' coordinates together, packed and without holes.

        Raises:
            IRTypeError: If the dtype is a category, whose values have no width.
        """
        total = 0
        for dtype, shape in zip(self.storage_dtypes, self.level_shapes, strict=True):
            if not isinstance(dtype, SimpleDType):
                message = f"A plane must be of a simple dtype to have a width, not {dtype!r}"
                raise IRTypeError(message)
            total += shape.size * dtype.bits
        return total


@dataclass(frozen=True)
class Subtensor:
    """One plane of a representation; checked by the representation, not by itself.

    Args:
        dtype: What the carrier stores.
        carrier: The storage.
        offset: The slot of index 0 of `layout`.
        layout: Maps the coordinates of the level to slots, counted from `offset`.
    """

    dtype: DType
    carrier: Carrier
    offset: int
    layout: Layout


@dataclass(frozen=True, init=False, eq=False)
class TensorRepresentation:
    """A logical tensor: carriers for the planes of a dtype, and the layouts that join them.

    It keeps its carriers alive and never changes or releases one; several may share a carrier.

    Args:
        logical_dtype: Of the logical value: compound, simple, or a category of opaque storage.
        subtensors: One for each plane.
        adjacent_layouts: One fewer.

    Raises:
        TypeError: If an argument, an entry of one or a field of an entry is of the wrong type, or
            the carriers are of more than one class.
        ValueError: If the dtype has no storage schema, a count is wrong, a dtype is not the one
            of the schema, a placement exceeds its carrier, or an adjacent layout does not fit the
            levels that it joins. What the dtype's own rules raise passes through.
    """

    logical_dtype: DType
    subtensors: tuple[Subtensor, ...]
    adjacent_layouts: tuple[Layout, ...]
    type: RepresentationType

    def __new__(  # noqa: D102 - above
        cls,
        logical_dtype: DType,
        subtensors: Iterable[Subtensor],
        adjacent_layouts: Iterable[Layout] = (),
    ) -> Self:
        planes = elements_of(subtensors, "The subtensors of a representation")
        edges = elements_of(adjacent_layouts, "The adjacent layouts of a representation")
        _check_logical_dtype(logical_dtype)
        for position, plane in enumerate(planes):
            if not is_kind(plane, Subtensor):
                message = f"Entry {position} must be a Subtensor, not {spell(plane)}"
                raise IRTypeError(message)
        schema = _storage_schema(logical_dtype)
        _check_counts(logical_dtype, len(schema), len(planes), len(edges))
        for position, (plane, expected) in enumerate(zip(planes, schema, strict=True)):
            _check_plane(plane, f"plane {position}", expected, type(planes[0].carrier))
        placements = tuple(plane.layout for plane in planes)
        kind = RepresentationType(logical_dtype, placements, edges)
        made = super().__new__(cls)
        object.__setattr__(made, "logical_dtype", logical_dtype)
        object.__setattr__(made, "subtensors", planes)
        object.__setattr__(made, "adjacent_layouts", edges)
        object.__setattr__(made, "type", kind)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorRepresentation, (self.logical_dtype, self.subtensors, self.adjacent_layouts)

    @property
    def primary(self) -> Subtensor:
        """Plane 0."""
        return self.subtensors[0]

    @property
    def is_single_subtensor(self) -> bool:
        """Whether there is no other plane than plane 0."""
        return len(self.subtensors) == 1

    def version_token(self) -> tuple[tuple[int, int], ...]:
        """Return identity and version of each distinct carrier, in the order of first use.

        Two tokens of one representation are equal if no carrier was written in between.
        """
        carriers = {id(plane.carrier): plane.carrier for plane in self.subtensors}
        return tuple((identity, carrier.version) for identity, carrier in carriers.items())


def _check_logical_dtype(dtype: object) -> None:
    if not is_kind(dtype, DType):
        message = f"The dtype of a representation must be a DType, not {describe(dtype)}"
        raise IRTypeError(message)


def _storage_schema(dtype: DType) -> tuple[DType, ...]:
    """Return the dtype of each plane that a logical dtype asks for."""
    _check_logical_dtype(dtype)
    checked_registered(dtype, "The dtype of a representation")
    if isinstance(dtype, CompoundDType):
        return dtype.simple_types
    if dtype.is_simple() or dtype.is_opaque_storage():
        return (dtype,)
    message = f"The dtype of a representation must have a storage schema, but {dtype!r} has none"
    raise IRValueError(message, hint="Categories classify dtypes; name a simple or compound one.")


def _check_counts(dtype: DType, expected: int, planes: int, edges: int) -> None:
    if planes != expected:
        message = f"A representation of {dtype.name} must have {expected} planes, not {planes}"
        raise IRValueError(message)
    if edges != expected - 1:
        message = (
            f"A representation of {dtype.name} must have {expected - 1} adjacent layouts, "
            f"not {edges}"
        )
        raise IRValueError(message)


def _check_plane(
    plane: Subtensor, where: str, expected: DType, carrier_class: type[Carrier]
) -> None:
    _check_plane_dtypes(plane, where, expected)
    offset = cast("object", plane.offset)
    if type(offset) is not int:
        message = f"The offset of {where} must be an exact int, not {describe(offset)}"
        raise IRTypeError(message)
    if offset < 0:
        message = f"The offset of {where} must be 0 or more, not {offset}"
        raise IRValueError(message)
    _check_layout(plane.layout, f"The placement of {where}")
    size = plane.carrier.size()
    if size < 0:
        message = f"The carrier of {where} must have a size of 0 or more, not {size}"
        raise IRValueError(message)
    if offset + plane.layout.cosize > size:
        message = (
            f"The placement of {where} must end within its carrier of {size} slots, "
            f"not at {offset + plane.layout.cosize}"
        )
        raise IRValueError(message)
    if type(plane.carrier) is not carrier_class:
        message = (
            f"All planes must have carriers of exactly one class, but {where} has a "
            f"{type(plane.carrier).__name__} and plane 0 a {carrier_class.__name__}"
        )
        raise IRTypeError(message)


def _check_plane_dtypes(plane: Subtensor, where: str, expected: DType) -> None:
    if not is_kind(plane.dtype, DType):
        message = f"The dtype of {where} must be a DType, not {describe(plane.dtype)}"
        raise IRTypeError(message)
    if plane.dtype is not expected:
        message = f"The dtype of {where} must be {expected.name}, not {plane.dtype.name}"
        raise IRValueError(message)
    if not is_kind(plane.carrier, Carrier):
        message = f"The carrier of {where} must be a Carrier, not {spell(plane.carrier)}"
        raise IRTypeError(message)
    stored = plane.carrier.dtype()
    if stored is not expected:
        message = f"The carrier of {where} must store {expected.name}, not {spell(stored)}"
        raise IRValueError(message)


def _check_layout(layout: object, what: str) -> None:
    if not is_kind(layout, Layout):
        message = f"{what} must be a Layout, not {spell(layout)}"
        raise IRTypeError(message)


def _check_edge(edge: Layout, position: int, source: Shape, target: Shape) -> None:
    what = f"Adjacent layout {position}"
    _check_layout(edge, what)
    if edge.shape != source:
        message = f"{what} must have the shape of level {position}, {source}, not {edge.shape}"
        raise IRValueError(message)
    if edge.cosize > target.size:
        message = (
            f"{what} must stay below {target.size}, the size of level {position + 1}, "
            f"not reach {edge.cosize - 1}"
        )
        raise IRValueError(message)
