"""Passes: functions from program to program, one file each, and the list that orders them.

`passes.block_mx_scale_tensor_views()(program)`: a factory a pass, named in snake case.
"""

from __future__ import annotations

from ..properties import IRProperty, IRPropertySet
from .allocate_memory_addr import AllocateMemoryAddr
from .auto_tile_matmul_l0 import AutoTileMatmulL0
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
from .block_nz_tensor_views import BlockNzTensorViews
from .canonicalize_io_order import CanonicalizeIOOrder
from .convert_tensor_to_tile_ops import ConvertTensorToTileOps
from .convert_to_ssa import ConvertToSSA
from .copy_carried_tiles import CopyCarriedTiles
from .copy_changed_tiles import CopyChangedTiles
from .expand_compound_tensors import ExpandCompoundTensors
from .flatten_call_expr import FlattenCallExpr
from .flatten_tile_nd_to_2d import FlattenTileNdTo2D
from .fold_tensor_dims import FoldTensorDims
from .infer_tile_memory_space import InferTileMemorySpace
from .init_mem_ref import InitMemRef
from .inline_functions import InlineFunctions
from .insert_mx_scale_addr import InsertMxScaleAddr
from .instruments import (
    RoundTripInstrument,
    Stage,
    StagesInstrument,
    TimingInstrument,
    make_roundtrip_instrument,
    stage_diff,
)
from .legalize_element_access import LegalizeElementAccess
from .legalize_quant_mx import LegalizeQuantMx
from .legalize_tile_cast import LegalizeTileCast
from .legalize_tile_slice import LegalizeTileSlice
from .lower_pipeline_loops import LowerPipelineLoops
from .lower_slots import LowerSlots
from .materialize_semantic_aliases import MaterializeSemanticAliases
from .materialize_tensor_strides import MaterializeTensorStrides
from .memory_reuse import MemoryReuse
from .normalize_stmt_structure import NormalizeStmtStructure
from .outline_scopes import OutlineScopes
from .pipeline import PassPipeline, default_pipeline
from .run_verifier import run_verifier
from .unroll_loops import UnrollLoops

allocate_memory_addr = AllocateMemoryAddr
auto_tile_matmul_l0 = AutoTileMatmulL0
block_mx_scale_tensor_views = BlockMxScaleTensorViews
block_nz_tensor_views = BlockNzTensorViews
canonicalize_io_order = CanonicalizeIOOrder
convert_tensor_to_tile_ops = ConvertTensorToTileOps
convert_to_ssa = ConvertToSSA
copy_carried_tiles = CopyCarriedTiles
copy_changed_tiles = CopyChangedTiles
expand_compound_tensors = ExpandCompoundTensors
flatten_call_expr = FlattenCallExpr
flatten_tile_nd_to_2d = FlattenTileNdTo2D
fold_tensor_dims = FoldTensorDims
infer_tile_memory_space = InferTileMemorySpace
init_mem_ref = InitMemRef
inline_functions = InlineFunctions
insert_mx_scale_addr = InsertMxScaleAddr
legalize_element_access = LegalizeElementAccess
legalize_quant_mx = LegalizeQuantMx
legalize_tile_cast = LegalizeTileCast
legalize_tile_slice = LegalizeTileSlice
lower_pipeline_loops = LowerPipelineLoops
lower_slots = LowerSlots
materialize_semantic_aliases = MaterializeSemanticAliases
materialize_tensor_strides = MaterializeTensorStrides
memory_reuse = MemoryReuse
normalize_stmt_structure = NormalizeStmtStructure
outline_scopes = OutlineScopes
unroll_loops = UnrollLoops

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
    "auto_tile_matmul_l0",
    "block_mx_scale_tensor_views",
    "block_nz_tensor_views",
    "canonicalize_io_order",
    "convert_tensor_to_tile_ops",
    "convert_to_ssa",
    "copy_carried_tiles",
    "copy_changed_tiles",
    "create_function_pass",
    "create_program_pass",
    "default_pipeline",
    "expand_compound_tensors",
    "flatten_call_expr",
    "flatten_tile_nd_to_2d",
    "fold_tensor_dims",
    "infer_tile_memory_space",
    "init_mem_ref",
    "inline_functions",
    "insert_mx_scale_addr",
    "legalize_element_access",
    "legalize_quant_mx",
    "legalize_tile_cast",
    "legalize_tile_slice",
    "lower_pipeline_loops",
    "lower_slots",
    "make_roundtrip_instrument",
    "materialize_semantic_aliases",
    "materialize_tensor_strides",
    "memory_reuse",
    "normalize_stmt_structure",
    "outline_scopes",
    "run_verifier",
    "stage_diff",
    "unroll_loops",
]
