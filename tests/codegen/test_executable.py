import json
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from scalebox.codegen.executable import (
    Direction,
    Executable,
    HostProgram,
    Kernel,
    Layout,
    Output,
    Param,
    ParamKind,
    View,
)
from scalebox.codegen.host.program import (
    Alias,
    Allocate,
    Assign,
    For,
    If,
    Join,
    Launch,
    Require,
    While,
)
from scalebox.codegen.isa.asm import parse_program
from scalebox.codegen.isa.program import make
from scalebox.codegen.scalars.exprs import Binary, BinaryOp, Const, Variable
from scalebox.ir.errors import ExecutableError, InputError, IRValueError, Span

A = Param("a", ParamKind.TENSOR, "FP8E4M3FN", 8, Direction.IN, (64, 128))
OUT = Param("out", ParamKind.TENSOR, "FP32", 32, Direction.OUT, (64, 32))
N = Param("n", ParamKind.SCALAR, "INDEX", 64)
KERNEL = Kernel.assemble(
    "k",
    params=[A, N, OUT],
    views=[View(0, Layout.ND, 8, (64, 128), (128, 1))],
    program=[
        make("ldparam", xd=1, index=0),
        make("gm_to_l1_nz", view=0, xr=1, xc=0, l1=0, rows=16, cols=128, l1_rows=16),
        make("bnez", xa=1, target=-2),
        make("halt"),
    ],
    spans=[Span("k.py", 3, 5, 3, 9), Span("k.py", 4, 5), Span("k.py", 4, 5), Span.unknown()],
    notes={1: "first tile"},
)
MAIN = HostProgram(
    "main",
    (A, OUT, N),
    (
        Assign("x", Binary(BinaryOp.ADD, Variable("n"), Const(-1))),
        Require(Variable("n"), "n must not be 0."),
        Allocate("t", "FP32", 32, (64, 32), Layout.DN),
        Alias("u", "t", "FP32", 32, (32, 64)),
        For(
            "i",
            Const(0),
            Variable("x"),
            Const(1),
            (If(Variable("i"), (Launch(0, ("a", "u"), (Variable("i"),)),)),),
        ),
        Launch(0, ("a", "out"), (Const(0),), Variable("n"), (Const(0),), "first", sync_start=True),
        Join("both", (Variable("first"), Const(1))),
        While(Binary(BinaryOp.GT, Variable("x"), Const(0)), (Assign("x", Const(0)),)),
    ),
    (Output("result", "out"),),
)
PROGRAM = Executable(
    "prog", "a5", "00ff", (KERNEL,), (MAIN, HostProgram.of_kernel(0, KERNEL)), "main"
)
SMALL = Executable(
    "s",
    "a5",
    "",
    (Kernel.assemble("k", params=[], views=[], program=[make("halt")]),),
    (HostProgram("e", (), (Launch(0, ()),), ()),),
    "e",
)
PREAMBLE = struct.Struct("<8sHHIQ")


def changed(edit: Callable[[Any], None], source: Executable = PROGRAM) -> bytes:
    """Return the file of `source` with an edited header and a right checksum."""
    data = source.to_bytes()
    magic, major, minor, length, words = PREAMBLE.unpack_from(data)
    header = json.loads(data[28 : 28 + length])
    edit(header)
    return framed(json.dumps(header).encode(), data[28 + length :], magic, major, minor, words)


def framed(
    text: bytes,
    payload: bytes,
    magic: bytes = b"SCALEBOX",
    major: int = 2,
    minor: int = 0,
    words: int | None = None,
) -> bytes:
    length = len(payload) if words is None else words
    preamble = PREAMBLE.pack(magic, major, minor, len(text), length)
    crc = zlib.crc32(preamble + text + payload)
    return preamble + struct.pack("<I", crc) + text + payload


def test_a_saved_executable_loads_as_an_equal_one(tmp_path: Path):
    PROGRAM.save(tmp_path / "p.sbx")
    loaded = Executable.load(tmp_path / "p.sbx")
    assert loaded == PROGRAM
    assert loaded.kernels[0].words.tolist() == KERNEL.words.tolist()
    assert loaded.to_bytes() == PROGRAM.to_bytes()


