"""The worked example of docs/timing.md is what comes out."""

import re
from pathlib import Path
from typing import Any

from scalebox.codegen.isa.vocabulary import Pipe
from scalebox.sim.pipes.tables import BUSY

PAGE = (Path(__file__).parents[2] / "docs" / "timing.md").read_text(encoding="utf-8")
LINE = re.compile(r"^\| `(\w+)`[^|]*\| ([\d,]+) \| ([\d,]+) \|", re.MULTILINE)


def test_the_worked_example_takes_the_cycles_of_its_table(bench: Any) -> None:
    program = re.search(r"```asm\n(.*?)```", PAGE, re.DOTALL)
    assert program is not None
    shapes = {"a": (64, 512), "b": (128, 128), "c": (64, 128)}
    kernel = bench.kernel(
        program[1].strip(),
        [
            bench.tensor("a", "E4M3", shapes["a"]),
            bench.tensor("b", "E4M3", shapes["b"]),
            bench.tensor("c", "BF16", shapes["c"], "out"),
        ],
        [bench.plain(0, 8, 64, 512), bench.plain(1, 8, 128, 128), bench.plain(2, 16, 64, 128)],
    )
    result = bench.run(kernel, functional=False, checks="off")
    told = [
        (name, int(start.replace(",", "")), int(end.replace(",", "")))
        for name, start, end in LINE.findall(PAGE)
    ]
    launch = result.launch_cycles
    found = [(each.name, each.start - launch, each.end - launch) for each in result.timeline]
    assert told == [each for each in found if each[0] != "halt"]
    assert launch == 4950
    assert result.cycles - launch == 1757
    assert result.accounts[0, Pipe.M, BUSY] == 153
