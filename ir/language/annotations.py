"""Annotations: from `pl.Tensor[[64, 128], pl.FP32]` to a type."""

from __future__ import annotations

import ast
from dataclasses import dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from ..core import ParamDirection
from ..dtypes import DType, SimpleDType
from ..dtypes.formats import INTEGER_FORMATS
from ..errors import IRTypeError, IRValueError, ParserTypeError, UnsupportedFeatureError
from ..expr import Expr, MakeTuple, ScalarType
from ..ops.checks import shape_fault
from ..slots import Slot
from ..types import (
    CompactMode,
    MemorySpace,
    MemRef,
    PadValue,
    TensorLayout,
    TensorType,
    TensorView,
    TileLayout,
    TileType,
    TileView,
    TupleType,
)
from .capture import NOT_CONSTANT, describe
from .context import plural
from .forms import EXAMPLES, Annotation, AnnotationKind, form_kind
from .markers import Unsupported
from .names import DTYPES, UNSUPPORTED, is_attribute_value
from .typecheck import Written, filled_view

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .context import Context
    from .expressions import ExpressionParser

_DIRECTIONS: Final = {
    AnnotationKind.OUT: ParamDirection.Out,
    AnnotationKind.INOUT: ParamDirection.InOut,
}
_VIEW_PARTS: Final[dict[str, type]] = {
    "layout": TensorLayout,
    "pad": PadValue,
    "blayout": TileLayout,
    "slayout": TileLayout,
    "fractal": int,
    "compact": CompactMode,
}
_VALID: Final = "valid annotations: pl.Tensor[…], pl.Tile[…], pl.Scalar[…], pl.Tuple[…]"


@dataclass(frozen=True)
class _Item:
    """Something between the brackets: its text, and its Python value where it has one."""

    node: ast.expr
    value: object


