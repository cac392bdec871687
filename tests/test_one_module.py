"""The root is the package: no file may be loaded a second time under a bare name."""

import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

HEAVY = {"amaranth", "ml_dtypes", "numba", "numpy", "rich", "typer", "scalebox.ir"}


def test_every_module_imports(module_name: str) -> None:
    assert import_module(module_name).__name__ == module_name


def test_one_table_of_instructions_is_loaded(
    root: Path, rooms: tuple[str, ...], module_names: list[str]
) -> None:
    for name in module_names:
        import_module(name)
    names: defaultdict[Path, set[str]] = defaultdict(set)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and name != "__main__":
            names[Path(file).resolve()].add(name)
    assert names[root / "codegen" / "isa" / "table.py"] == {"scalebox.codegen.isa.table"}
    # pytest takes the root for a package and loads its light __init__ under the folder's name too.
    names.pop(root / "__init__.py", None)
    doubled = {file: found for file, found in names.items() if len(found) > 1}
    ours = [file for file in doubled if any(file.is_relative_to(root / room) for room in rooms)]
    assert {file: doubled[file] for file in ours} == {}
    assert not set(rooms) & set(sys.modules)


def in_child(code: str, folder: Path) -> str:
    child = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return child.stdout.strip()


def test_import_scalebox_loads_nothing_heavy(tmp_path: Path) -> None:
    code = f"import sys, scalebox; print(sorted({HEAVY!r} & set(sys.modules)))"
    assert in_child(code, tmp_path) == "[]"


def test_public_names_load_on_first_use(tmp_path: Path) -> None:
    code = (
        "import scalebox\n"
        "names = {name: getattr(scalebox, name) for name in scalebox.__all__}\n"
        "from scalebox.ir import language\n"
        "assert names['pl'] is language\n"
        "assert set(scalebox.__all__) <= set(dir(scalebox))\n"
        "print(sorted(name for name in names if callable(names[name])))"
    )
    types = ["Comparison", "Executable", "Result", "SweepRow"]
    calls = ["compare", "compile", "interpret", "run", "sweep"]
    assert in_child(code, tmp_path) == str(types + calls)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'scalebox' has no attribute 'sim_all'$"):
        getattr(import_module("scalebox"), "sim_" + "all")