def test_saving_replaces_an_older_file_and_leaves_nothing_else(tmp_path: Path):
    PROGRAM.save(tmp_path / "p.sbx")
    SMALL.save(tmp_path / "p.sbx")
    assert Executable.load(tmp_path / "p.sbx") == SMALL
    assert [path.name for path in tmp_path.iterdir()] == ["p.sbx"]


def test_a_failed_save_leaves_the_older_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    PROGRAM.save(tmp_path / "p.sbx")

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ExecutableError, match="must be writable, which it is not"):
        SMALL.save(tmp_path / "p.sbx")
    assert Executable.load(tmp_path / "p.sbx") == PROGRAM
    assert [path.name for path in tmp_path.iterdir()] == ["p.sbx"]


def test_saving_into_a_folder_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(ExecutableError, match="must be writable, which it is not"):
        PROGRAM.save(tmp_path / "nowhere" / "p.sbx")


def test_a_file_cut_at_any_byte_is_refused():
    data = SMALL.to_bytes()
    for length in range(len(data)):
        with pytest.raises(ExecutableError, match="must"):
            Executable.from_bytes(data[:length])


def test_a_file_with_any_byte_changed_is_refused():
    data = SMALL.to_bytes()
    for position in range(len(data)):
        for flip in (0x01, 0x80, 0xFF):
            broken = bytearray(data)
            broken[position] ^= flip
            with pytest.raises(ExecutableError, match="must"):
                Executable.from_bytes(bytes(broken))


def test_a_header_with_any_byte_changed_under_a_right_checksum_is_read_or_refused():
    data = PROGRAM.to_bytes()
    length = PREAMBLE.unpack_from(data)[3]
    text, payload = data[28 : 28 + length], data[28 + length :]
    for position in range(len(text)):
        for byte in (b'0"[{-x\xff'[position % 7], b"]9"[position % 2]):
            broken = bytearray(text)
            broken[position] = byte
            with suppress(ExecutableError):
                Executable.from_bytes(framed(bytes(broken), payload))


def test_words_with_any_byte_changed_under_a_right_checksum_are_read_or_refused():
    data = PROGRAM.to_bytes()
    length = PREAMBLE.unpack_from(data)[3]
    text, payload = data[28 : 28 + length], data[28 + length :]
    for position in range(len(payload)):
        for byte in (0x00, 0x07, 0x80, 0xFF):
            broken = bytearray(payload)
            broken[position] = byte
            with suppress(ExecutableError):
                Executable.from_bytes(framed(text, bytes(broken)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "An executable must begin with b'SCALEBOX', not b''."),
        (b"\x7fELF" + bytes(60), "An executable must begin with b'SCALEBOX', not "
         "b'\\x7fELF\\x00\\x00\\x00\\x00'."),
        (b"SCALEBOX\x01", "An executable must have at least 28 bytes, not 9: it is cut off."),
        (framed(b"{}", b"", major=3), "An executable must be of format version 2, not 3.0."),
        (framed(b"{}", b"", words=1 << 62), f"This executable must have {(1 << 62) + 30} bytes, "
         "not 30: it is cut off."),
        (SMALL.to_bytes() + b"\0", f"This executable must have {len(SMALL.to_bytes())} bytes, not "
         f"{len(SMALL.to_bytes()) + 1}: something follows it."),
        (framed(b"[]", b""), "In the executable, the header must be an object, not []."),
    ],
)  # fmt: skip
def test_what_is_no_executable_is_refused_by_name(data: bytes, message: str):
    with pytest.raises(ExecutableError) as caught:
        Executable.from_bytes(data)
    assert caught.value.message == message


@pytest.mark.parametrize("text", [b"\xff", b"{", b"[" * 100_000, b"9" * 10_000])
def test_a_header_that_is_no_json_is_refused(text: bytes):
    with pytest.raises(ExecutableError, match="must be UTF-8 JSON, which this one is not"):
        Executable.from_bytes(framed(text, b""))


