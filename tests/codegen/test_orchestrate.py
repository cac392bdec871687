"""Orchestration: the tasks of a launch are the calls that the interpreter makes, in its order."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.codegen.executable import Executable
from scalebox.codegen.tasks import TaskGraph, expand
from scalebox.ir.core import Program
from scalebox.ir.errors import InputError, UserError
from scalebox.ir.interp import launch

from .gemm_text import parsed

Compile = Callable[[str], Executable]

OPERANDS = (
    "a: pl.Tensor[[32, 64], pl.FP8E4M3FN], sa: pl.Tensor[[32, 2], pl.FP8E8M0, pl.MX_A_ZZ], "
    "b: pl.Tensor[[64, 64], pl.FP8E4M3FN], sb: pl.Tensor[[2, 64], pl.FP8E8M0, pl.MX_B_NN]"
)
KERNELS = f"""
import scalebox.ir.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def tile(self, {OPERANDS}, c: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
             row: pl.Scalar[pl.INDEX], col: pl.Scalar[pl.INDEX]):
        a0 = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        sa0 = pl.load(sa, [0, 0], [16, 2], target_memory=pl.Mem.Mat)
        b0 = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        sb0 = pl.load(sb, [0, 0], [2, 32], target_memory=pl.Mem.Mat)
        acc = pl.matmul_mx(a0, sa0, b0, sb0)
        c = pl.store(acc, [row, col], c)
        return c

    @pl.function(type=pl.FunctionType.InCore)
    def biased(self, {OPERANDS}, z: pl.Tensor[[1, 2048], pl.FP32],
               c: pl.Out[pl.Tensor[[32, 64], pl.FP32]], first: pl.Scalar[pl.INDEX]):
        a0 = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        sa0 = pl.load(sa, [0, 0], [32, 2], target_memory=pl.Mem.Mat)
        b0 = pl.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        sb0 = pl.load(sb, [0, 0], [2, 64], target_memory=pl.Mem.Mat)
        z0 = pl.load(z, [0, first], [1, 64], target_memory=pl.Mem.Mat)
        acc = pl.matmul_mx_bias(a0, sa0, b0, sb0, z0)
        c = pl.store(acc, [0, 0], c)
        return c

    @pl.function(type=pl.FunctionType.InCore)
    def both(self, {OPERANDS}, c: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
             d: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
        a0 = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        sa0 = pl.load(sa, [0, 0], [32, 2], target_memory=pl.Mem.Mat)
        b0 = pl.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        sb0 = pl.load(sb, [0, 0], [2, 64], target_memory=pl.Mem.Mat)
        acc = pl.matmul_mx(a0, sa0, b0, sb0)
        c = pl.store(acc, [0, 0], c)
        twice = pl.matmul_mx_acc(acc, a0, sa0, b0, sb0)
        d = pl.store(twice, [0, 0], d)
        return d, c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {OPERANDS}, c: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
             d: pl.Out[pl.Tensor[[32, 64], pl.FP32]], n: pl.Scalar[pl.INDEX], t: pl.Scalar[pl.INT8]):
