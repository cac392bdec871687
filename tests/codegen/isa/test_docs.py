import re
from pathlib import Path

import pytest

from scalebox.codegen.isa.docs import manual
from scalebox.codegen.isa.table import ROWS

PAGE = Path(__file__).parents[3] / "docs" / "isa.md"


def test_the_page_is_what_the_table_generates():
    assert PAGE.read_text(encoding="utf-8") == manual()


def test_every_instruction_has_a_section():
    text = manual()
    for row in ROWS:
        assert f"\n## {row.mnemonic}\n" in text


def test_the_program_of_the_page_runs_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", manual(), re.DOTALL)
    exec(compile(example, "docs/isa.md", "exec"), {})
    printed = capsys.readouterr().out.strip()
    assert f"It prints `{printed}`." in manual()
    assert (tmp_path / "exp.sbx").is_file()
