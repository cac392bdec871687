"""What is written appears whole or not at all, whenever the writing stops."""

import os
from pathlib import Path

import pytest

from scalebox.ir.errors import InputError
from scalebox.traces.whole import written_whole


def content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def write(place: Path, text: str) -> None:
    with written_whole(place) as new:
        new.mkdir()
        (new / "x").write_text(text)


def test_a_file_replaces_a_file_and_a_folder_a_folder(tmp_path: Path) -> None:
    for text in ("old", "new"):
        write(tmp_path / "folder", text)
        with written_whole(tmp_path / "deep" / "file") as new:
            new.write_text(text)
    assert content(tmp_path) == {"folder/x": "new", "deep/file": "new"}


def test_what_is_interrupted_while_it_is_written_leaves_what_stood_there(tmp_path: Path) -> None:
    write(tmp_path / "folder", "old")

    def stop() -> None:
        with written_whole(tmp_path / "folder") as new:
            new.mkdir()
            (new / "y").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert content(tmp_path) == {"folder/x": "old"}


def test_an_interrupt_between_the_two_moves_of_a_folder_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "folder", "old")
    moved: list[str] = []

    def rename(source: object, target: object) -> None:
        os.replace(source, target)  # type: ignore[arg-type]  # noqa: PTH105
        moved.append(str(target))
        if len(moved) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "folder", "new")
    assert moved
    assert content(tmp_path) == {"folder/x": "old"}


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("keep")
    with pytest.raises(InputError, match="must be a place that can be written"):
        write(tmp_path / "file" / "folder", "new")
    with (
        pytest.raises(InputError, match="must be a file, a folder or a free place, not a device"),
        written_whole(Path(os.devnull)),
    ):
        pass
    assert content(tmp_path) == {"file": "keep"}
