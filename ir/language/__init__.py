"""The language that kernels are written in: `from scalebox.ir import language as pl`.

A kernel is Python text that is parsed and never run:

* `@pl.program` on a class and `@pl.function` on its methods make a program;
* `@pl.jit` and `@pl.jit.incore` on functions make one too, which `specialize()` returns;
  `@pl.inline` makes a template;
* `pl.Tensor[[64, 128], pl.FP32]`, `pl.Tile`, `pl.Scalar`, `pl.Out`, `pl.InOut` and `pl.Tuple`
  annotate parameters, variables and results;
* `pl.load`, `pl.move`, `pl.matmul_mx`, … are the ops, each a row of the table in `scalebox.ir.ops`;
  `pl.tile.x` and `pl.tensor.x` are their full names;
* `pl.Tensor[[64, 128], pl.MXFP8_E4M3]` is a tensor of a compound dtype, elements and scales in one;
  `pl.matmul` multiplies two of them;
* `pl.range`, `pl.parallel`, `pl.unroll` and `pl.pipeline` head loops; `pl.min`, `pl.max`,
  `pl.cast` and `pl.const` make scalars; `pl.cast` converts tiles as well;
* `pl.at` and `pl.spmd` head regions that are launched, the second once for every block of a grid;
  `pl.submit` and `pl.spmd_submit` launch a kernel and name the launch;
* `pl.dynamic` makes a dimension that a launch decides;
* `pl.param` makes a size that the command line can replace; `pl.parse` and `pl.loads` read text.
"""

from __future__ import annotations

from typing import Any, Final

from ..core import ForKind, FunctionType, Level, ParamDirection, Role
from ..dynamic_dims import dynamic
from ..errors import install_hook
from ..types import (
    AccPhase,
    CompactMode,
    MemorySpace,
    MemRef,
    PadValue,
    TensorLayout,
    TensorView,
    TileLayout,
    TileView,
)
from .constants import const
from .decorators import function, program
from .forms import InOut, Out, Scalar, Tensor, Tile, Tuple
from .jitted import JITFunction, inline, jit
from .markers import (
    INTRINSICS,
    Intrinsic,
    OpName,
    OpNamespace,
    Unsupported,
    unknown_name,
)
from .names import DTYPES, ENUMS, OP_ALIASES, UNSUPPORTED
from .params import param, param_overrides
from .source import caller_span
from .text import KernelFile, load_file, loads, parse

install_hook()

tile: Final = OpNamespace("tile")
tensor: Final = OpNamespace("tensor")
system: Final = OpNamespace("system")

Mem = MemorySpace
parse_program = parse

__all__ = [
    "AccPhase",
    "CompactMode",
    "ForKind",
    "FunctionType",
    "InOut",
    "JITFunction",
    "KernelFile",
    "Level",
    "Mem",
    "MemRef",
    "MemorySpace",
    "Out",
    "PadValue",
    "ParamDirection",
    "Role",
    "Scalar",
    "Tensor",
    "TensorLayout",
    "TensorView",
    "Tile",
    "TileLayout",
    "TileView",
    "Tuple",
    "const",
    "dynamic",
    "function",
    "inline",
    "jit",
    "load_file",
    "loads",
    "param",
    "param_overrides",
    "parse",
    "parse_program",
    "program",
    "system",
    "tensor",
    "tile",
]

# What the tables name: dtypes, members of the layouts, words that are no ops, words left out.
_WORDS: Final[dict[str, object]] = {
    **DTYPES,
    **ENUMS,
    **{member.name: member for member in TensorLayout},
    **{word: Intrinsic(word) for word in INTRINSICS},
    **{word: Unsupported(word) for word in UNSUPPORTED},
    "TaskId": Scalar[DTYPES["TASK_ID"]],
}


def _ops() -> list[str]:
    from ..ops import ROWS

    public = [name.partition(".")[2] for name, row in ROWS.items() if row.public]
    aliases = [alias for alias, name in OP_ALIASES.items() if name in ROWS]
    return [*dict.fromkeys(public), *aliases]


def __getattr__(name: str) -> Any:
    if name in _WORDS:
        return _WORDS[name]
    if name.startswith("_"):
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    if name in _ops():
        return OpName(name)
    owner = "pl"
    raise unknown_name(owner, name, __dir__(), caller_span())


def __dir__() -> list[str]:
    return sorted({*__all__, *_WORDS, *_ops()})
