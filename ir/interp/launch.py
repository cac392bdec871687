"""Starting a program: choosing the entry, binding inputs, calling functions, naming outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..binding import (
    SCRATCH_OUTPUTS,
    Bound,
    BoundTensor,
    bind_inputs,
    natural_type,
    result_name,
    source_name,
    tensor_shape,
    to_array,
)
from ..core import AssignStmt, FunctionType, ParamDirection, Program
from ..dynamic_dims import with_bound_dims
from ..errors import InputError, IRTypeError, IRValueError
from ..expr import Call, Expr, ScalarType, Submit
from ..given import NamedArrays
from ..mx_uses import CompoundUses
from ..node_check import check_nodes
from ..numerics.elements import Summation
from ..numerics.mxarray import MXArray
from ..ops.row import describe_type
from ..ops.values import Progress, TensorValue
from ..suggest import near
from ..tensor_roots import TensorRoots, returned_params
from ..types import TensorType, constant_dims
from ..verification.structure import CORE_TYPES
from ..verification.walk import statements
from .budget import Budget
from .frame import Frame, Returned, Value

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    import numpy.typing as npt

    from ..core import Function

_DEEPEST_CALL = 64


def interpret_program(
    program: Program,
    inputs: Mapping[str, Any],
    *,
    entry: str | None = None,
    sum: str = "group",  # noqa: A002 - the public name of the choice
    bind: Mapping[str, int] | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Run a program on numpy and return its outputs.

    The program may be as it was written or as it stands after any pass.

    Args:
        program: What is run.
        inputs: Parameter name to array or number; see :mod:`scalebox.ir.binding`.
        entry: The function that is launched; by default the only Orchestration function, else the
            only function.
        sum: `"group"` or `"sequential"`, the order in which matmuls add up.
        bind: Extents of dynamic dimensions by name, for those that no array has.

    Returns:
        Arrays by the name of the Out parameter; a fresh result by the name it was returned under,
        else `out`. A tensor that is an output already, as an Out parameter or one that a kernel
        creates to write into is, does not count again when it is returned once more.

    Raises:
        InputError: For inputs that do not fit the parameters, or an unknown entry.
        IRValueError: For a value that the program must not have, with its place in the kernel.
    """
    check_nodes(program)
    order = Summation.of(sum).value
    function = select_entry(program, entry)
    program = with_bound_dims(program, function, inputs, bind)
    function = select_entry(program, function.name)
    axes = CompoundUses(program).grouped_axes(function)
    bound = bind_inputs(function, inputs, grouped_axes=axes)
    values: list[Value] = [_value(bound[source_name(param)]) for param in function.params]
    returned = _Runner(program, order, function.name).run(function, values)
    outputs = NamedArrays()
    buffers: list[object] = []
    scratch = function.attrs.get(SCRATCH_OUTPUTS, ())
    for param, direction, value in zip(
        function.params, function.param_directions, values, strict=True
    ):
        if direction is not ParamDirection.In and isinstance(param.type, TensorType):
            if param.name_hint in scratch:
                continue
            outputs[source_name(param)] = to_array(BoundTensor(value.buffer, param.type))
            buffers.append(value.buffer)
    kernels_own = _created(function) if function.func_type in CORE_TYPES else ()
    for expr, value in zip(returned.exprs, returned.values, strict=True):
        if isinstance(value, TensorValue) and any(value.buffer is seen for seen in buffers):
            continue
        outputs[_free_name(result_name(expr) or "out", outputs)] = _result(expr, value)
        if expr in kernels_own and isinstance(value, TensorValue):
            buffers.append(value.buffer)
    return outputs


def _created(function: Function) -> Container[Expr]:
    """Return the names of the tensors that a function creates in global memory to write into."""
    sources = [
        stmt.var
        for stmt in statements(function.body)
        if isinstance(stmt, AssignStmt)
        and isinstance(stmt.value, Call)
        and stmt.value.op.name == "tensor.create"
    ]
    found = TensorRoots(sources)
    found.follow(function.body)
    return found.roots


