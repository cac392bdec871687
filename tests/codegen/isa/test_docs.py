from pathlib import Path

from scalebox.codegen.isa.docs import manual
from scalebox.codegen.isa.table import ROWS

PAGE = Path(__file__).parents[3] / "docs" / "isa.md"


def test_the_page_is_what_the_table_generates():
    assert PAGE.read_text(encoding="utf-8") == manual()


def test_every_instruction_has_a_section():
    text = manual()
    for row in ROWS:
        assert f"\n## {row.mnemonic}\n" in text
