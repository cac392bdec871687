"""Carriers: one dtype a carrier, matched by identity; writes that are counted."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scalebox.ir.carriers import Carrier, accepts_storage_dtype, validate_storage_dtype
from scalebox.ir.dtypes import DType, DTypeCategory, Generic, SimpleDType, hardware
from scalebox.ir.dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS
from scalebox.ir.errors import UserError
from scalebox.ir.generic_carrier import storage_zero

KNOWN = [d for d in (vars(DType) | vars(hardware)).values() if isinstance(d, DType)]
STORABLE = (DType.Any, DType.Floating, DType.Bool, *FLOAT_FORMATS, *INTEGER_FORMATS)


class Listed(Carrier):
    """A carrier of one's own over a list."""

    def __init__(self, values: list[Any], dtype: DType) -> None:
        super().__init__()
        self._values = values
        self._dtype = dtype

    def size(self) -> int:
        return len(self._values)

    def dtype(self) -> DType:
        return self._dtype

    def get_value(self, index: Any) -> Any:
        return self._values[index]

    def set_value(self, index: Any, value: Any) -> None:
        self._values[index] = value

    def _is_mutable(self) -> bool:
        return True


class Relisted(Listed):
    """Writes through the carrier below it."""

    def set_value(self, index: Any, value: Any) -> None:
        super().set_value(index, value)

    def _supports_storage_dtype(self, dtype: DType) -> bool:
        return dtype is DType.Int8 or super()._supports_storage_dtype(dtype)


class ReadOnly(Carrier):
    """The least that a carrier can be."""

    def size(self) -> int:
        return 1

    def dtype(self) -> DType:
        return DType.Int32

    def get_value(self, index: Any) -> Any:
        return index


@pytest.mark.parametrize("dtype", KNOWN)
def test_generic_stores_exactly_the_dtypes_that_it_says(dtype: DType) -> None:
    carrier = Generic([])
    if dtype in STORABLE:
        assert carrier.supports_storage_dtype(dtype) is True
        assert Generic([], dtype=dtype).dtype() is dtype
    else:
        assert carrier.supports_storage_dtype(dtype) is False
        with pytest.raises(ValueError, match="Generic"):
            Generic([], dtype=dtype)
        with pytest.raises(ValueError, match="Generic"):
            carrier.allocate_like(3, dtype=dtype)


def test_the_default_dtype_is_floating_and_holds_objects() -> None:
    marker = object()
    carrier = Generic([0.1, marker, "x"])
    assert carrier.dtype() is DType.Floating
    assert [carrier[i] for i in range(3)] == [0.1, marker, "x"]


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (DType.Float32, [0.5, -2, np.float64(3), np.int8(4)]),
        (DType.Float64, [0.1, 1e300]),
        (DType.Int32, [-(2**31), 2**31 - 1, np.int64(5)]),
        (DType.Int8, [-128, 127]),
        (DType.Bool, [True, False, np.bool_(1)]),
        (DType.E4M3, [0, 0x7F, 0xFF]),
        (DType.E2M1, [0, 15]),
        (DType.E3M2, [0, 63]),
        (DType.E8M0, [0, 127, 255]),
        (DType.from_name("BFloat16"), [0, 0x3F80, 0xFFFF]),
        (DType.from_name("Int4"), [-8, 7]),
        (DType.from_name("UInt64"), [0, 2**64 - 1]),
    ],
)
def test_values_come_back_as_python_numbers(dtype: DType, values: list[Any]) -> None:
    carrier = Generic(values, dtype=dtype)
    back = [carrier[index] for index in range(carrier.size())]
    assert back == values
    assert {type(value) for value in back} <= {int, float, bool}


