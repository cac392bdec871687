"""What a kernel is given: its parameters, and the windows of tensors that its instructions move."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import NoReturn

from ..ir.errors import IRValueError

MAX_RANK = 5
MAX_ELEMENTS = 1 << 44
"""Elements of the largest tensor; keeps every address computation within 64 bits."""
MAX_BITS = 64


class ParamKind(Enum):
    """What a parameter is bound to."""

    TENSOR = "tensor"
    SCALAR = "scalar"


class Direction(Enum):
    """Whether a tensor parameter is read, written or both."""

    IN = "in"
    OUT = "out"
    INOUT = "inout"

    @property
    def reads(self) -> bool:
        """Whether the kernel may read what was there before it."""
        return self is not Direction.OUT

    @property
    def writes(self) -> bool:
        """Whether the kernel may write."""
        return self is not Direction.IN


class Layout(Enum):
    """The order in which a tensor's elements stand in memory."""

    ND = "nd"
    DN = "dn"
    NZ = "nz"
    MX_A_ZZ = "mx_a_zz"
    MX_B_NN = "mx_b_nn"


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a kernel or of an entry.

    Args:
        name: As in the source.
        kind: Tensor or scalar.
        dtype: Name of the element type.
        bits: Width of an element; scalars travel as 64-bit integers whatever their width.
        direction: Meaningful for tensors; scalars are `IN`.
        shape: Logical extents, without blocking; empty for scalars.
        layout: Order of the elements; `ND` for scalars.

    Raises:
        IRValueError: If these do not fit each other.
    """

    name: str
    kind: ParamKind
    dtype: str
    bits: int
    direction: Direction = Direction.IN
    shape: tuple[int, ...] = ()
    layout: Layout = Layout.ND

    def __post_init__(self) -> None:
        where = f"Parameter {self.name!r}"
        if not self.name or "#" in self.name:
            refuse(f"A parameter's name must be non-empty and without '#', not {self.name!r}.")
        check_bits(self.bits, where)
        if self.kind is ParamKind.TENSOR:
            check_shape(self.shape, where)
        elif self.shape or self.direction is not Direction.IN or self.layout is not Layout.ND:
            refuse(f"{where} must have no shape, direction or layout, since it is a scalar.")

    @property
    def is_tensor(self) -> bool:
        """Whether it is bound to a buffer."""
        return self.kind is ParamKind.TENSOR

    @property
    def elements(self) -> int:
        """Number of elements of the tensor; 1 for a scalar."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor, sub-byte elements packed."""
        return packed_bytes(self.elements, self.bits)


@dataclass(frozen=True, slots=True)
class View:
    """A kernel's way of addressing a tensor parameter: element = offset + Σ index · stride.

    Args:
        param: Index among the kernel's parameters; must be a tensor.
        layout: The layout of the parameter that the dimensions reflect.
        bits: Width of an element.
        dims: Extents, 1 to 5 of them.
        strides: Distance between neighbours per dimension, in elements.
        offset: Of the element at index zero, in elements from the tensor's start.

    Raises:
        IRValueError: If an extent, stride or offset is impossible.
    """

    param: int
    layout: Layout
    bits: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        check_shape(self.dims, "A view")
        if len(self.strides) != len(self.dims):
            refuse(
                f"A view must have as many strides as extents ({len(self.dims)}), "
                f"not {len(self.strides)}."
            )
        if any(not 0 <= stride <= MAX_ELEMENTS for stride in self.strides):
            refuse(f"A view's strides must be 0 to {MAX_ELEMENTS}, not {list(self.strides)}.")
        if not 0 <= self.offset <= MAX_ELEMENTS:
            refuse(f"A view's offset must be 0 to {MAX_ELEMENTS}, not {self.offset}.")
        check_bits(self.bits, "A view")

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @property
    def last(self) -> int:
        """The highest element it reaches, counted from the tensor's start."""
        steps = zip(self.dims, self.strides, strict=True)
        return self.offset + sum((extent - 1) * stride for extent, stride in steps)


def packed_bytes(elements: int, bits: int) -> int:
    """Return the bytes that `elements` elements of `bits` bits take, the last byte padded."""
    return -(-elements * bits // 8)


def check_shape(shape: tuple[int, ...], where: str) -> None:
    """Check the extents of a tensor or view.

    Args:
        shape: The extents.
        where: Beginning of the message.

    Raises:
        IRValueError: If there are none or too many, one is not positive, or they are too large.
    """
    if not 1 <= len(shape) <= MAX_RANK:
        refuse(f"{where} must have 1 to {MAX_RANK} dimensions, not {len(shape)}.")
    if any(extent < 1 for extent in shape):
        refuse(f"{where} must have positive extents, not {list(shape)}.")
    if prod(shape) > MAX_ELEMENTS:
        refuse(f"{where} must have at most {MAX_ELEMENTS} elements, not {list(shape)}.")


def check_bits(bits: int, where: str) -> None:
    """Check the width of an element.

    Args:
        bits: The width.
        where: Beginning of the message.

    Raises:
        IRValueError: If it is not 1 to `MAX_BITS`.
    """
    if not 1 <= bits <= MAX_BITS:
        refuse(f"{where} must have elements of 1 to {MAX_BITS} bits, not {bits}.")


def refuse(message: str) -> NoReturn:
    """Refuse a part of a kernel.

    Raises:
        IRValueError: Always.
    """
    raise IRValueError(message)
