"""What a program is and means, and the record of the machine it is for.

The words of this package, one for each concept: a *tensor* lies in global memory, a *tile* in an
on-chip memory *space*; a *span* is a stretch of source text; a *row* is an entry of a table; a
*group* is 32 elements along K that share one E8M0 scale; a *box* is the 32 bytes of 16 rows by 2
groups in which scales are stored.

The nodes and types can be imported from here as well as from the file that defines them; nothing is
loaded before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Defining module -> the names that can be imported from here.
_NAMES = {
    "errors": "Span UserError",
    "node": "ConstBool ConstFloat ConstInt Expr IterArg Node ScalarType Type UnknownType Var",
    "operators": (
        "Add And BinaryExpr BitNot BitShiftLeft BitShiftRight Cast Eq FloatDiv FloorDiv FloorMod Ge Gt "
        "Le Lt Max Min Mul Ne Neg Not Or Sub UnaryExpr"
    ),
    "expr": "Call GlobalVar MakeTuple Op Submit TupleGetItemExpr",
    "types": (
        "CommCtxType CompactMode DistributedTensorType MemRef MemorySpace PadValue TensorLayout "
        "TensorType TensorView TileLayout TileType TileView TupleType"
    ),
    "core": (
        "AssignStmt BreakStmt ContinueStmt EvalStmt ForKind ForStmt Function FunctionType IfStmt "
        "InCoreScopeStmt Level ParamDirection Program ReturnStmt Role ScopeStmt SeqStmts SpmdScopeStmt "
        "Stmt WhileStmt YieldStmt flatten_to_stmts"
    ),
    "visitor": (
        "IRMutator IRVisitor collect_def_vars set_call_attrs substitute_expr substitute_stmt"
    ),
    "structural": "assert_structural_equal structural_equal structural_hash",
    "printer": "python_print",
    "ops": "create_op_call get_op get_op_memory_spec",
    "scalar_ops": "add floordiv max_ min_ mod mul sub",
}
_DEFINED_IN = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = ("dtypes", "language", "numerics", "op", "passes", "target")


def __getattr__(name: str) -> Any:
    if name in _DEFINED_IN:
        value = getattr(import_module(f".{_DEFINED_IN[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted({*globals(), *_DEFINED_IN, *_MODULES})