def test_float32_values_are_rounded_to_float32() -> None:
    assert Generic([0.1], dtype=DType.Float32)[0] == float(np.float32(0.1))
    assert np.isinf(Generic([float("inf")], dtype=DType.Float32)[0])
    assert np.isnan(Generic(np.array([np.nan]), dtype=DType.Float32)[0])


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (DType.Float32, "1"),
        (DType.Float32, True),
        (DType.Float32, None),
        (DType.Int32, 1.0),
        (DType.Int32, False),
        (DType.Bool, 1),
        (DType.E4M3, 1.0),
        (DType.E8M0, True),
        (DType.E2M1, np.float32(1)),
    ],
)
def test_a_value_of_another_type_is_a_type_error(dtype: DType, value: Any) -> None:
    carrier = Generic([], dtype=dtype).allocate_like(1)
    for wrong in (
        lambda: Generic([value], dtype=dtype),
        lambda: carrier.set_value(0, value),
        lambda: carrier.put([0], [value]),
    ):
        with pytest.raises(TypeError, match=f"A value of dtype {dtype.name} must be"):
            wrong()
    assert carrier.version == 0


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (DType.Float32, 1e39),
        (DType.Float32, 10**400),
        (DType.from_name("Float16"), 65520.0),
        (DType.Int32, 2**31),
        (DType.Int8, -129),
        (DType.Int8, 10**30),
        (DType.E4M3, 256),
        (DType.E2M1, 16),
        (DType.E2M1, -1),
        (DType.from_name("UInt4"), 16),
    ],
)
def test_a_value_out_of_range_is_an_overflow_error(dtype: DType, value: Any) -> None:
    with pytest.raises(OverflowError, match=f"A value of dtype {dtype.name} must") as error:
        Generic([0, value], dtype=dtype)
    assert isinstance(error.value, UserError)


def test_arrays_are_checked_by_their_kind_and_copied() -> None:
    codes = np.array([1, 2, 3], dtype=np.uint8)
    carrier = Generic(codes, dtype=DType.E8M0)
    codes[0] = 9
    assert carrier.array.tolist() == [1, 2, 3]
    assert not carrier.array.flags.writeable
    for wrong in (np.array([1.0]), np.array([True]), np.array(["a"])):
        with pytest.raises(TypeError, match="of an array of"):
            Generic(wrong, dtype=DType.E8M0)
    with pytest.raises(OverflowError):
        Generic(np.array([1e300]), dtype=DType.Float32)
    with pytest.raises(ValueError, match=r"must be of rank 1, not of shape \(1, 1\)"):
        Generic(np.zeros((1, 1)), dtype=DType.Float32)


@pytest.mark.parametrize("values", [None, 3, 1.5])
def test_values_must_be_iterable(values: Any) -> None:
    with pytest.raises(TypeError, match="must be iterable, not"):
        Generic(values, dtype=DType.Float32)


