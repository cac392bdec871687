"""What nobody hands in on purpose: a sentence, never a traceback, and nothing half done."""

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.ir import assert_structural_equal, numerics, python_print
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import IRValueError, UserError

from .oracle import Array

Gemm = Callable[..., Program]
Text = Callable[..., str]

#: Values of other kinds than any parameter wants.
STRANGERS: list[Any] = [None, 1.5, b"x", [1, "a"], {1: 2}, np.zeros((2, 2)), np.zeros(0), int]
SIZES = (16, 64, 32)


@pytest.fixture
def given() -> dict[str, Array]:
    """Launch inputs of a gemm of SIZES."""
    return {
        "a": np.zeros((16, 64), np.uint8),
        "b": np.zeros((64, 32), np.uint8),
        "sa": np.full(32, 127, np.uint8),
        "sb": np.full(64, 127, np.uint8),
    }


def refusal(call: Callable[[], object]) -> UserError:
    with pytest.raises(UserError) as caught:
        call()
    assert " object at 0x" not in caught.value.message
    return caught.value


# --------------------------------------------------------------------------- Python calls


@pytest.mark.parametrize("stranger", STRANGERS, ids=repr)
def test_a_stranger_is_refused_by_every_call(
    stranger: Any, gemm: Gemm, given: dict[str, Array], tmp_path: Path
) -> None:
    program = gemm(*SIZES)
    executable = scalebox.compile(program)
    ran = scalebox.run(executable, given)
    mx, codes = numerics.quantize(np.ones((16, 32)), pl.MXFP8_E4M3), np.zeros(512, np.uint8)
    calls: list[Callable[[], object]] = [
        lambda: scalebox.compile(stranger),
        lambda: scalebox.compile(program, machine=stranger),
        lambda: scalebox.run(executable, {**given, "a": stranger}),
        lambda: scalebox.run(executable, given, functional=stranger),
        lambda: scalebox.run(executable, given, timing=stranger),
        lambda: scalebox.run(executable, given, checks=stranger),
        lambda: scalebox.run(executable, given, sum=stranger),
        lambda: scalebox.interpret(program, {**given, "sb": stranger}),
        lambda: scalebox.interpret(program, stranger),
        lambda: scalebox.interpret(program, given, sum=stranger),
        lambda: scalebox.compare(ran.outputs, stranger),
        lambda: scalebox.compare(ran.outputs, ran.outputs, rule=stranger),
        lambda: ran.save(stranger),
        lambda: executable.save(stranger),
        lambda: scalebox.Executable.load(stranger),
        lambda: scalebox.Executable.from_bytes(stranger),
        lambda: pl.parse(stranger),
        lambda: pl.loads(stranger),
        lambda: numerics.quantize(np.ones(32), stranger),
        lambda: numerics.quantize(np.ones(32), pl.MXFP4, axis=stranger),
        lambda: numerics.quantize(np.ones(32), pl.MXFP4, rule=stranger),
        lambda: numerics.dequantize(stranger),
        lambda: numerics.matmul(mx, stranger),
        lambda: numerics.decode(codes, stranger),
        lambda: numerics.encode(np.ones(3), stranger),
        lambda: numerics.pack(codes, stranger),
        lambda: numerics.unpack(codes, pl.FP4, stranger),
        lambda: numerics.pack_scales_a(codes.reshape(32, 16), order=stranger),
        lambda: numerics.unpack_scales_b(codes, stranger),
        lambda: numerics.unpack_scales_b(codes, (16, 32), order=stranger),
        lambda: numerics.MXArray(mx.elements, mx.scales, stranger, 1),
    ]
    for call in calls:
        refusal(call)
    if stranger is not None:  # None means "the default" here
        refusal(lambda: scalebox.run(executable, stranger))
        refusal(lambda: scalebox.run(executable, given, entry=stranger))
        refusal(lambda: scalebox.run(executable, given, machine=stranger))
        refusal(lambda: scalebox.interpret(program, given, entry=stranger))
        refusal(lambda: numerics.encode(np.ones(3), pl.FP4, rounding=stranger))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["a\0b", "x" * 300])
