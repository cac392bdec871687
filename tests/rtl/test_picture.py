"""The picture in the documentation is what the Verilog does."""

from pathlib import Path

from scalebox.rtl.cosim.picture import PICTURE, picture


def test_the_picture_is_that_of_the_unit_as_it_is(root: Path) -> None:
    assert picture() == (root / PICTURE).read_text(encoding="utf-8")
    assert f"({Path(PICTURE).name})" in (root / "docs" / "rtl.md").read_text(encoding="utf-8")
