"""A dump with flat words, read again as streams with their fields by name."""

import io
from typing import Any

from scalebox.rtl.cosim.waves import write_fields
from scalebox.rtl.cosim.wires import flows

# start: row_tiles 9 bits, column_tiles 9, groups 8, paired 1. Taken by hand: 3, 2, 5, 1.
START = (1 << 26) | (5 << 18) | (2 << 9) | 3
# o: group 7 bits, second, last, end, then a_exponent of row 0 from bit 10 on: -127 in 9 bits.
RECORD = ((-127 & 0x1FF) << 10) | (1 << 8) | 4

DUMP = f"""\
$timescale 1ps $end
$scope module unit $end
$var wire 1 # clk $end
$var wire 1 ! start__valid $end
$var wire 27 % start__payload [26:0] $end
$var wire 650 & o__payload [649:0] $end
$upscope $end
$enddefinitions $end
#0
0#
0!
#5000
1#
b{START:b} %
1!
#15000
b{RECORD:b} &
"""


def changes_of(text: str) -> dict[str, list[tuple[int, str]]]:
    """Return the changes of a dump by `scope.name`."""
    names: dict[str, str] = {}
    scopes: list[str] = []
    found: dict[str, list[tuple[int, str]]] = {}
    now = 0
    for line in text.splitlines():
        words: list[Any] = line.split()
        match words:
            case ["$scope", _, scope, _]:
                scopes.append(scope)
            case ["$upscope", _]:
                scopes.pop()
            case ["$var", _, _, code, name, *_]:
                names[code] = ".".join([*scopes[1:], name])
            case [value, code] if value[0] == "b" and code in names:
                found.setdefault(names[code], []).append((now, value[1:].lstrip("0") or "0"))
            case [only] if only[0] == "#" and only[1:].isdigit():
                now = int(only[1:])
            case [only] if only[1:] in names:
                found.setdefault(names[only[1:]], []).append((now, only[0]))
            case _:
                pass
    return found


def test_every_field_has_its_name_in_the_scope_of_its_stream() -> None:
    written = io.StringIO()
    write_fields(DUMP.splitlines(keepends=True), written, flows(32))
    changes = changes_of(written.getvalue())
    assert changes["start.row_tiles"][-1] == (5000, "11")
    assert changes["start.column_tiles"][-1] == (5000, "10")
    assert changes["start.groups"][-1] == (5000, "101")
    assert changes["start.paired"][-1] == (5000, "1")
    assert changes["start.valid"][-1] == (5000, "1")
    assert changes["o.group"][-1] == (15000, "100")
    assert changes["o.last"][-1] == (15000, "1")
    assert changes["o.end"][-1] == (15000, "0")
    assert changes["o.a_exponent_0_0"][-1] == (15000, "110000001")
    assert changes["o.a_exponent_0_1"][-1] == (15000, "0")
    assert changes["clk"][-1] == (5000, "1")