def test_a_path_that_no_file_can_have(
    path: str, gemm: Gemm, given: dict[str, Array], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    executable = scalebox.compile(gemm(*SIZES))
    ran = scalebox.run(executable, given)
    for call in (
        lambda: scalebox.compile(gemm(*SIZES), machine=path),
        lambda: ran.save(path),
        lambda: executable.save(path),
        lambda: scalebox.Executable.load(path),
        lambda: pl.loads(path),
    ):
        refusal(call)
    assert not list(tmp_path.iterdir())


def test_arrays_in_any_order_and_of_any_alignment_mean_the_same(
    gemm: Gemm, given: dict[str, Array]
) -> None:
    rng = np.random.default_rng(3)
    program = gemm(*SIZES, bias=True)
    plain = {**given, "bias": rng.standard_normal((1, 32)).astype(np.float32)}
    plain["a"], plain["b"] = (
        rng.integers(0, 0x7F, plain[name].shape).astype(np.uint8) for name in ("a", "b")
    )
    expected = scalebox.run(program, plain).outputs["c"]
    packed = np.zeros((64, 33), np.uint8)
    packed[:, 1:] = plain["b"]
    strange = {
        "a": np.asfortranarray(plain["a"]),
        "b": packed[:, 1:],
        "sa": plain["sa"][::-1],
        "sb": np.repeat(plain["sb"], 3)[::3],
        "bias": np.repeat(plain["bias"], 2, axis=1)[:, ::2],
    }
    strange["a"].flags.writeable = False
    for call in (scalebox.run(program, strange).outputs, scalebox.interpret(program, strange)):
        assert np.array_equal(call["c"].view(np.uint32), expected.view(np.uint32))
    foreign = {**plain, "bias": plain["bias"].astype(">f4")}
    message = "bias must be a Float32 array of shape [1, 32], not an array of >f4"
    assert refusal(lambda: scalebox.run(program, foreign)).message == message


# --------------------------------------------------------------------------- kernel files

BEGINNINGS = {
    "a class of BaseException": ("class E(BaseException): ...\nraise E('x')\n", "E: x", 2),
    "GeneratorExit": ("raise GeneratorExit\n", "GeneratorExit", 1),
    "an error that cannot be shown": (
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n",
        "<exception str() failed>",
        3,
    ),
    "a neighbour that is no Python": ("import neighbour\n", "SyntaxError: invalid syntax", 1),
}


@pytest.mark.parametrize("what", BEGINNINGS)
def test_whatever_a_kernel_file_raises_is_told_with_its_place(
    what: str,
    kernel_text: Text,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    begin, told, line = BEGINNINGS[what]
    Path("neighbour.py").write_text("1 +\n")
    Path("kernel.py").write_text(begin + kernel_text(*SIZES))
    assert main(["run", "kernel.py"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    first, second = shown.err.splitlines()[:2]
    assert first.startswith("Error: The module level of the kernel failed: ")
    assert told in first
    assert second.startswith(f"  --> kernel.py:{line}:")


@pytest.mark.parametrize(
    ("begin", "old", "new"),
    [
        (b"\xef\xbb\xbf", " ", " "),
        (b"# -*- coding: latin-1 -*-\n# caf\xe9\n", " ", " "),
        (b"", "\n", "\r\n"),
        (b"", "    ", "\t"),
    ],
    ids=["a byte order mark", "Latin-1", "CRLF", "tabs"],
)
def test_a_file_that_python_would_run_is_a_kernel_file(
    begin: bytes, old: str, new: str, kernel_text: Text, tmp_path: Path
) -> None:
    path, text = tmp_path / "kernel.py", kernel_text(*SIZES).replace(old, new)
    path.write_bytes(begin + text.encode())
    assert isinstance(pl.loads(path), Program)
    path.write_bytes(begin + text.replace("(at, pt", "(lost, pt").encode())
    error = refusal(lambda: pl.loads(path))
    assert error.message == "Undefined variable 'lost'"
    assert "Undefined" in error.render().split("lost, pt")[1]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("10**10**10", "the result must fit into 4096 bits"),
        ("1 << 10**12", "the result must fit into 4096 bits"),
        ("[0] * 10**12", "the result must have at most 65536 items"),
        ("10**12 * 'a'", "the result must have at most 65536 items"),
    ],
)
def test_a_constant_that_would_take_all_memory_is_refused(
    value: str, reason: str, kernel_text: Text
) -> None:
    text = kernel_text(*SIZES).replace("pl.store(acc, [0, 0]", f"pl.store(acc, [0, {value}]")
    error = refusal(lambda: pl.parse(text))
    assert reason in error.message
    assert error.span is not None


def test_an_expression_too_deep_for_python_is_told() -> None:
    assert "nested too deeply" in refusal(lambda: pl.parse(f"x = {'-' * 50_000}1")).message


@pytest.mark.parametrize("terms", [100, 150, 170, 250, 320, 1000])
def test_what_is_read_is_not_too_deep_for_what_follows(
    terms: int, kernel_text: Text, given: dict[str, Array]
) -> None:
    text = kernel_text(*SIZES).replace("    ):", "        n: pl.Scalar[pl.INDEX],\n    ):")
    text = text.replace("pl.store(acc, [0, 0]", f"pl.store(acc, [{' + '.join(['n'] * terms)}, 0]")
    if terms > 160:
        assert "nested too deeply" in refusal(lambda: pl.parse(text)).message
        return
    program = pl.parse(text)
    assert isinstance(program, Program)
    assert_structural_equal(pl.parse(python_print(program)), program)
    outputs = scalebox.run(program, {**given, "n": 0}).outputs
    assert scalebox.compare(outputs, scalebox.interpret(program, {**given, "n": 0}))


RETURNS = {
    "before the end": "        return c\n        c = pl.store(acc, [0, 0], c)\n",
    "in a branch": "        if K > 0:\n            return c\n        c = pl.store(acc, [0, 0], c)\n"
    "        return c\n",
    "in a loop": "        for i in pl.range(2):\n            c = pl.store(acc, [0, 0], c)\n"
    "            return c\n        return c\n",
}


@pytest.mark.parametrize("where", RETURNS)
def test_a_return_that_instructions_cannot_follow_is_refused(
    where: str, kernel_text: Text, given: dict[str, Array]
) -> None:
    end = "        c = pl.store(acc, [0, 0], c)\n        return c\n"
    text = kernel_text(*SIZES)
    assert end in text
    program = pl.parse(text.replace(end, RETURNS[where]))
    assert isinstance(program, Program)
    assert not scalebox.interpret(program, given)["c"].any()
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(program)
    assert caught.value.message.startswith("A return must be the last statement of 'gemm'")
    assert caught.value.span is not None


def test_a_kernel_that_returns_a_number_is_refused(kernel_text: Text) -> None:
    program = pl.parse(kernel_text(*SIZES).replace("return c", "return c, 3"))
    assert isinstance(program, Program)
    error = refusal(lambda: scalebox.compile(program))
    assert error.message == "'gemm' must return tensors to be compiled, not a scalar of Index"
    assert error.hint is None


def test_a_kernel_that_returns_a_tile_is_told_to_store_it(kernel_text: Text) -> None:
    program = pl.parse(kernel_text(*SIZES).replace("return c", "return acc"))
    assert isinstance(program, Program)
    error = refusal(lambda: scalebox.compile(program))
    assert error.message == "'gemm' must return tensors to be compiled, not a tile"
    assert error.hint == "store the tile and return the tensor: out = pl.store(tile, offsets, out)"


def swapped(kernel_text: Text, old: str, new: str) -> Program:
    text = kernel_text(*SIZES)
    assert old in text
    program = pl.parse(text.replace(old, new))
    assert isinstance(program, Program)
    return program


@pytest.mark.parametrize("stride", [(32, 1), (0, 1), (-64, 1), (1, 1), (64, 0)], ids=str)
def test_elements_that_share_a_place_are_refused(
    stride: tuple[int, int], kernel_text: Text, given: dict[str, Array]
) -> None:
    view = f"pl.TensorView(stride={list(stride)}, layout=pl.ND)"
    strided = swapped(kernel_text, "[M, K], pl.FP8E4M3FN]", f"[M, K], pl.FP8E4M3FN, {view}]")
    error = refusal(lambda: scalebox.interpret(strided, given))
    assert "must have strides that give each of its [16, 64] elements a place" in error.message
    error = refusal(lambda: scalebox.compile(strided))
    assert error.message == (
        f"The tensor 'a' of 'gemm' must be packed to be compiled, not of stride {list(stride)}"
    )
    assert error.span is not None


def test_a_tensor_with_gaps_is_interpreted_and_not_compiled(
    kernel_text: Text, given: dict[str, Array]
) -> None:
    view = "pl.TensorView(stride=[80, 1], layout=pl.ND)"
    strided = swapped(kernel_text, "[M, K], pl.FP8E4M3FN]", f"[M, K], pl.FP8E4M3FN, {view}]")
    plain = pl.parse(kernel_text(*SIZES))
    assert isinstance(plain, Program)
    ones = {**given, "a": np.full((16, 64), 0x38, np.uint8), "b": np.full((64, 32), 0x38, np.uint8)}
    golden = scalebox.interpret(plain, ones)
    assert scalebox.compare(scalebox.interpret(strided, ones), golden)
    assert "must be packed" in refusal(lambda: scalebox.compile(strided)).message


@pytest.mark.parametrize(
    ("shape", "store", "message"),
    [
        ("[M, N]", "[0, 0], c, [8, 64])", "A store of the cube core must keep the tile's shape"),
        (
            "[2, 16, N]",
            "[0, 0, 0], c, [2, 8, 32])",
            "tile.store of the cube core must take rows that follow one another",
        ),
    ],
)
def test_a_store_in_another_shape_is_refused(
    shape: str, store: str, message: str, kernel_text: Text
) -> None:
    text = kernel_text(*SIZES).replace("pl.Out[pl.Tensor[[M, N]", f"pl.Out[pl.Tensor[{shape}")
    if shape == "[M, N]":
        text = text.replace("pl.Out[pl.Tensor[[M, N]", "pl.Out[pl.Tensor[[M, 2 * N]")
    program = pl.parse(text.replace("[0, 0], c)", store))
    assert isinstance(program, Program)
    error = refusal(lambda: scalebox.compile(program))
    assert error.message.startswith(message)
    assert error.span is not None


# --------------------------------------------------------------------------- files


def test_an_executable_does_not_take_the_place_of_a_kernel(
    kernel: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(kernel(*SIZES))
    text = path.read_text()
    assert main(["compile", "kernel.py", "-o", "kernel.py"]) == 2
    assert "must not take the place of a kernel file" in capsys.readouterr().err
    assert path.read_text() == text


def test_nothing_is_written_over_what_is_no_file(
    kernel: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    kernel(*SIZES)
    os.mkfifo("pipe")
    assert main(["compile", "kernel.py", "-o", "pipe"]) == 2
    assert "must be written to a file, not to the device 'pipe'" in capsys.readouterr().err
    assert main(["run", "kernel.py", "--out", "pipe"]) == 2
    assert Path("pipe").is_fifo()
    assert sorted(path.name for path in Path().iterdir()) == ["kernel.py", "pipe"]


def test_a_machine_without_a_name_is_not_the_default_one(
    kernel: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["run"], ["disasm"], ["compile", "-o", "out.sbx"]):
        assert main([*command, kernel(*SIZES), "--machine", ""]) == 2
        assert "A machine must be a name or the path of a TOML file" in capsys.readouterr().err


def test_a_machine_file_nested_without_end_is_no_toml(
    kernel: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("deep.toml").write_text(f'inherit = "a5"\ncores = {"[" * 5000}{"]" * 5000}\n')
    assert main(["run", kernel(*SIZES), "--machine", "deep.toml"]) == 2
    assert "must be UTF-8 TOML" in capsys.readouterr().err


def _npy_of(shape: str) -> bytes:
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


@pytest.mark.parametrize("shape", ["(10**15,)", "(1000000000000000,)", "(3,", "(-1,)", "'x'"])
def test_a_file_that_promises_more_than_it_holds_is_unreadable(
    shape: str, kernel: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    with zipfile.ZipFile("in.npz", "w") as archive:
        archive.writestr("a.npy", _npy_of(shape))
    Path("in.npy").write_bytes(_npy_of(shape))
    buffer = io.BytesIO()
    np.savez(buffer, a=np.zeros(3))
    Path("good.npz").write_bytes(buffer.getvalue())
    for command in (
        ["run", kernel(*SIZES), "--inputs", "in.npz"],
        ["compare", "in.npz", "good.npz"],
        ["compare", "in.npy", "good.npz"],
    ):
        assert main(command) == 2
        assert "can be read" in capsys.readouterr().err
