"""The page on ops is what the table says."""

from pathlib import Path

from scalebox.ir.ops import ROWS
from scalebox.ir.ops.docs import manual


def test_the_page_is_what_the_table_generates(root: Path) -> None:
    assert (root / "docs" / "ops.md").read_text(encoding="utf-8") == manual()


def test_every_op_that_a_kernel_may_write_has_a_section_and_no_other() -> None:
    text = manual()
    for row in ROWS.values():
        assert (f"\n## {row.name}\n" in text) is row.public
