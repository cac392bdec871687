"""Runs the body of a kernel as it is written, as it is printed, and after each pass."""

from typing import Any

import numpy as np
import numpy.typing as npt

from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.interp import interpret_program
from scalebox.ir.passes import default_pipeline, run_verifier
from scalebox.ir.printer import python_print
from scalebox.ir.structural import first_difference

Arrays = dict[str, npt.NDArray[Any]]


def kernel(params: str, body: str, *, kind: str = "InCore") -> Program:
    """Return the program of one function; `params` and `body` are its text."""
    lines = [f"        {line}" for line in body.strip("\n").split("\n")]
    head = [
        "@pl.program",
        "class P:",
        f"    @pl.function(type=pl.FunctionType.{kind})",
        f"    def k(self, {params}):",
    ]
    made = pl.parse("\n".join([*head, *lines, ""]))
    assert isinstance(made, Program)
    return made


def same(found: Arrays, wanted: Arrays) -> bool:
    """Return whether outputs agree bit for bit."""
    return found.keys() == wanted.keys() and all(
        found[name].dtype == wanted[name].dtype
        and found[name].shape == wanted[name].shape
        and found[name].tobytes() == wanted[name].tobytes()
        for name in wanted
    )


def outputs(program: Program, given: dict[str, Any], *, passes: bool = True) -> Arrays:
    """Return what a program computes, after a check that text and passes leave it as it is."""
    found = interpret_program(program, given)
    again = pl.parse(python_print(program))
    assert isinstance(again, Program)
    assert first_difference(program, again) is None
    assert same(interpret_program(again, given), found)
    run_verifier()(program)
    made = program
    for each in default_pipeline() if passes else ():
        made = each(made)
        text = pl.parse(python_print(made))
        assert isinstance(text, Program)
        assert first_difference(made, text) is None, each.name
        assert same(interpret_program(made, given), found), each.name
    return {name: np.asarray(value) for name, value in found.items()}
