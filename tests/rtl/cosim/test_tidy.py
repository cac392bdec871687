"""A new build drops what nobody has used for long, and never what somebody might."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from scalebox.rtl.cosim.cache import cached_build
from scalebox.rtl.cosim.locks import locked

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400
DIGEST = "0123456789abcdef0123"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SCALEBOX_CACHE_DIR", str(tmp_path))
    return tmp_path / "rtl"


def filled(folder: Path) -> None:
    (folder / "model").write_text("compiled")


def never(folder: Path) -> None:
    raise AssertionError(f"{folder} must have been there already")


def age(path: Path, days: float) -> None:
    then = time.time() - days * DAY
    os.utime(path, (then, then), follow_symlinks=False)


def kept(text: str, days: float) -> Path:
    """A build that was used so many days ago."""
    build = cached_build("unit", (text,), filled)
    age(build, days)
    return build


def lock_of(build: Path) -> Path:
    return build.with_name(f"{build.name}.lock")


def begun(build: Path, days: float, *, suffix: str = "a1b2c3_8") -> Path:
    """What a process left that was killed so many days ago while it was building."""
    folder = build.with_name(f".{build.name}.{suffix}")
    folder.mkdir()
    filled(folder)
    age(folder, days)
    return folder


def store(text: str = "new") -> Path:
    return cached_build("unit", (text,), filled)


def test_a_new_build_drops_those_not_used_for_thirty_days_and_their_locks() -> None:
    old, recent = kept("old", 30.1), kept("recent", 29.9)
    new = store()
    assert not old.exists()
    assert not lock_of(old).exists()
    assert (recent / "model").is_file()
    assert (new / "model").is_file()


def test_a_use_keeps_a_build() -> None:
    old = kept("old", 31)
    assert cached_build("unit", ("old",), never) == old
    store()
    assert (old / "model").is_file()


def test_only_a_new_build_drops_anything() -> None:
    recent, old = kept("recent", 1), kept("old", 31)
    cached_build("unit", ("recent",), never)
    assert old.exists()
    assert recent.exists()


def test_what_killed_builds_left_goes_after_a_day() -> None:
    recent = kept("recent", 2)
    left = begun(recent, 1.1)
    fresh = begun(recent, 0.9, suffix="________")
    store()
    assert not left.exists()
    assert (fresh / "model").is_file()
    assert (recent / "model").is_file()


def test_the_lock_of_a_build_that_never_came_about_goes_too(root: Path) -> None:
    def fails(_: Path) -> None:
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        cached_build("unit", ("broken",), fails)
    [lock] = root.glob("*.lock")
    store("one")
    assert lock.exists()
    age(lock, 31)
    store("two")
    assert not lock.exists()


def test_what_somebody_is_at_work_on_stays() -> None:
    old = kept("old", 31)
    left = begun(old, 31)
    with locked(old):
        store("one")
        assert (old / "model").is_file()
        assert (left / "model").is_file()
    store("two")
    assert not old.exists()
    assert not left.exists()
    assert not lock_of(old).exists()


def test_what_is_not_ours_is_never_touched(root: Path, tmp_path: Path) -> None:
    store("first")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    filled(theirs)
    other = f"unit-{DIGEST}"
    linked = root / f"linked-{DIGEST}"
    linked.symlink_to(theirs)
    foreign = [
        root / "notes",
        root / other,  # no lock is beside it
        root / f".{other}.a1b2c3d4",
        root / f"unit-{DIGEST[:-1]}",
        root / f"unit-{DIGEST}.old",
        root / f".unit-{DIGEST[:-1]}.a1b2c3d4",
    ]
    for folder in foreign:
        folder.mkdir()
        filled(folder)
    (root / f"unit-{DIGEST[:-1]}.lock").write_text("")
    (root / f"linked-{DIGEST}.lock").write_text("")
    for path in [*root.iterdir(), theirs]:
        if path.name != "rtl":
            age(path, 400)
    store("second")
    assert all((folder / "model").is_file() for folder in [*foreign, theirs])
    assert linked.is_symlink()
    assert (root / f"unit-{DIGEST[:-1]}.lock").exists()


def test_who_waits_for_a_lock_that_is_dropped_takes_the_next(root: Path) -> None:
    """Two that want a build whose lock was dropped under one of them must not both build."""
    build = cached_build("unit", ("text",), filled)
    steps: list[str] = []

    def slowly(folder: Path) -> None:
        steps.append("begin")
        time.sleep(0.1)
        filled(folder)
        steps.append("end")

    with locked(build):
        waiting = [
            threading.Thread(target=cached_build, args=("unit", ("text",), slowly))
            for _ in range(4)
        ]
        for thread in waiting:
            thread.start()
        time.sleep(0.1)
        build.rename(root / "away")
        lock_of(build).unlink()
    for thread in waiting:
        thread.join()
    assert steps == ["begin", "end"]
    assert lock_of(build).exists()


def test_a_cache_that_can_only_be_read_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    build = store()

    def read_only(*_: object, **__: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    assert store() == build


PROCESS = """\
from scalebox.rtl.cosim.cache import cached_build
for n in range(20):
    for m in range(4):
        folder = cached_build("unit", (f"{n} {m}",), lambda f: (f / "model").write_text("x"))
        assert (folder / "model").is_file()
"""


def test_processes_that_tidy_at_once_do_not_trip(root: Path) -> None:
    old = [kept(f"old {n}", 29) for n in range(40)]
    for build in old:
        begun(build, 2)
        age(build, 40)
    running = [
        subprocess.Popen([sys.executable, "-c", PROCESS], stderr=subprocess.PIPE) for _ in range(2)
    ]
    said = [process.communicate()[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert not any(build.exists() for build in old)
    folders = [path for path in root.iterdir() if path.is_dir()]
    assert len(folders) == 80
    assert len(list(root.glob("*.lock"))) == 80