def select_entry(program: Program, entry: str | None = None) -> Function:
    """Return the function that is launched.

    Raises:
        InputError: When there is none of that name, or none is given and there are several.
    """
    functions = list(program.functions.values())
    whole = [f for f in functions if f.func_type is not FunctionType.Inline] or functions
    names = [function.name for function in functions]
    if entry is not None:
        is_name = isinstance(entry, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        found = program.get_function(entry) if is_name else None
        if found is None:
            message = f"entry must name a function of the program, not {entry!r}"
            raise InputError(message, hint=near(entry, names))
        return found
    candidates = [f for f in functions if f.func_type is FunctionType.Orchestration] or whole
    if len(candidates) != 1:
        message = (
            "entry must be given when a program has not exactly one Orchestration function or one "
            f"function, but {len(candidates)}"
        )
        raise InputError(message, hint=f"valid here: {', '.join(f.name for f in candidates)}")
    return candidates[0]


def _value(bound: Bound) -> Value:
    return _tensor_value(bound.codes, bound.type) if isinstance(bound, BoundTensor) else bound


def _tensor_value(buffer: npt.NDArray[Any], type_: TensorType) -> TensorValue:
    shape = tensor_shape(type_, "A tensor")
    stride = constant_dims(type_.stride) or ()
    return TensorValue(buffer, type_.dtype, shape, type_.layout, stride)


def _free_name(name: str, taken: Mapping[str, object]) -> str:
    free, count = name, 1
    while free in taken:
        free, count = f"{name}_{count}", count + 1
    return free


def _result(expr: Expr, value: Value) -> npt.NDArray[Any]:
    if isinstance(value, TensorValue):
        assert isinstance(expr.type, TensorType), expr.type
        return to_array(BoundTensor(value.buffer, expr.type))
    if isinstance(expr.type, ScalarType):
        return np.asarray(value, dtype=natural_type(expr.type.dtype))
    found = describe_type(expr)
    if isinstance(value, MXArray):
        found = f"{found} of {value.dtype.name}"
    message = f"A function that is launched must return tensors or scalars, not {found}"
    raise IRTypeError(message, expr.span)


class _Runner:
    """Calls functions of one program."""

    def __init__(self, program: Program, sum_order: str, entry: str) -> None:
        self._program = program
        self._sum = sum_order
        self._depth = 0
        self.progress = Progress()
        self.budget = Budget(entry)

    def run(self, function: Function, values: list[Value]) -> Returned:
        """Run a function on argument values."""
        frame = Frame(dict(zip(function.params, values, strict=True)), self, self._sum)
        self._depth += 1
        if function.func_type in CORE_TYPES:
            with self.budget.kernel(function.name, function.span):
                signal = frame.run(function.body)
        else:
            signal = frame.run(function.body)
        self._depth -= 1
        return signal if isinstance(signal, Returned) else Returned((), ())

    def call(self, call: Call | Submit, values: list[Value]) -> tuple[Value, ...]:
        """Run the function that a call names and return its results."""
        function = self._callee(call, values)
        name = function.name
        if self._depth >= _DEEPEST_CALL:
            message = f"Calls must not nest deeper than {_DEEPEST_CALL}, as those of {name} do"
            raise IRValueError(message, call.span)
        arguments = [
            self._argument(call, param.name_hint, param.type, value)
            for param, value in zip(function.params, values, strict=True)
        ]
        return self.run(function, arguments).values

    def leave_out(self, submit: Submit, values: list[Value]) -> tuple[Value, ...]:
        """Return the results of a launch that does not take place: its outputs as they are."""
        function = self._callee(submit, values)
        numbers = returned_params(function, self._program)
        if None in numbers:
            message = (
                "A launch with a predicate must be of a function that returns its outputs, but "
                f"{function.name} returns something else"
            )
            raise IRTypeError(message, submit.span)
        return tuple(values[number] for number in numbers if number is not None)

    def _callee(self, call: Call | Submit, values: list[Value]) -> Function:
        name = call.op.name
        function = self._program.get_function(name)
        if function is None:
            names = [f.name for f in self._program.functions.values()]
            message = f"{name!r} must name a function of the program"
            raise IRValueError(message, call.span, hint=near(name, names))
        if len(values) != len(function.params):
            message = f"{name} takes {len(function.params)} arguments, not {len(values)}"
            raise IRTypeError(message, call.span)
        return function

    def _argument(self, call: Call | Submit, name: str, type_: Any, value: Value) -> Value:
        """Return a tensor argument as the callee's parameter looks at it."""
        if isinstance(type_, TensorType) and isinstance(value, MXArray):
            _check_array(call, name, type_, value)
        if not isinstance(type_, TensorType) or not isinstance(value, TensorValue):
            return value
        shape = tensor_shape(type_, name)
        wanted, found = (type_.dtype, shape, type_.layout), (value.dtype, value.shape, value.layout)
        if wanted != found:
            message = f"{name} of {call.op.name} must be {_tell(*wanted)}, not {_tell(*found)}"
            raise IRTypeError(message, call.span)
        return _tensor_value(value.buffer, type_) if type_.stride else value


def _check_array(call: Call | Submit, name: str, type_: TensorType, value: MXArray) -> None:
    shape = tensor_shape(type_, name)
    if (type_.dtype, shape) != (value.dtype, value.shape):
        wanted, found = (
            f"{dtype.name} [{', '.join(map(str, dims))}]"
            for dtype, dims in ((type_.dtype, shape), (value.dtype, value.shape))
        )
        message = f"{name} of {call.op.name} must be {wanted}, not {found}"
        raise IRTypeError(message, call.span)


def _tell(dtype: Any, shape: tuple[int, ...], layout: Any) -> str:
    return f"{dtype.name} [{', '.join(map(str, shape))}] in {layout.name}"
