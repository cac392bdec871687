"""The memories of a cluster's cores and the global memory that they work on.

Local memories lie one behind the other in a single byte array, so that a kernel needs two arrays
(bytes, and which bits of them were ever written) and one table of bases, whatever it touches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ..codegen.isa.vocabulary import Space
from ..ir.errors import InputError
from .datapaths.kernels import BASE, ROOM

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    import numpy.typing as npt

    from ..codegen.executable import HostProgram
    from ..ir.target import Target

    Bytes = npt.NDArray[np.uint8]
    Table = npt.NDArray[np.int64]

GM_ALIGNMENT: Final = 512
"""Every buffer begins on an L2 line."""

GM_GUARD: Final = 512
"""Bytes between two buffers that belong to neither."""

WRITTEN: Final = 0xFF
"""The written mask of a byte all of whose bits have been written."""


def local_size(target: Target, space: Space) -> int:
    """Return the bytes that `target` has of the local memory `space`."""
    match space:
        case Space.L1:
            return target.l1_bytes
        case Space.L0A:
            return target.l0a_bytes
        case Space.L0B:
            return target.l0b_bytes
        case Space.L0C:
            return target.l0c_bytes
        case Space.BIAS:
            return target.bias_bytes
        case Space.SCALE_A:
            return target.scale_a_bytes
        case Space.SCALE_B:
            return target.scale_b_bytes
        case Space.FIXP:
            return target.fixp_bytes
        case Space.UB:
            return target.ub_bytes
        case Space.GM:
            message = "GM is no local memory"
            raise AssertionError(message)


class LocalMemory:
    """The memories inside a cluster: those of its cube core and the UB of either vector core.

    Attributes:
        data: Bytes of all spaces, uint8 [total], and behind them `ROOM` in which a kernel may work.
        written: Per byte, the mask of bits that were ever written, uint8 [total]. A data movement
            moves the mask along, so a read can be traced to a byte that nothing ever wrote.
        bases: Where each space begins in `data`, int64 [spaces + 1], indexed by `Space`; behind the
            UB of the first vector core stands that of the second.
        sizes: Bytes of each space, int64 [spaces + 1]; 0 for GM.
    """

    def __init__(self, target: Target) -> None:
        spaces = [space for space in Space if space is not Space.GM]
        assert spaces[-1] is Space.UB, "the UB of the second vector core comes behind the first"
        self.bases: Table = np.zeros(len(Space) + 1, np.int64)
        self.sizes: Table = np.zeros(len(Space) + 1, np.int64)
        total = 0
        for place, space in enumerate([*spaces, Space.UB], start=1):
            self.bases[place] = total
            self.sizes[place] = local_size(target, space)
            total += -(-int(self.sizes[place]) // GM_ALIGNMENT) * GM_ALIGNMENT
        self.data: Bytes = np.zeros(total + ROOM, np.uint8)
        self.written: Bytes = np.zeros(total, np.uint8)

    def view(self, space: Space) -> Bytes:
        """Return the bytes of `space`, uint8 [size], sharing memory."""
        return self._slice(self.data, space)

    def written_view(self, space: Space) -> Bytes:
        """Return the written masks of `space`, uint8 [size], sharing memory."""
        return self._slice(self.written, space)

    def forget(self, *, cube: bool, vector: bool) -> None:
        """Let the memories of the cube core, of the vector cores or of both hold zeros, never written.

        A device keeps what was there before. Here a task finds the same whichever ran before it, so
        that what it wrongly reads depends neither on their order nor on the threads of the host.
        """
        border = int(self.bases[Space.UB])
        part = slice(0 if cube else border, None if vector else border)
        self.data[part] = 0
        self.written[part] = 0

    def _slice(self, array: Bytes, space: Space) -> Bytes:
        base = int(self.bases[space])
        return array[base : base + int(self.sizes[space])]


@dataclass(frozen=True, slots=True)
class Allocation:
    """A buffer in global memory.

    Args:
        name: The buffer's name.
        address: Byte address, a multiple of `GM_ALIGNMENT`.
        size: Bytes.
        given: Whether it was filled before the launch.
    """

    name: str
    address: int
    size: int
    given: bool


class GlobalMemory:
    """Global memory: buffers at addresses with guard gaps between them, and the bytes that they hold.

    A buffer may lie where its first contents lie, so that nobody copies what is only read; kernels
    see one array that reaches over all of them, and a buffer has a place there beside its address.
    Buffers that nobody filled stand together at the highest addresses, and in one array: written masks
    exist for those only.

    Args:
        sizes: Buffer name to bytes.
        images: Buffer name to its first contents, uint8 [bytes]; the others are never-written.
        filled: Whether the bytes exist; without them there are addresses only.
        lent: The buffers that nothing writes, whose images may stay where they are.

    Attributes:
        size: Bytes from the lowest address to the end of the last buffer.
        data: uint8, from the first byte of the buffer that lies first to the last of the last one.
            What lies between buffers is not to be touched.
        written_base: Place in `data` of the first byte that has a written mask.
        written: Written masks from `written_base` on, uint8; all bytes without one count as written.
        allocations: Buffer name to its place.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        images: Mapping[str, Bytes],
        *,
        filled: bool = True,
        lent: Container[str] = (),
    ) -> None:
        self.allocations: dict[str, Allocation] = {}
        address = GM_GUARD
        given = [name for name in sizes if name in images]
        for name in given:
            address = self._allocate(name, address, sizes[name], given=True)
        first = address
        for name in sizes:
            if name not in images:
                address = self._allocate(name, address, sizes[name], given=False)
        self.size = address
        self.written: Bytes = np.zeros(address - first if filled else 0, np.uint8)
        self._bytes: dict[str, Bytes] = {}
        if filled:
            others: Bytes = np.zeros(address - first, np.uint8)
            for place in self.allocations.values():
                begin = place.address - first
                self._bytes[place.name] = others[begin : begin + place.size]
            for name in given:
                image = np.ascontiguousarray(images[name]).reshape(-1)
                self._bytes[name] = image if name in lent else _copied(image)
            self.data, origin = _over_all([others, *self._bytes.values()])
            self.written_base = _first_byte(others) - origin
        else:
            self.data, origin, self.written_base = np.zeros(0, np.uint8), 0, 0
        self._places = {
            self.allocations[name].address: _first_byte(each) - origin
            for name, each in self._bytes.items()
        }

    def placed(self, views: Table) -> Table:
        """Return bound views with the places of their buffers in `data` instead of addresses.

        A line of no buffer, which stands where a kernel has no views, stays as it is.
        """
        placed = views.copy()
        addresses: list[int] = views[:, BASE].tolist()
        placed[:, BASE] = [self._places.get(address, address) for address in addresses]
        return placed

    def view(self, name: str) -> Bytes:
        """Return the bytes of the buffer `name`, uint8 [size], sharing memory."""
        return self._bytes[name]

    def released(self, name: str) -> Bytes:
        """Return the bytes of a buffer for good, uint8 [size]; nobody may write to it any more."""
        each = self._bytes[name]
        if each.base is None:
            self._bytes[name] = each.view()
            return each
        return each.copy()

    def written_view(self, name: str) -> Bytes:
        """Return the written masks of a buffer that was not given, uint8 [size]."""
        place = self.allocations[name]
        assert not place.given, f"{name} was given, so all of it counts as written"
        begin = self._places[place.address] - self.written_base
        return self.written[begin : begin + place.size]

    def _allocate(self, name: str, address: int, size: int, *, given: bool) -> int:
        self.allocations[name] = Allocation(name, address, size, given)
        return -(-(address + size + GM_GUARD) // GM_ALIGNMENT) * GM_ALIGNMENT


def _copied(image: Bytes) -> Bytes:
    """Return bytes of our own; those of zeros only take up memory where they are written."""
    whole = image.size // 8 * 8
    if not (image[:whole].view(np.uint64).any() or image[whole:].any()):
        return np.zeros(image.size, np.uint8)
    return image.copy()


def _first_byte(array: Bytes) -> int:
    """Return where an array begins in the memory of the host."""
    return int(array.__array_interface__["data"][0])


class _Span:
    """Memory of the host from one byte to another, of which numpy makes an array."""

    def __init__(self, begin: int, end: int) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (end - begin,),
            "data": (begin, False),
        }


