"""Each numbered requirement of the specification of representations has a test that names it."""

import ast
import re
from pathlib import Path

REQUIREMENTS = range(1, 68)


def test_none_of_r1_to_r67_is_missing() -> None:
    here = Path(__file__).parent
    files = [*here.glob("test_*.py"), here.parent / "test_representation.py"]
    names = [
        node.name
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    named = {int(number) for name in names for number in re.findall(r"(?<=_)r(\d+)(?=_)", name)}
    assert named == set(REQUIREMENTS)
