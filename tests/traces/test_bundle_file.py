"""A bundle as one file: the same run in, the same run out, and every damage noticed."""

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir import numerics
from scalebox.ir.dtypes import DType
from scalebox.ir.errors import InputError, UserError
from scalebox.ir.numerics.mxarray import MXArray
from scalebox.traces import hurray
from scalebox.traces.bundle import Bundle, is_bundle, load_bundle, save_bundle

VALUES = np.linspace(-3, 3, 64 * 4, dtype=np.float32).reshape(4, 64)
MX_DTYPES = (DType.MXFP8_E4M3, DType.MXFP4, DType.MXFP6_E3M2, DType.MXINT8, DType.NVFP4)
CODES = np.arange(6, dtype=np.uint8).reshape(2, 3)
RUN = Bundle(
    inputs={
        "a": CODES,
        "n": np.array(3),
        "x": np.array(0.5, np.float64),
        "nibbles": np.arange(6).astype(ml_dtypes.float4_e2m1fn),
        "scales": CODES.view(ml_dtypes.float8_e8m0fnu),
        "flags": np.array([True, False]),
        "big": np.array([1, 2], ">i4"),
        "none": np.zeros((0, 4), np.float16),
        **{dtype.name: numerics.quantize(VALUES, dtype, axis=1) for dtype in MX_DTYPES},
        "short": numerics.quantize(VALUES[:, :40], DType.MXFP8_E5M2, axis=1),
    },
    outputs={"c": np.array([1.5, np.nan, -0.0], ml_dtypes.bfloat16)},
    golden={"c": np.array([1.5, np.nan, 0.0], ml_dtypes.bfloat16)},
    executable=b"\x00\xffexecutable",
    machine='name = "a5"\n',
    program="# a kernel\n",
    options={"seed": 7},
    timeline={"traceEvents": []},
)


def plain(array: Any) -> tuple[Any, ...]:
    """Return all that an array is, in values that can be compared."""
    if isinstance(array, MXArray):
        whole = None if array.tensor_scale is None else np.float32(array.tensor_scale).tobytes()
        parts = (array.elements.tobytes(), array.scales.tobytes(), whole)
        return (array.dtype.name, array.axis, array.shape, *parts)
    native = array.astype(array.dtype.newbyteorder("="))
    return native.dtype.name, native.shape, native.tobytes()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_bundle(tmp_path / "run.hrry", RUN)
    return tmp_path / "run.hrry"


@pytest.mark.parametrize("name", ["again.hrry", "folder"])
def test_a_bundle_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    save_bundle(tmp_path / name, RUN)
    loaded = load_bundle(tmp_path / name)
    for role in ("inputs", "outputs", "golden"):
        found, wanted = getattr(loaded, role), getattr(RUN, role)
        assert {key: plain(array) for key, array in found.items()} == {
            key: plain(array) for key, array in wanted.items()
        }
    for member in ("executable", "machine", "program", "options", "timeline"):
        assert getattr(loaded, member) == getattr(RUN, member)
    assert is_bundle(tmp_path / name)


def test_what_a_run_did_not_have_is_left_out(tmp_path: Path) -> None:
    for bundle in (Bundle(inputs={}), Bundle(inputs={}, outputs={})):
        save_bundle(tmp_path / "run.hrry", bundle)
        assert load_bundle(tmp_path / "run.hrry") == bundle


def test_the_same_run_is_saved_as_the_same_bytes(tmp_path: Path, saved: Path) -> None:
    save_bundle(tmp_path / "again.hrry", load_bundle(saved))
    assert saved.read_bytes() == (tmp_path / "again.hrry").read_bytes()


def test_a_file_is_replaced_while_its_arrays_are_in_use(saved: Path) -> None:
    before = load_bundle(saved)
    save_bundle(saved, replace(RUN, inputs={"a": CODES + 1}))
    assert np.array_equal(np.asarray(before.inputs["a"]), CODES)
    assert np.array_equal(np.asarray(load_bundle(saved).inputs["a"]), CODES + 1)


def test_it_is_a_tensor_file_that_others_can_read(saved: Path) -> None:
    tensors = hurray.load(saved)
    assert np.array_equal(tensors["inputs/a"].numpy(), CODES)
    assert np.isnan(tensors["outputs/c"].numpy()[1])
    values = hurray.load_kv(saved)
    options = values["options.json"]
    assert isinstance(options, bytes)
    assert json.loads(zlib.decompress(options)) == {"seed": 7}


