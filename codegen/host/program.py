"""The orchestration of an entry: a small program over scalars that launches kernels.

A host program is a tree of frozen nodes. It never touches data: given the scalar arguments it
expands into a list of tasks with the buffers they use and the tasks they must wait for. Scalars
are 64-bit integers and wrap, as on the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from ...ir.errors import IRValueError
from ..scalars.exprs import Const, Scalar, Variable
from ..tensors import Layout, Param, check_bits, check_shape, packed_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..kernel import Kernel


ONE_BLOCK = Const(1)
NO_LAUNCH = Const(0)
"""The number of no launch; launches count from 1."""


@dataclass(frozen=True, slots=True)
class Assign:
    """Give `name` a value, anew or for the first time."""

    name: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class Require:
    """End the launch with `message` unless `condition` is non-zero."""

    condition: Scalar
    message: str


@dataclass(frozen=True, slots=True)
class Allocate:
    """Make a tensor in device memory under `name`; a second time under that name, another one."""

    name: str
    dtype: str
    bits: int
    shape: tuple[int, ...]
    layout: Layout = Layout.ND

    def __post_init__(self) -> None:
        _check_declared(self)


@dataclass(frozen=True, slots=True)
class Alias:
    """Let `name` stand for the bytes of `source` under another shape and layout."""

    name: str
    source: str
    dtype: str
    bits: int
    shape: tuple[int, ...]
    layout: Layout = Layout.ND

    def __post_init__(self) -> None:
        _check_declared(self)


@dataclass(frozen=True, slots=True)
class Launch:
    """Run a kernel once for each block of a grid.

    Args:
        kernel: Index among the executable's kernels.
        buffers: A tensor parameter, allocation or alias per tensor parameter of the kernel.
        scalars: An expression per scalar parameter of the kernel.
        blocks: How many blocks; none waits for another one to end.
        deps: Numbers of launches that must be done before, beside those whose data it uses.
        name: The scalar that gets the number of this launch; empty if nobody asks for it.
        sync_start: Whether all blocks must begin together.
    """

    kernel: int
    buffers: tuple[str, ...]
    scalars: tuple[Scalar, ...] = ()
    blocks: Scalar = ONE_BLOCK
    deps: tuple[Scalar, ...] = ()
    name: str = ""
    sync_start: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """Give `name` the number of a launch of nothing, done when all of `deps` are."""

    name: str
    deps: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class For:
    """Run `body` with `variable` from `start` up (or down) to, but without, `stop`."""

    variable: str
    start: Scalar
    stop: Scalar
    step: Scalar
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class While:
    """Run `body` as long as `condition` is non-zero."""

    condition: Scalar
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If:
    """Run `then` if `condition` is non-zero, else `otherwise`."""

    condition: Scalar
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


Statement: TypeAlias = Assign | Require | Allocate | Alias | Launch | Join | For | While | If


@dataclass(frozen=True, slots=True)
class Output:
    """A result of the entry: the name callers see and the buffer that holds it."""

    name: str
    buffer: str


@dataclass(frozen=True, slots=True)
class Compound:
    """A block-scaled array that the caller gives as one, for two tensor parameters.

    Args:
        param: The parameter of its elements, under whose name the caller gives it.
        scale: The parameter of its scales; empty where nobody reads them.
        dtype: Name of the block-scaled dtype.
    """

    param: str
    scale: str
    dtype: str


@dataclass(frozen=True, slots=True)
class HostProgram:
    """What a launch of one entry does.

    Args:
        name: Name of the entry.
        params: What the caller gives: tensors by name, and scalars.
        body: Statements in order.
        outputs: What the caller gets.
        compounds: Which parameters are planes of one block-scaled array.

    Raises:
        IRValueError: If two parameters or two outputs have one name, or a plane is no tensor
            parameter.
    """

    name: str
    params: tuple[Param, ...]
    body: tuple[Statement, ...]
    outputs: tuple[Output, ...]
    compounds: tuple[Compound, ...] = ()

    def __post_init__(self) -> None:
        tensors = {param.name for param in self.params if param.is_tensor}
        for compound in self.compounds:
            for plane in filter(None, (compound.param, compound.scale)):
                if plane not in tensors:
                    message = (
                        f"A plane of a block-scaled array of entry {self.name!r} must be a tensor "
                        f"parameter, not {plane!r}."
                    )
                    raise IRValueError(message)
        for what, names in (
            ("parameters", [param.name for param in self.params]),
            ("outputs", [output.name for output in self.outputs]),
        ):
            if len(set(names)) != len(names):
                message = f"Entry {self.name!r} must have {what} of different names, not {names}."
                raise IRValueError(message)

    @classmethod
    def of_kernel(
        cls, index: int, kernel: Kernel, *, outputs: tuple[Output, ...] = ()
    ) -> HostProgram:
        """Return the entry that runs one kernel once with the caller's own arguments.

        Args:
            index: Of the kernel in the executable.
            kernel: The kernel.
            outputs: What the caller gets; by default every tensor that the kernel writes, under
                its own name.
        """
        written = [param.name for param in kernel.tensors if param.direction.writes]
        return cls(
            kernel.name,
            kernel.params,
            (
                Launch(
                    index,
                    tuple(param.name for param in kernel.tensors),
                    tuple(Variable(param.name) for param in kernel.scalars),
                ),
            ),
            outputs or tuple(Output(name, name) for name in written),
        )

    def declaration(self, name: str) -> Param | Allocate | Alias:
        """Return what declares a tensor: a parameter, an allocation or an alias of one."""
        found = next(_declarations(name, self.params, self.body), None)
        assert found is not None, f"{name!r} is declared nowhere in {self.name!r}"
        return found


def _declarations(
    name: str, params: tuple[Param, ...], body: tuple[Statement, ...]
) -> Iterator[Param | Allocate | Alias]:
    yield from (param for param in params if param.name == name)
    for statement in body:
        match statement:
            case Allocate() | Alias():
                if statement.name == name:
                    yield statement
            case For() | While():
                yield from _declarations(name, (), statement.body)
            case If():
                yield from _declarations(name, (), (*statement.then, *statement.otherwise))
            case _:
                continue


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor in device memory: a tensor parameter of the entry, or one that it allocates.

    Args:
        name: Unique in the expansion.
        dtype: Name of the element type.
        bits: Width of an element.
        shape: Logical extents.
        layout: Order of the elements.
        allocated: Whether the launch makes it, rather than the caller.
    """

    name: str
    dtype: str
    bits: int
    shape: tuple[int, ...]
    layout: Layout
    allocated: bool

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor, sub-byte elements packed."""
        return packed_bytes(prod(self.shape), self.bits)


def _check_declared(tensor: Allocate | Alias) -> None:
    where = f"Tensor {tensor.name!r}"
    check_shape(tensor.shape, where)
    check_bits(tensor.bits, where)
    if "#" in tensor.name or not tensor.name:
        message = f"{where} must have a name without '#', which tells repeated allocations apart."
        raise IRValueError(message)


def as_buffer(tensor: Param | Allocate | Alias, *, name: str | None = None) -> Buffer:
    """Return what `tensor` declares, optionally under another name."""
    return Buffer(
        name if name is not None else tensor.name,
        tensor.dtype,
        tensor.bits,
        tensor.shape,
        tensor.layout,
        allocated=isinstance(tensor, Allocate),
    )
