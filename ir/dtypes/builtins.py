"""The built-in descriptors, which are the public attributes of DType."""

from __future__ import annotations

from .block_scaled import BlockScaledDType, Level
from .descriptors import DType, DTypeCategory, SimpleDType
from .ownership import own_class_attributes
from .structure import Whole

_MX_BLOCK = 32
_NV_BLOCK = 16

_any = DTypeCategory("Any", opaque_storage=True)
_floating = DTypeCategory("Floating", supertype=_any, opaque_storage=True)
_integer = DTypeCategory("Integer", supertype=_any)

# fmt: off
_SIMPLE: tuple[tuple[str, int, DTypeCategory], ...] = (
    # name      bits  supertype
    ("Bool",       8, _any),
    ("Int32",     32, _integer),
    ("Int8",       8, _integer),
    ("Float32",   32, _floating),
    ("Float64",   64, _floating),
    ("E8M0",       8, _floating),
    ("E5M2",       8, _floating),
    ("E4M3",       8, _floating),
    ("E3M2",       6, _floating),
    ("E2M3",       6, _floating),
    ("E2M1",       4, _floating),
)

_MX_ELEMENTS: tuple[tuple[str, str], ...] = (
    # name         element
    ("MXFP8_E4M3", "E4M3"),
    ("MXFP8_E5M2", "E5M2"),
    ("MXFP6_E3M2", "E3M2"),
    ("MXFP6_E2M3", "E2M3"),
    ("MXFP4",      "E2M1"),
    ("MXINT8",     "Int8"),
)
# fmt: on


def _register() -> None:
    own_class_attributes(DType, {c.name: c for c in (_any, _floating, _integer)})
    simple = {
        name: SimpleDType(name, bits=bits, supertype=supertype) for name, bits, supertype in _SIMPLE
    }
    own_class_attributes(DType, simple)
    e8m0_blocks = Level(DType.E8M0, _MX_BLOCK)
    scaled = {
        name: BlockScaledDType(name, element=simple[element], levels=(e8m0_blocks,))
        for name, element in _MX_ELEMENTS
    }
    scaled["NVFP4"] = BlockScaledDType(
        "NVFP4",
        element=DType.E2M1,
        levels=(Level(DType.E4M3, _NV_BLOCK), Level(DType.Float32, Whole)),
    )
    own_class_attributes(DType, scaled)


_register()
