"""The public element types by name; the table behind them is in `elements`."""

from __future__ import annotations

from typing import Final

from .elements import Dtype

# fmt: off
float16:     Final = Dtype.from_name("float16")
bfloat16:    Final = Dtype.from_name("bfloat16")
float32:     Final = Dtype.from_name("float32")
float64:     Final = Dtype.from_name("float64")
int8:        Final = Dtype.from_name("int8")
uint8:       Final = Dtype.from_name("uint8")
int16:       Final = Dtype.from_name("int16")
uint16:      Final = Dtype.from_name("uint16")
int32:       Final = Dtype.from_name("int32")
uint32:      Final = Dtype.from_name("uint32")
int64:       Final = Dtype.from_name("int64")
uint64:      Final = Dtype.from_name("uint64")
bool:        Final = Dtype.from_name("bool")  # noqa: A001 - the format's name
float8_e4m3: Final = Dtype.from_name("float8_e4m3")
float8_e5m2: Final = Dtype.from_name("float8_e5m2")
float8_e8m0: Final = Dtype.from_name("float8_e8m0")
float4_e2m1: Final = Dtype.from_name("float4_e2m1")
float6_e2m3: Final = Dtype.from_name("float6_e2m3")
float6_e3m2: Final = Dtype.from_name("float6_e3m2")
float128:    Final = Dtype.from_name("float128")
int4:        Final = Dtype.from_name("int4")
uint4:       Final = Dtype.from_name("uint4")
int2:        Final = Dtype.from_name("int2")
uint2:       Final = Dtype.from_name("uint2")
complex64:   Final = Dtype.from_name("complex64")
complex128:  Final = Dtype.from_name("complex128")
# fmt: on