def _over_all(arrays: Sequence[Bytes]) -> tuple[Bytes, int]:
    """Return an array that reaches over some others, and where it begins.

    Only what the others hold is to be touched in it, and they must live as long as it does.
    """
    begin = min(_first_byte(each) for each in arrays)
    end = max(_first_byte(each) + each.size for each in arrays)
    return np.asarray(_Span(begin, end)), begin


def images_of(host: HostProgram, buffers: Mapping[str, Bytes]) -> dict[str, Bytes]:
    """Return the bytes of tensors of an entry, flat.

    Args:
        host: The entry.
        buffers: Name of a tensor to uint8 of any shape; what is only written may be left out.

    Raises:
        InputError: If one is missing, unknown or of the wrong size or type.
    """
    tensors = {param.name: param for param in host.params if param.is_tensor}
    for name in buffers:
        if name not in tensors:
            known = ", ".join(tensors) or "none"
            message = f"A buffer must be for a tensor of {host.name!r} ({known}), not {name!r}."
            raise InputError(message)
    images: dict[str, Bytes] = {}
    for name, param in tensors.items():
        if name not in buffers:
            if param.direction.reads:
                message = f"The buffer {name!r} of {host.name!r} must be given, since it is read."
                raise InputError(message)
            continue
        image = buffers[name]
        if image.dtype != np.uint8 or image.size != param.size_bytes:
            message = (
                f"The buffer {name!r} of {host.name!r} must be {param.size_bytes} bytes of uint8, "
                f"not {image.size} of {image.dtype}."
            )
            raise InputError(message)
        images[name] = image.reshape(-1)
    return images
