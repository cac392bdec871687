"""The Python examples of the specification, as they stand there, with only the import replaced."""

import re
from pathlib import Path

import pytest

from scalebox.ir.errors import UserError
from scalebox.traces import hurray

THE_TAG_ALONE = """
private = hurray.Dtype.from_tag(0xF2)

assert private.tag == 0xF2
assert private.bit_width == 0            # sentinel: ask the section

# Python refuses rather than returning a plausible 0 — as a byte count that is
# wrong, not unknown, and would size a buffer to nothing.
try:
    hurray.buffer_size_bytes(private, 10)
except hurray.InvalidDescriptorError as exc:
    assert "ExtensionType" in str(exc)
"""

DESCRIBING_THE_TYPE = """
int24 = hurray.ExtensionType(bit_width=24, is_signed=True)
assert int24.packing_factor == 1
assert int24.buffer_size_bytes(4) == 12

nibble = hurray.ExtensionType(bit_width=4)
assert nibble.packing_factor == 2        # derived: 8 / 4
assert nibble.buffer_size_bytes(7) == 4  # ceil(7 / 2)

try:
    hurray.ExtensionType(bit_width=6)
except hurray.InvalidDescriptorError as exc:
    assert "1, 2 or 4" in str(exc)
"""

WHERE_THE_SIGN_LIVES = """
half = hurray.ExtensionType(
    bit_width=16, is_float=True,
    sign_bits=1, exponent_bits=5, mantissa_bits=10, exponent_bias=15,
    has_nan=True, has_inf=True,
)
assert half.sign_bits == 1
assert half.is_signed is False

# Unsigned float — the float8_e8m0 shape.
scale = hurray.ExtensionType(
    bit_width=8, is_float=True, exponent_bits=8, exponent_bias=127
)
assert scale.sign_bits == 0

try:
    hurray.ExtensionType(bit_width=16, is_float=True, is_signed=True, sign_bits=1)
except hurray.InvalidDescriptorError as exc:
    assert "is_signed" in str(exc)
"""

AUTHORING = """
private = hurray.Dtype.from_tag(0xF2)
int24 = hurray.ExtensionType(bit_width=24, is_signed=True)

tensor = hurray.Tensor(
    bytes(int24.buffer_size_bytes(4)), private, [4], extension_type=int24
)
assert tensor.extension_type.bit_width == 24

# Round-trips: a consumer that has never heard of 0xF2 still learns the width.
restored = hurray.Descriptor.decode(tensor.descriptor.encode())
assert restored == tensor.descriptor
assert restored.extension_type.buffer_size_bytes(4) == 12
"""

PAIRING = """
private = hurray.Dtype.from_tag(0xF2)
int24 = hurray.ExtensionType(bit_width=24, is_signed=True)

# An extension dtype must describe itself.
try:
    hurray.Tensor(bytes(12), private, [4])
except hurray.InvalidDescriptorError as exc:
    assert "must describe itself" in str(exc)

# And the section cannot stand alone.
try:
    hurray.Tensor(bytes(16), hurray.float32, [4], extension_type=int24)
except hurray.InvalidDescriptorError as exc:
    assert "not a private extension" in str(exc)

# The section sizes the buffer check.
try:
    hurray.Tensor(bytes(4), private, [4], extension_type=int24)
except hurray.BufferError as exc:
    assert "need at least 12 bytes" in str(exc)
"""

SNIPPETS = {
    "the tag alone": THE_TAG_ALONE,
    "describing the type": DESCRIBING_THE_TYPE,
    "where the sign lives": WHERE_THE_SIGN_LIVES,
    "authoring": AUTHORING,
    "pairing": PAIRING,
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_snippet_runs_as_written(name: str) -> None:
    exec("from scalebox.traces import hurray\n" + SNIPPETS[name], {})


def test_what_the_snippets_try_is_refused() -> None:
    private = hurray.Dtype.from_tag(0xF2)
    int24 = hurray.ExtensionType(bit_width=24, is_signed=True)
    with pytest.raises(hurray.InvalidDescriptorError, match="ExtensionType"):
        hurray.buffer_size_bytes(private, 10)
    with pytest.raises(hurray.InvalidDescriptorError, match="1, 2 or 4"):
        hurray.ExtensionType(bit_width=6)
    with pytest.raises(hurray.InvalidDescriptorError, match="is_signed"):
        hurray.ExtensionType(bit_width=16, is_float=True, is_signed=True, sign_bits=1)
    with pytest.raises(hurray.InvalidDescriptorError, match="must describe itself"):
        hurray.Tensor(bytes(12), private, [4])
    with pytest.raises(hurray.InvalidDescriptorError, match="not a private extension"):
        hurray.Tensor(bytes(16), hurray.float32, [4], extension_type=int24)
    with pytest.raises(hurray.BufferError, match="need at least 12 bytes"):
        hurray.Tensor(bytes(4), private, [4], extension_type=int24)


def test_the_low_level_constructor_takes_the_packing_factor() -> None:
    new = hurray.ExtensionTypeDescriptor.new
    assert new(24, 1, False, True, 0, 0, 0, 0, False, False).buffer_size_bytes(4) == 12
    assert new(4, 2, False, False, 0, 0, 0, 0, False, False).buffer_size_bytes(7) == 4
    half = new(16, 1, True, False, 1, 5, 10, 15, True, True)
    assert (half.sign_bits, half.is_signed) == (1, False)
    assert new(8, 1, True, False, 0, 8, 0, 127, True, False).sign_bits == 0
    for refused in (
        (6, 1, False, False, 0, 0, 0, 0, False, False),
        (16, 1, True, True, 1, 5, 10, 15, True, False),
        (4, 1, False, False, 0, 0, 0, 0, False, False),
        (24, 2, False, False, 0, 0, 0, 0, False, False),
    ):
        with pytest.raises(hurray.InvalidDescriptorError):
            new(*refused)


def test_the_example_of_the_document_runs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (root / "docs/hurray.md").read_text(), re.DOTALL)
    exec(block, {})
    assert list(hurray.load("run.hrry")) == ["bias", "a"]


def test_all_errors_have_one_root_below_that_of_all_users_errors() -> None:
    errors = [
        hurray.InvalidDescriptorError,
        hurray.BufferError,
        hurray.UnsupportedError,
        hurray.FileError,
        hurray.StreamError,
        hurray.FieldTypeError,
    ]
    assert all(issubclass(error, hurray.HurrayError) for error in errors)
    assert issubclass(hurray.HurrayError, UserError)
    assert issubclass(hurray.InvalidDescriptorError, ValueError)
    assert issubclass(hurray.BufferError, ValueError)
    assert issubclass(hurray.UnsupportedError, NotImplementedError)
    assert issubclass(hurray.FileError, OSError)
    assert issubclass(hurray.StreamError, OSError)
