"""What `pl.<name>` is for Python: names, objects, and what they say outside of a kernel."""

import subprocess
import sys
from pathlib import Path

import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import FunctionType
from scalebox.ir.dtypes import DType, SimpleDType
from scalebox.ir.errors import (
    InvalidOperationError,
    IRValueError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
    UserError,
)
from scalebox.ir.expr import ConstFloat, ConstInt
from scalebox.ir.language.names import DTYPES, ENUMS, UNSUPPORTED, dtype_name, enum_name
from scalebox.ir.ops import ROWS
from scalebox.ir.types import MemorySpace, TensorLayout

DTYPE_WORDS = [
    "FP8E4M3FN",
    "FP8E5M2",
    "FP8E8M0",
    "FP6E3M2",
    "FP6E2M3",
    "FP4",
    "FP4E2M1X2",
    "FP4E1M2",
    "FP16",
    "BF16",
    "FP32",
    "INT8",
    "UINT8",
    "INT16",
    "UINT16",
    "INT32",
    "UINT32",
    "INT64",
    "UINT64",
    "INT4",
    "UINT4",
    "INDEX",
    "BOOL",
    "TASK_ID",
    "MXFP8_E4M3",
    "MXFP8_E5M2",
    "MXFP6_E3M2",
    "MXFP6_E2M3",
    "MXFP4",
    "MXINT8",
    "NVFP4",
]
OTHER_WORDS = [
    "program",
    "function",
    "Tensor",
    "Tile",
    "Scalar",
    "Out",
    "InOut",
    "Tuple",
    "FunctionType",
    "Mem",
    "MemorySpace",
    "TensorLayout",
    "TileLayout",
    "PadValue",
    "CompactMode",
    "AccPhase",
    "ForKind",
    "Level",
    "Role",
    "ParamDirection",
    "TensorView",
    "TileView",
    "MemRef",
    "TaskId",
    "ND",
    "DN",
    "NZ",
    "MX_A_ZZ",
    "MX_B_NN",
    "range",
    "pipeline",
    "while_",
    "yield_",
    "cond",
    "min",
    "max",
    "cast",
    "const",
    "param",
    "param_overrides",
    "parse",
    "loads",
    "load_file",
    "func_attr",
    "static_assert",
    "tile",
    "tensor",
    "load",
    "store",
    "move",
    "matmul_mx",
    "matmul_mx_acc",
    "matmul_mx_bias",
    "create_tensor",
    "matmul",
]


@pytest.mark.parametrize("name", DTYPE_WORDS)
def test_a_dtype_is_its_descriptor(name: str) -> None:
    assert getattr(pl, name) is DTYPES[name]
    assert isinstance(getattr(pl, name), DType)


def test_dtypes_of_the_standard_have_their_encoding() -> None:
    assert pl.FP8E4M3FN is DType.E4M3
    assert pl.FP8E8M0 is DType.E8M0
    assert pl.FP4 is pl.FP4E2M1X2 is DType.E2M1
    assert pl.FP4E1M2 is DType.from_name("E1M2")
    widths = {n: d.bits for n, d in DTYPES.items() if isinstance(d, SimpleDType)}
    assert (widths["FP4"], widths["FP6E3M2"], widths["BF16"], widths["INDEX"]) == (4, 6, 16, 64)


def test_names_and_dtypes_are_one_table() -> None:
    assert {DTYPES[dtype_name(dtype)] for dtype in DTYPES.values()} == set(DTYPES.values())
    assert {ENUMS[enum_name(kind) or ""] for kind in ENUMS.values()} == set(ENUMS.values())
    assert not set(DTYPES) & set(UNSUPPORTED)


@pytest.mark.parametrize("name", OTHER_WORDS)
def test_every_word_of_the_language_is_there(name: str) -> None:
    assert hasattr(pl, name)
    assert name in dir(pl)


def test_members_and_aliases() -> None:
    assert pl.Mem is pl.MemorySpace is MemorySpace
    assert pl.MX_A_ZZ is TensorLayout.MX_A_ZZ
    assert pl.FunctionType is FunctionType
    assert scalebox.pl is pl


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.public])
def test_every_public_op_is_there_in_full_and_in_short(name: str) -> None:
    namespace, _, short = name.partition(".")
    assert callable(getattr(getattr(pl, namespace), short))
    assert short in dir(getattr(pl, namespace))
    assert hasattr(pl, short)


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if not row.public])
def test_an_internal_op_is_there_in_full_only(name: str) -> None:
    namespace, _, short = name.partition(".")
    assert hasattr(getattr(pl, namespace), short)
    assert not hasattr(pl, short)
    assert short not in dir(pl)


