"""Who may import whom. The imports are parsed, not run."""

import ast
from collections.abc import Iterator
from pathlib import Path

# Room -> the modules that it may import, each with all that lies below it.
MAY_IMPORT = {
    "ir": {"ir"},
    "traces": {"traces", "ir.dtypes", "ir.numerics", "ir.errors"},
    "codegen": {"codegen", "ir"},
    "sim": {
        "sim",
        "codegen.isa",
        "codegen.executable",
        "ir.target",
        "ir.dtypes",
        "ir.numerics",
        "ir.errors",
        "ir.jit",
        "traces",
    },
    "rtl": {"rtl", "codegen.isa", "ir.target", "ir.dtypes", "ir.errors", "traces"},
    "app": {"app", "sim", "rtl", "codegen", "traces", "ir"},
}
USERS = ("tests", "examples", "benchmarks")


def is_module(root: Path, dotted: str) -> bool:
    path = root.joinpath(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def imported(path: Path, root: Path) -> Iterator[tuple[str, int]]:
    """Yield (module, line) of every import; relative ones as a dotted path from the root."""
    folder = path.relative_to(root).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, node.lineno) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=0):
                yield str(module), node.lineno
            case ast.ImportFrom(module=module, names=names, level=level):
                base = folder[: len(folder) - level + 1] + ((module,) if module else ())
                for alias in names:
                    dotted = ".".join((*base, alias.name))
                    is_one = is_module(root, dotted)
                    yield "." + (dotted if is_one else ".".join(base)), node.lineno
            case ast.Call(func=ast.Name(id="import_module"), args=[_, ast.Name(id="__name__")]) if (
                path.name == "__init__.py"
            ):
                pass  # a face that loads its own package's files on first use
            case ast.Call(func=ast.Name(id="import_module" | "__import__")):
                yield "import_module()", node.lineno
            case ast.Call(func=ast.Attribute(attr="import_module")):
                yield "import_module()", node.lineno
            case _:
                pass


def is_allowed(module: str, room: str) -> bool:
    allowed = MAY_IMPORT[room]
    return any(module == name or module.startswith(name + ".") for name in allowed)


def test_every_room_has_a_row_in_the_table(rooms: tuple[str, ...]) -> None:
    assert set(MAY_IMPORT) == set(rooms)


def test_source_imports_only_what_the_table_allows(
    root: Path, rooms: tuple[str, ...], source_files: list[Path]
) -> None:
    faults: list[str] = []
    for path in source_files:
        room = path.relative_to(root).parts[0]
        if room not in rooms:
            continue
        for module, line in imported(path, root):
            where = f"{path.relative_to(root)}:{line} imports {module}"
            if module == "import_module()":
                faults.append(f"{where}: an import must be a statement that this test can read")
            elif not module.startswith("."):
                if module.split(".")[0] in {"scalebox", *rooms}:
                    faults.append(f"{where}: source must import relatively")
            elif not is_allowed(module.lstrip("."), room):
                faults.append(f"{where}: {room} may import {', '.join(sorted(MAY_IMPORT[room]))}")
    assert not faults, "\n".join(faults)


def test_tests_examples_and_benchmarks_import_by_the_package_name(
    root: Path, rooms: tuple[str, ...], own_files: list[Path]
) -> None:
    faults = [
        f"{path.relative_to(root)}:{line} imports {module}: must be written scalebox.…"
        for path in own_files
        if path.suffix == ".py" and path.relative_to(root).parts[0] in USERS
        if not path.is_relative_to(root / "tests" / "cases")  # kernels, some of them broken
        for module, line in imported(path, root)
        if not module.startswith(".tests.")  # what tests share stands beside them
        if module.startswith(".") or module.split(".")[0] in rooms
    ]
    assert not faults, "\n".join(faults)


def test_the_reader_of_imports_sees_through_every_form(tmp_path: Path) -> None:
    (tmp_path / "ir" / "passes").mkdir(parents=True)
    (tmp_path / "ir" / "errors.py").touch()
    (tmp_path / "sim").mkdir()
    module = tmp_path / "sim" / "core.py"
    module.write_text(
        "import numpy as np\n"
        "from ..ir import errors\n"
        "from ..ir.errors import UserError\n"
        "from .. import ir\n"
        "from . import core\n"
        "def late():\n"
        "    from ..ir.passes import base\n"
    )
    assert list(imported(module, tmp_path)) == [
        ("numpy", 1),
        (".ir.errors", 2),
        (".ir.errors", 3),
        (".ir", 4),
        (".sim.core", 5),
        (".ir.passes", 7),
    ]
    assert is_allowed("ir.errors", "sim")
    assert not is_allowed("ir", "sim")
    assert not is_allowed("ir.passes", "sim")
    assert not is_allowed("ir.numerics", "rtl")
    assert not is_allowed("codegen.select.rules", "rtl")
    assert not is_allowed("codegen.executable", "rtl")
    assert not is_allowed("codegen.isa.table", "traces")
