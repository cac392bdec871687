"""What every test may ask for: the repository's files, and the tools that pip does not bring."""

import fnmatch
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

# A slow or busy machine is no failure: no test hangs on absolute time.
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "patient")

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("ir", "codegen", "traces", "sim", "rtl", "app")


def _own_files(folder: Path) -> list[Path]:
    """Return the files below `folder` that `.gitignore` does not exclude, sorted."""
    lines = (ROOT / ".gitignore").read_text().split()
    ignored_folders = {line.rstrip("/") for line in lines if line.endswith("/")} | {".git"}
    ignored_files = [line for line in lines if not line.endswith("/")]
    found: list[Path] = []
    for where, folders, names in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not any(fnmatch.fnmatch(name, pattern) for pattern in ignored_folders)
        ]
        found += [
            Path(where, name)
            for name in names
            if not any(fnmatch.fnmatch(name, pattern) for pattern in ignored_files)
        ]
    return sorted(found)


def _source_files() -> list[Path]:
    rooms = [path for room in ROOMS for path in _own_files(ROOT / room) if path.suffix == ".py"]
    return sorted(ROOT.glob("*.py")) + rooms


def _module_names() -> list[str]:
    names: list[str] = []
    for path in _source_files():
        parts = path.relative_to(ROOT).with_suffix("").parts
        names.append(".".join(("scalebox", *(part for part in parts if part != "__init__"))))
    return [name for name in names if not name.endswith("__main__")]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that rewrites expected texts."""
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the .expect files with what came out"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `module_name` once for every source module."""
    if "module_name" in metafunc.fixturenames:
        metafunc.parametrize("module_name", _module_names())


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return ROOT


@pytest.fixture(scope="session")
def rooms() -> tuple[str, ...]:
    """The source folders, which are the sub-packages of `scalebox`."""
    return ROOMS


@pytest.fixture(scope="session")
def own_files() -> list[Path]:
    """Every file of the repository that `.gitignore` does not exclude."""
    return _own_files(ROOT)


@pytest.fixture(scope="session")
def source_files() -> list[Path]:
    """Every Python file of the package."""
    return _source_files()


@pytest.fixture(scope="session")
def module_names() -> list[str]:
    """The dotted name of every module of the package, `__main__` left out."""
    return _module_names()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Assert that a text is what its .expect file holds; `--update-golden` rewrites the file."""
    update = bool(request.config.getoption("--update-golden"))

    def check(case: Path, text: str) -> None:
        expected = case.with_suffix(".expect")
        if update:
            expected.write_text(text, encoding="utf-8")
        assert expected.is_file(), f"{expected.name} is missing: run with --update-golden"
        assert text == expected.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="session")
def icarus() -> str:
    """The path of `iverilog`; without it a test is skipped, or fails where `CI` is set."""
    found = shutil.which("iverilog")
    if found is None:
        reason = "Icarus Verilog must be installed: there is no command iverilog"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found
