"""The one list of passes, in order, each with the reason for its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .allocate_memory_addr import AllocateMemoryAddr
from .auto_tile_matmul_l0 import AutoTileMatmulL0
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
from .unroll_loops import UnrollLoops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core import Program
    from .base import Pass


@dataclass
class PassPipeline:
    """Passes run one after another."""

    passes: list[Pass] = field(default_factory=list["Pass"])

    def add_pass(self, each: Pass) -> PassPipeline:
        """Append a pass and return the pipeline."""
        self.passes.append(each)
        return self

    def run(self, program: Program) -> Program:
        """Return the program after all passes."""
        for each in self.passes:
            program = each(program)
        return program

    def get_pass_names(self) -> list[str]:
        """Return the passes' names in order."""
        return [each.name for each in self.passes]

    def __call__(self, program: Program) -> Program:
        """Return the program after all passes."""
        return self.run(program)

    def __iter__(self) -> Iterator[Pass]:
        return iter(self.passes)


def default_pipeline(*, allow_mx_store: bool = False) -> PassPipeline:
    """Return the passes that prepare a program for code generation."""
    return PassPipeline(
        [
            InlineFunctions(),  # bodies come to where they are called, with loops to unroll in them
            FoldTensorDims(),  # bounds of loops and valid shapes are constants before anybody needs them
            UnrollLoops(),  # copies assign the same names again: before each has one definition
            LowerSlots(),  # a loop over slots is pipelined: before later passes look at loops
            ConvertToSSA(),  # every later pass follows a value to its one definition
            NormalizeStmtStructure(),  # later passes insert statements beside others
            FlattenCallExpr(),  # an operand is then a variable, with a type to rewrite
            OutlineScopes(),  # later passes know functions only, and what a core runs by its type
            ExpandCompoundTensors(),  # a use decides the grouped axis: while functions call each other
            ConvertTensorToTileOps(),  # whole tensors are gone before anything looks at tiles
            LegalizeTileSlice(),  # windows of tiles of any rank, before those are flat
            FlattenTileNdTo2D(),  # all tiles are there; from here on each has rows and columns
            BlockNzTensorViews(),  # needs flat tiles: a window of boxes makes rows and columns
            BlockMxScaleTensorViews(  # before anything that needs the scales' physical form
                allow_mx_store=allow_mx_store
            ),
            LegalizeElementAccess(),  # tiles of one element have to be placed,
            LegalizeQuantMx(),  # and so have those of the steps of a quantisation
            LegalizeTileCast(),  # each step of a chain is a tile that has to be placed
            AutoTileMatmulL0(),  # while what the kernel left unplaced can still be told
            InferTileMemorySpace(),  # moves appear that the kernel left out
            InsertMxScaleAddr(),  # needs every operand placed; once for each consumer
            LowerPipelineLoops(),  # after binding, so that each copy binds its own scales
            CanonicalizeIOOrder(),  # loads of all copies first, while the loop is still known
            MaterializeTensorStrides(),  # blocked shapes are final: strides follow
            CopyChangedTiles(),  # every op that changes a tile in place is there
            CopyCarriedTiles(),  # the last names of tiles: buffers follow from them
            InitMemRef(),  # all tiles exist: each gets a buffer
            MaterializeSemanticAliases(),  # carried tiles share one, before lifetimes are measured
            MemoryReuse(),  # only where a memory would overflow
            AllocateMemoryAddr(),  # addresses at last; capacity is checked here
        ]
    )