def test_what_is_no_bundle_is_never_replaced(tmp_path: Path) -> None:
    other, text = tmp_path / "tensors.hrry", tmp_path / "text.hrry"
    hurray.save(other, {"a": hurray.from_numpy(CODES)})
    text.write_text("mine")
    (tmp_path / "folder.hrry").mkdir()
    for place in (other, text, tmp_path / "folder.hrry"):
        with pytest.raises(InputError) as caught:
            save_bundle(place, RUN)
        assert str(caught.value) == (
            f"{place} must be a bundle or a place where nothing stands, not something else"
        )
        assert not is_bundle(place)
    assert np.array_equal(hurray.load(other)["a"].numpy(), CODES)
    assert text.read_text() == "mine"


def test_a_bundle_that_cannot_be_written_leaves_nothing_and_keeps_the_old(
    tmp_path: Path, saved: Path
) -> None:
    strange = replace(RUN, golden={"c": np.zeros(2, ml_dtypes.float8_e3m4)})
    for place in (tmp_path / "new.hrry", saved):
        with pytest.raises(InputError, match="'c' must be an array that a tensor file can hold"):
            save_bundle(place, strange)
    clash = replace(RUN, inputs={**RUN.inputs, "NVFP4.scales": CODES})
    with pytest.raises(InputError, match=r"'NVFP4\.scales' must have another name"):
        save_bundle(saved, clash)
    assert [path.name for path in tmp_path.iterdir()] == ["run.hrry"]
    assert load_bundle(saved).options == RUN.options


def test_no_bundle_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a.hrry"
    hurray.save(file, {})
    with pytest.raises(InputError, match=r"with a text bundle\.json as a key-value"):
        load_bundle(file)
    file.write_bytes(b"nothing")
    with pytest.raises(InputError, match="must be a bundle that can be read"):
        load_bundle(file)


def test_every_changed_byte_that_is_no_padding_is_noticed(saved: Path) -> None:
    whole = saved.read_bytes()
    again = Bundle(inputs={})
    noticed = 0
    for at in range(0, len(whole), 29):
        if not any(whole[at : at + 4]):
            continue  # padding
        saved.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            again = load_bundle(saved)
        except UserError:
            noticed += 1
            continue
        saved.write_bytes(whole)
        assert again.options == RUN.options
        for role in ("inputs", "outputs", "golden"):
            named, wanted = getattr(again, role), getattr(RUN, role)
            assert {key: plain(each) for key, each in named.items()} == {
                key: plain(each) for key, each in wanted.items()
            }
    assert noticed > 20
    for end in range(0, len(whole), 997):
        saved.write_bytes(whole[:end])
        with pytest.raises(UserError):
            load_bundle(saved)


def rewritten(saved: Path, **changes: Any) -> Path:
    """Rewrite the manifest of a bundle, or drop or change a member."""
    values: dict[str, Any] = dict(hurray.load_kv(saved))
    tensors = hurray.load(saved)
    text = values["bundle.json"]
    assert isinstance(text, str)
    members = changes.pop("members", {})
    values |= {"bundle.json": json.dumps({**json.loads(text), **changes}), **members}
    hurray.save(saved, tensors, {k: v for k, v in values.items() if v is not None})
    return saved


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": "other"}, "must be a JSON object of the format 'scalebox-bundle'"),
        ({"version": 2}, "must be a bundle of version 1, not 2"),
        ({"roles": ["outputs"]}, "must be of the roles inputs, outputs, golden, inputs always"),
        ({"roles": 3}, "must be of the roles inputs, outputs, golden, inputs always"),
        ({"roles": ["inputs", "x"]}, "must be of the roles inputs, outputs, golden, inputs always"),
        ({"members": {"options.json": None}}, "must hold options.json and no unknown members"),
        ({"members": {"virus.exe": b"x"}}, "must hold options.json and no unknown members"),
        ({"members": {"program.py": b"x"}}, "must be as it was written"),
        ({"members": {"program.py": "text"}}, "must be as it was written"),
        ({"roles": [["x"]]}, "must be of the roles inputs, outputs, golden, inputs always"),
        ({"sha256": "0"}, "must be as it was written"),
    ],
)
def test_a_manifest_that_is_not_ours_is_an_error(
    saved: Path, changes: dict[str, Any], sentence: str
) -> None:
    rewritten(saved, **changes)
    with pytest.raises(InputError, match=sentence):
        load_bundle(saved)
