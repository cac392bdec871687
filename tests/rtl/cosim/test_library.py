"""Verilog and C++ become a library, once; what does not compile says why."""

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest

from scalebox.rtl.cosim import library as home
from scalebox.rtl.cosim.cache import CacheError
from scalebox.rtl.cosim.library import shared_library
from scalebox.rtl.cosim.run import CosimError

INCREMENT = "module increment(input clk, input [7:0] x, output reg [7:0] y);\n  always @(posedge clk) y <= x + 8'd1;\nendmodule\n"
PAIR = """\
module pair(input clk, input [7:0] x, output [7:0] y);
  wire [7:0] between;
  increment first(.clk(clk), .x(x), .y(between));
  increment second(.clk(clk), .x(between), .y(y));
endmodule
"""
SOURCE = """\
#include "Vpair.h"
#include "verilated.h"
extern "C" int two_edges(int x) {
  VerilatedContext context;
  Vpair model{&context};
  model.x = x;
  for (int edge = 0; edge < 2; ++edge) {
    model.clk = 0;
    model.eval();
    model.clk = 1;
    model.eval();
  }
  model.final();
  return model.y;
}
"""


@pytest.mark.parametrize("blocks", [(), ("increment",)], ids=["flat", "hierarchical"])
def test_several_files_become_one_library_flat_or_of_blocks(blocks: tuple[str, ...]) -> None:
    files = {"pair.v": PAIR, "increment.v": INCREMENT}
    library = shared_library("pair", files, SOURCE, blocks=blocks)
    assert [library.two_edges(ctypes.c_int(x)) for x in (0, 41, 254)] == [2, 43, 0]


def test_a_library_is_built_once_and_any_other_text_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[str, ...]] = []

    class NothingIsCompiledError(Exception):
        """Stops in time."""

    def record(_: str, ingredients: tuple[str, ...], build: Callable[..., None]) -> None:
        del build
        made.append(ingredients)
        raise NothingIsCompiledError

    monkeypatch.setattr(home, "cached_build", record)
    files = {"pair.v": PAIR, "increment.v": INCREMENT + "\n"}
    for source, blocks, options in (
        (SOURCE, (), ()),
        (SOURCE + "\n", (), ()),
        (SOURCE, ("increment",), ()),
        (SOURCE, (), ("--trace",)),
    ):
        with pytest.raises(NothingIsCompiledError):
            shared_library("pair", files, source, blocks=blocks, options=options)
    assert len(set(made)) == 4
    monkeypatch.undo()
    files = {"pair.v": PAIR, "increment.v": INCREMENT}
    assert shared_library("pair", files, SOURCE) is shared_library("pair", files, SOURCE)


def test_what_does_not_compile_is_an_error_with_the_compilers_words() -> None:
    with pytest.raises(CosimError, match=r"^Verilator must run verilator without") as caught:
        shared_library("broken", {"broken.v": "module broken(; endmodule\n"}, "")
    assert "syntax error" in (caught.value.note or "")


def test_a_kept_library_that_is_not_whole_is_told_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(_: str, ingredients: tuple[str, ...], build: Callable[..., None]) -> Path:
        del ingredients, build
        return tmp_path

    monkeypatch.setattr(home, "cached_build", kept)
    (tmp_path / "library.so").write_bytes(b"")
    with pytest.raises(CacheError, match="must be whole") as caught:
        shared_library("pair", {"pair.v": PAIR}, SOURCE + "// damaged")
    assert str(tmp_path) in caught.value.message
    assert caught.value.hint == "Remove that folder; what it held is then compiled anew."
