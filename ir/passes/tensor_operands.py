"""How the tensors of a function of one core come to the core: as tiles where an op needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..binding import source_name
from ..cast_mode import CastMode
from ..collapsing import plus
from ..errors import IRValueError
from ..expr import Call, Expr, IterArg, MakeTuple, Var, index, replace
from ..ops import create_op_call
from ..ops.checks import clamped_extents
from ..types import MemorySpace, TensorLayout, TensorType, TileType, constant_dim, constant_dims
from .inserting import InsertingMutator
from .tile_forms import CubeForm, cube_tile, extents, vector_tile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..dtypes import DType
    from ..errors import Span
    from ..types import Dims
    from .made_tensors import Made
    from .tensor_places import Places


@dataclass(frozen=True)
class Window:
    """A window of a tensor that is loaded where it is needed."""

    source: Expr
    offset: tuple[Expr, ...]


class OperandLowering(InsertingMutator):
    """Brings tensors to the core.

    Args:
        made: The tensors that the function makes itself.
        places: Where those are stored.
    """

    def __init__(self, made: Made, places: Places) -> None:
        super().__init__()
        self._made = made
        self._places = places
        self._windows: dict[Var, Window] = {}
        self._tensors: dict[Var, Var] = {}
        # What was moved to Vec in the sequence of statements at hand, which needs to be moved once.
        self._in_vec_now: dict[Var, Expr] = {}

    # ------------------------------------------------------------------- variables

    def visit_var(self, op: Var) -> Var:
        """Return the tile of a variable whose tensor is made here, else the variable itself."""
        if op in self._windows:
            message = (
                f"The window {source_name(op)!r} must go into an op, pl.assemble or pl.load of its "
                "function to be compiled, not elsewhere"
            )
            raise IRValueError(message, op.span)
        if op not in self.variables:
            tile = self._made.tiles.get(op)
            self.variables[op] = op if tile is None else replace(op, type=tile)
        return self.variables[op]

    def visit_iter_arg(self, op: IterArg) -> Var:
        """Return the tile that a loop carries, from a loaded one where a tensor comes in."""
        if op not in self.variables:
            tile = self._made.tiles.get(op)
            init = self._handed_on(op.init_value, op)
            same = init is op.init_value and tile is None
            made = op if same else replace(op, init_value=init, type=tile or op.type)
            self.variables[op] = made
        return self.variables[op]

    def _handed_on(self, value: Expr, target: Var) -> Expr:
        """Return what a loop or a branch hands on to `target`; a tensor for a tile is loaded."""
        if target in self._made.tiles and value not in self._made.tiles:
            return self._in_vec(value, target.span)
        return self.visit_expr(value)

    def _as_tensor(self, expr: Expr) -> Expr:
        """Return a tensor operand as what lies in global memory."""
        if isinstance(expr, Var) and expr in self._made.tiles:
            return self._tensors[expr]
        return self.visit_expr(expr)

    def _assigned(self, name: str, call: Call) -> Var:
        return self.assign(name, call, call.span)

    def _made_by(
        self, op: str, args: Sequence[object], span: Span, name: str, **kwargs: object
    ) -> Var:
        """Return a variable for a call that is inserted before the statement at hand."""
        return self._assigned(name, create_op_call(op, list(args), kwargs, span))

    # ------------------------------------------------------------------- windows

    def _placed(self, tensor: Expr, offset: tuple[Expr, ...]) -> Window:
        """Return a window of a tensor, which may be a window itself, as one of what it is cut from."""
        outer = self._windows.get(tensor) if isinstance(tensor, Var) else None
        if outer is None:
            return Window(tensor, offset)
        pairs = zip(outer.offset, offset, strict=True)
        return Window(outer.source, tuple(plus(one, other) for one, other in pairs))

    def _clamped(self, tensor: Expr, offset: Dims, part: Dims) -> tuple[Window, Dims]:
        """Return a part of a tensor, which may be a window, and how much of it there is.

        The tensor that a window is cut from may go on beyond it, so a load that clamps is not enough.
        """
        window = self._placed(tensor, offset)
        if not isinstance(tensor, Var) or tensor not in self._windows:
            return window, part
        within = clamped_extents(offset, part, cast("TensorType", tensor.type).shape)
        # Of what begins beyond the window there is as little as at the end of the tensor.
        ends = cast("TensorType", window.source.type).shape
        nothing = [constant_dim(dim) == 0 for dim in within]
        place = [
            end if no else at for no, end, at in zip(nothing, ends, window.offset, strict=True)
        ]
        kept = [one if no else dim for no, one, dim in zip(nothing, part, within, strict=True)]
        return Window(window.source, tuple(place)), tuple(kept)

    def _loaded(self, tensor: Expr, tile: TileType, span: Span, *, clamp: bool = False) -> Call:
        """Return the load of a whole tensor, or of a window, as a tile of the given type."""
        name = tensor.name_hint if isinstance(tensor, Var) else "operand"
        type_ = cast("TensorType", tensor.type)
        extents(type_, repr(name), span)
        window = self._placed(tensor, tuple(index(0) for _ in type_.shape))
        source, offset = self._in_two_axes(window, span)
        args = [source, list(offset), list(tile.shape), list(tile.valid_shape)]
        # What goes to the cube is left unplaced, so that it can be cut where L1 does not hold it.
        places = (
            {} if tile.memory_space is MemorySpace.Mat else {"target_memory": tile.memory_space}
        )
        return create_op_call("tile.load", args, {**places, "clamp": clamp}, span)

    def _in_two_axes(self, window: Window, span: Span) -> tuple[Expr, tuple[Expr, ...]]:
        """Return tensor and offset of a window; one of a single axis is seen as a row."""
        source, offset = self._as_tensor(window.source), window.offset
        if len(offset) > 1:
            return source, offset
        shape = [1, *cast("TensorType", source.type).shape]
        row = self._made_by("tensor.view", [source, shape], span, f"{_name(source)}_row")
        return row, (index(0), *offset)

    def _store_into(
        self, tile: Expr, offset: Sequence[Expr | int], tensor: Expr, span: Span
    ) -> Call:
        """Return the store of a tile; the rows of one for a single axis are put one after another."""
        args: list[object] = [tile, list(offset), tensor]
        if len(offset) == 1:
            args.append([cast("TileType", tile.type).valid_shape[-1]])
        return create_op_call("tile.store", args, {}, span)

    # ------------------------------------------------------------------- the vector core

    def _in_vec(self, tensor: Expr, span: Span) -> Expr:
        """Return a tensor as a tile in Vec, in the form that stands for it there."""
        type_, name = cast("TensorType", tensor.type), _name(tensor)
        if not isinstance(tensor, Var) or tensor not in self._made.tiles:
            return self._assigned(f"{name}_tile", self._loaded(tensor, vector_tile(type_), span))
        tile = self.visit_expr(tensor)
        if cast("TileType", tile.type).memory_space is MemorySpace.Vec:
            return tile
        if tensor not in self._in_vec_now:
            moved = self._made_by(
                "tile.move", [tile], span, f"{name}_Vec", target_memory=MemorySpace.Vec
            )
            converted = self._converted(moved, type_.dtype, span)
            self._in_vec_now[tensor] = self._fitted(converted, type_, span, name)
        return self._in_vec_now[tensor]

    def _converted(self, tile: Expr, dtype: DType, span: Span) -> Expr:
        """Return a tile in another dtype, as the accumulator's numbers are converted on their way out."""
        if cast("TileType", tile.type).dtype is dtype:
            return tile
        name = f"{_name(tile)}_{dtype.name}"
        return self._made_by("tile.cast", [tile], span, name, target_type=dtype, mode=CastMode.rint)

    def _fitted(self, tile: Expr, type_: TensorType, span: Span, name: str) -> Expr:
        """Return a tile with the physical extents of the one that stands for a tensor."""
        wanted, found = vector_tile(type_), cast("TileType", tile.type)
        had, room = constant_dims(found.shape), constant_dims(wanted.shape)
        assert had is not None
        assert room is not None
        if had == room:
            return tile
        if all(a >= b for a, b in zip(had, room, strict=True)):
            args = [tile, list(wanted.shape), [0] * len(had)]
            return self._made_by("tile.slice", args, span, f"{name}_fit")
        stored = self._kept(tile, type_, span, name)
        return self._assigned(f"{name}_fit", self._loaded(stored, wanted, span))

    # ------------------------------------------------------------------- global memory

    def _kept(self, tile: Expr, type_: TensorType, span: Span, name: str) -> Var:
        """Store a tile into a tensor that is no output; return that."""
        wanted = TensorType(type_.shape, type_.dtype)
        key = tile if isinstance(tile, Var) else Var(name, type_, span)
        if key in self._places.scratch and self._places.scratch[key].type != wanted:
            key = Var(name, type_, span)
        param = self._places.new_scratch(key, name, wanted)
        store = self._store_into(tile, [0] * len(type_.shape), param, span)
        return self._assigned(param.name_hint, store)

    def _in_memory(self, tensor: Expr, span: Span) -> Expr:
        """Return a tensor, or a window, as one that lies row by row in global memory.

        A tensor of the function's own is stored where it is not yet.
        """
        if isinstance(tensor, Var) and tensor not in self._made.tiles:
            type_ = cast("TensorType", tensor.type)
            if tensor not in self._windows and type_.layout is TensorLayout.ND and not type_.stride:
                return self.visit_expr(tensor)
        if isinstance(tensor, Var) and tensor in self._tensors:
            return self._tensors[tensor]
        tile = self._in_vec(tensor, span)
        return self._kept(tile, cast("TensorType", tensor.type), span, _name(tensor))

    # ------------------------------------------------------------------- the cube

    def _in_mat(self, tensor: Expr, form: CubeForm, span: Span, *, turned: bool = False) -> Expr:
        """Return a matrix as a tile in Mat, for a matmul of plain dtypes.

        Args:
            tensor: A tensor, or a window.
            form: Which operand it is.
            span: Where it is needed.
            turned: Whether its rows are the operand's columns.
        """
        type_, name = cast("TensorType", tensor.type), _name(tensor)
        extents(type_, repr(name), span)
        dims = type_.shape[::-1] if turned else type_.shape
        wanted = cube_tile(dims, type_.dtype, form)
        if isinstance(tensor, Var) and tensor in self._made.tiles:
            tile = self.visit_expr(tensor)
            found = cast("TileType", tile.type)
            if found.dtype is not type_.dtype or found.memory_space is MemorySpace.Acc:
                tile = self._in_vec(tensor, span)
                found = cast("TileType", tile.type)
            if not turned and constant_dims(found.shape) == constant_dims(wanted.shape):
                return self._made_by(
                    "tile.move", [tile], span, f"{name}_Mat", target_memory=MemorySpace.Mat
                )
            tensor = self._in_memory(tensor, span)
        if not turned:
            return self._assigned(f"{name}_tile", self._loaded(tensor, wanted, span))
        window = self._placed(tensor, tuple(index(0) for _ in type_.shape))
        source = self._as_tensor(window.source)
        view = self._made_by(
            "tensor.view", [source], span, f"{name}_turned", layout=TensorLayout.DN
        )
        args = [view, list(window.offset[::-1]), list(wanted.shape), list(wanted.valid_shape)]
        return self._made_by("tile.load", args, span, f"{name}_tile")


def _name(expr: Expr) -> str:
    return expr.name_hint if isinstance(expr, Var) else "operand"


def elements(expr: Expr) -> tuple[Expr, ...]:
    """Return the elements of a list that an op takes."""
    assert isinstance(expr, MakeTuple), expr
    return expr.elements