def test_an_unknown_name_is_an_attribute_error_that_lists_what_resembles_it() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = pl.matmul_mxx
    assert isinstance(caught.value, UndefinedVariableError)
    assert caught.value.hint is not None
    assert "matmul_mx" in caught.value.hint
    assert "_ = pl.matmul_mxx" in caught.value.render()
    with pytest.raises(AttributeError) as caught:
        _ = pl.tile.stor
    assert "valid here: store" in str(getattr(caught.value, "hint", ""))
    assert not hasattr(pl, "_private")
    assert not hasattr(pl.tile, "__wrapped__")


def test_an_op_outside_of_a_kernel_says_where_it_belongs() -> None:
    with pytest.raises(InvalidOperationError, match=r"pl\.load must stand in the body") as caught:
        pl.load(None, [0, 0], [16, 64])
    assert caught.value.span is not None
    assert Path(caught.value.span.filename) == Path(__file__)
    with pytest.raises(InvalidOperationError, match=r"pl\.tile\.move must stand in"):
        pl.tile.move(None, pl.Mem.Left)
    with pytest.raises(InvalidOperationError, match=r"pl\.range must stand in the head of a for"):
        pl.range(4)
    with pytest.raises(InvalidOperationError, match="must be followed by square brackets"):
        pl.Tensor([4], pl.FP32)


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_a_word_that_is_left_out_says_what_works(name: str) -> None:
    word = getattr(pl, name)
    for use in (lambda: word(None), lambda: word[4, pl.INT8], lambda: word.incore):
        with pytest.raises(UnsupportedFeatureError, match=f"pl.{name} is not part") as caught:
            use()
        assert caught.value.hint == f"what works: {UNSUPPORTED[name]}"


def test_const_makes_a_constant_of_a_dtype() -> None:
    made = pl.const(7, DType.Int32)
    assert isinstance(made, ConstInt)
    assert (made.value, made.dtype) == (7, DType.Int32)
    assert isinstance(pl.const(7, DType.Float32), ConstFloat)
    with pytest.raises(ValueError, match=r"must be in -128\.\.127, not 128"):
        pl.const(128, DType.Int8)
    with pytest.raises(TypeError, match="must be a number of that kind"):
        pl.const(True, DType.Int8)
    with pytest.raises(TypeError, match="must have a dtype of one plane"):
        pl.const(1, pl.MXFP4)


# ------------------------------------------------------------------------ decorators


def test_what_the_decorators_refuse() -> None:
    with pytest.raises(ParserTypeError, match="must decorate a class"):
        pl.program(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ParserTypeError, match="must decorate a def"):
        pl.function(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ParserTypeError, match="type must be a FunctionType, not 'InCore'"):
        pl.function(type="InCore")  # pyright: ignore[reportArgumentType]
    with pytest.raises(IRValueError, match="role of an InCore function must be SubWorker"):
        pl.function(type=pl.FunctionType.InCore, role=pl.Role.Orchestrator)
    with pytest.raises(UnsupportedFeatureError, match="external_source"):
        pl.function(external_source="kernel.cpp")
    with pytest.raises(ParserSyntaxError, match="at least one method"):
        pl.program(type("Empty", (), {}))
    with pytest.raises(ParserError, match="must be written with def"):
        pl.function(lambda: None)


def test_a_kernel_without_readable_text_is_an_error() -> None:
    names: dict[str, object] = {"pl": pl}
    code = "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    return n\n"
    with pytest.raises(ParserSyntaxError, match="source text of a kernel must be readable"):
        exec(compile(code, "<nowhere>", "exec"), names)


# ------------------------------------------------------------------------ as a user meets it


def run(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args, code], capture_output=True, text=True, check=False
    )


def test_the_language_loads_nothing_heavy() -> None:
    child = run(
        "import sys, scalebox.ir.language\n"
        "print({'numpy', 'numba', 'ml_dtypes', 'amaranth'} & set(sys.modules))",
        "-c",
    )
    assert child.stdout == "set()\n"


def test_an_uncaught_mistake_prints_itself_without_a_traceback(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from scalebox.ir import language as pl\n\n\n"
        "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    return m\n"
    )
    child = run(str(script))
    assert child.returncode == 1
    assert "Traceback" not in child.stderr
    assert child.stderr.startswith("Error: Undefined variable 'm'\n")
    assert "6 |     return m\n  |            ^ Undefined variable 'm'\n" in child.stderr


def test_a_kernel_file_runs_as_a_script_and_does_nothing(root: Path) -> None:
    child = run(str(root / "examples" / "mx_tiled.py"))
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")


def test_every_error_of_the_parser_is_a_user_error() -> None:
    assert issubclass(ParserError, UserError)
