"""Every row of the op table is whole, is in the manual and is tried by some test."""

import re
from pathlib import Path

import pytest

from scalebox.ir.ops import ROWS
from scalebox.ir.ops.docs import manual


@pytest.fixture(scope="module", name="tests")
def _tests() -> str:
    """The text of all tests of the language and of the interpreter."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return "\n".join(each.read_text(encoding="utf-8") for each in files)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_a_meaning_a_type_rule_a_doc_line_and_a_test(name: str, tests: str) -> None:
    row = ROWS[name]
    assert callable(row.meaning)
    assert callable(row.infer)
    if row.public:
        section = manual().split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
        assert row.doc in section
        assert row.signature in section
    level, _, short = name.partition(".")
    written = rf'"{name}"|\bpl\.({level}\.)?{short}\(|"{short}"'
    assert re.search(written, tests), f"no test in tests/ir mentions {name}"
