"""Python values in a kernel's text: names of the surroundings, literals, and what follows from them."""

from __future__ import annotations

import ast
import builtins
import operator
from enum import Enum
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

from ..dtypes import DType
from ..errors import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from ..expr import Expr
from ..suggest import near
from ..types import MemRef, TensorType, TensorView, TileType, TileView, constant_dims
from .forms import form_kind
from .markers import Intrinsic, OpName, OpNamespace, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .source import Source
    from .variables import Scope


class _NotConstant(Enum):
    TOKEN = "not constant"


#: What :meth:`Capture.fold` returns for an expression that holds a variable of the kernel.
NOT_CONSTANT: Final = _NotConstant.TOKEN

_LARGEST_BITS: Final = 4096
_LONGEST: Final = 1 << 16
"""Beyond this Python's own arithmetic could take all time or all memory."""


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int):
        _check_bits(base.bit_length() * max(0, exponent) if abs(base) > 1 else 0)
    return base**exponent


def _shifted(value: Any, by: Any) -> Any:
    if isinstance(value, int) and isinstance(by, int):
        _check_bits(value.bit_length() + by if value else 0)
    return value << by


def _times(left: Any, right: Any) -> Any:
    for text, count in ((left, right), (right, left)):
        if isinstance(text, str | bytes | list | tuple) and isinstance(count, int):
            length = len(cast("Sequence[object]", text))
            if length * count > _LONGEST:
                message = f"the result must have at most {_LONGEST} items, not {length * count}"
                raise ValueError(message)
    return left * right


def _check_bits(bits: int) -> None:
    if bits > _LARGEST_BITS:
        message = f"the result must fit into {_LARGEST_BITS} bits, which it does not"
        raise ValueError(message)


