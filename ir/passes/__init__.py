"""Passes: functions from program to program, one file each, and the list that orders them.

`passes.block_mx_scale_tensor_views()(program)`: a factory a pass, named in snake case.
"""

from __future__ import annotations

from ..properties import IRProperty, IRPropertySet
from .allocate_memory_addr import AllocateMemoryAddr
from .base import (
    CallbackInstrument,
    Instrument,
    Pass,
    PassContext,
    PassProperties,
    VerificationInstrument,
    VerificationMode,
    create_function_pass,
    create_program_pass,
)
from .block_mx_scale_tensor_views import BlockMxScaleTensorViews
from .canonicalize_io_order import CanonicalizeIOOrder
from .convert_to_ssa import ConvertToSSA
from .flatten_call_expr import FlattenCallExpr
from .infer_tile_memory_space import InferTileMemorySpace
from .init_mem_ref import InitMemRef
from .insert_mx_scale_addr import InsertMxScaleAddr
from .instruments import (
    RoundTripInstrument,
    Stage,
    StagesInstrument,
    TimingInstrument,
    make_roundtrip_instrument,
    stage_diff,
)
from .lower_pipeline_loops import LowerPipelineLoops
from .materialize_semantic_aliases import MaterializeSemanticAliases
from .materialize_tensor_strides import MaterializeTensorStrides
from .memory_reuse import MemoryReuse
from .normalize_stmt_structure import NormalizeStmtStructure
from .pipeline import PassPipeline, default_pipeline
from .run_verifier import run_verifier

allocate_memory_addr = AllocateMemoryAddr
block_mx_scale_tensor_views = BlockMxScaleTensorViews
canonicalize_io_order = CanonicalizeIOOrder
convert_to_ssa = ConvertToSSA
flatten_call_expr = FlattenCallExpr
infer_tile_memory_space = InferTileMemorySpace
init_mem_ref = InitMemRef
insert_mx_scale_addr = InsertMxScaleAddr
lower_pipeline_loops = LowerPipelineLoops
materialize_semantic_aliases = MaterializeSemanticAliases
materialize_tensor_strides = MaterializeTensorStrides
memory_reuse = MemoryReuse
normalize_stmt_structure = NormalizeStmtStructure

__all__ = [
    "CallbackInstrument",
    "IRProperty",
    "IRPropertySet",
    "Instrument",
    "Pass",
    "PassContext",
    "PassPipeline",
    "PassProperties",
    "RoundTripInstrument",
    "Stage",
    "StagesInstrument",
    "TimingInstrument",
    "VerificationInstrument",
    "VerificationMode",
    "allocate_memory_addr",
    "block_mx_scale_tensor_views",
    "canonicalize_io_order",
    "convert_to_ssa",
    "create_function_pass",
    "create_program_pass",
    "default_pipeline",
    "flatten_call_expr",
    "infer_tile_memory_space",
    "init_mem_ref",
    "insert_mx_scale_addr",
    "lower_pipeline_loops",
    "make_roundtrip_instrument",
    "materialize_semantic_aliases",
    "materialize_tensor_strides",
    "memory_reuse",
    "normalize_stmt_structure",
    "run_verifier",
    "stage_diff",
]
