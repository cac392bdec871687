"""The cube's Verilog is kept, and written anew when a source changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scalebox.rtl.cosim import kept_verilog
from scalebox.rtl.cosim.kept_verilog import kept_cube_verilog, sources_digest
from scalebox.rtl.cube.verilog import CubeVerilog

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[list[int]]:
    """The beats whose Verilog was written, into an empty cache folder."""
    beats: list[int] = []

    def write(*, beat_bytes: int) -> CubeVerilog:
        beats.append(beat_bytes)
        return CubeVerilog({"cube": f"// {beat_bytes}\n"}, 9)

    monkeypatch.setenv("SCALEBOX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_verilog, "cube_verilog", write)
    kept_cube_verilog.cache_clear()
    yield beats
    kept_cube_verilog.cache_clear()


def asked(beat_bytes: int) -> CubeVerilog:
    """Ask as another process would, which remembers nothing."""
    kept_cube_verilog.cache_clear()
    return kept_cube_verilog(beat_bytes=beat_bytes)


def test_verilog_is_written_once_and_comes_back_whole(written: list[int]) -> None:
    first = asked(32)
    assert asked(32) == first == ({"cube": "// 32\n"}, 9)
    assert written == [32]
    assert asked(16).modules["cube"] == "// 16\n"
    assert written == [32, 16]


def test_changed_sources_write_it_anew(written: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    asked(32)
    monkeypatch.setattr(kept_verilog, "sources_digest", lambda: "other sources")
    asked(32)
    assert written == [32, 32]


def test_writing_that_fails_leaves_nothing(
    written: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(*, beat_bytes: int) -> CubeVerilog:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kept_verilog, "cube_verilog", stop)
        with pytest.raises(KeyboardInterrupt):
            asked(32)
    assert not [path for path in (tmp_path / "cache" / "rtl").iterdir() if path.is_dir()]
    asked(32)
    assert written == [32]


def test_every_change_of_a_source_is_another_digest(tmp_path: Path) -> None:
    for name in ("rtl/a.py", "codegen/isa/b.py", "ir/machines/c.toml", "ir/d.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("one")
    digests = [sources_digest(tmp_path)]
    for name in ("rtl/a.py", "codegen/isa/b.py", "ir/machines/c.toml"):
        (tmp_path / name).write_text("two")
        digests.append(sources_digest(tmp_path))
    (tmp_path / "rtl/a.py").rename(tmp_path / "rtl/z.py")
    digests.append(sources_digest(tmp_path))
    (tmp_path / "ir/d.txt").write_text("not a source")
    assert sources_digest(tmp_path) == digests[-1]
    assert len(set(digests)) == len(digests)