def edit(path: str, value: object) -> Callable[[Any], None]:
    """Return an edit that sets the value at `path`, as in `kernels.0.name`."""

    def apply(header: Any) -> None:
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        for step in steps:
            header = header[step]
        header[last] = value

    return apply


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("name", 5, "In the executable, the header.name must be a string, not 5."),
        ("kernels", {}, "In the executable, the header.kernels must be a list, not {}."),
        ("name", "\ud800", "In the executable, the header.name must be a string without lone "
         "surrogates, not '\\ud800'."),
        ("extra", 1, "In the executable, a key of the header must be one of name, machine, "
         "machine_digest, kernels, entries, default_entry, not 'extra'."),
        ("kernels.0.params.0.kind", "matrix", "In the executable, the header.kernels[0].params[0]"
         ".kind must be one of tensor, scalar, not 'matrix'."),
        ("kernels.0.params.0.bits", True, "In the executable, the header.kernels[0].params[0]"
         ".bits must be an integer, not True."),
        ("kernels.0.params.0.bits", 8.0, "In the executable, the header.kernels[0].params[0]"
         ".bits must be an integer, not 8.0."),
        ("kernels.0.views.0.offset", 1 << 63, "In the executable, the header.kernels[0].views[0]"
         f".offset must be a signed 64-bit integer, not {1 << 63}."),
        ("kernels.0.notes.0", [1], "In the executable, the header.kernels[0].notes[0] must be a "
         "list of 2, not [1]."),
        ("entries.0.body.0.node", "Explode", "In the executable, the header.entries[0].body[0]"
         ".node must be one of Assign, Require, Allocate, Alias, Launch, Join, "
         "For, While, If, not 'Explode'."),
        ("kernels.0.instructions", 5, "An executable's kernels must have 4 instructions together, "
         "as the payload has, not [5]."),
        ("kernels.0.instructions", -4, "An executable's kernels must have 4 instructions "
         "together, as the payload has, not [-4]."),
        ("kernels.0.views.0.param", 9, "The executable must be consistent, which it is not. View "
         "0 of kernel 'k' must name one of the 3 parameters, not 9."),
        ("kernels.0.views", [], "The executable must be consistent, which it is not. Instruction "
         "1 (gm_to_l1_nz) of kernel 'k' must use one of the 0 views, not 0."),
        ("kernels.0.span_indices.0", 7, "The executable must be consistent, which it is not. "
         "Kernel 'k' must have span indices of -1 to 1, not 7."),
        ("entries.0.body.5.kernel", 3, "The executable must be consistent, which it is not. Entry "
         "'main' must launch one of the 1 kernels, not 3."),
        ("default_entry", "x", "The executable must be consistent, which it is not. The default "
         "entry must be one of main, k, not 'x'."),
        ("kernels.0.params.0.shape", [1 << 62, 1 << 62], "The executable must be consistent, "
         "which it is not. Parameter 'a' must have at most 17592186044416 elements, not "
         "[4611686018427387904, 4611686018427387904]."),
    ],
)  # fmt: skip
def test_inconsistent_content_is_refused_by_name(path: str, value: object, message: str):
    with pytest.raises(ExecutableError) as caught:
        Executable.from_bytes(changed(edit(path, value)))
    assert caught.value.message == message


def test_a_missing_key_is_refused_by_name():
    with pytest.raises(ExecutableError) as caught:
        Executable.from_bytes(changed(lambda header: header["kernels"][0].pop("views")))
    assert caught.value.message == (
        "In the executable, the header.kernels[0] must have the key 'views', which is missing."
    )


def test_a_host_program_nested_without_end_is_refused():
    def nest(header: Any) -> None:
        deep: Any = {"node": "Const", "value": 1}
        for _ in range(300):
            deep = {"node": "Binary", "op": "add", "left": deep, "right": deep}
            deep["right"] = {"node": "Const", "value": 1}
        header["entries"][0]["body"][0]["value"] = deep

    with pytest.raises(ExecutableError, match="nested at most"):
        Executable.from_bytes(changed(nest))


def test_a_deeply_nested_value_is_refused_without_being_shown_in_full():
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    with pytest.raises(ExecutableError, match=r"name must be a string, not \[\[\[\.\.\.\]\]\]"):
        Executable.from_bytes(changed(edit("name", deep)))


