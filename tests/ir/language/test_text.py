"""Programs from text and from files, and the parameters of a kernel file."""

from pathlib import Path

import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import Function, Program
from scalebox.ir.errors import InputError, ParserError, ParserSyntaxError, UndefinedVariableError
from scalebox.ir.structural import assert_structural_equal
from scalebox.ir.types import TensorType, constant_dims

KERNEL = """
from scalebox.ir import language as pl

M = pl.param("M", 64)
N = pl.param("N", 2 * M)
MACHINE = "small.toml"


@pl.program
class Sized:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[M, N], pl.FP32]):
        return
"""
FUNCTION = "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    return n\n"


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "sized.py"
    path.write_text(KERNEL)
    return path


def shape_of(program: Program) -> tuple[int, ...] | None:
    function = program.get_function("kernel")
    assert function is not None
    type_ = function.params[0].type
    assert isinstance(type_, TensorType)
    return constant_dims(type_.shape)


# ------------------------------------------------------------------------ parse and loads


def test_parse_returns_the_one_program_or_function() -> None:
    assert isinstance(pl.parse(KERNEL), Program)
    assert isinstance(pl.parse(FUNCTION), Function)
    assert pl.parse_program is pl.parse


def test_a_text_may_leave_out_the_import() -> None:
    bare = KERNEL.replace("from scalebox.ir import language as pl", "")
    assert_structural_equal(pl.parse(KERNEL), pl.parse(bare))


def test_a_function_that_a_program_calls_is_no_second_item() -> None:
    made = pl.parse(
        FUNCTION + "@pl.program\nclass P:\n    @pl.function\n"
        "    def g(self, n: pl.Scalar[pl.INDEX]):\n        return f(n)\n"
    )
    assert isinstance(made, Program)
    assert [g.name for g in made.functions] == ["f", "g"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold a program or a function, but holds none"),
        ("x = 1", "must hold a program or a function, but holds none"),
        (FUNCTION + FUNCTION.replace("def f", "def g"), "must hold one function, not 2: f, g"),
    ],
)
def test_a_text_with_none_or_several_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        pl.parse(text)
    assert isinstance(caught.value, ValueError)


def test_text_that_is_no_python_shows_the_line() -> None:
    with pytest.raises(ParserSyntaxError, match="This is not Python") as caught:
        pl.parse("@pl.function\ndef f(n: pl.Scalar[pl.INDEX]:\n    return n\n")
    assert caught.value.span is not None
    assert caught.value.span.line == 2
    assert "def f(n" in caught.value.render()
    with pytest.raises(ParserSyntaxError, match="'break' outside loop"):
        pl.parse("@pl.function\ndef f():\n    break\n")


def test_lines_are_counted_as_python_counts_them() -> None:
    text = (
        "@pl.function\r\ndef f(n: pl.Scalar[pl.INDEX]):\r\n"
        '    "a\x0cb\u2028c"\r\n    return lost\r\n'
    )
    with pytest.raises(UndefinedVariableError) as caught:
        pl.parse(text)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (4, 12)


@pytest.mark.parametrize("text", ["x = '\x00'", "x = '\ud800'"])
def test_text_that_python_cannot_read_is_an_error(text: str) -> None:
    with pytest.raises(ParserSyntaxError, match="Python"):
        pl.parse(text)


def test_errors_in_a_text_show_the_text() -> None:
    with pytest.raises(UndefinedVariableError) as caught:
        pl.parse(FUNCTION.replace("return n", "return lost"))
    rendered = caught.value.render()
    assert "3 |     return lost\n  |            ^^^^ Undefined variable 'lost'" in rendered


@pytest.mark.parametrize(
    ("line", "message", "column"),
    [
        ("K = 64 * GROUPS", "Undefined variable 'GROUPS'", 10),
        ("K = pl.FP8E4M3", "pl has no name 'FP8E4M3'", 5),
        ("K = pl.Mem.Mad", "pl.Mem has no member 'Mad'", 5),
        ("K = [1][3]", "IndexError: list index out of range", 5),
        ("raise SystemError('stop')", "SystemError: stop", 1),
    ],
)
def test_a_failure_at_module_level_shows_its_place(line: str, message: str, column: int) -> None:
    with pytest.raises(ParserError) as caught:
        pl.parse(f"\n{line}\n")
    assert message in caught.value.message
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (2, column)


