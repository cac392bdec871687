"""Tensors in the Hurray interchange format: descriptors, files and streams.

The names are those of the published implementation, so that its examples run with only the import
changed; `docs/hurray.md` tells where this one is stricter, and how MX tensors are stored.
"""

from __future__ import annotations

from . import dtype
from .arrays import asarray, from_numpy
from .boxes import boxed_scales_a, boxed_scales_b
from .buffers import MIN_BUFFER_ALIGNMENT, BufferHandle, Device, SyncMode
from .carried_layouts import (
    BlockPagedLayout,
    CompositeLayout,
    CooLayout,
    CscLayout,
    CsfLayout,
    CsrLayout,
    HilbertLayout,
    MortonLayout,
)
from .container import HurrayFile, load, load_kv, save
from .descriptor import Descriptor
from .dtype import (
    bfloat16,
    bool,  # noqa: A004 - the format's name
    complex64,
    complex128,
    float4_e2m1,
    float6_e2m3,
    float6_e3m2,
    float8_e4m3,
    float8_e5m2,
    float8_e8m0,
    float16,
    float32,
    float64,
    float128,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .elements import Dtype
from .errors import (
    BufferError,  # noqa: A004 - the specification's name
    BufferSizeError,
    FieldRangeError,
    FieldTypeError,
    FileError,
    HurrayError,
    InvalidDescriptorError,
    InvalidFileError,
    InvalidStreamError,
    StreamError,
    UnsupportedError,
)
from .extension import ExtensionType, ExtensionTypeDescriptor
from .file_format import PAGE_ALIGNMENT
from .ir_types import E1M2_TAG, E1M2_TYPE, from_ir, tensor_of_codes, to_ir
from .layouts import (
    ColMajorLayout,
    Order,
    PrivateExtensionLayout,
    RowMajorLayout,
    StridedLayout,
    TiledLayout,
)
from .mx import mx_array, mx_tensors
from .quantization import MXFP, VerbatimScheme, decode_quantization
from .sections import CompositeRole, Shard, Statistics
from .sizes import buffer_size_bytes
from .stream import StreamReader, StreamWriter
from .tensor import Tensor

__all__ = [
    "E1M2_TAG",
    "E1M2_TYPE",
    "MIN_BUFFER_ALIGNMENT",
    "MXFP",
    "PAGE_ALIGNMENT",
    "BlockPagedLayout",
    "BufferError",
    "BufferHandle",
    "BufferSizeError",
    "ColMajorLayout",
    "CompositeLayout",
    "CompositeRole",
    "CooLayout",
    "CscLayout",
    "CsfLayout",
    "CsrLayout",
    "Descriptor",
    "Device",
    "Dtype",
    "ExtensionType",
    "ExtensionTypeDescriptor",
    "FieldRangeError",
    "FieldTypeError",
    "FileError",
    "HilbertLayout",
    "HurrayError",
    "HurrayFile",
    "InvalidDescriptorError",
    "InvalidFileError",
    "InvalidStreamError",
    "MortonLayout",
    "Order",
    "PrivateExtensionLayout",
    "RowMajorLayout",
    "Shard",
    "Statistics",
    "StreamError",
    "StreamReader",
    "StreamWriter",
    "StridedLayout",
    "SyncMode",
    "Tensor",
    "TiledLayout",
    "UnsupportedError",
    "VerbatimScheme",
    "asarray",
    "bfloat16",
    "bool",
    "boxed_scales_a",
    "boxed_scales_b",
    "buffer_size_bytes",
    "complex64",
    "complex128",
    "decode_quantization",
    "dtype",
    "float4_e2m1",
    "float6_e2m3",
    "float6_e3m2",
    "float8_e4m3",
    "float8_e5m2",
    "float8_e8m0",
    "float16",
    "float32",
    "float64",
    "float128",
    "from_ir",
    "from_numpy",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "load",
    "load_kv",
    "mx_array",
    "mx_tensors",
    "save",
    "tensor_of_codes",
    "to_ir",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
