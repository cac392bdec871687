"""Bundles: everything comes back, whole or not at all, and nobody else's files are touched."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir.errors import InputError, UserError
from scalebox.ir.numerics.mxarray import MXArray
from scalebox.traces.bundle import Bundle, is_bundle, load_bundle, save_bundle

RUN = Bundle(
    inputs={"a": np.arange(6, dtype=np.uint8).reshape(2, 3), "n": np.array(3)},
    outputs={"c": np.array([1.5, np.nan], ml_dtypes.bfloat16)},
    golden={"c": np.array([1.5, np.nan], ml_dtypes.bfloat16)},
    executable=b"\x00\xffexecutable",
    machine='name = "a5"\ncores = 32\n',
    program="# a kernel, é\n",
    options={"seed": 7, "sum": "group", "versions": {"numpy": "2.4"}},
    timeline={"traceEvents": []},
)


def bits(arrays: Mapping[str, np.ndarray | MXArray] | None) -> dict[str, tuple[str, bytes]]:
    assert arrays is not None
    plain = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    return {name: (array.dtype.name, array.tobytes()) for name, array in plain.items()}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_bundle(tmp_path / "run", RUN)
    return tmp_path / "run"


def test_a_bundle_comes_back_as_it_was(saved: Path) -> None:
    loaded = load_bundle(saved)
    assert bits(loaded.inputs) == bits(RUN.inputs)
    assert bits(loaded.outputs) == bits(RUN.outputs)
    assert bits(loaded.golden) == bits(RUN.golden)
    assert loaded.executable == RUN.executable
    assert loaded.machine == RUN.machine
    assert loaded.program == RUN.program
    assert loaded.options == RUN.options
    assert loaded.timeline == RUN.timeline
    assert is_bundle(saved)


def test_what_a_run_did_not_have_is_left_out(tmp_path: Path) -> None:
    save_bundle(tmp_path / "run", Bundle(inputs={}))
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == ["bundle.json", "inputs.npz", "options.json"]
    assert load_bundle(tmp_path / "run") == Bundle(inputs={})


def test_the_same_run_is_saved_as_the_same_bytes(tmp_path: Path, saved: Path) -> None:
    save_bundle(tmp_path / "again", RUN)
    for path in saved.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_a_bundle_replaces_an_empty_folder_and_an_older_bundle(tmp_path: Path, saved: Path) -> None:
    save_bundle(saved, replace(RUN, options={"seed": 8}, timeline=None))
    assert load_bundle(saved).options == {"seed": 8}
    assert not (saved / "timeline.json").exists()
    (tmp_path / "empty").mkdir()
    save_bundle(tmp_path / "empty", RUN)
    assert is_bundle(tmp_path / "empty")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "run"]


def test_a_folder_of_somebody_elses_is_left_alone(tmp_path: Path, saved: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    (saved / "notes.txt").write_text("mine too")
    for folder, name in ((other, "thesis.txt"), (saved, "notes.txt")):
        with pytest.raises(InputError) as caught:
            save_bundle(folder, RUN)
        assert str(caught.value) == (
            f"{folder} must be empty or hold nothing but a bundle, not files such as {name!r}"
        )
    assert (other / "thesis.txt").read_text() == "mine"
    assert (saved / "notes.txt").read_text() == "mine too"
    assert load_bundle(saved).options == RUN.options


@pytest.mark.parametrize("text", ['{"format": "webpack"}', "{}", '["scalebox-bundle"]', "mine"])
def test_a_folder_with_somebody_elses_manifest_is_left_alone(tmp_path: Path, text: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "bundle.json").write_text(text)
    (other / "inputs.npz").write_text("mine")
    with pytest.raises(InputError, match=r"bundle\.json"):
        save_bundle(other, RUN)
    assert (other / "bundle.json").read_text() == text
    assert (other / "inputs.npz").read_text() == "mine"


def test_a_file_in_the_way_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="must be a folder or a place where nothing stands"):
        save_bundle(tmp_path / "file", RUN)
    with pytest.raises(InputError, match="must be a place that can be written"):
        save_bundle(tmp_path / "file" / "run", RUN)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "bad",
    [
        replace(RUN, golden={"c": np.array([object()])}),
        replace(RUN, options={"when": np.float32(1)}),
        replace(RUN, timeline={"traceEvents": [{1, 2}]}),
    ],
)
def test_a_bundle_that_cannot_be_written_leaves_nothing_and_keeps_the_old(
    tmp_path: Path, saved: Path, bad: Bundle
) -> None:
    for folder in (tmp_path / "new", saved):
        with pytest.raises(InputError):
            save_bundle(folder, bad)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert load_bundle(saved).options == RUN.options


def test_no_bundle_is_an_error(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError) as caught:
            load_bundle(folder)
        assert str(caught.value) == f"{folder} must be a bundle, a folder with a file bundle.json"


def test_every_damage_to_every_file_is_noticed(saved: Path) -> None:
    for path in sorted(saved.iterdir()):
        whole = path.read_bytes()
        for damaged in (b"", whole[:-2], whole + b"x", bytes([whole[0] ^ 1]) + whole[1:]):
            path.write_bytes(damaged)
            with pytest.raises(UserError, match=str(path.name)):
                load_bundle(saved)
        path.unlink()
        with pytest.raises(UserError):
            load_bundle(saved)
        path.write_bytes(whole)
    assert load_bundle(saved).options == RUN.options


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        ("[]", "must hold a JSON object"),
        ("{", "must be a JSON file that can be read"),
        ({"format": "other"}, "must have the format 'scalebox-bundle', not 'other'"),
        ({"format": "scalebox-bundle", "version": 2}, "must be a bundle of version 1, not 2"),
        (
            {"format": "scalebox-bundle", "version": 1, "files": {"../../x": {}}},
            "must list inputs.npz, options.json and no unknown files",
        ),
        (
            {"format": "scalebox-bundle", "version": 1, "files": 3},
            "must list inputs.npz, options.json and no unknown files",
        ),
    ],
)
def test_a_manifest_that_is_not_ours_is_an_error(
    saved: Path, manifest: object, sentence: str
) -> None:
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    (saved / "bundle.json").write_text(text)
    with pytest.raises(InputError, match=sentence):
        load_bundle(saved)
