"""What the errors of calls say beside the fault: what would be valid."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ..dtypes import DType
from ..types import TensorType
from .names import DTYPES, enum_name
from .typecheck import mismatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..expr import Type
    from .context import Signature


def members(kind: type, refused: Sequence[object] = ()) -> str | None:
    """Return what an attribute of `kind` can be, of an enumeration without the `refused`."""
    if issubclass(kind, Enum):
        name = enum_name(kind) or kind.__name__
        return f"valid: {', '.join(f'pl.{name}.{m.name}' for m in kind if m not in refused)}"
    if kind is DType:
        return f"valid: {', '.join(f'pl.{name}' for name in DTYPES)}"
    return None


def layout_hint(wanted: Type, given: Type, text: str) -> str | None:
    """Return how a tensor comes into another layout, if that is all that is missing."""
    if not isinstance(wanted, TensorType) or not isinstance(given, TensorType):
        return None
    if wanted.layout is given.layout or mismatch(wanted, given, check_layout=False):
        return None
    shape = ", ".join(str(getattr(d, "value", "…")) for d in wanted.shape)
    return f"pl.tensor.view({text}, [{shape}], layout=pl.{wanted.layout.name}) takes the same bytes"


def call_shape(signature: Signature) -> str:
    """Return how a function of the program is called."""
    names = ", ".join(p.name for p in signature.params)
    return f"it is called self.{signature.name}({names})"
