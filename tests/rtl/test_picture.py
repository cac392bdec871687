"""The picture in the documentation is what the Verilog does."""

from pathlib import Path

import pytest

from scalebox.rtl.cosim import toolchain
from scalebox.rtl.cosim.picture import PICTURE, main, picture


def test_the_picture_is_that_of_the_unit_as_it_is(root: Path) -> None:
    assert picture() == (root / PICTURE).read_text(encoding="utf-8")
    assert f"({Path(PICTURE).name})" in (root / "docs" / "rtl.md").read_text(encoding="utf-8")


def drawn(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["picture", *arguments])
    return main()


def test_the_command_draws_where_it_is_told_and_no_option_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert drawn(monkeypatch, "box.svg") == 0
    assert Path("box.svg").read_text(encoding="utf-8") == picture()
    with pytest.raises(SystemExit) as stopped:
        drawn(monkeypatch, "--help")
    assert stopped.value.code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["box.svg"]


def test_without_verilator_the_command_says_so_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(toolchain, "verilator_bin", lambda: None)
    assert drawn(monkeypatch, str(tmp_path / "box.svg")) == 2
    assert "Error: To run the generated Verilog, Verilator must be" in capsys.readouterr().err