"""


def program(*lines: str) -> str:
    return KERNELS + "".join(f"        {line}\n" for line in lines)


def inputs(**scalars: int) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    return {
        "a": rng.integers(0, 0x70, (32, 64), dtype=np.uint8),
        "sa": rng.integers(120, 130, (32, 2), dtype=np.uint8),
        "b": rng.integers(0, 0x70, (64, 64), dtype=np.uint8),
        "sb": rng.integers(120, 130, (2, 64), dtype=np.uint8),
        "n": 3,
        "t": 100,
    } | scalars


def calls_of_interpreter(
    text: Program, given: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> list[tuple[str, tuple[int, ...]]]:
    """Return the kernel calls that the interpreter makes: names and scalar arguments."""
    made: list[tuple[str, tuple[int, ...]]] = []
    real = launch._Runner.call  # pyright: ignore[reportPrivateUsage]

    def call(self: Any, node: Any, values: list[Any]) -> Any:
        made.append((node.name, tuple(int(v) for v in values if isinstance(v, int))))
        return real(self, node, values)

    monkeypatch.setattr(launch._Runner, "call", call)  # pyright: ignore[reportPrivateUsage]
    scalebox.interpret(text, given)
    return made


def tasks_of(executable: Executable, given: Mapping[str, Any]) -> TaskGraph:
    host = executable.entry(None)
    scalars = {p.name: given[p.name] for p in host.params if not p.is_tensor}
    return expand(host, executable.kernels, scalars)


def named(executable: Executable, graph: TaskGraph) -> list[tuple[str, tuple[int, ...]]]:
    return [(executable.kernels[task.kernel].name, task.scalars) for task in graph.tasks]


ORDERS = {
    "a grid": [
        "for row in pl.range(0, 32, 16):",
        "    for col in pl.range(0, 64, 32):",
        "        c = self.tile(a, sa, b, sb, c, row, col)",
        "return c",
    ],
    "a loop backwards": [
        "for i in pl.range(1, -1, -1):",
        "    c = self.tile(a, sa, b, sb, c, i * 16, 0)",
        "return c",
    ],
    "a loop that an argument bounds": [
        "for i in pl.range(0, n):",
        "    c = self.tile(a, sa, b, sb, c, i % 2 * 16, 32)",
        "return c",
    ],
    "a branch": [
        "for i in pl.range(0, 4):",
        "    if i % 2 == 0 and n > 2:",
        "        c = self.tile(a, sa, b, sb, c, 16, 0)",
        "    else:",
        "        c = self.tile(a, sa, b, sb, c, 0, 32)",
        "return c",
    ],
    "a branch without an else": [
        "c = self.tile(a, sa, b, sb, c, 0, 0)",
        "if n == 3:",
        "    c = self.tile(a, sa, b, sb, c, 16, 0)",
        "return c",
    ],
    "scalars that a loop carries": [
        "x = 0",
        "y = 1",
        "for i in pl.range(0, 6):",
        "    c = self.tile(a, sa, b, sb, c, y % 2 * 16, x % 2 * 32)",
        "    z = x + y",
        "    x = y",
        "    y = z",
        "if x == 8:",
        "    c = self.tile(a, sa, b, sb, c, 16, 32)",
        "return c",
    ],
    "a scalar that a branch makes": [
        "if n > 5:",
        "    x = 0",
        "else:",
        "    x = 16",
        "c = self.tile(a, sa, b, sb, c, x, 0)",
        "return c",
    ],
    "narrow arithmetic": [
        # 100 + 100 is -56 in eight bits.
        "u = t + t",
        "if u < 0:",
        "    c = self.tile(a, sa, b, sb, c, 16, 0)",
        "c = self.tile(a, sa, b, sb, c, (n << 70) + 16 * (n >> 1), 0)",
        "return c",
    ],
    "two kernels": [
        "c = self.tile(a, sa, b, sb, c, 0, 0)",
        "d, e = self.both(a, sa, b, sb, c, d)",
        "c = self.tile(a, sa, b, sb, c, 16, 32)",
        "return c",
    ],
}


@pytest.mark.parametrize("case", ORDERS)
def test_tasks_are_the_calls_of_the_interpreter_in_its_order(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch, case: str
):
    text = program(*ORDERS[case])
    expected = calls_of_interpreter(parsed(text), inputs(), monkeypatch)
    executable = compiled(text)
    assert named(executable, tasks_of(executable, inputs())) == expected
    assert expected


RESULTS = {
    "an Out parameter": (
        ["c = self.tile(a, sa, b, sb, c, 0, 0)", "return c"],
        {"c", "d"},
    ),
    "results in another order than the parameters": (
        ["d, c = self.both(a, sa, b, sb, c, d)", "return c, d"],
        {"c", "d"},
    ),
    "a fresh tensor": (
        [
            "fresh = pl.create_tensor([32, 64], dtype=pl.FP32)",
            "fresh = self.tile(a, sa, b, sb, fresh, 0, 0)",
            "for i in pl.range(1, 4):",
            "    fresh = self.tile(a, sa, b, sb, fresh, i // 2 * 16, i % 2 * 32)",
            "return fresh",
        ],
        {"c", "d", "fresh"},
    ),
    "a result without a name": (
        [
            "fresh = pl.create_tensor([32, 64], dtype=pl.FP32)",
            "other = pl.create_tensor([32, 64], dtype=pl.FP32)",
            "x, y = self.both(a, sa, b, sb, fresh, other)",
            "return self.biased(a, sa, b, sb, pl.tensor.view(y, [1, 2048]), other, 64)",
        ],
        {"c", "d", "out"},
    ),
    "a view of a fresh tensor": (
        [
            "fresh = pl.create_tensor([32, 64], dtype=pl.FP32)",
            "x, y = self.both(a, sa, b, sb, c, fresh)",
            "flat = pl.tensor.view(x, [1, 2048])",
            "d = self.biased(a, sa, b, sb, flat, d, 128)",
            "return flat, d",
        ],
        {"c", "d", "flat"},
    ),
    "one tensor under two names": (
        [
            "fresh = pl.create_tensor([32, 64], dtype=pl.FP32)",
            "p, q = self.both(a, sa, b, sb, c, fresh)",
            "return p, fresh",
        ],
        {"c", "d", "p", "fresh"},
    ),
    "one tensor twice": (
        [
            "fresh = pl.create_tensor([32, 64], dtype=pl.FP32)",
            "p, q = self.both(a, sa, b, sb, c, fresh)",
            "return p, p",
        ],
        {"c", "d", "p", "p_1"},
    ),
    "a view of an Out parameter": (
        [
            "p, q = self.both(a, sa, b, sb, c, d)",
            "flat = pl.tensor.view(q, [1, 2048])",
            "return flat",
        ],
        {"c", "d"},
    ),
    "a tensor that came in": (["c = self.tile(a, sa, b, sb, c, 0, 0)", "return a"], {"c", "d", "a"}),
}  # fmt: skip


@pytest.mark.parametrize("case", RESULTS)
def test_results_have_the_interpreters_names_and_values(compiled: Compile, case: str):
    lines, names = RESULTS[case]
    text = program(*lines)
    golden = scalebox.interpret(parsed(text), inputs())
    assert golden.keys() == names
    executable = compiled(text)
    found = scalebox.run(executable, inputs(), checks="off").outputs
    assert found.keys() == names
    for name in names:
        assert scalebox.compare(found[name], golden[name])


def test_a_tensor_made_in_a_loop_is_another_one_each_time(compiled: Compile):
    text = program(
        "for i in pl.range(0, 3):",
        "    fresh = pl.create_tensor([32, 64], dtype=pl.FP32)",
        "    p, q = self.both(a, sa, b, sb, c, fresh)",
        "    d = self.biased(a, sa, b, sb, pl.tensor.view(p, [1, 2048]), d, 64 * i)",
        "return d",
    )
    executable = compiled(text)
    graph = tasks_of(executable, inputs())
    made = [buffer.name for buffer in graph.buffers if buffer.allocated]
    assert len(made) == 3
    # Each second kernel waits for the first one of its trip, whose tensor it reads by a view.
    assert [task.buffers[4] for task in graph.tasks if len(task.scalars) == 1] == made
    golden = scalebox.interpret(parsed(text), inputs())
    found = scalebox.run(executable, inputs()).outputs
    assert all(scalebox.compare(found[name], golden[name]) for name in golden)


# --------------------------------------------------------------------------- refusals


def refused(compiled: Compile, text: str) -> tuple[str, str, str | None]:
    with pytest.raises(UserError) as caught:
        compiled(text)
    assert caught.value.span is not None
    line = text.splitlines()[caught.value.span.line - 1].strip()
    return caught.value.message, line, caught.value.hint


def test_a_tensor_that_is_written_goes_to_one_parameter_only(compiled: Compile):
    message, line, _ = refused(
        compiled, program("x, y = self.both(a, sa, b, sb, c, c)", "return x")
    )
    assert message == (
        "The parameters 'c' and 'd' of 'both' must get different tensors, since the kernel writes "
        "'c', not both 'c'"
    )
    assert line.startswith("x, y = self.both")


def test_a_view_of_a_tensor_is_that_tensor(compiled: Compile):
    message, line, _ = refused(
        compiled,
        program(
            "flat = pl.tensor.view(d, [1, 2048])",
            "d = self.biased(a, sa, b, sb, flat, d, 0)",
            "return d",
        ),
    )
    assert message == (
        "The parameters 'c' and 'z' of 'biased' must get different tensors, since the kernel writes "
        "'c', not both 'd'"
    )
    assert line.startswith("d = self.biased")


CASES = {
    "another orchestration": (
        ["c = self.again(a, sa, b, sb, c, d, n, t)", "return c"],
        "An orchestration that is compiled must call kernels, not 'again'",
        "it can call biased, both, tile",
    ),
    "an op on tiles": (
        ["x = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)", "return c"],
        "An orchestration that is compiled must call kernels, tensor.create and tensor.view, not "
        "tile.load",
        "move the op into a kernel and call that",
    ),
    "a while loop": (
        ["i = 0", "while i < n:", "    i = i + 1", "return c"],
        "An orchestration that is compiled must be made of assignments, calls, for loops and "
        "branches, not of 'while'",
        None,
    ),
    "a scalar result": (
        ["return n"],
        "An orchestration that is compiled must return tensors, not scalars",
        None,
    ),
    "a tensor that differs from arm to arm": (
        ["x = c", "if n > 0:", "    x = d", "return x"],
        "'x__phi_v2' must stand for one tensor on every way to it, not for two",
        None,
    ),
    "a float": (
        ["x = 1.5", "return c"],
        "A scalar that is compiled must be made of integer arithmetic, comparisons and logic, not of "
        "ConstFloat",
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_the_control_plane_cannot_do_is_refused_with_its_place(compiled: Compile, case: str):
    lines, message, hint = CASES[case]
    again = (
        "    @pl.function(type=pl.FunctionType.Orchestration)\n"
        f"    def again(self, {OPERANDS}, c: pl.Out[pl.Tensor[[32, 64], pl.FP32]],\n"
        "              d: pl.Out[pl.Tensor[[32, 64], pl.FP32]], n: pl.Scalar[pl.INDEX],\n"
        "              t: pl.Scalar[pl.INT8]):\n"
        "        return c\n"
    )
    found, _, found_hint = refused(compiled, program(*lines) + again)
    assert found == message
    assert found_hint == hint


def test_a_kernel_must_return_what_it_got(compiled: Compile):
    text = program("c = self.tile(a, sa, b, sb, c, 0, 0)", "return c").replace(
        "        c = pl.store(acc, [row, col], c)\n        return c\n",
        "        c = pl.store(acc, [row, col], c)\n        return row\n",
    )
    with pytest.raises(UserError):
        compiled(text)


def test_a_division_by_zero_is_the_launchs_own_error(compiled: Compile):
    text = program("c = self.tile(a, sa, b, sb, c, 16 // n * 0, 0)", "return c")
    executable = compiled(text)
    assert len(tasks_of(executable, inputs(n=4)).tasks) == 1
    with pytest.raises(InputError, match="divisor"):
        tasks_of(executable, inputs(n=0))
