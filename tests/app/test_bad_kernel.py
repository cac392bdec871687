"""A kernel with a mistake: the exact class, the whole sentence, the line and what the caret is under."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.app.kernel_file import load_kernel_file
from scalebox.ir.errors import (
    InvalidOperationError,
    IRValueError,
    ParserSyntaxError,
    UndefinedVariableError,
    UnsupportedFeatureError,
    UserError,
)
from scalebox.ir.ops.checks import LOADED_LESS, STORED_LESS

Text = Callable[..., str]


@dataclass(frozen=True)
class Mistake:
    """A kernel that is refused.

    Attributes:
        kind: The exact class of the error.
        message: Its sentence.
        under: The source text that the caret line underlines.
        hint: What the error proposes, if anything.
        swap: Texts of the good kernel and what stands there instead.
        sizes: m, k, n of the kernel.
        options: Its dtypes.
    """

    kind: type[UserError]
    message: str
    under: str
    hint: str | None = None
    swap: tuple[tuple[str, str], ...] = ()
    sizes: tuple[int, int, int] = (64, 128, 128)
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def text(self, kernel_text: Text) -> str:
        text = kernel_text(*self.sizes, **self.options)
        for old, new in self.swap:
            assert old in text
            text = text.replace(old, new)
        return text


PRODUCT = "pl.matmul_mx(at, pt, bt, qt)"
LARGER_WINDOW = "load a larger window and narrow it by valid_shape"

MISTAKES = {
    "an unknown name": Mistake(
        UndefinedVariableError,
        "Undefined variable 'a1'",
        under="a1",
        hint="define it earlier or in the enclosing scope; valid here: a",
        swap=(("pl.move(al,", "pl.move(a1,"),),
    ),
    "an unknown op": Mistake(
        InvalidOperationError,
        "pl has no operation 'matmul_mix'",
        under="pl.matmul_mix",
        hint="valid here: matmul_mx, matmul_mx_acc, matmul_bias",
        swap=(("pl.matmul_mx(", "pl.matmul_mix("),),
    ),
    "an unknown dtype": Mistake(
        UndefinedVariableError,
        "pl has no name 'FP8E4M3N'",
        under="pl.FP8E4M3N",
        hint="valid here: FP8E4M3FN, MXFP8_E4M3, FP8E8M0",
        swap=(("[K, N], pl.FP8E4M3FN]", "[K, N], pl.FP8E4M3N]"),),
    ),
    "too few arguments": Mistake(
        InvalidOperationError,
        "pl operation 'matmul_mx': is missing the argument 'rhs_scale'",
        under="pl.matmul_mx(at, pt, bt)",
        hint="tile.matmul_mx(lhs, lhs_scale, rhs, rhs_scale)",
        swap=((PRODUCT, "pl.matmul_mx(at, pt, bt)"),),
    ),
    "too many arguments": Mistake(
        InvalidOperationError,
        "pl operation 'matmul_mx': takes at most 4 arguments, not 5",
        under="pl.matmul_mx(at, pt, bt, qt, at)",
        hint="tile.matmul_mx(lhs, lhs_scale, rhs, rhs_scale)",
        swap=((PRODUCT, "pl.matmul_mx(at, pt, bt, qt, at)"),),
    ),
    "an unknown keyword": Mistake(
        InvalidOperationError,
        "pl operation 'move': has no argument 'target'",
        under="pl.move(al, target=pl.Mem.Left)",
        hint="it takes tile, target_memory, blayout, slayout, dtype, pre_quant, pre_relu",
        swap=(("(al, target_memory=", "(al, target="),),
    ),
    "K that is no multiple of 64": Mistake(
        InvalidOperationError,
        "pl operation 'matmul_mx': the physical K must be a multiple of 64, not 96",
        under=PRODUCT,
        hint=LARGER_WINDOW,
        sizes=(64, 96, 128),
    ),
    "M = 8": Mistake(
        InvalidOperationError,
        "pl operation 'matmul_mx': the physical M must be a multiple of 16, not 8",
        under=PRODUCT,
        hint=LARGER_WINDOW,
        sizes=(8, 128, 128),
    ),
    "N = 16": Mistake(
        InvalidOperationError,
        "pl operation 'matmul_mx': the physical N must be a multiple of 32, not 16",
        under=PRODUCT,
        hint=LARGER_WINDOW,
        sizes=(64, 128, 16),
    ),
    "FP8 by FP4": Mistake(
        InvalidOperationError,
        "pl operation 'matmul_mx': lhs and rhs must be both from {E4M3, E5M2} or both from "
        "{E2M1, E1M2}, not E4M3 and E2M1",
        under=PRODUCT,
        hint="cast the 4-bit operand to E4M3 first (pl.cast): the cube has no FP8 x FP4 product",
        options={"b": "FP4"},
    ),
    "FP6": Mistake(
        InvalidOperationError,
        "pl operation 'matmul_mx': lhs and rhs must be both from {E4M3, E5M2} or both from "
        "{E2M1, E1M2}, not E3M2 and E3M2",
        under=PRODUCT,
        options={"a": "FP6E3M2", "b": "FP6E3M2"},
    ),
    "scales without a layout": Mistake(
        InvalidOperationError,
        "pl operation 'move': the scales for LeftScale must come from a tensor in MX_A_ZZ, not in "
        "ND",
        under="pl.move(pl_, target_memory=pl.Mem.LeftScale)",
        hint="annotate the left operand's scales pl.Tensor[[…], pl.FP8E8M0, pl.MX_A_ZZ] and give "
        "their bytes in box order; pl.quant_mx makes them with group_axis=1",
        swap=(("pl.FP8E8M0, pl.MX_A_ZZ]", "pl.FP8E8M0]"),),
    ),
    "scales in the layout of the other side": Mistake(
        InvalidOperationError,
        "pl operation 'move': the scales for RightScale must come from a tensor in MX_B_NN, not in "
        "MX_A_ZZ",
        under="pl.move(ql, target_memory=pl.Mem.RightScale)",
        hint="annotate the right operand's scales pl.Tensor[[…], pl.FP8E8M0, pl.MX_B_NN] and give "
        "their bytes in box order; pl.quant_mx makes them with group_axis=0",
        swap=(("[K // 32, N], pl.FP8E8M0, pl.MX_B_NN]", "[K // 32, N], pl.FP8E8M0, pl.MX_A_ZZ]"),),
        sizes=(64, 512, 128),
    ),
    "scales on the wrong side of the product": Mistake(
        InvalidOperationError,
        "pl operation 'matmul_mx': lhs_scale must lie in LeftScale, not in RightScale",
        under="pl.matmul_mx(at, qt, bt, pt)",
        hint="load it to pl.Mem.Mat, and pl.move it from there to pl.Mem.LeftScale",
        swap=((PRODUCT, "pl.matmul_mx(at, qt, bt, pt)"),),
    ),
    "a window beyond the tensor": Mistake(
        InvalidOperationError,
        "pl operation 'load': what is loaded must end within the tensor, but takes 64 elements "
        "from offset 16 on axis 0, which has 64",
        under="pl.load(a, [16, 0], [64, 128], [64, 128], target_memory=pl.Mem.Mat)",
        hint=LOADED_LESS,
        swap=(("pl.load(a, [0, 0]", "pl.load(a, [16, 0]"),),
    ),
    "a store beyond the tensor": Mistake(
        InvalidOperationError,
        "pl operation 'store': what is stored must end within the tensor, but takes 64 elements "
        "from offset 16 on axis 0, which has 64",
        under="pl.store(acc, [16, 0], c)",
        hint=STORED_LESS,
        swap=(("pl.store(acc, [0, 0]", "pl.store(acc, [16, 0]"),),
    ),
    "a number to fill up with": Mistake(
        InvalidOperationError,
        "pl operation 'fillpad': pad_value must be a PadValue, not a Python value of type float",
        under="0.5",
        hint="valid: pl.PadValue.zero, pl.PadValue.max, pl.PadValue.min",
        swap=(("pl.store(acc, [0, 0]", "pl.store(pl.fillpad(acc, 0.5), [0, 0]"),),
    ),
    "a window before the tensor": Mistake(
        InvalidOperationError,
        "pl operation 'load': the offset on axis 0 must not be negative, but is -1",
        under="pl.load(a, [-1, 0], [64, 128], [64, 128], target_memory=pl.Mem.Mat)",
        swap=(("pl.load(a, [0, 0]", "pl.load(a, [-1, 0]"),),
    ),
    "an output that the accumulator cannot become": Mistake(
        InvalidOperationError,
        "pl operation 'store': a tile of Float32 in Acc must be stored as Float32, BFloat16, "
        "Float16, not into a tensor of Int8",
        under="pl.store(acc, [0, 0], c)",
        hint="pre_quant=, a number by which sums are multiplied, stores them in 8 bits",
        options={"c": "INT8"},
    ),
    "an operator with assignment": Mistake(
        UnsupportedFeatureError,
        "An assignment with an operator is not part of this language",
        under="acc += 1",
        hint="what works: x = x + y",
        swap=((f"acc = {PRODUCT}", f"acc = {PRODUCT}\n        acc += 1"),),
    ),
    "an unmatched parenthesis": Mistake(
        ParserSyntaxError,
        "This is not Python: unmatched ')'",
        under=")",
        swap=(("pl.store(acc, [0, 0], c)", "pl.store(acc, [0, 0], c))"),),
    ),
    "an exception of its own": Mistake(
        ParserSyntaxError,
        "The module level of the kernel failed: ZeroDivisionError: division by zero",
        under="1 / 0",
        swap=(("M, K, N = ", "1 / 0\nM, K, N = "),),
    ),
    "a scalar parameter of eight bits": Mistake(
        IRValueError,
        "The scalar parameter 'x' must be an integer, a Bool or one of Float32, Float16, BFloat16 to "
        "be compiled, not E4M3",
        under="x: pl.Scalar[pl.FP8E4M3FN]",
        swap=(("    ):\n", "        x: pl.Scalar[pl.FP8E4M3FN],\n    ):\n"),),
    ),
    "a tile too large for L0A": Mistake(
        IRValueError,
        "Left buffer usage must be at most the 65536 bytes of L0A, not 131072 bytes: "
        "at (131072 bytes)",
        under="at",
        hint="at alone has 131072 bytes, of which 65536 fit: work on it in tiles of "
        "at most 1/2 of it",
        sizes=(128, 1024, 32),
    ),
    "a tile too large for L0B": Mistake(
        IRValueError,
        "Right buffer usage must be at most the 65536 bytes of L0B, not 131072 bytes: "
        "bt (131072 bytes)",
        under="bt",
        hint="bt alone has 131072 bytes, of which 65536 fit: work on it in tiles of "
        "at most 1/2 of it",
        sizes=(16, 1024, 128),
    ),
}


@pytest.fixture(params=MISTAKES.values(), ids=list(MISTAKES))
def mistake(request: pytest.FixtureRequest) -> Mistake:
    return request.param


@pytest.fixture
def kernel(
    mistake: Mistake, kernel_text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    monkeypatch.chdir(tmp_path)
    text = mistake.text(kernel_text)
    Path("kernel.py").write_text(text)
    return text


def place(text: str, under: str) -> tuple[int, int]:
    """Return line and column of a variable's definition, or else of the last place of a text."""
    define = f"\n        {under} ="
    before = text[: text.index(define) + 9 if define in text else text.rindex(under)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def test_python_gets_the_class_the_sentence_and_the_place(mistake: Mistake, kernel: str) -> None:
    with pytest.raises(UserError) as caught:
        scalebox.compile(load_kernel_file(Path("kernel.py")).program)
    error = caught.value
    assert type(error) is mistake.kind
    assert error.message == mistake.message
    assert error.hint == mistake.hint
    assert error.span is not None
    assert (error.span.line, error.span.column) == place(kernel, mistake.under)


@pytest.mark.parametrize("command", [["run"], ["compile", "-o", "out.sbx"], ["disasm"]])
def test_the_command_line_shows_the_line_and_a_caret(
    command: list[str], mistake: Mistake, kernel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "kernel.py"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    line, column = place(kernel, mistake.under)
    assert lines[:2] == [f"Error: {mistake.message}", f"  --> kernel.py:{line}:{column}"]
    at = next(index for index, each in enumerate(lines) if each.startswith(f"{line} | "))
    indent = len(f"{line} | ")
    assert lines[at][indent:] == kernel.splitlines()[line - 1]
    carets = lines[at + 1][indent:]
    assert carets.index("^") == column - 1
    assert carets.count("^") == len(mistake.under)
    helps = [each.strip() for each in lines if each.lstrip().startswith("= help:")]
    assert helps == ([] if mistake.hint is None else [f"= help: {mistake.hint}"])
    assert [path.name for path in Path().iterdir()] == ["kernel.py"]
