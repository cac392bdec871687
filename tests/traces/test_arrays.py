"""Arrays in `.npz` files: bits, shapes and types come back, and bad files are refused by name."""

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from scalebox.ir import numerics
from scalebox.ir.dtypes import BlockScaledDType, DType
from scalebox.ir.errors import InputError
from scalebox.ir.numerics.mxarray import MXArray
from scalebox.traces.arrays import TYPES as TYPES_MEMBER
from scalebox.traces.arrays import load_arrays, save_arrays

TYPES = (
    np.bool_,
    np.int8,
    np.uint8,
    np.int32,
    np.int64,
    np.float16,
    np.float32,
    np.float64,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e8m0fnu,
    ml_dtypes.float6_e3m2fn,
    ml_dtypes.float4_e2m1fn,
    ml_dtypes.int4,
)


def load_plain(path: Path) -> dict[str, np.ndarray]:
    loaded = load_arrays(path)
    return {name: array for name, array in loaded.items() if isinstance(array, np.ndarray)}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (256,), (4, 8, 8)])
def test_every_type_and_shape_comes_back_with_its_bits(
    tmp_path: Path, dtype: Any, shape: tuple[int, ...]
) -> None:
    count = int(np.prod(shape))
    array = (np.arange(count) % 7).astype(dtype).reshape(shape)
    save_arrays(tmp_path / "a.npz", {"x": array})
    loaded = load_plain(tmp_path / "a.npz")["x"]
    assert loaded.dtype == array.dtype
    assert loaded.shape == array.shape
    assert loaded.tobytes() == array.tobytes()


@given(
    words=arrays.arrays(np.uint8, st.tuples(st.integers(0, 9), st.integers(0, 9))),
)
def test_all_codes_survive_nans_among_them(
    tmp_path_factory: pytest.TempPathFactory, words: np.ndarray
) -> None:
    path = tmp_path_factory.mktemp("codes") / "a.npz"
    save_arrays(path, {"x": words.view(ml_dtypes.float8_e4m3fn)})
    assert load_plain(path)["x"].view(np.uint8).tobytes() == words.tobytes()


def test_arrays_of_any_memory_order_come_back_in_value(tmp_path: Path) -> None:
    whole = np.arange(24, dtype=np.float32).reshape(4, 6).astype(ml_dtypes.bfloat16)
    views = {"f": np.asfortranarray(whole), "t": whole.T, "s": whole[::2, ::3], "r": whole[::-1]}
    save_arrays(tmp_path / "a.npz", views)
    loaded = load_plain(tmp_path / "a.npz")
    for name, view in views.items():
        assert loaded[name].tobytes() == view.tobytes()


def test_equal_arrays_give_equal_files(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        save_arrays(tmp_path / name, {"file": np.ones(3), "b": np.ones(2, ml_dtypes.bfloat16)})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_numpy_reads_the_bits_and_we_read_numpys_files(tmp_path: Path) -> None:
    save_arrays(tmp_path / "a.npz", {"x": np.array([1.0], ml_dtypes.bfloat16)})
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert archive["x"].tolist() == [0x3F80]
    np.savez_compressed(tmp_path / "b.npz", x=np.arange(4))
    assert load_plain(tmp_path / "b.npz")["x"].tolist() == [0, 1, 2, 3]


def test_types_that_numpy_cannot_name_come_back_as_codes(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([1.0], ml_dtypes.bfloat16))
    found = load_plain(tmp_path / "a.npz")["x"]
    assert found.dtype == np.uint16
    assert found.tolist() == [0x3F80]
    save_arrays(tmp_path / "b.npz", {"x": found.view("V2")})
    assert load_plain(tmp_path / "b.npz")["x"].tolist() == [0x3F80]


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": np.array([None])}, "'x' must be an array of integers or floats, not of object"),
        ({"x": np.array(["a"])}, "'x' must be an array of integers or floats, not of <U1"),
        (
            {TYPES_MEMBER: np.ones(1)},
            "'__types__' must have another name: the file needs '__types__' itself",
        ),
    ],
)
def test_what_the_format_cannot_hold_is_refused(
    tmp_path: Path, arrays: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError) as caught:
        save_arrays(tmp_path / "a.npz", arrays)
    assert str(caught.value) == sentence
    assert list(tmp_path.iterdir()) == []


