"""The extension type section: what a private element type tells a stranger.

Its 20 bytes say the width, the packing and the floating-point parameters: enough to move the bytes,
not to interpret them.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from functools import lru_cache
from struct import Struct
from typing import Any, Final

from .errors import FieldTypeError, InvalidDescriptorError
from .sizes import U32_MAX, bounded, checked_count, checked_uint, packed_bytes

SECTION_BYTES: Final = 20

_BYTE = 8
_U8_MAX = 255
_SUB_BYTE_WIDTHS = (1, 2, 4)
_WIRE = Struct("<I6BHI2BH")
# Where the fields that decoding checks stand in the section.
_AT_PACKING, _AT_RESERVED, _AT_RESERVED_END = 4, 10, 18
_AT_FLAGS = {"is_float": 5, "is_signed": 6, "has_nan": 16, "has_inf": 17}
_FLOAT_FIELDS = ("sign_bits", "exponent_bits", "mantissa_bits", "exponent_bias")


@dataclass(frozen=True, slots=True, repr=False)
class ExtensionType:
    """A description of a private element type; equal fields make equal descriptions.

    A float carries its sign in `sign_bits`; `is_signed` is for integers.

    Args:
        bit_width: Bits of an element: 1, 2, 4 or a multiple of 8.
        is_float: Whether values are floating-point numbers.
        is_signed: Whether an integer is signed; never set for a float.
        sign_bits: 0 or 1, of a float.
        exponent_bits: Of a float, at most 255.
        mantissa_bits: Of a float, at most 255.
        exponent_bias: Of a float, at most 32 bits.
        has_nan: Whether some code is a NaN.
        has_inf: Whether some code is an infinity.

    Raises:
        InvalidDescriptorError: A field breaks a rule of the format; a `FieldRangeError` where a
            number does not fit its bytes.
        FieldTypeError: A number is no integer, or a flag is neither True nor False.
    """

    bit_width: int
    _: KW_ONLY
    is_float: bool = False
    is_signed: bool = False
    sign_bits: int = 0
    exponent_bits: int = 0
    mantissa_bits: int = 0
    exponent_bias: int = 0
    has_nan: bool = False
    has_inf: bool = False

    def __post_init__(self) -> None:
        self._check_types()
        self._check_width()
        if self.sign_bits > 1:
            sentence = f"sign_bits of an extension type must be 0 or 1, not {self.sign_bits}"
            raise InvalidDescriptorError(sentence, found=self.sign_bits)
        if self.is_float and self.is_signed:
            sentence = (
                "is_signed of an extension type must be False for a float, whose sign is in "
                "sign_bits, not True"
            )
            raise InvalidDescriptorError(sentence, found=True)
        if not self.is_float and any(getattr(self, name) for name in _FLOAT_FIELDS):
            found = {name: getattr(self, name) for name in _FLOAT_FIELDS}
            listed = ", ".join(str(value) for value in found.values())
            sentence = (
                f"{', '.join(_FLOAT_FIELDS[:-1])} and {_FLOAT_FIELDS[-1]} of an extension type "
                f"must be 0 for an integer, not {listed}"
            )
            raise InvalidDescriptorError(sentence, found=found)

    @classmethod
    def new(
        cls,
        bit_width: int,
        packing_factor: int,
        is_float: bool,
        is_signed: bool,
        sign_bits: int,
        exponent_bits: int,
        mantissa_bits: int,
        exponent_bias: int,
        has_nan: bool,
        has_inf: bool,
    ) -> ExtensionType:
        """Return a description from all its fields, the packing factor included.

        Raises:
            InvalidDescriptorError: As the constructor, or the packing factor is not the one that
                the width has.
            FieldTypeError: As the constructor.
        """
        made = cls(
            bit_width,
            is_float=is_float,
            is_signed=is_signed,
            sign_bits=sign_bits,
            exponent_bits=exponent_bits,
            mantissa_bits=mantissa_bits,
            exponent_bias=exponent_bias,
            has_nan=has_nan,
            has_inf=has_inf,
        )
        factor = checked_uint(packing_factor, _U8_MAX, "packing_factor")
        if factor != made.packing_factor:
            raise _bad_packing(made, factor)
        return made

    @property
    def packing_factor(self) -> int:
        """How many elements fit in a byte; 1 for elements of whole bytes."""
        return _BYTE // self.bit_width if self.bit_width < _BYTE else 1

    def buffer_size_bytes(self, count: int) -> int:
        """Return the bytes that `count` elements take.

        Raises:
            FieldRangeError: `count` or the size is no number of 64 bits.
            FieldTypeError: `count` is no integer.
        """
        return bounded(packed_bytes(self.bit_width, checked_count(count)))

    def encode(self) -> bytes:
        """Return the 20 bytes of the section."""
        return _WIRE.pack(
            self.bit_width,
            self.packing_factor,
            self.is_float,
            self.is_signed,
            self.sign_bits,
            self.exponent_bits,
            self.mantissa_bits,
            0,
            self.exponent_bias,
            self.has_nan,
            self.has_inf,
            0,
        )

    def _check_types(self) -> None:
        largest = {"bit_width": U32_MAX, "exponent_bias": U32_MAX}
        for each in fields(self):
            value: Any = getattr(self, each.name)
            if each.name in _AT_FLAGS:
                if type(value) is not bool:
                    sentence = (
                        f"{each.name} of an extension type must be True or False, not {value!r}"
                    )
                    raise FieldTypeError(sentence)
            else:
                what = f"{each.name} of an extension type"
                number = checked_uint(value, largest.get(each.name, _U8_MAX), what)
                object.__setattr__(self, each.name, number)

    def _check_width(self) -> None:
        width = self.bit_width
        if width == 0:
            sentence = "bit_width of an extension type must be greater than 0, not 0"
        elif width < _BYTE and width not in _SUB_BYTE_WIDTHS:
            sentence = (
                "bit_width of an extension type below 8 must be 1, 2 or 4, as other widths are "
                f"left to the public types, not {width}"
            )
        elif width > _BYTE and width % _BYTE:
            sentence = (
                f"bit_width of an extension type above 8 must be a multiple of 8, not {width}"
            )
        else:
            return
        raise InvalidDescriptorError(sentence, found=width)

    def __repr__(self) -> str:
        given = [f"bit_width={self.bit_width}"]
        for each in fields(self)[1:]:
            value = getattr(self, each.name)
            if value != each.default:
                given.append(f"{each.name}={value!r}")
        return f"ExtensionType({', '.join(given)})"


ExtensionTypeDescriptor = ExtensionType
"""The name of the low-level interface, whose constructor is :meth:`ExtensionType.new`."""


@lru_cache(maxsize=256)
def decode_extension_type(section: bytes) -> ExtensionType:
    """Return what the 20 bytes of a section say.

    Raises:
        InvalidDescriptorError: They break a rule; offsets count from the section's first byte.
    """
    (
        bit_width,
        packing_factor,
        is_float,
        is_signed,
        sign_bits,
        exponent_bits,
        mantissa_bits,
        reserved,
        exponent_bias,
        has_nan,
        has_inf,
        reserved_end,
    ) = _WIRE.unpack(section)
    for name, at in _AT_FLAGS.items():
        if section[at] > 1:
            sentence = f"{name} of the extension type must be 0 or 1, not {section[at]}"
            raise InvalidDescriptorError(sentence, offset=at, found=section[at])
    for at, value in ((_AT_RESERVED, reserved), (_AT_RESERVED_END, reserved_end)):
        if value:
            sentence = f"Reserved bytes of the extension type must be 0, not 0x{value:04X}"
            raise InvalidDescriptorError(sentence, offset=at, found=value)
    made = ExtensionType(
        bit_width,
        is_float=bool(is_float),
        is_signed=bool(is_signed),
        sign_bits=sign_bits,
        exponent_bits=exponent_bits,
        mantissa_bits=mantissa_bits,
        exponent_bias=exponent_bias,
        has_nan=bool(has_nan),
        has_inf=bool(has_inf),
    )
    if packing_factor != made.packing_factor:
        raise _bad_packing(made, packing_factor).moved(_AT_PACKING)
    return made


def _bad_packing(made: ExtensionType, found: int) -> InvalidDescriptorError:
    sentence = (
        f"packing_factor of an extension type of {made.bit_width} bits must be "
        f"{made.packing_factor}, not {found}"
    )
    return InvalidDescriptorError(sentence, found=found)