#: Python's operators, which take whatever operands have them.
_python: Any = operator
_BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: _python.add,
    ast.Sub: _python.sub,
    ast.Mult: _times,
    ast.Div: _python.truediv,
    ast.FloorDiv: _python.floordiv,
    ast.Mod: _python.mod,
    ast.Pow: _power,
    ast.LShift: _shifted,
    ast.RShift: _python.rshift,
    ast.BitAnd: _python.and_,
    ast.BitOr: _python.or_,
    ast.BitXor: _python.xor,
}
_UNARY: Final[dict[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.UAdd: _python.pos,
    ast.USub: _python.neg,
    ast.Not: _python.not_,
    ast.Invert: _python.invert,
}
_COMPARE: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
#: What Python raises for operands that it cannot compute with.
_PYTHONS_OWN: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
#: What may be called with Python values while a kernel is parsed.
_CALLABLE: Final = (TensorView, TileView, MemRef, float, int)
#: Words of the language that have a value when all their arguments are Python numbers.
_FOLDING: Final[dict[str, Callable[..., Any]]] = {"min": min, "max": max}


class Capture:
    """Looks up and evaluates what is known when a kernel is parsed.

    Args:
        source: The kernel's file.
        namespace: The names that its text can see, without Python's own.
        scope: The kernel's variables, which come before every other name.
        shapes: Whether `x.shape` of a variable of constant shape is known, as in `@pl.jit`.

    Attributes:
        fixed: What :meth:`define` has added.
    """

    def __init__(
        self,
        source: Source,
        namespace: Mapping[str, object],
        scope: Scope,
        *,
        shapes: bool = False,
    ) -> None:
        self._source = source
        self._namespace = dict(namespace)
        self._scope = scope
        self._shapes = shapes
        self.fixed: dict[str, object] = {}

    def define(self, name: str, value: object) -> None:
        """Make `name` mean a Python value from here on; it can then not be assigned."""
        self._namespace[name] = self.fixed[name] = value

    def fold(self, node: ast.expr) -> object:
        """Return the Python value of `node`, or NOT_CONSTANT if it depends on kernel variables.

        Raises:
            UndefinedVariableError: For a name that nothing defines.
            ParserSyntaxError: When Python cannot evaluate it, as in `1 // 0`.
        """
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._apply(_BINARY.get(type(op)), [left, right], node)
            case ast.UnaryOp(op=op, operand=operand):
                return self._apply(_UNARY[type(op)], [operand], node)
            case ast.BoolOp(op=op, values=values):
                every = isinstance(op, ast.And)
                return self._apply(lambda *v: all(v) if every else any(v), values, node)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._apply(_COMPARE.get(type(op)), [left, right], node)
            case ast.List(elts=elements):
                return self._apply(lambda *v: list(v), elements, node, keep_exprs=True)
            case ast.Tuple(elts=elements):
                return self._apply(lambda *v: tuple(v), elements, node, keep_exprs=True)
            case ast.Subscript(value=value, slice=index):
                return self._apply(operator.getitem, [value, index], node, keep_exprs=True)
            case ast.Call():
                return self._call(node)
            case _:
                return NOT_CONSTANT

    def _apply(
        self,
        function: Callable[..., Any] | None,
        operands: list[ast.expr],
        node: ast.expr,
        *,
        keep_exprs: bool = False,
    ) -> object:
        values = [self.fold(operand) for operand in operands]
        if function is None or any(v is NOT_CONSTANT for v in values):
            return NOT_CONSTANT
        if not keep_exprs and any(isinstance(v, Expr) for v in values):
            return NOT_CONSTANT
        return self._evaluate(lambda: function(*values), node)

    def _evaluate(self, compute: Callable[[], object], node: ast.expr) -> object:
        try:
            return compute()
        except ParserError as error:
            raise self._source.error(type(error), error.message, node, hint=error.hint) from error
        except _PYTHONS_OWN as error:
            told = str(error) or type(error).__name__
            message = f"{ast.unparse(node)} cannot be evaluated: {told}"
            raise self._source.error(ParserSyntaxError, message, node) from error

    def _name(self, node: ast.Name) -> object:
        if node.id in self._scope:
            return NOT_CONSTANT
        if node.id in self._namespace:
            return self._namespace[node.id]
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        raise self.undefined(node.id, node)

    def undefined(self, name: str, node: ast.expr) -> UndefinedVariableError:
        """Return the error for a name that nothing defines, with the names that resemble it."""
        first = name.split(".")[0]
        if first == "self":
            message = "self must be used to call a function of the program, as in self.kernel(x)"
            return self._source.error(UndefinedVariableError, message, node)
        if first in self._scope.hidden:
            hint = f"{first} was defined above, but {self._scope.hidden[first]}"
        else:
            values = (int, float, list, tuple)
            outer = [n for n, v in self._namespace.items() if isinstance(v, values) and n[0] != "_"]
            known = [*self._scope.variables, *outer]
            hint = "define it earlier or in the enclosing scope"
            hint += f"; {near(first, known)}" if known else ""
        return self._source.error(
            UndefinedVariableError, f"Undefined variable {name!r}", node, hint=hint
        )

    def _attribute(self, node: ast.Attribute) -> object:
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name):
            known = (*self._scope.variables, *self._namespace)
            if root.id not in known and not hasattr(builtins, root.id):
                raise self.undefined(ast.unparse(node), node)
        owner = self.fold(node.value)
        if owner is NOT_CONSTANT:
            return self._shape(node)
        if isinstance(owner, Unsupported):
            raise self.unsupported(owner, node)
        try:
            return getattr(owner, node.attr)
        except AttributeError as error:
            raise self._no_attribute(owner, node) from error

    def _shape(self, node: ast.Attribute) -> object:
        """Return the constant shape that `x.shape` says of a variable, where that is understood."""
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="shape") if self._shapes:
                type_ = self._scope.variables[name].type
                if not isinstance(type_, TensorType | TileType):
                    return NOT_CONSTANT
                dims = constant_dims(type_.shape)
                return NOT_CONSTANT if dims is None else dims
            case _:
                return NOT_CONSTANT

    def _no_attribute(self, owner: object, node: ast.Attribute) -> ParserError:
        written = ast.unparse(node.value)
        known: list[str]
        kind: type[ParserError] = UndefinedVariableError
        match owner:
            case OpNamespace():
                kind = InvalidOperationError
                known = owner.known()
                message = f"{written} has no operation {node.attr!r}"
            case ModuleType() if node.attr.islower():
                kind = InvalidOperationError
                words = (OpName, Intrinsic, OpNamespace)
                known = [n for n in dir(owner) if isinstance(getattr(owner, n), words)]
                message = f"{written} has no operation {node.attr!r}"
            case ModuleType():
                known = [n for n in dir(owner) if not n.startswith("_") and not n.islower()]
                message = f"{written} has no name {node.attr!r}"
            case type() if issubclass(owner, Enum):
                known = [str(member.name) for member in owner]
                message = f"{written} has no member {node.attr!r}"
            case _:
                known = [n for n in dir(owner) if not n.startswith("_")]
                message = f"{written} has no attribute {node.attr!r}"
        return self._source.error(kind, message, node, hint=near(node.attr, known))

    def unsupported(self, word: Unsupported, node: ast.AST) -> UnsupportedFeatureError:
        """Return the error for a word of PyPTO that the language leaves out."""
        return self._source.error(UnsupportedFeatureError, word.message, node, hint=word.hint)

    def _call(self, node: ast.Call) -> object:
        if _calls_self(node):
            return NOT_CONSTANT
        callee = self.fold(node.func)
        function = _FOLDING.get(callee.name) if isinstance(callee, Intrinsic) else None
        if function is None and any(callee is known for known in _CALLABLE):
            function = cast("Callable[..., Any]", callee)
        if function is None or any(isinstance(a, ast.Starred) for a in node.args):
            return NOT_CONSTANT
        args = [self.fold(a) for a in node.args]
        keywords = {k.arg or "": self.fold(k.value) for k in node.keywords}
        values = [*args, *keywords.values()]
        is_scalar = isinstance(callee, Intrinsic) and any(isinstance(v, Expr) for v in values)
        if is_scalar or any(v is NOT_CONSTANT for v in values):
            return NOT_CONSTANT
        return self._evaluate(lambda: function(*args, **keywords), node)


def _calls_self(node: ast.Call) -> bool:
    match node.func:
        case ast.Attribute(value=ast.Name(id="self")):
            return True
        case _:
            return False


def describe(value: object) -> str:
    """Return what a captured Python value is, for an error message."""
    match value:
        case DType():
            return "a dtype"
        case Enum():
            return f"a member of {type(value).__name__}"
        case ModuleType():
            return "a module"
        case _ if form_kind(value) is not None:
            return "a type"
        case BuiltinFunctionType() | FunctionType() | type():
            return "a Python function"
        case None:
            return "None"
        case _:
            return f"a Python value of type {type(value).__name__}"