def test_a_file_from_before_sync_start_launches_without_it():
    def as_before(node: Any) -> None:
        match node:
            case list():
                for each in cast("list[Any]", node):
                    as_before(each)
            case dict():
                cast("dict[str, Any]", node).pop("sync_start", None)
                for each in cast("dict[str, Any]", node).values():
                    as_before(each)
            case _:
                pass

    data = PROGRAM.to_bytes()
    length = PREAMBLE.unpack_from(data)[3]
    header = json.loads(data[28 : 28 + length])
    as_before(header["entries"])
    text = json.dumps(header).encode()
    older = Executable.from_bytes(framed(text, data[28 + length :], minor=2))
    launches = [each for each in older.entries[0].body if isinstance(each, Launch)]
    assert [launch.sync_start for launch in launches] == [False]
    with pytest.raises(ExecutableError, match="must have the key 'sync_start', which is missing"):
        Executable.from_bytes(framed(text, data[28 + length :], minor=3))


def test_a_newer_minor_version_may_have_more_keys():
    data = PROGRAM.to_bytes()
    length = PREAMBLE.unpack_from(data)[3]
    header = json.loads(data[28 : 28 + length])
    header["comment"] = "from the future"
    header["kernels"][0]["params"][0]["colour"] = "green"
    newer = framed(json.dumps(header).encode(), data[28 + length :], minor=4)
    assert Executable.from_bytes(newer) == PROGRAM


def test_a_path_that_is_no_readable_file_is_refused(tmp_path: Path):
    for path in (tmp_path, tmp_path / "nothing", "nul\0l"):
        with pytest.raises(ExecutableError, match="must be"):
            Executable.load(path)


def test_an_error_names_the_file(tmp_path: Path):
    path = tmp_path / "p.sbx"
    path.write_bytes(b"something else")
    with pytest.raises(ExecutableError) as caught:
        Executable.load(path)
    assert caught.value.note == f"the file is {str(path)!r}"


def test_disassembly_is_readable_text_with_source_lines():
    assert PROGRAM.disassemble() == (
        "; kernel k\n"
        "; in FP8E4M3FN [64, 128] a\n"
        "; out FP32 [64, 32] out\n"
        "; p0 INDEX n\n"
        "; v0 a: extents [64, 128], strides [128, 1], offset 0, 8 bits\n"
        "L0:\n"
        "    ldparam        x1, p0                                                ; 0 k.py:3:5\n"
        "    gm_to_l1_nz    v0, x1, x0, l1[0x0], rows=16, cols=128, l1_rows=16    ; 1 k.py:4:5 "
        "first tile\n"
        "    bnez           x1, L0                                                ; 2 k.py:4:5\n"
        "    halt                                                                 ; 3\n"
    )
    assert parse_program(PROGRAM.disassemble()) == list(KERNEL.program)


def test_an_entry_is_found_by_name_or_by_default():
    assert PROGRAM.entry() is MAIN
    assert PROGRAM.entry("k").params == KERNEL.params
    with pytest.raises(InputError) as caught:
        PROGRAM.entry("mian")
    assert caught.value.message == "An entry of 'prog' must be one that it has, not 'mian'."
    assert caught.value.hint == "valid here: main"
    with pytest.raises(InputError, match="must be named, since it has no single one"):
        replace(PROGRAM, default_entry="").entry()


def test_a_launch_expands_the_entrys_host_program():
    graph = PROGRAM.expand(scalars={"n": 3})
    assert [task.scalars for task in graph.tasks] == [(1,), (0,), (0,), (0,)]
    assert [(task.block, task.blocks) for task in graph.tasks] == [(0, 1), (0, 3), (1, 3), (2, 3)]
    assert graph.outputs == {"result": "out"}
    with pytest.raises(InputError, match="n must not be 0"):
        PROGRAM.expand(scalars={"n": 0})


@pytest.mark.parametrize("part", ["kernels", "entries"])
def test_kernels_and_entries_have_different_names(part: str):
    with pytest.raises(IRValueError, match=f"must have {part} of different names"):
        replace(PROGRAM, **{part: getattr(PROGRAM, part)[:1] * 2})
