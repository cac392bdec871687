"""Tensors: a descriptor and the bytes that it describes, which are never copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .buffers import CPU, BufferHandle, Device, authored_handle
from .descriptor import Descriptor
from .elements import Dtype
from .errors import BufferError, FieldTypeError, UnsupportedError  # noqa: A004 - the specification's name
from .extension import ExtensionType
from .extent import buffer_needs
from .invariants import check_pairing
from .layout_codec import ROW_MAJOR, Layout
from .quantization import MXFP, VerbatimScheme
from .sections import Shard, Statistics
from .shapes import check_rank, checked_shape
from .views import element_array, element_codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from .quantization import Quantization
    from .shapes import Shape


class Tensor:
    """A descriptor and its buffers. Two tensors are equal only where they are the same object.

    Args:
        buffer: The bytes of the elements: anything with a contiguous buffer. It is not copied, so a
            mutable one must not change while the tensor is in use.
        dtype: The element type.
        shape: Extents, dimension 0 first; None where one is dynamic.
        device: Where the buffers live; the CPU by default.
        aux_buffers: Further buffers, such as scales.
        layout: Where elements stand; row_major by default.
        quantization: `MXFP(...)`, or another scheme as its bytes.
        statistics: What was computed of the values.
        shard: Where the tensor stands in a larger one.
        extension_type: The section of a private element type.
        byte_offset: Where in the buffer the element of index 0 stands.

    Raises:
        InvalidDescriptorError: The parts contradict each other.
        BufferError: A buffer is too small for the elements, or is no contiguous bytes.
        FieldTypeError: An argument is of the wrong type.
    """

    __slots__ = ("__weakref__", "_buffers", "_descriptor")
    _buffers: tuple[memoryview, ...]
    _descriptor: Descriptor

    def __init__(
        self,
        buffer: Any,
        dtype: Dtype,
        shape: Sequence[int | None],
        device: Device | None = None,
        *,
        aux_buffers: Iterable[Any] | None = None,
        layout: Layout | None = None,
        quantization: Quantization | None = None,
        statistics: Statistics | None = None,
        shard: Shard | None = None,
        extension_type: ExtensionType | None = None,
        byte_offset: int = 0,
    ) -> None:
        extents = checked_shape(shape)
        check_rank(len(extents))
        placed = ROW_MAJOR if layout is None else layout
        where = CPU if device is None else device
        for what, value, kind, article_and_name in (
            ("dtype", dtype, Dtype, "a Dtype"),
            ("layout", placed, Layout, "a layout such as RowMajorLayout()"),
            ("device", where, Device, "a Device"),
            ("quantization", quantization, MXFP | VerbatimScheme | None, "MXFP or VerbatimScheme"),
            ("statistics", statistics, Statistics | None, "Statistics"),
            ("shard", shard, Shard | None, "a Shard"),
            ("extension_type", extension_type, ExtensionType | None, "an ExtensionType"),
        ):
            _check_type(value, kind, what, article_and_name)
        buffers = tuple(_as_bytes(given) for given in (buffer, *(aux_buffers or ())))
        check_pairing(dtype, extension_type)
        placed.validate_against_shape(extents)
        width = dtype.bit_width if extension_type is None else extension_type.bit_width
        for need in buffer_needs(placed, extents, width, byte_offset):
            if need.buffer < len(buffers) and buffers[need.buffer].nbytes < need.size:
                holds = f" for {need.elements} elements of {dtype}" if need.elements else ""
                sentence = (
                    f"Buffer {need.buffer} ({need.role}) must be large enough: need at least "
                    f"{need.size} bytes{holds}, not {buffers[need.buffer].nbytes}"
                )
                raise BufferError(sentence)
        self._buffers = buffers
        self._descriptor = Descriptor(
            dtype,
            extents,
            tuple(authored_handle(view.nbytes, where) for view in buffers),
            byte_offset,
            placed,
            quantization,
            shard,
            statistics,
            extension_type,
        )

    @classmethod
    def from_parts(cls, descriptor: Descriptor, buffers: Iterable[Any]) -> Tensor:
        """Return the tensor of a descriptor and its buffers, none of which is copied.

        Raises:
            BufferError: The buffers are not as many and as large as the descriptor says.
        """
        views = tuple(_as_bytes(given) for given in buffers)
        sizes = tuple(view.nbytes for view in views)
        wanted = tuple(handle.byte_size for handle in descriptor.buffer_handles)
        if sizes != wanted:
            sentence = f"The buffers must have {wanted} bytes, as the descriptor says, not {sizes}"
            raise BufferError(sentence)
        made = cls.__new__(cls)
        made._buffers, made._descriptor = views, descriptor  # noqa: SLF001 - of the same class
        return made

    @property
    def descriptor(self) -> Descriptor:
        """What is said of the tensor."""
        return self._descriptor

    @property
    def dtype(self) -> Dtype:
        """The element type."""
        return self._descriptor.dtype

    @property
    def shape(self) -> Shape:
        """Extents, dimension 0 first; None where one is dynamic."""
        return self._descriptor.shape

    @property
    def ndim(self) -> int:
        """The rank."""
        return self._descriptor.ndim

    @property
    def size(self) -> int | None:
        """The number of elements, or None where an extent is dynamic."""
        return self._descriptor.size

    @property
    def device(self) -> Device:
        """Where the buffers live."""
        return self._descriptor.device

    @property
    def layout(self) -> Layout:
        """Where elements stand."""
        return self._descriptor.layout

    @property
    def quantization(self) -> Quantization | None:
        """The scheme, or None."""
        return self._descriptor.quantization

    @property
    def statistics(self) -> Statistics | None:
        """What was computed of the values, or None."""
        return self._descriptor.statistics

    @property
    def shard(self) -> Shard | None:
        """Where the tensor stands in a larger one, or None."""
        return self._descriptor.shard

    @property
    def extension_type(self) -> ExtensionType | None:
        """The section of a private element type, else None."""
        return self._descriptor.extension_type

    @property
    def buffer_count(self) -> int:
        """How many buffers there are."""
        return len(self._buffers)

    @property
    def buffer_handles(self) -> tuple[BufferHandle, ...]:
        """What the descriptor says of the buffers."""
        return self._descriptor.buffer_handles

    def buffer(self, index: int) -> memoryview:
        """Return the bytes of a buffer, read-only and not copied.

        Raises:
            BufferError: There is no such buffer.
        """
        if not 0 <= index < len(self._buffers):
            sentence = f"A buffer's index must be in 0..{len(self._buffers) - 1}, not {index}"
            raise BufferError(sentence)
        return self._buffers[index]

    def codes(self) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Return the bit patterns of the elements in their logical shape.

        Returns:
            Unsigned integers, one an element; a view where elements take whole bytes and stand in
            strides.

        Raises:
            UnsupportedError: They cannot be looked up, see the layouts, or are wider than 64 bits.
            BufferError: One stands before the buffer.
        """
        return element_codes(self._descriptor, self._data())

    def numpy(self) -> npt.NDArray[Any]:
        """Return the elements in their logical shape, of the numpy or ml_dtypes type.

        Raises:
            UnsupportedError: No such type holds them, or they cannot be looked up.
            BufferError: One stands before the buffer.
        """
        return element_array(self._descriptor, self._data())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                sentence = f"An array of {dtype} must be a copy of elements of {self.dtype}"
                raise UnsupportedError(sentence)
            return array.astype(dtype)
        return array.copy() if copy else array

    def __repr__(self) -> str:
        return (
            f"hurray.Tensor(shape={self.shape}, dtype={self.dtype}, layout={self.layout.name!r}, "
            f"buffers={self.buffer_count})"
        )

    def _data(self) -> memoryview:
        return self._buffers[0] if self._buffers else memoryview(b"")


def _check_type(value: object, kind: Any, what: str, wanted: str) -> None:
    if not isinstance(value, kind):
        sentence = f"{what} must be {wanted}, not {value!r:.80}"
        raise FieldTypeError(sentence)


def _as_bytes(given: Any) -> memoryview:
    try:
        view = memoryview(given)
        if not view.c_contiguous:
            sentence = "A buffer must be contiguous bytes, not ones with gaps"
            raise BufferError(sentence)
        # A cast of nothing is refused by Python: there is only one empty view.
        flat = view.cast("B") if view.nbytes else memoryview(b"")
    except (TypeError, ValueError) as error:
        if isinstance(error, BufferError):
            raise
        sentence = f"A buffer must be contiguous bytes, not {type(given).__name__}"
        raise BufferError(sentence, hint="from_numpy takes arrays of every type.") from error
    return flat.toreadonly()
