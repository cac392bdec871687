"""Block-scaled arrays as tensors and back.

What the MXFP scheme can say is one tensor with two buffers: elements, and row-major scales. The rest
is several tensors: the elements `x` under the private scheme :data:`SCHEME`, the scales `x.scales`,
and for NVFP4 the scale of the whole, `x.tensor_scale`. The rest is MXINT8, whose elements count in
units of 2^-6, which the scheme has no word for; groups that the extent cuts short; elements of a
private type, such as E1M2; NVFP4; and scales in the boxes of the machine's memory.

Scale bytes mean what OCP MX v1.0 says, in either form: 0x00 is 2^-127, 0xFF is NaN.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...ir.dtypes import BlockScaledDType, DType, Whole
from ...ir.errors import IRValueError
from ...ir.numerics.block_format import block_format_of
from ...ir.numerics.elements import block_exponent
from ...ir.numerics.mxarray import MXArray
from .boxes import boxed_scales_a, boxed_scales_b
from .elements import BY_TAG
from .errors import InvalidDescriptorError, UnsupportedError
from .ir_types import code_bytes, from_ir, tensor_of_codes, to_ir
from .quantization import MXFP, MXFP_STORAGE, VerbatimScheme

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ...ir.dtypes import SimpleDType
    from .tensor import Tensor

SCHEME: Final = 0xF0
"""The private scheme of elements whose scales are tensors of their own."""

SCALES_SUFFIX: Final = ".scales"
TENSOR_SCALE_SUFFIX: Final = ".tensor_scale"

_VERSION = 1
_WIRE = Struct("<BBHIIBBbB")
_MXFP_BLOCKS = (16, 32, 64, 128, 256, 512, 1024, 2048)


def mx_tensors(name: str, array: MXArray, *, boxed: bool = False) -> dict[str, Tensor]:
    """Return the tensors that hold a block-scaled array.

    Args:
        name: Of the array; further tensors are called `name.scales` and `name.tensor_scale`.
        array: The array.
        boxed: Whether the scales of a matrix shall stand in boxes of 16 by 2, as the machine reads
            them: ZZ for groups along axis 1, NN for groups along axis 0.

    Raises:
        UnsupportedError: The elements have no type in a file, or `boxed` is not for this array.
    """
    if not boxed and can_be_one_tensor(array):
        return {name: mx_tensor(array)}
    form = block_format_of(array.dtype)
    has_tensor_scale = array.tensor_scale is not None
    scale_tag = from_ir(form.scale)[0].tag
    section = _WIRE.pack(
        SCHEME,
        _VERSION,
        0,
        array.axis,
        form.block,
        scale_tag,
        has_tensor_scale,
        block_exponent(form.element),
        0,
    )
    found = {
        name: tensor_of_codes(
            array.elements, array.dtype.element, quantization=VerbatimScheme(section)
        ),
        name + SCALES_SUFFIX: _boxed(array) if boxed else tensor_of_codes(array.scales, form.scale),
    }
    if array.tensor_scale is not None:
        bits = np.float32(array.tensor_scale).reshape(()).view(np.uint32)
        found[name + TENSOR_SCALE_SUFFIX] = tensor_of_codes(bits, DType.Float32)
    return found


def mx_array(name: str, tensors: Mapping[str, Tensor]) -> MXArray:
    """Return the block-scaled array that :func:`mx_tensors` stored under a name.

    Raises:
        UnsupportedError: The tensor is not block-scaled, or no dtype of its kind is registered.
        InvalidDescriptorError: A part is missing, or the parts do not fit together.
    """
    elements = _part(name, tensors)
    scheme = elements.quantization
    if isinstance(scheme, MXFP):
        return mx_array_of(elements)
    if not isinstance(scheme, VerbatimScheme) or scheme.scheme != SCHEME:
        sentence = f"Tensor {name!r} must be block-scaled, not quantised by {scheme!r:.80}"
        raise UnsupportedError(sentence)
    axis, block, scale, has_tensor_scale, exponent = _decode_scheme(scheme)
    element = to_ir(elements.dtype, elements.extension_type)
    dtype = _find(element, block, scale, has_tensor_scale=has_tensor_scale)
    wanted = block_exponent(block_format_of(dtype).element)
    if exponent != wanted:
        sentence = f"Elements of {dtype.name} must count in 2^{wanted}, not in 2^{exponent}"
        raise InvalidDescriptorError(sentence, found=exponent)
    scales = _part(name + SCALES_SUFFIX, tensors)
    if to_ir(scales.dtype, scales.extension_type) is not scale:
        sentence = f"Tensor {name + SCALES_SUFFIX!r} must be of {scale.name}, not {scales.dtype}"
        raise InvalidDescriptorError(sentence, found=scales.dtype.tag)
    whole = None
    if has_tensor_scale:
        tensor_scale = _part(name + TENSOR_SCALE_SUFFIX, tensors).numpy()
        whole = np.float32(tensor_scale.reshape(-1)[0]) if tensor_scale.size == 1 else None
    return _made(elements.codes(), scales.codes(), dtype, axis, whole)


def can_be_one_tensor(array: MXArray) -> bool:
    """Return whether the MXFP scheme can say the array."""
    form = block_format_of(array.dtype)
    element = array.dtype.element
    if form.has_tensor_scale or element is DType.Int8 or form.block not in _MXFP_BLOCKS:
        return False
    extent = array.shape[array.axis]
    try:
        stored, _ = from_ir(element)
    except UnsupportedError:
        return False
    return stored in MXFP_STORAGE and extent > 0 and extent % form.block == 0


def mx_tensor(array: MXArray) -> Tensor:
    """Return a block-scaled array as one tensor of the MXFP scheme.

    Raises:
        UnsupportedError: The scheme cannot say it; :func:`mx_tensors` can.
    """
    if not can_be_one_tensor(array):
        sentence = (
            "An array of the MXFP scheme must be of float elements with one level of E8M0 scales "
            f"and whole blocks, not {array.dtype.name} of shape {list(array.shape)} grouped along "
            f"axis {array.axis}"
        )
        raise UnsupportedError(sentence, hint="mx_tensors stores it as several tensors.")
    scales = np.moveaxis(array.scales, array.axis, -1)
    block = block_format_of(array.dtype).block
    return tensor_of_codes(
        array.elements,
        array.dtype.element,
        aux_buffers=(code_bytes(scales, 8),),
        quantization=MXFP(array.axis, block, 1),
    )


def mx_array_of(tensor: Tensor) -> MXArray:
    """Return the block-scaled array of a tensor of the MXFP scheme.

    Raises:
        UnsupportedError: The tensor has another scheme, integer elements (which the scheme counts in
            units of 1, and OCP in units of 2^-6), a dynamic extent, or no dtype is registered for it.
    """
    scheme = tensor.quantization
    if not isinstance(scheme, MXFP):
        sentence = f"A tensor must be of the MXFP scheme, not quantised by {scheme!r:.80}"
        raise UnsupportedError(sentence)
    if tensor.dtype.is_integer:
        sentence = (
            "Elements of the MXFP scheme must be floats to be an OCP array, "
            f"not {tensor.dtype.name}, which the scheme counts in units of 1 and OCP in 2^-6"
        )
        raise UnsupportedError(sentence)
    elements = tensor.codes()
    axis, block = scheme.axis, scheme.block_size
    dtype = _find(to_ir(tensor.dtype), block, DType.E8M0, has_tensor_scale=False)
    others = elements.shape[:axis] + elements.shape[axis + 1 :]
    flat = np.frombuffer(tensor.buffer(scheme.scale_buffer_index), np.uint8)
    scales = flat.reshape((*others, elements.shape[axis] // block))
    return _made(elements, np.moveaxis(scales, -1, axis), dtype, axis, None)


def _boxed(array: MXArray) -> Tensor:
    if array.elements.ndim != 2 or block_format_of(array.dtype).scale is not DType.E8M0:
        sentence = (
            "Boxes must hold the E8M0 scales of a matrix, not those of "
            f"{array.dtype.name} of shape {list(array.shape)}"
        )
        raise UnsupportedError(sentence)
    return boxed_scales_a(array.scales) if array.axis == 1 else boxed_scales_b(array.scales)


def _decode_scheme(scheme: VerbatimScheme) -> tuple[int, int, SimpleDType, bool, int]:
    section = scheme.section
    if len(section) != _WIRE.size:
        sentence = f"A section of scheme 0xF0 must have {_WIRE.size} bytes, not {len(section)}"
        raise InvalidDescriptorError(sentence, found=len(section))
    fields: tuple[int, ...] = _WIRE.unpack(section)
    _, version, flags, axis, block, scale_tag, has_scale, exponent, reserved = fields
    scale = BY_TAG[scale_tag]
    if version != _VERSION or flags or reserved or has_scale > 1 or scale is None:
        sentence = (
            f"A section of scheme 0xF0 must be of version {_VERSION} with no flags, a type of "
            f"scales, and 0 or 1 scales of the whole, not {section.hex(' ').upper()}"
        )
        raise InvalidDescriptorError(sentence, found=section)
    return axis, block, to_ir(scale), bool(has_scale), exponent


def _find(
    element: SimpleDType, block: int, scale: SimpleDType, *, has_tensor_scale: bool
) -> BlockScaledDType:
    chain = [(scale, block), (DType.Float32, Whole)][: 2 if has_tensor_scale else 1]
    for known in BlockScaledDType.registered():
        if known.element is element and [(v.scale, v.block) for v in known.levels] == chain:
            return known
    names = " and ".join(f"{level.name} over {extent}" for level, extent in chain)
    sentence = f"A dtype must be registered for {element.name} scaled by {names}, but none is"
    raise UnsupportedError(sentence)


def _part(name: str, tensors: Mapping[str, Tensor]) -> Tensor:
    found = tensors.get(name)
    if found is None:
        sentence = f"The tensors must have the part {name!r}, but have none of that name"
        raise InvalidDescriptorError(sentence, found=name)
    return found


def _made(
    elements: npt.NDArray[Any],
    scales: npt.NDArray[Any],
    dtype: BlockScaledDType,
    axis: int,
    tensor_scale: np.float32 | None,
) -> MXArray:
    try:
        return MXArray(elements, scales, dtype, axis, tensor_scale)
    except IRValueError as error:
        raise InvalidDescriptorError(error.message) from error
