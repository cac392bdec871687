"""What becomes of each op on whole tensors: loads, ops on tiles, and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..binding import source_name
from ..errors import IRValueError
from ..expr import Call, Expr, MakeTuple, Op, Var, index, replace
from ..ops import ROWS, create_op_call
from ..types import MemorySpace, TensorType, TileType, constant_dim
from .made_tensors import (
    ASSEMBLE,
    MX_PRODUCTS,
    PLAIN_PRODUCTS,
    QUANTISE,
    READ,
    TILE_OPS,
    WRITE,
)
from .tensor_operands import OperandLowering, elements
from .tile_forms import CubeForm, cube_tile, extents, is_whole, vector_tile

if TYPE_CHECKING:
    from ..errors import Span
    from ..types import Dims

_RANK = 2
_TURNED = ("a_trans", "b_trans")


class CallLowering(OperandLowering):
    """Rewrites the calls of ops on tensors."""

    def visit_call(self, op: Call) -> Expr:
        """Return a call on tiles in the place of one on tensors."""
        match op.op:
            case Op(name) if name == QUANTISE or name in MX_PRODUCTS:
                return self._on_exact_tiles(op)
            case Op(name) if name in PLAIN_PRODUCTS:
                return self._product(op)
            case Op("tensor.reshape"):
                return self._reshape(op)
            case Op("tensor.transpose"):
                return self._transpose(op)
            case Op("tensor.concat"):
                return self._concat(op)
            case Op("tensor.full"):
                return self._full(op)
            case Op("tensor.fillpad"):
                return self._filled(op, self._in_vec(op.args[0], op.span), op.kwargs)
            case Op(name) if name in TILE_OPS:
                return self._on_vectors(op)
            case Op(name) if name == ASSEMBLE:
                return self._assemble(op)
            case Op(name) if name == READ:
                return self._read(op)
            case Op(name) if name == WRITE:
                return self._write(op)
            case Op("tile.load") if op.args[0] in self._windows:
                return self._load_of_window(op)
            case _:
                args = tuple(self._as_tensor(arg) for arg in op.args)
                same = all(a is b for a, b in zip(args, op.args, strict=True))
                return op if same else replace(op, args=args)

    def _load_of_window(self, op: Call) -> Call:
        """Return a load from a window as one from the tensor that the window is cut from."""
        tensor, offset, shapes, valid = (op.args[0], *map(self.visit_expr, op.args[1:]))
        window, part = self._placed(tensor, elements(offset)), elements(valid)
        if op.kwargs.get("clamp"):
            window, part = self._clamped(tensor, elements(offset), part)
        source, place = self._as_tensor(window.source), MakeTuple(window.offset, offset.span)
        return replace(op, args=(source, place, shapes, MakeTuple(part, valid.span)))

    # ------------------------------------------------------------------- the vector core

    def _on_vectors(self, op: Call) -> Call:
        """Return the op on the tiles that stand for its tensors."""
        args = [
            self._in_vec(arg, op.span) if isinstance(arg.type, TensorType) else self.visit_expr(arg)
            for arg in op.args
        ]
        done = create_op_call(TILE_OPS[op.op.name], args, op.kwargs, op.span)
        return self._in_form(replace(done, attrs=op.attrs), op)

    def _in_form(self, done: Call, op: Call) -> Call:
        """Return a call whose result has the form that stands for the result of `op`."""
        type_ = cast("TensorType", op.type)
        wanted = vector_tile(type_)
        if done.type == wanted:
            return done
        made = self._assigned("made", done)
        fitted = self._fitted(made, type_, op.span, "made")
        if fitted is made:
            return self._valid(made, wanted, op.span)
        return self._taken_back(fitted)

    def _taken_back(self, var: Expr) -> Call:
        """Return the call of the assignment that was inserted last, in place of its variable."""
        last = self._inserted.pop()
        assert getattr(last, "var", None) is var, last
        return cast("Call", getattr(last, "value", None))

    def _valid(self, tile: Expr, wanted: TileType, span: Span) -> Call:
        """Return a tile of which only what stands for a tensor is valid."""
        if len(wanted.shape) != _RANK:
            message = "A tensor must have rank 2 where its last extent is no multiple of 32"
            raise IRValueError(message, span)
        return create_op_call("tile.set_validshape", [tile, *wanted.valid_shape], {}, span)

    def _full(self, op: Call) -> Call:
        wanted = vector_tile(cast("TensorType", op.type))
        args = [list(wanted.shape), self.visit_expr(op.args[1])]
        return self._in_form(create_op_call("tile.full", args, op.kwargs, op.span), op)

    def _filled(self, op: Call, tile: Expr, kwargs: Any) -> Call:
        """Return a tile filled up beyond what is valid of it, to the result of `op`."""
        kept = {"pad_value": kwargs["pad_value"]} if "pad_value" in kwargs else {}
        return self._in_form(create_op_call("tile.fillpad", [tile], kept, op.span), op)

    def _cut(self, op: Call) -> Expr:
        """Return the load of a window that is a tensor of its own from here on."""
        source, shape, offset, *valid = op.args
        window = self._placed(source, elements(self.visit_expr(offset)))
        dropped: tuple[int, ...] = op.kwargs.get("drop_dims", ())
        whole = TensorType(elements(shape), cast("TensorType", op.type).dtype)
        row = ROWS["tensor.slice"]
        clamps = bool(row.attribute(op.kwargs, "clamp"))
        tile = vector_tile(whole)
        part = elements(self.visit_expr(valid[0])) if valid else whole.shape
        if clamps:
            window, part = self._clamped(source, elements(self.visit_expr(offset)), part)
        tensor, at = self._in_two_axes(window, op.span)
        part = part if len(part) > 1 else (index(1), *part)
        args = [tensor, list(at), list(tile.shape), list(part)]
        kwargs = {"target_memory": MemorySpace.Vec, "clamp": clamps}
        loaded = create_op_call("tile.load", args, kwargs, op.span)
        if not dropped:
            if "pad_value" in op.kwargs:
                return self._filled(op, self._assigned("window", loaded), op.kwargs)
            return loaded
        made: Expr = self._assigned("window", loaded)
        if "pad_value" in op.kwargs:
            inner = Call(op.op, op.args, op.kwargs, whole, op.span)
            made = self._assigned("window", self._filled(inner, made, op.kwargs))
        return self._reshaped(made, whole, op)

    # ------------------------------------------------------------------- other shapes

    def _reshape(self, op: Call) -> Call:
        source = op.args[0]
        type_, result = cast("TensorType", source.type), cast("TensorType", op.type)
        is_made = isinstance(source, Var) and source in self._made.tiles
        flat = len(type_.shape) <= _RANK and len(result.shape) <= _RANK
        if is_made and flat:
            return self._reshaped(self._in_vec(source, op.span), type_, op)
        memory = self._in_memory(source, op.span)
        return self._viewed(memory, op)

    def _reshaped(self, tile: Expr, type_: TensorType, op: Call) -> Call:
        """Return a tile that stands for a tensor in the shape of the result of `op`."""
        result = cast("TensorType", op.type)
        ranks = {len(type_.shape), len(result.shape)}
        if is_whole(vector_tile(type_)) and is_whole(vector_tile(result)) and max(ranks) <= _RANK:
            shape = list(vector_tile(result).shape)
            return create_op_call("tile.reshape", [tile, shape], {}, op.span)
        return self._viewed(self._kept(tile, type_, op.span, "reshaped"), op)

    def _viewed(self, memory: Expr, op: Call) -> Call:
        """Return the load of a tensor in global memory in the shape of the result of `op`."""
        result = cast("TensorType", op.type)
        view = self._made_by("tensor.view", [memory, list(result.shape)], op.span, "view")
        return self._loaded(view, vector_tile(result), op.span)

    def _transpose(self, op: Call) -> Call:
        source, result = op.args[0], cast("TensorType", op.type)
        if len(result.shape) != _RANK:
            message = f"tensor.transpose must be of rank 2 to be compiled, not {len(result.shape)}"
            hint = "pl.slice with drop_dims takes one matrix after another"
            raise IRValueError(message, op.span, hint=hint)
        type_ = cast("TensorType", source.type)
        rows, columns = extents(type_)
        wanted = vector_tile(result)
        height = constant_dim(wanted.shape[1])
        if height == rows:
            tile = self._in_vec(source, op.span)
        else:
            # The rows of the source become the columns of the result, which are rounded up.
            memory = self._in_memory(source, op.span) if self._is_tile(source) else source
            turned = TensorType((index(columns), index(rows)), type_.dtype)
            width = vector_tile(type_).shape[1]
            padded = cube_tile(type_.shape, type_.dtype, CubeForm.RHS, MemorySpace.Vec)
            assert constant_dim(padded.shape[0]) == constant_dim(vector_tile(turned).shape[1])
            if constant_dim(width) != constant_dim(padded.shape[1]):
                return self._viewed(self._in_memory(source, op.span), op)
            tile = self._assigned("padded", self._loaded(memory, padded, op.span))
        done = create_op_call("tile.transpose", [tile], op.kwargs, op.span)
        return self._in_form(done, op)

    def _is_tile(self, tensor: Expr) -> bool:
        return isinstance(tensor, Var) and tensor in self._made.tiles

    def _concat(self, op: Call) -> Call:
        left, right = op.args
        a, b = self._in_vec(left, op.span), self._in_vec(right, op.span)
        first, second = cast("TensorType", left.type), cast("TensorType", right.type)
        # The rows of a column lie packed, so it is no part of a wider tile.
        has_rows = extents(first)[-1] > 1 and extents(second)[-1] > 1
        if is_whole(vector_tile(first)) and has_rows:
            return self._in_form(create_op_call("tile.concat", [a, b], {}, op.span), op)
        type_ = cast("TensorType", op.type)
        made = self._kept(a, type_, op.span, "joined")
        at = [0] * (len(type_.shape) - 1) + [extents(first)[-1]]
        both = self._assigned("joined", self._store_into(b, at, made, op.span))
        return self._loaded(both, vector_tile(type_), op.span)

    # ------------------------------------------------------------------- elements and windows

    def _read(self, op: Call) -> Call:
        source, at = op.args[0], elements(self.visit_expr(op.args[1]))
        if self._is_tile(source):
            place = [index(0), *at] if len(at) == 1 else list(at)
            tile = self._in_vec(source, op.span)
            return create_op_call("tile.read", [tile, place], {}, op.span)
        tensor, offset = self._in_two_axes(self._placed(source, at), op.span)
        args = [tensor, list(offset), [1] * len(offset)]
        loaded = self._made_by("tile.load", args, op.span, "element", target_memory=MemorySpace.Vec)
        return create_op_call("tile.read", [loaded, [0] * len(offset)], {}, op.span)

    def _write(self, op: Call) -> Call:
        target, at, value = op.args
        type_ = cast("TensorType", target.type)
        args = [[1] * max(_RANK, len(type_.shape)), self.visit_expr(value)]
        tile = self._made_by("tile.full", args, op.span, "element", dtype=type_.dtype)
        offset = elements(self.visit_expr(at))
        store = self._store_into(tile, offset, self._as_tensor(target), op.span)
        return replace(store, attrs=op.attrs)

    def _assemble(self, op: Call) -> Call:
        target, source, offset = op.args
        dtype = cast("TensorType", target.type).dtype
        tile = self._visited(source)
        if tile is None or tile.memory_space is not MemorySpace.Acc:
            made = self._in_vec(source, op.span)
            stored = self._converted(made, dtype, op.span)
        else:
            stored = self.visit_expr(source)
        at = elements(self.visit_expr(offset))
        store = self._store_into(stored, at, self._as_tensor(target), op.span)
        return replace(store, attrs=op.attrs)

    def _visited(self, tensor: Expr) -> TileType | None:
        """Return the tile type of a tensor that is made here; None for another one."""
        if not self._is_tile(tensor):
            return None
        return cast("TileType", self.visit_expr(tensor).type)

    # ------------------------------------------------------------------- the cube

    def _product(self, op: Call) -> Call:
        args, done = list(op.args), list[Expr]()
        if op.op.name == "tensor.matmul_acc":
            done.append(self._acc(op, args.pop(0)))
        pairs = zip(args, (CubeForm.LHS, CubeForm.RHS), _TURNED, strict=False)
        for arg, form, flag in pairs:
            done.append(self._in_mat(arg, form, op.span, turned=bool(op.kwargs.get(flag))))
        for extra in args[2:]:
            is_bias = isinstance(extra.type, TensorType)
            done.append(
                self._in_mat(extra, CubeForm.BIAS, op.span) if is_bias else self.visit_expr(extra)
            )
        return replace(create_op_call(TILE_OPS[op.op.name], done, {}, op.span), attrs=op.attrs)

    def _on_exact_tiles(self, op: Call) -> Call:
        """Return an op on tiles that have the shapes of its tensors: block-scaled operands."""
        args, done = list(op.args), list[Expr]()
        if op.op.name == "tensor.matmul_mx_acc":
            done.append(self._acc(op, args.pop(0)))
        space = MemorySpace.Vec if op.op.name == QUANTISE else MemorySpace.Mat
        done += [self._exact(arg, space, op.span) for arg in args]
        return replace(
            create_op_call(TILE_OPS[op.op.name], done, op.kwargs, op.span), attrs=op.attrs
        )

    def _begun(self, op: Call, tile: TileType) -> Call:
        """Return an accumulator that a loop is to sum up in, for a tensor that was created for it."""
        kwargs = {"dtype": tile.dtype, "target_memory": MemorySpace.Acc}
        whole = create_op_call("tile.create", [list(tile.shape)], kwargs, op.span)
        if is_whole(tile):
            return whole
        return self._valid(self._assigned("sum", whole), tile, op.span)

    def _acc(self, op: Call, acc: Expr) -> Expr:
        tile = self._visited(acc)
        if tile is not None and tile.memory_space is MemorySpace.Acc:
            return self.visit_expr(acc)
        name = repr(source_name(acc)) if isinstance(acc, Var) else "it"
        message = (
            f"{op.op.name}: acc must be a product of this function to be compiled, which {name} is "
            "not: nothing is loaded into the accumulator"
        )
        short = op.op.name.removeprefix("tensor.").removesuffix("_acc")
        raise IRValueError(message, op.span, hint=f"pl.{short} starts an accumulator")

    def _exact(self, tensor: Expr, space: MemorySpace, span: Span) -> Expr:
        """Return a tensor as a tile of its shape, loaded to `space` or moved to it."""
        type_ = cast("TensorType", tensor.type)
        name = tensor.name_hint if isinstance(tensor, Var) else "operand"
        tile = self._visited(tensor)
        if tile is None:
            extents(type_, repr(name), span)
            wanted: Dims = type_.shape
            window = self._placed(tensor, tuple(index(0) for _ in wanted))
            args = [self._as_tensor(window.source), list(window.offset), list(wanted)]
            unplaced = space is MemorySpace.Mat and not type_.layout.is_mx
            places: dict[str, Any] = {} if unplaced else {"target_memory": space}
            return self._made_by("tile.load", args, span, f"{name}_tile", **places)
        made = self.visit_expr(tensor)
        if tile.dtype is not type_.dtype:
            made = self._in_vec(tensor, span)
            tile = cast("TileType", made.type)
        if tile.memory_space is space:
            return made
        view = tile.get_effective_tile_view()
        kwargs: dict[str, Any] = {"target_memory": space}
        if type_.layout.is_mx:
            kwargs |= {"blayout": view.blayout, "slayout": view.slayout}
        return self._made_by("tile.move", [made], span, f"{name}_{space.name}", **kwargs)
