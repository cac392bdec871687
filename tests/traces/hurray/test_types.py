"""Element types and extension types as objects."""

import copy
import pickle
from typing import Any

import pytest

from scalebox.traces import hurray


def test_a_type_is_equal_to_every_other_of_its_tag() -> None:
    for tag in (0x03, 0xF0, 0xF7, 0xFE):
        one, other = hurray.Dtype.from_tag(tag), hurray.Dtype(tag)
        assert one == other
        assert hash(one) == hash(other)
        assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one
    assert hurray.Dtype.from_tag(0xF2) != hurray.Dtype.from_tag(0xF3)


def test_every_name_of_the_module_is_its_own_type() -> None:
    named = {n: v for n, v in vars(hurray.dtype).items() if isinstance(v, hurray.Dtype)}
    assert len(named) == 26
    for name, dtype in named.items():
        assert dtype.name == name
        assert getattr(hurray, name) is dtype is hurray.Dtype.from_name(name)


@pytest.mark.parametrize(
    ("tag", "why"),
    [
        (0x00, "invalid"), (0xFF, "invalid"), (0x47, "reserved"), (0x80, "reserved"),
        (0xEF, "reserved"), (0x05, "unknown"), (0x18, "unknown"), (0x21, "unknown"),
        (0x4C, "unknown"), (0x52, "unknown"), (0x7F, "unknown"),
    ],
)  # fmt: skip
def test_a_tag_without_a_type_is_refused_with_the_reason(tag: int, why: str) -> None:
    with pytest.raises(hurray.InvalidDescriptorError, match=f"not 0x{tag:02X}, which is {why}"):
        hurray.Dtype.from_tag(tag)


@pytest.mark.parametrize("tag", [-1, 256, 1 << 40])
def test_a_tag_that_is_no_byte_is_out_of_range(tag: int) -> None:
    with pytest.raises(OverflowError, match=rf"must be in 0\.\.255, not {tag}"):
        hurray.Dtype.from_tag(tag)


def test_a_tag_or_a_name_of_the_wrong_kind_is_refused() -> None:
    wrong: Any = "3"
    with pytest.raises(TypeError, match="must be an integer, not '3'"):
        hurray.Dtype.from_tag(wrong)
    for name in ("nope", "extension", "FLOAT32"):
        with pytest.raises(hurray.InvalidDescriptorError, match=f"a public one, not '{name}'"):
            hurray.Dtype.from_name(name)


def test_sizes_need_a_number_of_elements() -> None:
    wrong: Any = 1.5
    with pytest.raises(TypeError, match=r"must be an integer, not 1\.5"):
        hurray.buffer_size_bytes(hurray.float32, wrong)
    for count in (-1, 1 << 64):
        with pytest.raises(
            OverflowError, match=f"The number of elements must be in .* not {count}"
        ):
            hurray.buffer_size_bytes(hurray.float32, count)
    with pytest.raises(hurray.InvalidDescriptorError, match="ExtensionType"):
        hurray.buffer_size_bytes(hurray.Dtype.from_tag(0xF2), 0)


def test_an_extension_type_has_its_fields_and_defaults() -> None:
    made = hurray.ExtensionType(24)
    names = (
        "bit_width", "is_float", "is_signed", "sign_bits", "exponent_bits", "mantissa_bits",
        "exponent_bias", "has_nan", "has_inf", "packing_factor",
    )  # fmt: skip
    assert [getattr(made, n) for n in names] == [24, False, False, 0, 0, 0, 0, False, False, 1]


@pytest.mark.parametrize(
    ("width", "factor"), [(1, 8), (2, 4), (4, 2), (8, 1), (16, 1), (24, 1), (64, 1), (1 << 31, 1)]
)
def test_the_packing_factor_follows_from_the_width(width: int, factor: int) -> None:
    assert hurray.ExtensionType(width).packing_factor == factor


@pytest.mark.parametrize(
    ("width", "count", "size"),
    [(24, 10, 30), (8, 37, 37), (4, 7, 4), (2, 5, 2), (1, 9, 2), (16, 0, 0)],
)
def test_an_extension_type_sizes_its_buffers(width: int, count: int, size: int) -> None:
    assert hurray.ExtensionType(width).buffer_size_bytes(count) == size


