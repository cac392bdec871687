"""The words of annotations: `pl.Tensor[…]` and its like, as Python objects."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Never, cast

from ..errors import InvalidOperationError
from .source import caller_span


class AnnotationKind(Enum):
    """What an annotation says a value is."""

    TENSOR = "Tensor"
    TILE = "Tile"
    SCALAR = "Scalar"
    TUPLE = "Tuple"
    OUT = "Out"
    INOUT = "InOut"


#: How an annotation of each kind is written.
EXAMPLES: Final = {
    AnnotationKind.TENSOR: "pl.Tensor[[64, 128], pl.FP32], pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ]",
    AnnotationKind.TILE: "pl.Tile[[64, 128], pl.FP32], pl.Tile[[64, 128], pl.FP32, pl.Mem.Acc]",
    AnnotationKind.SCALAR: "pl.Scalar[pl.INDEX]",
    AnnotationKind.TUPLE: "pl.Tuple[pl.Tensor[[64, 128], pl.FP32], pl.Scalar[pl.INDEX]]",
    AnnotationKind.OUT: "pl.Out[pl.Tensor[[64, 128], pl.FP32]]",
    AnnotationKind.INOUT: "pl.InOut[pl.Tensor[[64, 128], pl.FP32]]",
}


@dataclass(frozen=True)
class Annotation:
    """A type as written with Python objects; `items` stood between the brackets."""

    kind: AnnotationKind
    items: tuple[object, ...]


class Form:
    """What square brackets make an annotation of; it has no instances."""

    kind: ClassVar[AnnotationKind]

    def __new__(cls, *_: object, **__: object) -> Never:
        """Raise InvalidOperationError: an annotation has square brackets."""
        message = f"pl.{cls.kind.value} must be followed by square brackets, not by a call"
        raise InvalidOperationError(message, caller_span(), hint=EXAMPLES[cls.kind])

    def __class_getitem__(cls, items: object) -> Annotation:
        inside = cast("tuple[object, ...]", items) if isinstance(items, tuple) else (items,)
        return Annotation(cls.kind, inside)


class Tensor(Form):
    """A tensor in global memory: shape, dtype, and a layout or a view where it needs one."""

    kind = AnnotationKind.TENSOR


class Tile(Form):
    """A tile on chip: shape, dtype, and memory, MemRef and TileView where they are known."""

    kind = AnnotationKind.TILE


class Scalar(Form):
    """A scalar of a dtype."""

    kind = AnnotationKind.SCALAR

    if TYPE_CHECKING:
        # A checker takes a parameter for an instance, which has the operators of a scalar.
        def _operator(self, other: Any) -> Any: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _operator
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = _operator
        __lshift__ = __rshift__ = __lt__ = __le__ = __gt__ = __ge__ = _operator


class Tuple(Form):
    """Several results."""

    kind = AnnotationKind.TUPLE


class Out(Form):
    """A parameter that the function writes."""

    kind = AnnotationKind.OUT


class InOut(Form):
    """A parameter that the function reads and writes."""

    kind = AnnotationKind.INOUT


def form_kind(value: object) -> AnnotationKind | None:
    """Return the kind of a form, Python's own `tuple` included; None for anything else."""
    if value is tuple:
        return AnnotationKind.TUPLE
    return value.kind if isinstance(value, type) and issubclass(value, Form) else None
