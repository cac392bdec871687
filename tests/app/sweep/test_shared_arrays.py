"""Arrays in a file that processes map: what is written is read, and not copied."""

import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.app.sweep.shared_arrays import NamelessFile, read_shared, write_shared
from scalebox.ir import language as pl
from scalebox.ir import numerics

FORMATS: tuple[type[Any], ...] = (
    np.float32,
    np.uint8,
    np.int64,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.bfloat16,
)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("shape", [(3, 5), (0, 4), (), (1,)])
def test_an_array_comes_back_bit_for_bit(
    dtype: type[Any], shape: tuple[int, ...], tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    array = rng.integers(0, 100, shape).astype(dtype)
    write_shared(tmp_path / "file", {"a": array, "n": 3})
    found = read_shared(tmp_path / "file")
    assert found["n"] == 3
    assert found["a"].dtype == array.dtype
    assert found["a"].shape == array.shape
    assert found["a"].tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", FORMATS)
def test_arrays_lie_in_the_file_and_are_read_only(dtype: type[Any], tmp_path: Path) -> None:
    arrays: list[Any] = [np.ones(1000, dtype), np.zeros((2, 500), dtype).T]
    write_shared(tmp_path / "file", arrays)
    for found, array in zip(read_shared(tmp_path / "file"), arrays, strict=True):
        assert (found == array).all()
        assert not found.flags.owndata
        assert not found.flags.writeable


def test_a_block_scaled_array_comes_back(tmp_path: Path) -> None:
    made = numerics.quantize(np.arange(128.0).reshape(2, 64), pl.MXFP8_E4M3)
    write_shared(tmp_path / "file", made)
    found = read_shared(tmp_path / "file")
    assert (found.elements == made.elements).all()
    assert (found.scales == made.scales).all()
    assert (found.dtype, found.axis) == (made.dtype, made.axis)


@pytest.mark.skipif(sys.platform != "linux", reason="such a file has a path on Linux only")
def test_a_file_without_a_name_is_in_no_folder_and_stays_as_long_as_it_is_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = NamelessFile()
    write_shared(file.path, np.ones(9))
    assert list(tmp_path.iterdir()) == []
    found = read_shared(file.path)
    file.close()
    assert (found == np.ones(9)).all()
    assert not file.path.exists()