def test_equal_fields_make_equal_extension_types() -> None:
    one = hurray.ExtensionType(16, is_float=True, sign_bits=1, exponent_bits=5)
    assert one == hurray.ExtensionType(16, is_float=True, sign_bits=1, exponent_bits=5)
    assert one != hurray.ExtensionType(16, is_float=True, sign_bits=1, exponent_bits=6)
    assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one
    assert len({one, copy.copy(one)}) == 1
    with pytest.raises(AttributeError):
        one.bit_width = 8  # type: ignore[misc]


def test_an_extension_type_shows_what_differs_from_the_defaults() -> None:
    int24 = hurray.ExtensionType(24, is_signed=True)
    assert repr(int24) == "ExtensionType(bit_width=24, is_signed=True)"
    scale = hurray.ExtensionType(8, is_float=True, exponent_bits=8, exponent_bias=127, has_nan=True)
    assert eval(repr(scale), {"ExtensionType": hurray.ExtensionType}) == scale


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"bit_width": 0}, "must be greater than 0, not 0"),
    ({"bit_width": 5}, "1, 2 or 4.* not 5"),
    ({"bit_width": 8, "sign_bits": 2}, "sign_bits .* must be 0 or 1, not 2"),
    ({"bit_width": 8, "is_float": True, "is_signed": True}, "is_signed .* in sign_bits"),
    ({"bit_width": 8, "sign_bits": 1}, "must be 0 for an integer, not 1, 0, 0, 0"),
    ({"bit_width": 8, "exponent_bits": 2}, "must be 0 for an integer, not 0, 2, 0, 0"),
    ({"bit_width": 8, "mantissa_bits": 3}, "must be 0 for an integer, not 0, 0, 3, 0"),
    ({"bit_width": 8, "exponent_bias": 4}, "must be 0 for an integer, not 0, 0, 0, 4"),
]


@pytest.mark.parametrize(("fields", "message"), FAULTS)
def test_an_extension_type_that_contradicts_itself_is_refused(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(hurray.InvalidDescriptorError, match=message):
        hurray.ExtensionType(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"bit_width": 1 << 32},
        {"bit_width": -8},
        {"bit_width": 8, "is_float": True, "exponent_bits": 256},
        {"bit_width": 8, "is_float": True, "mantissa_bits": -1},
        {"bit_width": 8, "is_float": True, "exponent_bias": 1 << 32},
    ],
)
def test_a_field_that_does_not_fit_its_bytes_is_out_of_range(fields: dict[str, Any]) -> None:
    with pytest.raises(OverflowError, match=r"of an extension type must be in 0\.\."):
        hurray.ExtensionType(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"bit_width": 8.0},
        {"bit_width": "8"},
        {"bit_width": 8, "is_signed": 1},
        {"bit_width": 8, "has_nan": None},
        {"bit_width": 8, "packing_factor": 1},
        {},
    ],
)
def test_a_field_of_the_wrong_type_is_a_type_error(fields: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        hurray.ExtensionType(**fields)


def test_only_the_width_is_positional() -> None:
    wrong: Any = hurray.ExtensionType
    with pytest.raises(TypeError):
        wrong(8, True)


@pytest.mark.parametrize("tag", [0xF0, 0xF7, 0xFE])
def test_a_section_adds_exactly_20_bytes(tag: int) -> None:
    private = hurray.Tensor(
        bytes(4),
        hurray.Dtype.from_tag(tag),
        [4],
        extension_type=hurray.ExtensionType(8),
    )
    public = hurray.Tensor(bytes(4), hurray.uint8, [4])
    assert private.descriptor.encoded_len == public.descriptor.encoded_len + 20


def test_a_float_without_any_bits_is_accepted_as_the_format_has_no_rule_of_sums() -> None:
    assert hurray.ExtensionType(16, is_float=True).mantissa_bits == 0
    assert hurray.ExtensionType(8, is_float=True, mantissa_bits=200).mantissa_bits == 200
