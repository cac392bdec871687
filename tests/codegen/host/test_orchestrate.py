"""Orchestration: the tasks of a launch are the calls that the interpreter makes, in its order."""

from collections.abc import Mapping
from typing import Any

import pytest

import scalebox
from scalebox.codegen.executable import Executable
from scalebox.codegen.host.tasks import TaskGraph
from scalebox.ir.core import Program
from scalebox.ir.errors import InputError, UserError
from scalebox.ir.interp import launch

from ..gemm_text import parsed
from .orchestrations import OTHER, SCALARS, Compile, inputs, program, refused, tasks_of


def calls_of_interpreter(
    text: Program, given: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> list[tuple[str, tuple[int, ...]]]:
    """Return the kernel calls that the interpreter makes: names and scalar arguments."""
    made: list[tuple[str, tuple[int, ...]]] = []
    real = launch._Runner.call  # pyright: ignore[reportPrivateUsage]

    def call(self: Any, node: Any, values: list[Any]) -> Any:
        made.append((node.op.name, tuple(int(v) for v in values if isinstance(v, int))))
        return real(self, node, values)

    monkeypatch.setattr(launch._Runner, "call", call)  # pyright: ignore[reportPrivateUsage]
    scalebox.interpret(text, given)
    return made


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
    "a loop that goes on while something holds": [
        "x = n",
        "while x < 40:",
        "    c = self.tile(a, sa, b, sb, c, x % 2 * 16, 0)",
        "    x = x * 2 + 1",
        "c = self.tile(a, sa, b, sb, c, x - 47, 0)",
        "return c",
    ],
    "a loop with a condition over values that it carries": [
        "for x, y in pl.while_(init_values=(n, 0)):",
        "    pl.cond(x < 20)",
        "    c = self.tile(a, sa, b, sb, c, y % 2 * 16, 32)",
        "    x2, y2 = pl.yield_(x + 5, x)",
        "c = self.tile(a, sa, b, sb, c, y2 - 2, 0)",
        "return c",
    ],
    "loops in parallel and unrolled": [
        "for i in pl.parallel(2):",
        "    for j in pl.unroll(2):",
        "        c = self.tile(a, sa, b, sb, c, i * 16, j * 32)",
        "return c",
    ],
    "a branch that yields": [
        "if n > 5:",
        "    x = pl.yield_(0)",
        "else:",
        "    x = pl.yield_(16)",
        "c = self.tile(a, sa, b, sb, c, x, 0)",
        "return c",
    ],
    "submits": [
        "c, one = pl.submit(self.tile, a, sa, b, sb, c, 16, 0)",
        "c, two = pl.submit(self.tile, a, sa, b, sb, c, n, 0, deps=[one])",
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
    "a submit of an orchestration": (
        ["c, task = pl.submit(self.plain, a, sa, b, sb, c, d, n, t)", "return c"],
        "A submit that is compiled must launch a kernel or a grid, not 'plain'",
        None,
    ),
    "a grid over a grid": (
        ["with pl.spmd(2):", "    c = self.grid(a, sa, b, sb, c)", "return c"],
        "A grid must not stand inside another one",
        None,
    ),
    "an op on tiles": (
        ["x = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)", "return c"],
        "An orchestration that is compiled must call kernels, tensor.create and tensor.view, not "
        "tile.load",
        "move the op into a kernel and call that",
    ),
    "a jump": (
        ["for i in pl.range(n):", "    if i == 2:", "        break", "return c"],
        "An orchestration that is compiled must be made of assignments, calls, loops and branches, "
        "not of 'break'",
        None,
    ),
    "a scalar result": (
        ["return n"],
        "An orchestration that is compiled must return tensors, not scalars",
        None,
    ),
    "a tensor that differs from arm to arm": (
        ["x = c", "if n > 0:", "    x = d", "return x"],
        "'x' must stand for one tensor on every way to it, not for two",
        "write into one tensor on all of these ways, by pl.store or pl.assemble",
    ),
    "a float that is computed": (
        ["x = pl.cast(n, pl.FP32)", "return c"],
        "A scalar that is compiled must be a Bool or an integer that fits a signed 64-bit word, not "
        "Float32",
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_the_control_plane_cannot_do_is_refused_with_its_place(compiled: Compile, case: str):
    lines, message, hint = CASES[case]
    others = "".join(
        OTHER.format(kind=kind, name=name, more=more, body=body)
        for kind, name, more, body in (
            ("Orchestration", "plain", SCALARS, "c = self.tile(a, sa, b, sb, c, 0, 0)"),
            (
                "Spmd",
                "grid",
                "",
                "with pl.spmd(2):\n            c = self.tile(a, sa, b, sb, c, 0, 0)",
            ),
        )
    )
    found, _, found_hint = refused(compiled, program(*lines) + others)
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