def test_loads_names_the_file(kernel: Path) -> None:
    program = pl.loads(kernel)
    assert program.span.filename == str(kernel)
    assert_structural_equal(program, pl.parse(KERNEL))


def test_a_file_that_changed_is_read_anew(kernel: Path) -> None:
    pl.loads(kernel)
    kernel.write_text(KERNEL.replace('"M", 64', '"M", 32'))
    program = pl.loads(kernel)
    assert isinstance(program, Program)
    assert shape_of(program) == (32, 64)


def test_a_file_that_cannot_be_read_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be readable text"):
        pl.loads(tmp_path / "missing.py")
    binary = tmp_path / "binary.py"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="must be readable text"):
        pl.loads(binary)
    with pytest.raises(InputError, match="must be readable text"):
        pl.loads(tmp_path)


# ------------------------------------------------------------------------ kernel files


def test_a_kernel_file_says_its_machine_and_its_parameters(kernel: Path) -> None:
    loaded = pl.load_file(kernel)
    assert loaded.path == kernel
    assert loaded.machine == "small.toml"
    assert loaded.params == {"M": 64, "N": 128}
    assert shape_of(loaded.program) == (64, 128)


def test_a_lone_function_is_a_program_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "lone.py"
    path.write_text("from scalebox.ir import language as pl\n" + FUNCTION)
    loaded = pl.load_file(path)
    assert [g.name for g in loaded.program.functions] == ["f"]
    assert loaded.machine is None


def test_a_machine_that_is_no_string_is_refused(kernel: Path) -> None:
    kernel.write_text(KERNEL.replace('"small.toml"', "7"))
    with pytest.raises(InputError, match=r"MACHINE in .* must be a string, not 7"):
        pl.load_file(kernel)


@pytest.mark.parametrize("given", [{"M": "32"}, {"M": 32}, {"M": "0x20"}])
def test_a_parameter_is_replaced_and_what_depends_on_it_follows(
    kernel: Path, given: dict[str, int | str]
) -> None:
    loaded = pl.load_file(kernel, params=given)
    assert loaded.params == {"M": 32, "N": 64}
    assert shape_of(loaded.program) == (32, 64)
    assert shape_of(pl.load_file(kernel).program) == (64, 128)
    program = pl.loads(kernel, params=given)
    assert isinstance(program, Program)
    assert shape_of(program) == (32, 64)


def test_an_unknown_parameter_lists_those_that_there_are(kernel: Path) -> None:
    with pytest.raises(InputError, match="has no parameter 'K'") as caught:
        pl.load_file(kernel, params={"K": "32"})
    with pytest.raises(InputError, match="no parameter 'K'"):
        pl.loads(kernel, params={"K": 32})
    assert caught.value.hint == "valid here: M, N"


@pytest.mark.parametrize("value", ["0", "-1", "-0x10"])
def test_a_parameter_may_have_a_least_value(tmp_path: Path, value: str) -> None:
    text = 'from scalebox.ir import language as pl\n\nM = pl.param("M", 4, least=1)\n'
    (tmp_path / "k.py").write_text(text + "tiles = range(0, 8, M)\n")
    with pytest.raises(InputError) as caught:
        pl.load_file(tmp_path / "k.py", params={"M": value})
    assert caught.value.message == f"The parameter M must be at least 1, not {int(value, 0)}"


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("NN", "did you mean N? valid here: N, M"),
        ("m", "valid here: M, N"),
        ("MM", "did you mean M? valid here: M, N"),
    ],
)
def test_all_parameters_are_listed_with_the_nearest_first(
    kernel: Path, given: str, hint: str
) -> None:
    with pytest.raises(InputError) as caught:
        pl.load_file(kernel, params={given: "32"})
    assert caught.value.hint == hint


def test_a_parameter_must_be_an_integer(kernel: Path) -> None:
    with pytest.raises(InputError, match="M must be an integer, not 'many'"):
        pl.load_file(kernel, params={"M": "many"})
    with pytest.raises(InputError, match=r"must be an integer, not 1\.5"):
        pl.param("M", 1.5)  # pyright: ignore[reportArgumentType]


def test_overrides_hold_inside_their_block_only() -> None:
    with pl.param_overrides({"M": "128"}) as record:
        assert pl.param("M", 64) == 128
        assert pl.param("N", 32) == 32
    assert record.values == {"M": 128, "N": 32}
    assert pl.param("M", 64) == 64
    with pytest.raises(InputError, match="has no parameter 'K'"), pl.param_overrides({"K": 1}):
        pass
