"""Builds are kept whole, made once, and never shared between different ingredients."""

import os
from pathlib import Path

import pytest

from scalebox.rtl.cosim.cache import CacheError, cache_root, cached_build


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SCALEBOX_CACHE_DIR", str(tmp_path))
    return tmp_path / "rtl"


def built(folder: Path) -> None:
    (folder / "model").write_text("compiled")


def never(folder: Path) -> None:
    raise AssertionError(f"{folder} must have been there already")


def test_the_second_build_of_the_same_ingredients_is_the_first() -> None:
    first = cached_build("unit", ("text", "1.0"), built)
    assert (first / "model").read_text() == "compiled"
    assert cached_build("unit", ("text", "1.0"), never) == first


@pytest.mark.parametrize("other", [("text", "1.1"), ("text 1.0",), ("tex", "t1.0"), ("text",)])
def test_other_ingredients_are_another_build(other: tuple[str, ...]) -> None:
    assert cached_build("unit", other, built) != cached_build("unit", ("text", "1.0"), built)


def test_a_build_that_fails_leaves_nothing_behind(own_cache: Path) -> None:
    def fails(folder: Path) -> None:
        built(folder)
        raise ValueError(folder.name)

    with pytest.raises(ValueError, match="unit"):
        cached_build("unit", ("text",), fails)
    assert [path.name for path in own_cache.iterdir() if path.is_dir()] == []
    assert (cached_build("unit", ("text",), built) / "model").is_file()


def test_the_cache_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCALEBOX_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "elsewhere")
    assert cache_root() == Path("elsewhere/scalebox/rtl")


def test_a_cache_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SCALEBOX_CACHE_DIR", os.fspath(tmp_path / "file"))
    with pytest.raises(CacheError, match=r"^The cache folder must be one that can be written"):
        cached_build("unit", ("text",), never)


def test_a_cache_with_a_space_in_its_path_is_refused_before_make_stumbles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEBOX_CACHE_DIR", os.fspath(tmp_path / "my cache"))
    with pytest.raises(
        CacheError, match=r"must have a path without spaces, not '.*my cache"
    ) as caught:
        cached_build("unit", ("text",), never)
    assert "SCALEBOX_CACHE_DIR" in str(caught.value.hint)
    assert not (tmp_path / "my cache").exists()
