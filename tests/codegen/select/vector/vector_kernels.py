"""Kernels of the vector core as text, compiled, run and interpreted side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import scalebox
from scalebox import pl
from scalebox.codegen.executable import Executable
from scalebox.codegen.isa.program import Instruction
from scalebox.codegen.lower import lower
from scalebox.ir.core import Program
from scalebox.ir.target import load_target

Array = npt.NDArray[Any]


def kernel(
    params: Mapping[str, str], body: Sequence[str] | str, out: str, *, kind: str = "InCore"
) -> Program:
    """Return a program of one kernel `k` that writes `out`.

    Args:
        params: Name to type of the inputs, as `"[[16, 64], pl.FP32]"` for a tensor, or a dtype for a
            scalar.
        body: Lines; `out` is what they must store into.
        out: Type of `out`, as that of a tensor.
        kind: The function's type.
    """
    lines = [body] if isinstance(body, str) else body
    inputs = "".join(f"{name}: {_written(type_)}, " for name, type_ in params.items())
    text = "\n".join(
        (
            "@pl.program",
            "class P:",
            f"    @pl.function(type=pl.FunctionType.{kind})",
            f"    def k(self, {inputs}out: pl.Out[pl.Tensor{out}]):",
            *(f"        {line}" for line in lines),
            "        return out",
        )
    )
    made = pl.parse(text)
    assert isinstance(made, Program)
    return made


def _written(type_: str) -> str:
    return f"pl.Tensor{type_}" if type_.startswith("[[") else f"pl.Scalar[pl.{type_}]"


def compiled(program: Program) -> Executable:
    """Return the executable of a program for the default machine."""
    return lower(program, load_target("a5")).executable


def instructions(program: Program, *mnemonics: str) -> list[Instruction]:
    """Return the instructions of the kernel, in order, of these mnemonics or all of them."""
    (made,) = compiled(program).kernels
    return [each for each in made.program if not mnemonics or each.mnemonic in mnemonics]


def agreed(program: Program, inputs: Mapping[str, Any]) -> Array:
    """Return what the machine makes of `out`, once it is known that the interpreter makes the same.

    They are compared as bytes, so that NaNs and zeros must be the same too.
    """
    found = scalebox.run(compiled(program), dict(inputs), timing=False).outputs["out"]
    golden = scalebox.interpret(program, dict(inputs))["out"]
    assert found.dtype == golden.dtype
    assert found.shape == golden.shape
    assert found.tobytes() == golden.tobytes(), np.argwhere(found != golden)[:5]
    return found
