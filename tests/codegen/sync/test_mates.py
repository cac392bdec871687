"""A kernel of both kinds of core: two programs in one file, and files from before there were any."""

import json
import struct
import zlib
from dataclasses import replace
from typing import Any

import pytest

from scalebox.codegen.executable import Executable, HostProgram
from scalebox.codegen.isa.asm import parse_program
from scalebox.codegen.isa.program import make
from scalebox.codegen.isa.vocabulary import CoreKind
from scalebox.codegen.kernel import Kernel
from scalebox.codegen.tensors import Direction, Layout, Param, ParamKind, View
from scalebox.codegen.tile_records import TileRecords
from scalebox.ir.errors import ExecutableError, IRValueError, Span

OUT = Param("out", ParamKind.TENSOR, "FP32", 32, Direction.OUT, (16, 16))
VIEWS = (View(0, Layout.ND, 32, (16, 16), (16, 1)),)
MATE = Kernel.assemble(
    "k",
    params=[OUT],
    views=VIEWS,
    program=[make("wait_core_flag", pipe=5, of=0, id=2), make("nop"), make("halt")],
    spans=[Span("k.py", 7, 1), Span("k.py", 8, 1), Span.unknown()],
    notes={1: "nothing"},
    core=CoreKind.AIV,
)
PAIR = Kernel.assemble(
    "k",
    params=[OUT],
    views=VIEWS,
    program=[make("set_core_flag", pipe=6, to=1, id=2), make("halt")],
    spans=[Span("k.py", 4, 1), Span.unknown()],
    mate=MATE,
)
ALONE = Kernel.assemble("after", params=[OUT], views=VIEWS, program=[make("nop"), make("halt")])
PROGRAM = Executable(
    "p", "a5", "", (PAIR, ALONE), tuple(HostProgram.of_kernel(n, k) for n, k in enumerate((PAIR, ALONE)))
)  # fmt: skip


def test_a_pair_comes_back_from_its_file_with_both_programs():
    loaded = Executable.from_bytes(PROGRAM.to_bytes())
    assert loaded == PROGRAM
    assert [len(each.program) for each in loaded.kernels[0].programs] == [2, 3]
    assert loaded.kernels[0].programs[1] == MATE


def test_the_words_of_a_mate_follow_those_of_its_kernel():
    payload = PROGRAM.to_bytes()[-16 * 7 :]
    opcodes = [payload[16 * n] for n in range(7)]
    assert opcodes == [0x13, 0x02, 0x14, 0x01, 0x02, 0x01, 0x02]


def test_disassembly_shows_both_programs_under_headings():
    text = PROGRAM.disassemble()
    lines = text.splitlines()
    first, second = lines.index("; kernel k (aic)"), lines.index("; mate of k (aiv)")
    after = lines.index("; kernel after")
    assert first < second < after
    assert any("set_core_flag" in line for line in lines[first:second])
    assert any("wait_core_flag" in line for line in lines[second:after])
    assert len(parse_program(text)) == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"core": CoreKind.AIC}, "must be for aic and aiv, not for aic and aic"),
        ({"name": "other"}, "the same name, parameters and views"),
        ({"params": (replace(OUT, shape=(32, 16)),)}, "the same name, parameters and views"),
        ({"views": ()}, "the same name, parameters and views"),
    ],
)
def test_a_mate_that_does_not_fit_is_refused(change: dict[str, Any], message: str):
    with pytest.raises(IRValueError, match=message):
        replace(PAIR, mate=replace(MATE, **change))


def test_a_vector_kernel_has_no_mate():
    with pytest.raises(IRValueError, match="must be for aic and aiv, not for aiv and aiv"):
        replace(MATE, mate=MATE)


def test_a_mate_has_no_mate():
    with pytest.raises(IRValueError, match="must be for aic and aiv, not for aic and aic"):
        replace(PAIR, mate=PAIR)


def test_instructions_that_the_payload_lacks_are_refused():
    data = PROGRAM.to_bytes()
    (length,) = struct.unpack_from("<I", data, 12)
    header = json.loads(data[28 : 28 + length])
    header["kernels"][0]["mate"]["instructions"] = 4
    with pytest.raises(ExecutableError, match=r"7 instructions together.*\[2, 4, 2\]"):
        Executable.from_bytes(_file(header, data[28 + length :], 2))


def test_files_of_the_older_minor_versions_load():
    """Written by hand as they wrote them: 2.2 without tiles, 2.1 without mates, 2.0 without cores."""
    kernel: dict[str, Any] = {
        "name": "k",
        "params": [],
        "views": [],
        "instructions": 2,
        "span_table": [],
        "span_indices": [-1, -1],
        "notes": [],
    }
    one = {"node": "Const", "value": 1}
    launch: dict[str, Any] = {
        "node": "Launch",
        "kernel": 0,
        "buffers": [],
        "scalars": [],
        "blocks": one,
    }
    launch |= {"deps": [], "name": ""}
    entry: dict[str, Any] = {
        "name": "k",
        "params": [],
        "body": [launch],
        "outputs": [],
        "compounds": [],
    }
    header: dict[str, Any] = {
        "name": "p",
        "machine": "a5",
        "machine_digest": "",
        "kernels": [kernel],
        "entries": [entry],
        "default_entry": "k",
    }
    words = struct.pack("<4Q", 0x01, 0, 0x02, 0)
    old = Executable.from_bytes(_file(header, words, 0))
    assert [each.mnemonic for each in old.kernels[0].program] == ["nop", "halt"]
    assert (old.kernels[0].core, old.kernels[0].mate) == (CoreKind.AIC, None)
    kernel["core"] = "aiv"
    newer = Executable.from_bytes(_file(header, words, 1))
    assert (newer.kernels[0].core, newer.kernels[0].mate) == (CoreKind.AIV, None)
    with pytest.raises(ExecutableError, match="must have the key 'mate'"):
        Executable.from_bytes(_file(header, words, 2))
    shared = {key: kernel[key] for key in ("instructions", "span_table", "span_indices", "notes")}
    kernel |= {"core": "aic", "mate": shared}
    latest = Executable.from_bytes(_file(header, words * 2, 2)).kernels[0]
    assert [each.tiles for each in latest.programs] == [TileRecords(), TileRecords()]
    with pytest.raises(ExecutableError, match="must have the key 'tiles'"):
        Executable.from_bytes(_file(header, words * 2, 3))


def _file(header: object, payload: bytes, minor: int) -> bytes:
    text = json.dumps(header).encode()
    preamble = struct.pack("<8sHHIQ", b"SCALEBOX", 2, minor, len(text), len(payload))
    return preamble + struct.pack("<I", zlib.crc32(preamble + text + payload)) + text + payload
