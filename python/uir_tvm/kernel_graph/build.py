# SPDX-License-Identifier: Apache-2.0
"""Relax -> KernelGraph: the passes of this stage, in order."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import tvm

from ..frontend.normalize import normalize
from ..frontend.recurrence import expand
from ..frontend.sorting import expand_sorts
from ..library.library_tables import LibraryTable, library_of
from ..one_at_a_time import one_at_a_time
from ..schedule.hardware_of import model_of_target
from ..sizes.size_space import SizeSpace, reading_open_sizes
from .assembly import Assembly
from .attention import fuse_attention
from .band_masks import compare_in_place
from .channels_last import keep_channels_last
from .closed_rows import safe_softmax
from .from_relax import from_relax
from .fusion import Fusion
from .fusion_cost import FusionCost
from .grouped import GroupedProgram
from .integer_products import gather_integer_products
from .kept_state import keep_state
from .kept_zeros import keep_zeros
from .kernel_maker import KernelMaker
from .legalize import lowering_for
from .library_attention import match_attention
from .library_chain import chain_convolutions
from .library_match import match_library
from .library_sort import take_sorts, takes_sort
from .nodes import KernelGraph
from .operator_traffic import kernel_reads
from .patterns import drop_neutral, recognise_functions
from .precision import narrowed
from .program import Program
from .quantized_weights import gather_products
from .recurrence import takes
from .storage import place
from .weights import lay_out_weights
from .widen import widen

# Rewrites of the program before any operator is placed: before the library takes parts of what they look for.
REWRITES: tuple[Callable[[Program], None], ...] = (recognise_functions, safe_softmax)


@one_at_a_time
def build(
    mod: tvm.IRModule,
    target: str | tvm.target.Target = "llvm",
    *,
    fuse: bool = True,
    fast_math: bool = False,
    faults: str = "raise",
    precision: str = "float32",
    activation: str = "exact",
    convolution: str = "fast",
    fusion: str = "priced",
    attention: str = "auto",
    normalized: bool = False,
) -> KernelGraph:
    """Map a model to kernels.

    Parameters
    ----------
    mod : tvm.IRModule
        A Relax function ``main``, straight-line, static shapes; constants bound.
    target : str or Target
        Its keys choose the library (`uir_tvm.library.library_tables`).
    fuse : bool
        Whether operators share kernels.  Without, every operator that the model is written in is a kernel of
        its own, but for the bias of a product, which libraries add; views are free.
    fast_math : bool
        Whether x * 0 is 0 of NaN and infinity too, and a zero's sign is of no account.
    faults : str
        What becomes of a fault of ours while a kernel is merged (`CompileOptions.faults`): ``raise``, or
        ``fall back`` to a kernel for each of its operators.
    precision : str
        What contractions of float32 are computed in (`CompileOptions.precision`).
    activation : str
        What products with packed weights read (`CompileOptions.activation`).
    convolution : str
        How the library adds up convolutions (`CompileOptions.convolution`).
    fusion : str
        Who decides where one kernel is a trade against two (`CompileOptions.fusion`).
    attention : str
        What computes attention (`CompileOptions.attention`).
    normalized : bool
        Whether the module is as `frontend.normalize` leaves it; otherwise it is brought into that form.

    Returns
    -------
    KernelGraph

    Raises
    ------
    FrontendError
        For control flow, or an operator that nothing lowers.
    ShapeError
        For a dimension that is not a number.
    TargetError
        The target does not read activations so.
    """
    target = target if isinstance(target, tvm.target.Target) else tvm.target.Target(target)
    keys = [str(key) for key in target.keys]
    with lowering_for(keys):
        return build_with(
            mod,
            library_of(keys).on(target).reading(activation).adding(convolution).attending(attention),
            fuse=fuse,
            fast_math=fast_math,
            faults=faults,
            precision=precision,
            cost=FusionCost(model_of_target(target), fusion),
            normalized=normalized,
        )


@one_at_a_time
def group(
    mod: tvm.IRModule,
    target: tvm.target.Target,
    space: SizeSpace,
    *,
    fuse: bool = True,
    fast_math: bool = False,
    faults: str = "raise",
    precision: str = "float32",
    activation: str = "exact",
    convolution: str = "fast",
    fusion: str = "priced",
    attention: str = "auto",
) -> GroupedProgram:
    """The first half of `build`, for a normalised module with symbols of a space in its shapes."""
    keys = [str(key) for key in target.keys]
    with lowering_for(keys), reading_open_sizes(space):
        return grouped(
            mod,
            library_of(keys).on(target).reading(activation).adding(convolution).attending(attention),
            fuse=fuse,
            fast_math=fast_math,
            faults=faults,
            precision=precision,
            cost=FusionCost(model_of_target(target), fusion),
            normalized=True,
        )


@one_at_a_time
def assemble(given: GroupedProgram, target: tvm.target.Target) -> KernelGraph:
    """The second half of `build`, in numbers (`GroupedProgram.at`)."""
    with lowering_for([str(key) for key in target.keys]):
        return assembled(given)


@one_at_a_time
def assemble_open(
    given: GroupedProgram, target: tvm.target.Target, space: SizeSpace, maker: KernelMaker
) -> KernelGraph:
    """The second half of `build` for all sizes that the space's conditions admit.

    What becomes no kernel for all sizes is a `SpecializedOp`.
    """
    with lowering_for([str(key) for key in target.keys]), reading_open_sizes(space):
        return assembled(given, maker)


@one_at_a_time
def build_with(
    mod: tvm.IRModule,
    table: LibraryTable,
    *,
    fuse: bool = True,
    fast_math: bool = False,
    faults: str = "raise",
    precision: str = "float32",
    cost: FusionCost | None = None,
    normalized: bool = False,
) -> KernelGraph:
    """`build` with the library given, and the prices of fusion; by default those of this machine."""
    return assembled(
        grouped(
            mod,
            table,
            fuse=fuse,
            fast_math=fast_math,
            faults=faults,
            precision=precision,
            cost=cost,
            normalized=normalized,
        )
    )


@one_at_a_time
def grouped(
    mod: tvm.IRModule,
    table: LibraryTable,
    *,
    fuse: bool = True,
    fast_math: bool = False,
    faults: str = "raise",
    precision: str = "float32",
    cost: FusionCost | None = None,
    normalized: bool = False,
) -> GroupedProgram:
    """The first half of `build_with`, all that looks at the model: its operators in groups.

    Inside `open_size.reading_open_sizes` shapes may have symbols of that space; `GroupedProgram.at` has
    numbers for them.
    """
    op_count = _count_ops(mod)
    whole = widen(narrowed(mod if normalized else normalize(mod), precision), table)
    apart = expand(whole, lambda call: takes(call, table))
    apart = expand_sorts(apart, lambda call: takes_sort(call, table))
    apart = take_sorts(apart, table)
    apart, integers = gather_integer_products(apart, table)
    apart = gather_products(apart, table)
    program = from_relax(whole if apart is whole else normalize(apart))
    unfused = sum(kernel_reads([op]) + sum(value.nbytes for value in op.results) for op in program.ops)
    drop_neutral(program, fast_math)  # what is neutral hides patterns
    for rewrite in REWRITES if fuse else ():
        rewrite(program)
    cost = FusionCost(model_of_target(None)) if cost is None else cost
    decisions = fuse_attention(program, table if fuse else attrs.evolve(table, attention=None), cost)
    if fuse:
        compare_in_place(program)
    match_library(program, table, join=fuse)
    if fuse:
        keep_channels_last(program, table)
    lay_out_weights(program, table)
    keep_zeros(program, fast_math)
    place(program)
    keep_state(program)
    match_attention(program, table)
    chain_convolutions(program, table if fuse else attrs.evolve(table, chains=None))
    fusion = Fusion(program, cost, enabled=fuse)
    groups = fusion.run()
    return GroupedProgram(program, groups, fusion, table, decisions, integers, op_count, unfused, faults)


@one_at_a_time
def assembled(given: GroupedProgram, maker: KernelMaker | None = None) -> KernelGraph:
    """The second half of `build_with`: a kernel for each group; in numbers, where no maker is given."""
    assembly = Assembly(given.program, given.table, given.decisions, given.faults, maker)
    graph = assembly.graph(given.groups, given.fusion, given.op_count, given.unfused)
    priced = (decision.price for decision in given.decisions if decision.price is not None)
    fusion = (*priced, *given.fusion.decisions.values())
    return attrs.evolve(graph, integers=given.integers, fusion=fusion)


def _count_ops(mod: tvm.IRModule) -> int:
    """Operator calls of the model as it was given."""
    blocks = mod["main"].body.blocks if "main" in [var.name_hint for var in mod.get_global_vars()] else []
    return sum(isinstance(binding.value, tvm.ir.Call) for block in blocks for binding in block.bindings)
