"""Arrays in tensor files: each kind of tensor comes as the array that an input or a result is."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir import numerics
from scalebox.ir.dtypes import E1M2, DType
from scalebox.ir.errors import InputError
from scalebox.ir.numerics.mxarray import MXArray
from scalebox.traces import hurray
from scalebox.traces.containers import arrays_of, is_container, load_container, tensors_of

VALUES = np.linspace(-2, 2, 4 * 64, dtype=np.float32).reshape(4, 64)


def through(tmp_path: Path, tensors: dict[str, hurray.Tensor]) -> dict[str, Any]:
    hurray.save(tmp_path / "x.hrry", tensors)
    assert is_container(tmp_path / "x.hrry")
    return load_container(tmp_path / "x.hrry")


def test_a_plain_tensor_is_an_array_of_its_type(tmp_path: Path) -> None:
    given = {"a": VALUES, "b": VALUES.astype(ml_dtypes.bfloat16), "n": np.array(3)}
    found = through(tmp_path, tensors_of(given))
    assert list(found) == list(given)
    for name, array in given.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("boxed", [False, True])
def test_the_tensors_of_a_block_scaled_array_are_one_array(tmp_path: Path, boxed: bool) -> None:
    mx = numerics.quantize(VALUES, DType.MXFP8_E4M3, axis=1)
    tensors = {**hurray.mx_tensors("x", mx, boxed=boxed), "x.scale": hurray.from_numpy(VALUES)}
    found = through(tmp_path, tensors)
    assert set(found) == {"x", "x.scale"}
    assert isinstance(found["x"], MXArray)
    assert found["x"].elements.tobytes() == mx.elements.tobytes()
    assert np.array_equal(found["x"].scales, mx.scales)


def test_boxed_scales_come_in_box_order_and_in_whole_boxes(tmp_path: Path) -> None:
    scales = np.arange(15, dtype=np.uint8).reshape(5, 3) + 100
    found = through(
        tmp_path,
        {"left": hurray.boxed_scales_a(scales), "right": hurray.boxed_scales_b(scales.T)},
    )
    whole = np.full((16, 4), 127, np.uint8)
    whole[:5, :3] = scales
    boxes = whole.reshape(16, 2, 2).transpose(1, 0, 2).tobytes()
    assert (found["left"].shape, found["right"].shape) == ((16, 4), (4, 16))
    assert found["left"].tobytes() == found["right"].tobytes() == boxes


def test_elements_without_a_numpy_type_come_as_codes(tmp_path: Path) -> None:
    codes = np.arange(16, dtype=np.uint8).reshape(2, 8)
    found = through(tmp_path, {"e": hurray.tensor_of_codes(codes, E1M2)})
    assert found["e"].dtype == np.uint8
    assert np.array_equal(found["e"], codes)


def test_names_have_a_prefix_where_one_is_asked_for() -> None:
    mx = numerics.quantize(VALUES, DType.MXINT8, axis=1)
    tensors = tensors_of({"x": mx, "a": VALUES}, "in/") | tensors_of({"x": VALUES}, "out/")
    assert set(tensors) == {"in/x", "in/x.scales", "in/a", "out/x"}
    assert list(arrays_of(tensors, "in/")) == ["x", "a"]
    assert list(arrays_of(tensors, "out/")) == ["x"]


def test_what_is_no_container_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.hrry").write_bytes(b"HRRYFILE")
    assert is_container(tmp_path / "x.hrry")
    assert not is_container(tmp_path / "absent")
    assert not is_container(tmp_path)
    with pytest.raises(
        InputError, match="must be a tensor file of arrays: At byte 0: A tensor file must"
    ):
        load_container(tmp_path / "x.hrry")


def test_a_tensor_that_is_no_array_is_told(tmp_path: Path) -> None:
    mx = numerics.quantize(VALUES, DType.MXINT8, axis=1)
    alone = {name: t for name, t in hurray.mx_tensors("x", mx).items() if name == "x"}
    hurray.save(tmp_path / "x.hrry", alone)
    with pytest.raises(InputError, match=r"must have the part 'x\.scales'"):
        load_container(tmp_path / "x.hrry")