class AnnotationParser:
    """Reads the annotations of one function."""

    def __init__(self, context: Context, expressions: ExpressionParser) -> None:
        self._context = context
        self._expressions = expressions

    # ------------------------------------------------------------------------ entries

    def local(self, node: ast.expr) -> Written:
        """Return the type that a variable is annotated with."""
        return self._written(self._item(node))

    def parameter(self, node: ast.expr) -> tuple[Written, ParamDirection]:
        """Return type and direction of a parameter."""
        item = self._item(node)
        if self._context.jit and isinstance(item.value, SimpleDType):
            return Written(ScalarType(item.value)), ParamDirection.In
        kind, items = self._opened(item)
        if kind not in _DIRECTIONS:
            written = self._written(item)
            if isinstance(written.type, TupleType):
                message = "A parameter must be a tensor, a tile or a scalar, not a tuple"
                raise self._error(message, node, "give each element a parameter of its own")
            return written, ParamDirection.In
        if len(items) != 1:
            message = f"pl.{kind.value} must hold one type, not {len(items)}"
            raise self._error(message, node, EXAMPLES[kind])
        written = self._written(items[0])
        if not isinstance(written.type, TensorType | TileType):
            message = f"pl.{kind.value} must hold a tensor, not a scalar or a tuple"
            raise self._error(message, node, "a scalar goes in by value; return it to hand it out")
        return written, _DIRECTIONS[kind]

    def results(self, node: ast.expr) -> tuple[Written, ...]:
        """Return the types of a function's results."""
        if isinstance(node, ast.Constant) and node.value is None:
            return ()
        written = self._written(self._item(node))
        return written.parts if isinstance(written.type, TupleType) else (written,)

    # ------------------------------------------------------------------------ structure

    def _item(self, node: ast.expr) -> _Item:
        fold = self._context.capture.fold
        views: tuple[object, ...] = (TensorView, TileView)
        is_view = isinstance(node, ast.Call) and any(fold(node.func) is view for view in views)
        if self._slots_of(node) is not None:
            return _Item(node, NOT_CONSTANT)
        is_form = isinstance(node, ast.Subscript) and form_kind(fold(node.value)) is not None
        if is_view or is_form:
            return _Item(node, NOT_CONSTANT)  # its parts are read one by one
        return _Item(node, fold(node))

    def _slots_of(self, node: ast.expr) -> MemRef | None:
        """Return the buffers one of which `node` takes, as in `buf[i % 2]`; None for anything else."""
        if not isinstance(node, ast.Subscript):
            return None
        found = self._context.capture.fold(node.value)
        return found if isinstance(found, MemRef) else None

    def _slot(self, item: _Item) -> Slot | None:
        """Return the slot that an item of a tile's annotation names."""
        memref = self._slots_of(item.node)
        if memref is None:
            return None
        assert isinstance(item.node, ast.Subscript), item
        self._check_memref(memref, item.node)
        name = memref.name or ast.unparse(item.node.value)
        if memref.slots < 1:
            message = f"{name!r} must have at least one slot, not {memref.slots}"
            raise self._error(message, item.node, "buf = pl.MemRef(slots=2)")
        return Slot(name, memref.slots, self._expressions.scalar(item.node.slice))

    def _opened(self, item: _Item) -> tuple[AnnotationKind, list[_Item]]:
        """Return what kind of annotation an item is, and what stands in its brackets."""
        if isinstance(item.node, ast.Subscript):
            owner = self._context.capture.fold(item.node.value)
            if isinstance(owner, Unsupported):
                raise self._context.capture.unsupported(owner, item.node)
            kind = form_kind(owner)
            if kind is not None:
                inside = item.node.slice
                nodes = inside.elts if isinstance(inside, ast.Tuple) else [inside]
                return kind, [self._item(node) for node in nodes]
        if isinstance(item.value, Annotation):
            return item.value.kind, [_Item(item.node, v) for v in item.value.items]
        raise self._not_an_annotation(item)

    def _not_an_annotation(self, item: _Item) -> ParserTypeError | UnsupportedFeatureError:
        text = ast.unparse(item.node)
        match item.value:
            case Unsupported():
                return self._context.capture.unsupported(item.value, item.node)
            case DType():
                message = f"An annotation must be a type, not the bare dtype {text}"
                return self._error(message, item.node, f"for a scalar write pl.Scalar[{text}]")
            case _ if (kind := form_kind(item.value)) is not None:
                message = f"{text} must say more, in square brackets"
                return self._error(message, item.node, EXAMPLES[kind])
            case value if value is NOT_CONSTANT:
                return self._error(f"An annotation must be a type, not {text}", item.node, _VALID)
            case value:
                message = f"An annotation must be a type, not {describe(value)}"
                return self._error(message, item.node, _VALID)

    def _written(self, item: _Item) -> Written:
        kind, items = self._opened(item)
        match kind:
            case AnnotationKind.SCALAR:
                return self._scalar(item, items)
            case AnnotationKind.TENSOR:
                return self._tensor(item, items)
            case AnnotationKind.TILE:
                return self._tile(item, items)
            case AnnotationKind.TUPLE:
                parts = tuple(self._written(part) for part in items)
                return Written(TupleType(part.type for part in parts), parts=parts)
            case AnnotationKind.OUT | AnnotationKind.INOUT:
                message = f"pl.{kind.value} must be written around the type of a parameter only"
                raise self._error(message, item.node, "write the type alone here")

    # ------------------------------------------------------------------------ kinds

    def _scalar(self, item: _Item, items: list[_Item]) -> Written:
        if len(items) != 1:
            message = f"pl.Scalar must hold one dtype, not {len(items)} parts"
            raise self._error(message, item.node, EXAMPLES[AnnotationKind.SCALAR])
        dtype = self._dtype(items[0])
        if not isinstance(dtype, SimpleDType):
            message = f"A scalar must have a dtype of one plane, not {ast.unparse(items[0].node)}"
            raise self._error(message, items[0].node)
        return Written(ScalarType(dtype))

    def _tensor(self, item: _Item, items: list[_Item]) -> Written:
        shape, dtype, extras = self._array(item, items, AnnotationKind.TENSOR)
        view: TensorView | None = None
        memref: MemRef | None = None
        has_view = False
        for extra in extras:
            found = self._view_call(extra, TensorView)
            match found if found is not None else extra.value:
                case TensorLayout() as layout if not has_view:
                    view, has_view = self._bare_layout(layout, extra), True
                case TensorView() as given if not has_view:
                    view, has_view = given, True
                case MemRef() as given if memref is None:
                    memref = given
                case value:
                    text = ast.unparse(extra.node)
                    what = "a second one" if isinstance(value, TensorLayout | TensorView) else text
                    message = f"A tensor's third slot must be a layout or a view, not {what}"
                    names = ", ".join(f"pl.{m.name}" for m in TensorLayout)
                    hint = f"valid: {names}, pl.TensorView(…), pl.MemRef(…)"
                    raise self._error(message, extra.node, hint)
        self._check_view(view, shape, item.node)
        self._check_memref(memref, item.node)
        return Written(TensorType(shape, dtype, memref, view), has_view=has_view)

    def _bare_layout(self, layout: TensorLayout, item: _Item) -> TensorView:
        if layout is TensorLayout.DN:
            message = "A tensor in DN must say its strides, not the bare layout"
            hint = "pl.TensorView(stride=[1, K], layout=pl.DN)"
            raise self._error(message, item.node, hint)
        return TensorView(layout=layout)

    def _tile(self, item: _Item, items: list[_Item]) -> Written:
        shape, dtype, extras = self._array(item, items, AnnotationKind.TILE)
        space: MemorySpace | None = None
        memref: MemRef | None = None
        view: Mapping[str, Any] | TileView | None = None
        slot: Slot | None = None
        for extra in extras:
            if slot is None and (slot := self._slot(extra)) is not None:
                continue
            found = self._view_call(extra, TileView)
            assert not isinstance(found, TensorView)
            match found if found is not None else extra.value:
                case MemorySpace() as given if space is None:
                    space = given
                case MemRef(name="", slots=slots) if slots > 1:
                    text = ast.unparse(extra.node)
                    message = f"A tile must name one of the {slots} slots of {text}"
                    raise self._error(message, extra.node, f"{text}[i % {slots}]")
                case MemRef() as given if memref is None:
                    memref = given
                case TileView() as given if view is None:
                    view = given
                case dict() if view is None:
                    view = found
                case _:
                    text = ast.unparse(extra.node)
                    message = (
                        f"A tile must have a memory, a MemRef and a TileView, each once, not {text}"
                    )
                    hint = f"memories: {', '.join(f'pl.Mem.{m.name}' for m in MemorySpace)}"
                    raise self._error(message, extra.node, hint)
        if (memref is not None or slot is not None) and space is None:
            message = "A tile with a MemRef must name its memory"
            raise self._error(message, item.node, "add pl.Mem.Mat or another memory")
        full_view = filled_view(shape, space, view)
        self._check_view(full_view, shape, item.node)
        self._check_memref(memref, item.node)
        return Written(TileType(shape, dtype, memref, full_view, space), tile_view=view, slot=slot)

    def _array(
        self, item: _Item, items: list[_Item], kind: AnnotationKind
    ) -> tuple[tuple[Expr, ...], DType, list[_Item]]:
        if len(items) < 2:
            message = f"pl.{kind.value} must hold a shape and a dtype"
            raise self._error(message, item.node, EXAMPLES[kind])
        shape = self._shape(items[0], kind)
        dtype = self._dtype(items[1])
        fault = shape_fault(shape, dtype)
        if fault is not None:
            raise self._error(fault[0].upper() + fault[1:], items[0].node)
        return shape, dtype, items[2:]

    def _shape(self, item: _Item, kind: AnnotationKind) -> tuple[Expr, ...]:
        if not isinstance(item.node, ast.List | ast.Tuple) or isinstance(item.value, Annotation):
            value: object = item.value
            if not isinstance(value, list | tuple):
                text = ast.unparse(item.node)
                message = f"The shape of pl.{kind.value} must be a list of integers, not {text}"
                raise self._error(message, item.node, EXAMPLES[kind])
            made = self._expressions.constant(cast("object", value), item.node)
            assert isinstance(made, MakeTuple)
            dims = list(made.elements)
        else:
            dims = [self._expressions.parse(e) for e in item.node.elts]
        for dim in dims:
            if not _is_integer(dim):
                message = f"Every dimension must be an integer in {ast.unparse(item.node)}"
                raise self._error(message, item.node, EXAMPLES[kind])
        return tuple(dims)

    def _dtype(self, item: _Item) -> DType:
        match item.value:
            case DType() as dtype if is_attribute_value(dtype):
                return dtype
            case Unsupported():
                raise self._context.capture.unsupported(item.value, item.node)
            case value:
                what = ast.unparse(item.node) if value is NOT_CONSTANT else describe(value)
                if isinstance(value, DType):
                    what = f"{value.name}, which has no name in it"
                message = f"This slot must hold a dtype of the language, not {what}"
                names = ", ".join(f"pl.{n}" for n in DTYPES if n not in UNSUPPORTED)
                raise self._error(message, item.node, f"the dtypes are {names}")

    # ------------------------------------------------------------------------ views

    def _view_call(
        self, item: _Item, kind: type[TensorView] | type[TileView]
    ) -> TensorView | dict[str, Any] | None:
        """Return the view that is written as a call in the annotation itself, else None.

        Of a tile view only the written fields come back, for the memory space fills in the others.
        """
        node = item.node
        if not isinstance(node, ast.Call) or self._context.capture.fold(node.func) is not kind:
            return None
        names = [spec.name for spec in fields(kind)]
        given = dict(zip(names, node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg not in names or keyword.arg in given:
                message = f"pl.{kind.__name__} must not have the argument {keyword.arg}= here"
                raise self._error(message, keyword.value, f"it takes {', '.join(names)}, each once")
            given[keyword.arg] = keyword.value
        values: dict[str, Any] = {name: self._field(value) for name, value in given.items()}
        try:
            view = kind(**values)
        except (IRTypeError, IRValueError, TypeError) as error:
            message = f"{ast.unparse(node)} is no view: {error}"
            raise self._error(message, node, f"it takes {', '.join(names)}") from error
        return view if isinstance(view, TensorView) else values

    def _field(self, node: ast.expr) -> object:
        if isinstance(node, ast.List | ast.Tuple):
            return [self._expressions.parse(e) for e in node.elts]
        value = self._context.capture.fold(node)
        return self._expressions.parse(node) if value is NOT_CONSTANT else value

    def _check_view(
        self, view: TensorView | TileView | None, shape: tuple[Expr, ...], node: ast.expr
    ) -> None:
        """Refuse a view with a part of the wrong kind, or of another rank than the shape."""
        if view is None:
            return
        for name, kind in _VIEW_PARTS.items():
            found = getattr(view, name, None)
            if found is not None and (not isinstance(found, kind) or isinstance(found, bool)):
                message = f"{name} of a view must be a {kind.__name__}, not {found!r}"
                names = (
                    [f"pl.{kind.__name__}.{m.name}" for m in kind] if issubclass(kind, Enum) else []
                )
                raise self._error(message, node, f"valid: {', '.join(names)}" if names else None)
        for name in ("stride", "valid_shape"):
            dims: tuple[Expr, ...] = getattr(view, name)
            if dims and len(dims) != len(shape):
                wanted = plural(len(shape), "element")
                message = f"{name} of a view must have {wanted}, one a dimension, not {len(dims)}"
                raise self._error(message, node)
            if not all(map(_is_integer, dims)):
                message = f"{name} of a view must be a list of integers"
                raise self._error(message, node)

    def _check_memref(self, memref: MemRef | None, node: ast.expr) -> None:
        """Refuse a memory reference with a part of the wrong kind."""
        if memref is None:
            return
        numbers = (memref.byte_offset, memref.size, memref.slots)
        if not isinstance(memref.name, str) or not all(type(n) is int for n in numbers):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = "A MemRef must hold a name and integers"
            raise self._error(message, node, 'pl.MemRef("name", byte_offset, size)')

    def _error(self, message: str, node: ast.expr, hint: str | None = None) -> ParserTypeError:
        return self._context.error(ParserTypeError, message, node, hint=hint)


def _is_integer(dim: Expr) -> bool:
    return isinstance(dim.type, ScalarType) and dim.type.dtype in INTEGER_FORMATS