class Equal:
    """An object that is equal to everything."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError

    __hash__ = object.__hash__


@pytest.mark.parametrize("dtype", ["Float32", None, 32, Equal()])
def test_a_dtype_is_asked_for_and_matched_by_identity(dtype: Any) -> None:
    for ask in (lambda: Generic([], dtype=dtype), lambda: ReadOnly().supports_storage_dtype(dtype)):
        with pytest.raises(TypeError, match="dtype must be a DType, not"):
            ask()
    assert accepts_storage_dtype(dtype, (DType.Float32,)) is False


def test_validate_storage_dtype_names_what_is_valid() -> None:
    accepted = (DType.Float32, DType.Int32)
    assert validate_storage_dtype(DType.Int32, carrier="Demo", accepted=accepted) is DType.Int32
    with pytest.raises(ValueError, match="Demo's dtype must be one that it can store") as error:
        validate_storage_dtype(DType.Int8, carrier="Demo", accepted=accepted)
    assert isinstance(error.value, UserError)
    assert error.value.hint == "Valid are: Float32, Int32."


def test_an_extension_is_stored_by_nothing_that_does_not_know_it() -> None:
    dtype = SimpleDType("CarrierExtension", bits=8, supertype=DType.Any)
    category = DTypeCategory("CarrierCategory", opaque_storage=True)
    for unknown in (dtype, category):
        with pytest.raises(ValueError, match="must be one that it can store"):
            Generic([1], dtype=unknown)
    assert ReadOnly().supports_storage_dtype(DType.Int32)
    assert not ReadOnly().supports_storage_dtype(DType.Int8)
    assert Relisted([], DType.Int32).supports_storage_dtype(DType.Int8)


def test_the_zero_of_a_slot() -> None:
    for dtype in (DType.Float32, DType.Float64):
        assert repr(storage_zero(dtype)) == "0.0"
    for dtype in (DType.Int32, DType.E4M3):
        assert repr(storage_zero(dtype)) == "0"
    assert storage_zero(DType.Bool) is False
    for dtype in (DType.Any, DType.Floating, DType.E8M0, DType.MXFP4):
        assert storage_zero(dtype) is None


def test_every_public_write_counts_one_version() -> None:
    for carrier in (Generic([1, 2, 3], dtype=DType.Int32), Relisted([1, 2, 3], DType.Int32)):
        carrier[0] = 7
        carrier.set_value(np.int64(1), 8)
        assert [carrier[index] for index in range(3)] == [7, 8, 3]
        assert carrier.version == 2
    carrier = Generic([1, 2, 3], dtype=DType.Int32)
    carrier.put([2, 0], [9, 5])
    assert carrier.array.tolist() == [5, 2, 9]
    assert carrier.version == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_has_slots_and_a_version_of_its_own(copied: Callable[[Generic], Generic]) -> None:
    original = Generic([1.0, 2.0], dtype=DType.Float32)
    original[0] = 3.0
    twin = copied(original)
    twin[1] = 4.0
    assert (original[1], original.version) == (2.0, 1)
    assert (twin[0], twin[1], twin.version) == (3.0, 4.0, 2)


def test_a_failed_write_changes_neither_values_nor_version() -> None:
    carrier = Generic([1, 2], dtype=DType.Int32)
    for index, value in ((2, 1), (-1, 1), ("0", 1), (0.0, 1), (0, 2**40), (0, "a")):
        with pytest.raises((IndexError, TypeError, OverflowError)):
            carrier[index] = value  # type: ignore[index]
    for indices, values in (([0, 2], [1, 1]), ([-1], [1]), ([0], [1, 2]), ([0.0], [1])):
        with pytest.raises((IndexError, TypeError, ValueError)):
            carrier.put(indices, values)
    assert carrier.array.tolist() == [1, 2]
    assert carrier.version == 0


@pytest.mark.parametrize(("index", "error"), [(-1, IndexError), (2, IndexError), ("0", TypeError)])
def test_an_index_outside_is_an_index_error(index: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Generic([1, 2], dtype=DType.Int32)[index]


def test_an_immutable_carrier_refuses_writes() -> None:
    fixed = Generic([1], mutable=False, dtype=DType.Int32)
    assert not fixed.is_mutable()
    assert not ReadOnly().is_mutable()
    for carrier in (fixed, ReadOnly()):
        with pytest.raises(RuntimeError, match="must be mutable to be written"):
            carrier[0] = 2
    with pytest.raises(RuntimeError, match="must be mutable to be written"):
        fixed.put([0], [2])
    assert fixed[0] == 1
    assert fixed.version == 0


def test_release_is_final_and_may_be_repeated() -> None:
    for carrier in (Generic([1, 2], dtype=DType.Int32), Relisted([1, 2], DType.Int32)):
        assert not carrier.is_released()
        carrier.release()
        carrier.release()
        assert carrier.is_released()
        assert not carrier.is_mutable()
        for access in (lambda c=carrier: c[0], lambda c=carrier: c.set_value(0, 1)):
            with pytest.raises(RuntimeError, match="must be live to be accessed"):
                access()
        assert carrier.dtype() is DType.Int32
        assert carrier.supports_storage_dtype(DType.Int32)
    released = Generic([1, 2], dtype=DType.Int32)
    released.release()
    assert released.size() == 0
    assert released.new_like([4]).array.tolist() == [4]
    with pytest.raises(RuntimeError, match="must be live"):
        _ = released.array


def test_new_like_and_allocate_like_make_carriers_of_their_own() -> None:
    carrier = Generic([1.5], dtype=DType.Float32)
    other = carrier.new_like([2, 3], mutable=False)
    assert (other.dtype(), other.size(), other.is_mutable()) == (DType.Float32, 2, False)
    assert carrier.new_like([True], dtype=DType.Bool)[0] is True
    blank = carrier.allocate_like(3)
    assert [blank[index] for index in range(3)] == [0.0, 0.0, 0.0]
    assert carrier.allocate_like(1, dtype=DType.Any)[0] is None
    assert carrier.allocate_like(1, dtype=DType.E8M0)[0] == 0
    assert carrier.allocate_like(0).size() == 0
    with pytest.raises(ValueError, match="must be 0 or more, not -1"):
        carrier.allocate_like(-1)
    with pytest.raises(TypeError):
        carrier.allocate_like(1.5)  # type: ignore[arg-type]
