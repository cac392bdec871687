"""Equality by meaning.

Names, spans and memory references do not count, nor does the difference between INDEX and INT64 in
constants and loop variables. Variables at defining positions are paired automatically; a free
variable must be the same object on both sides unless auto mapping is on.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping, Sequence
from typing import Any, cast

from .core import AssignStmt, ForStmt, Function, IfStmt, Program, ScopeStmt, WhileStmt
from .dtypes import Index, Int64
from .expr import Call, ConstFloat, ConstInt, IterArg, Node, ScalarType, Submit, Type, Var
from .types import TensorType, TileType

_IGNORED = frozenset({"span", "name_hint", "unique_id", "memref"})
_WORDS = (Index, Int64)


class _Difference(Exception):  # noqa: N818 - control flow inside this file
    def __init__(self, path: str, left: object, right: object) -> None:
        super().__init__(path)
        self.path, self.left, self.right = path, left, right


class _Comparer:
    def __init__(self, *, auto_mapping: bool) -> None:
        self._auto = auto_mapping
        self._forth: dict[Var, Var] = {}
        self._back: dict[Var, Var] = {}

    def define(self, left: Var, right: Var, path: str) -> None:
        if type(left) is not type(right) or (
            self._forth.get(left, right) is not right or self._back.get(right, left) is not left
        ):
            raise _Difference(path, left, right)
        self._forth[left], self._back[right] = right, left
        self._types(left.type, right.type, f"{path}.type")

    def _defines(self, left: Sequence[Var], right: Sequence[Var], path: str) -> None:
        self._length(left, right, path)
        for i, (a, b) in enumerate(zip(left, right, strict=True)):
            if isinstance(a, IterArg) and isinstance(b, IterArg):
                self.compare(a.init_value, b.init_value, f"{path}[{i}].init_value")
            self.define(a, b, f"{path}[{i}]")

    def _length(self, left: Sequence[object], right: Sequence[object], path: str) -> None:
        if len(left) != len(right):
            counted = f"len({path})"
            raise _Difference(counted, len(left), len(right))

    def _types(self, left: Type, right: Type, path: str) -> None:
        if isinstance(left, ScalarType) and isinstance(right, ScalarType):
            if left.dtype is not right.dtype and not (
                left.dtype in _WORDS and right.dtype in _WORDS
            ):
                raise _Difference(path, left.dtype, right.dtype)
            return
        self.compare(left, right, path)

    def compare(self, left: Any, right: Any, path: str) -> None:
        if left is right and not isinstance(left, Node | Type):
            return
        if isinstance(left, Var) and isinstance(right, Var):
            self._use(left, right, path)
            return
        if isinstance(left, ConstInt) and isinstance(right, ConstInt):
            words = left.dtype in _WORDS and right.dtype in _WORDS
            if left.value != right.value or not (words or left.dtype is right.dtype):
                raise _Difference(path, left, right)
            return
        if type(left) is not type(right):
            raise _Difference(path, left, right)
        self._same_class(left, right, path)

    def _use(self, left: Var, right: Var, path: str) -> None:
        mapped = self._forth.get(left)
        if mapped is right or (mapped is None and left is right and right not in self._back):
            return
        if mapped is None and self._auto and right not in self._back:
            self.define(left, right, path)
            return
        raise _Difference(path, left, right)

    def _same_class(self, left: Any, right: Any, path: str) -> None:
        match left:
            case Program():
                self._program(left, right, path)
            case Function():
                self._function(left, right, path)
            case AssignStmt():
                self.compare(left.value, right.value, f"{path}.value")
                self.define(left.var, right.var, f"{path}.var")
            case ForStmt():
                for name in ("kind", "attrs", "start", "stop", "step"):
                    self.compare(getattr(left, name), getattr(right, name), f"{path}.{name}")
                self._defines(left.iter_args, right.iter_args, f"{path}.iter_args")
                self.define(left.loop_var, right.loop_var, f"{path}.loop_var")
                self.compare(left.body, right.body, f"{path}.body")
                self._defines(left.return_vars, right.return_vars, f"{path}.return_vars")
            case WhileStmt():
                self._defines(left.iter_args, right.iter_args, f"{path}.iter_args")
                self.compare(left.condition, right.condition, f"{path}.condition")
                self.compare(left.body, right.body, f"{path}.body")
                self._defines(left.return_vars, right.return_vars, f"{path}.return_vars")
            case IfStmt():
                for name in ("condition", "then_body", "else_body"):
                    self.compare(getattr(left, name), getattr(right, name), f"{path}.{name}")
                self._defines(left.return_vars, right.return_vars, f"{path}.return_vars")
            case ScopeStmt():
                self._fields(left, right, path, but="task_id")
                if left.task_id is None or right.task_id is None:
                    self.compare(left.task_id, right.task_id, f"{path}.task_id")
                else:
                    self.define(left.task_id, right.task_id, f"{path}.task_id")
            case ConstFloat():
                same = struct.pack("<d", left.value) == struct.pack("<d", right.value)
                if not same or left.dtype is not right.dtype:
                    raise _Difference(path, left, right)
            case Mapping():
                self._mapping(cast("Mapping[str, Any]", left), right, path)
            case list() | tuple():
                items = cast("Sequence[Any]", left)
                self._length(items, right, path)
                for i, (a, b) in enumerate(zip(items, right, strict=True)):
                    self.compare(a, b, f"{path}[{i}]")
            case Node() | Type() if dataclasses.is_dataclass(left):
                self._fields(left, right, path)
            case _:
                if left != right:
                    raise _Difference(path, left, right)

    def _fields(self, left: Any, right: Any, path: str, *, but: str | None = None) -> None:
        for spec in dataclasses.fields(left):
            if spec.name not in _IGNORED and spec.name != but:
                a, b = getattr(left, spec.name), getattr(right, spec.name)
                self.compare(a, b, f"{path}.{spec.name}")

    def _program(self, left: Program, right: Program, path: str) -> None:
        mine, theirs = [g.name for g in left.functions], [g.name for g in right.functions]
        if mine != theirs:
            named = f"{path}.functions"
            raise _Difference(named, mine, theirs)
        for name, function in left.functions.items():
            self.compare(function, right.functions[name], f"{path}.{name.name}")

    def _function(self, left: Function, right: Function, path: str) -> None:
        for name in ("func_type", "level", "role", "param_directions"):
            self.compare(getattr(left, name), getattr(right, name), f"{path}.{name}")
        self._defines(left.params, right.params, f"{path}.params")
        self.compare(left.attrs, right.attrs, f"{path}.attrs")  # they may name parameters
        self.compare(left.return_types, right.return_types, f"{path}.return_types")
        self.compare(left.body, right.body, f"{path}.body")

    def _mapping(self, left: Mapping[str, Any], right: Mapping[str, Any], path: str) -> None:
        if set(left) != set(right):
            raise _Difference(path, sorted(left), sorted(right))
        for key, value in left.items():
            self.compare(value, right[key], f"{path}[{key!r}]")


def first_difference(
    left: Node | Type, right: Node | Type, *, enable_auto_mapping: bool = False
) -> str | None:
    """Return where `left` and `right` first differ, with both sides, or None if they are equal."""
    try:
        _Comparer(auto_mapping=enable_auto_mapping).compare(left, right, type(left).__name__)
    except _Difference as found:
        return f"{found.path}: {found.left!r} is not {found.right!r}"
    return None


def structural_equal(
    left: Node | Type, right: Node | Type, enable_auto_mapping: bool = False
) -> bool:
    """Return whether both mean the same."""
    return first_difference(left, right, enable_auto_mapping=enable_auto_mapping) is None


def assert_structural_equal(
    left: Node | Type, right: Node | Type, enable_auto_mapping: bool = False
) -> None:
    """Raise ValueError with the path of the first difference, if there is one."""
    difference = first_difference(left, right, enable_auto_mapping=enable_auto_mapping)
    if difference is not None:
        message = f"The two must be structurally equal, but they differ at {difference}"
        raise ValueError(message)


def structural_hash(node: Node | Type) -> int:
    """Return a hash that structurally equal nodes share."""
    match node:
        case Var():
            return hash("var")
        case ConstInt():
            return hash(("int", node.value))
        case ConstFloat():
            return hash(("float", struct.pack("<d", node.value)))
        case ScalarType():
            return hash("word" if node.dtype in _WORDS else node.dtype.name)
        case TensorType() | TileType():
            return hash((type(node).__name__, node.dtype.name, *map(structural_hash, node.shape)))
        case Call() | Submit():
            return hash((type(node).__name__, node.op.name, len(node.args)))
        case _:
            return hash(type(node).__name__)