def test_unreadable_files_are_errors(tmp_path: Path) -> None:
    good = tmp_path / "good.npz"
    save_arrays(good, {"x": np.arange(1000)})
    whole = good.read_bytes()
    bad = tmp_path / "bad.npz"
    for content in (b"", b"PK", b"no archive at all", whole[:-30], whole[: len(whole) // 2]):
        bad.write_bytes(content)
        with pytest.raises(InputError, match=r"bad\.npz must be an \.npz file that can be read: "):
            load_arrays(bad)
    with pytest.raises(InputError, match=r"must be an \.npz file that can be read"):
        load_arrays(tmp_path / "absent.npz")
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(InputError, match=r"must be an \.npz file, not a single array"):
        load_arrays(tmp_path / "one.npy")
    np.savez(tmp_path / "object.npz", x=np.array([None]))
    with pytest.raises(InputError, match="Object arrays cannot be loaded"):
        load_arrays(tmp_path / "object.npz")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ("[1, 2]", "the member __types__ of .* must be a JSON object of types"),
        ("nonsense", "the member __types__ of .* must be a JSON object of types"),
        ('{"x": "float9"}', "'x' of .* must have a type of ml_dtypes, not 'float9'"),
        ('{"x": "finfo"}', "'x' of .* must have a type of ml_dtypes, not 'finfo'"),
        ('{"x": 3}', "the type of 'x' in .* must be the name of a type of ml_dtypes, or the dtype"),
        (
            '{"x": {"dtype": "MXFP8_E4M3"}}',
            "or the dtype and the axis of a block-scaled array, not",
        ),
        ('{"x": {"dtype": "MXFP8_E4M3", "axis": 0}}', "must hold the array 'x.elements' that its"),
        ('{"y": "bfloat16"}', "must hold the array 'y' that its member __types__ names"),
        ('{"x": "bfloat16"}', "'x' of .* must be uint16, not uint8"),
    ],
)
def test_names_of_types_are_checked(tmp_path: Path, names: str, sentence: str) -> None:
    members: dict[str, Any] = {"x": np.ones(1, np.uint8), TYPES_MEMBER: np.array(names)}
    np.savez(tmp_path / "a.npz", **members)
    with pytest.raises(InputError, match=sentence):
        load_arrays(tmp_path / "a.npz")


def test_the_member_of_type_names_is_json(tmp_path: Path) -> None:
    save_arrays(tmp_path / "a.npz", {"x": np.ones(1, ml_dtypes.bfloat16), "y": np.ones(1)})
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert json.loads(str(archive[TYPES_MEMBER])) == {"x": "bfloat16"}


@pytest.mark.parametrize(
    ("name", "groups", "tensor_scale"),
    [("MXFP8_E4M3", 2, None), ("MXFP4", 2, None), ("NVFP4", 3, np.float32(0.375))],
)
def test_block_scaled_arrays_come_back_whole(
    tmp_path: Path, name: str, groups: int, tensor_scale: np.float32 | None
) -> None:
    elements = (np.arange(120) % 16).astype(np.uint8).reshape(3, 40)
    scales = np.arange(100, 100 + 3 * groups).astype(np.uint8).reshape(3, groups)
    array = MXArray(elements, scales, BlockScaledDType.from_name(name), 1, tensor_scale)
    save_arrays(tmp_path / "a.npz", {"x": array, "plain": np.arange(3)})
    loaded = load_arrays(tmp_path / "a.npz")
    assert sorted(loaded) == ["plain", "x"]
    back = loaded["x"]
    assert isinstance(back, MXArray)
    assert (back.dtype, back.axis, back.tensor_scale) == (array.dtype, 1, tensor_scale)
    assert back.elements.tobytes() == elements.tobytes()
    assert back.scales.tobytes() == scales.tobytes()


def test_a_name_that_a_block_scaled_array_needs_is_refused(tmp_path: Path) -> None:
    form = BlockScaledDType.from_name("MXFP8_E4M3")
    array = MXArray(np.zeros(32, np.uint8), np.zeros(1, np.uint8), form, 0)
    with pytest.raises(InputError) as caught:
        save_arrays(tmp_path / "a.npz", {"x.scales": np.ones(1), "x": array})
    assert str(caught.value) == "'x' must have another name: the file needs 'x.scales' itself"


@pytest.mark.parametrize(
    ("type_of", "sentence"),
    [
        (
            {"dtype": "MXFP9", "axis": 0},
            "'x' of .* must be a block-scaled array: 'MXFP9' must name",
        ),
        ({"dtype": "Int8", "axis": 0}, "'x' of .* must be a block-scaled array: "),
        (
            {"dtype": "MXFP8_E4M3", "axis": 7},
            "'x' of .* must be a block-scaled array: The axis must",
        ),
        ({"dtype": "NVFP4", "axis": 0}, "'x' of .* must be a block-scaled array: "),
    ],
)
def test_block_scaled_arrays_that_do_not_fit_together_are_refused(
    tmp_path: Path, type_of: dict[str, Any], sentence: str
) -> None:
    members: dict[str, Any] = {
        "x.elements": np.zeros(32, np.uint8),
        "x.scales": np.zeros(1, np.uint8),
        TYPES_MEMBER: np.array(json.dumps({"x": type_of})),
    }
    np.savez(tmp_path / "a.npz", **members)
    with pytest.raises(InputError, match=sentence):
        load_arrays(tmp_path / "a.npz")


def test_the_arrays_come_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    mx = numerics.quantize(np.ones((2, 32), np.float32), DType.MXFP4, axis=1)
    written: dict[str, Any] = {
        "z": np.zeros(1, ml_dtypes.bfloat16),
        "y": np.zeros(1),
        "x": mx,
        "b": np.zeros(2, np.uint8),
        "a": np.zeros(1, ml_dtypes.float4_e2m1fn),
    }
    save_arrays(tmp_path / "x.npz", written)
    assert list(load_arrays(tmp_path / "x.npz")) == list("zyxba")
    save_arrays(tmp_path / "again.npz", load_arrays(tmp_path / "x.npz"))
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "x.npz").read_bytes()
