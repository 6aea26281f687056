# SPDX-License-Identifier: Apache-2.0
"""Relax -> KernelGraph: the passes of this stage, in order."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import attrs
import tvm

from ..errors import UirError, UnsupportedOperatorError, is_own_fault, last_line
from ..frontend.normalize import normalize
from ..frontend.recurrence import expand
from ..frontend.sorting import expand_sorts
from ..function_attributes import origin_of
from ..library.library_tables import LibraryTable, library_of
from ..one_at_a_time import one_at_a_time
from ..opaque_call import FOUND, OpaqueCall
from ..schedule.hardware_of import model_of_target
from ..shared_constants import shared_constants
from ..sizes.size_space import SizeSpace, open_sizes, reading_open_sizes
from .attention import AttentionDecision, fuse_attention
from .band_masks import compare_in_place
from .channels_last import keep_channels_last
from .choices import APART, asked, pick
from .closed_rows import safe_softmax
from .dedup import KernelTable
from .found_sizes import found_by
from .from_relax import from_relax
from .fusion import Fusion
from .fusion_cost import FusionCost
from .grouped import GroupedProgram
from .integer_matmul import integer_matmul_call
from .integer_products import gather_integer_products, integer_call
from .kept_state import keep_state, spec_of, written_of
from .kept_zeros import keep_zeros
from .kernel_maker import SPECIALIZED, KernelMaker
from .legalize import lowering_for
from .library_attention import attention_call, match_attention
from .library_call import kind_of_call, library_call
from .library_match import match_library
from .library_sort import library_sort, take_sorts, takes_sort
from .merge import Kernel, interface, signature
from .nodes import (
    CustomOp,
    FoundAttention,
    FoundOp,
    KernelGraph,
    LibraryOp,
    Node,
    OpaqueOp,
    SpecializedOp,
    Tensor,
)
from .op_kinds import (
    FINDING,
    INTEGER_MATMUL,
    INTEGER_PRODUCT,
    LIBRARY_ATTENTION,
    LIBRARY_SORT,
    OPAQUE,
    RECURRENCE,
)
from .operator_groups import OperatorGroup, final_hero, singleton
from .operator_traffic import kernel_reads
from .patterns import drop_neutral, recognise_functions
from .precision import narrowed
from .program import Program, Value
from .quantized_weights import gather_products
from .reasons import NodeOperators, not_fused
from .recurrence import recurrence_call, takes
from .size_carriers import with_carriers
from .storage import place
from .weights import lay_out_weights
from .widen import widen

log = logging.getLogger(__name__)

#: Operators of a library that are called in a way of their own.
LIBRARY_CALLS: dict[str, Callable[..., Any]] = {
    INTEGER_MATMUL: integer_matmul_call,
    INTEGER_PRODUCT: integer_call,
    RECURRENCE: recurrence_call,
    LIBRARY_SORT: library_sort,
    LIBRARY_ATTENTION: attention_call,
}
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
    fusion = Fusion(program, cost, enabled=fuse)
    groups = fusion.run()
    return GroupedProgram(program, groups, fusion, table, decisions, integers, op_count, unfused, faults)


@one_at_a_time
def assembled(given: GroupedProgram, maker: KernelMaker | None = None) -> KernelGraph:
    """The second half of `build_with`: a kernel for each group; in numbers, where no maker is given."""
    assembly = _Assembly(given.program, given.table, given.decisions, given.faults, maker)
    graph = assembly.graph(given.groups, given.fusion, given.op_count, given.unfused)
    priced = (decision.price for decision in given.decisions if decision.price is not None)
    fusion = (*priced, *given.fusion.decisions.values())
    return attrs.evolve(graph, integers=given.integers, fusion=fusion)


def _count_ops(mod: tvm.IRModule) -> int:
    """Operator calls of the model as it was given."""
    blocks = mod["main"].body.blocks if "main" in [var.name_hint for var in mod.get_global_vars()] else []
    return sum(isinstance(binding.value, tvm.ir.Call) for block in blocks for binding in block.bindings)


def _site_of(group: OperatorGroup, node: CustomOp) -> str:
    """A kernel by what it computes, whatever its attributes."""
    return f"kernel {group.name} {origin_of(node.prim_func)}"


class _Assembly:
    """Turns groups into nodes."""

    def __init__(
        self,
        program: Program,
        table: LibraryTable,
        decisions: list[AttentionDecision],
        faults: str,
        maker: KernelMaker | None,
    ) -> None:
        self.faults = faults
        self.maker = maker
        self.program = program
        self.table = table
        self.decisions = decisions
        self.users, self.outputs = program.users(), program.output_bases()
        self.tensors: dict[Value, Tensor] = {}
        self.constants = shared_constants()
        #: Those that hold constants, by the identity of what is kept of equal ones.
        self.weights: dict[int, Tensor] = {}
        self.kernels = KernelTable()
        self.fallbacks: list[str] = []
        self.parts: list[NodeOperators] = []

    def graph(self, groups: list[OperatorGroup], fusion: Fusion, op_count: int, unfused: int) -> KernelGraph:
        """The whole graph."""
        nodes: list[Node] = []
        for group in groups:
            nodes.extend(self._nodes(group))
        space = open_sizes()
        with contextlib.nullcontext() if space is None else space.only_telling():
            why_not = not_fused(self.parts, fusion, self.table, self.decisions)
        return KernelGraph(
            tuple(nodes),
            tuple(self.tensor(value) for value in self.program.inputs),
            tuple((self.tensor(view.base), view.shape) for view in self.program.outputs),
            self.program.output_is_tuple,
            op_count,
            unfused,
            why_not,
            tuple(self.fallbacks),
            tuple(FoundAttention(d.output, d.fused, d.reason, d.saved_bytes) for d in self.decisions),
            tuple((self.tensor(state.value), spec_of(state)) for state in self.program.state),
            tuple(self.program.positions.values()),
        )

    def tensor(self, value: Value) -> Tensor:
        """The buffer of a value; constants of the same contents are one."""
        if value not in self.tensors:
            if value.constant is not None:
                value.constant = self.constants.one_of(value.constant)  # the other need not be held
            made = Tensor(value.name, value.shape, value.dtype, value.nbytes, value.constant)
            if value.constant is not None:
                made = self.weights.setdefault(id(value.constant), made)
            if value.memory is not None:
                made = attrs.evolve(made, memory=self.tensor(value.memory), written=written_of(value))
            self.tensors[value] = made
        return self.tensors[value]

    def _nodes(self, group: OperatorGroup) -> list[Node]:
        """The nodes of a group, one but for a group that cannot be merged; each has its entry in `parts`."""
        whole = NodeOperators(group, group.ops)
        if group.hero == "library":
            self.parts.append(whole)
            opaque = group.ops[0].name in (OPAQUE, FINDING)
            return [self._opaque_node(group) if opaque else self._library_node(group)]
        needed = self._needed(group)
        if self.maker is not None:
            self.parts.append(whole)
            return [self._open_node(group, needed, self.maker)]
        try:
            node = self._custom_node(group, needed)
            if len(group.ops) > 1 and asked() and pick(_site_of(group, node), (APART,)):
                return self._apart(group, "apart they were measured to be faster")
            self.parts.append(whole)
            return [node]
        except Exception as error:  # TVM raises many types; every one of them means: not merged
            own, single = is_own_fault(error), len(group.ops) == 1
            if isinstance(error, MemoryError) or (own and (single or self.faults == "raise")):
                raise
            if single:
                if isinstance(error, UirError):
                    raise
                raise UnsupportedOperatorError(
                    f"TVM cannot lower the operator {group.ops[0].name}",
                    where=last_line(error),
                    remedy="express the model by other operators",
                ) from error
            reason = (
                error.what if isinstance(error, UirError) else f"{type(error).__name__}: {last_line(error)}"
            )
            if own:
                reason = f"a fault of uir_tvm: {reason}"
                log.warning(
                    "kernel %s is not merged: %s; please report it", group.name, reason, exc_info=error
                )
        self.fallbacks.append(f"{group.name}: {reason}")
        return self._apart(group, reason)

    def _apart(self, group: OperatorGroup, reason: str) -> list[Node]:
        """A kernel for each operator of a group."""
        self.parts += [NodeOperators(group, [op], reason) for op in group.ops]
        everything = {value for op in group.ops for value in op.results}
        return [self._custom_node(singleton(op), everything) for op in group.ops]

    def _needed(self, group: OperatorGroup) -> set[Value]:
        """Results of a group that others read."""
        return {
            value
            for op in group.ops
            for value in op.results
            if value in self.outputs or any(each not in group.roles for each, _ in self.users.get(value, ()))
        }

    def _library_node(self, group: OperatorGroup) -> LibraryOp:
        (op,) = group.ops
        found = LIBRARY_CALLS.get(op.name, library_call)
        function, attributes, operands = found(self.program, op, self.table)
        steps = tuple(
            "add" if step in ("bias", "residual") else step for step in op.attrs.get("epilogue", ())
        )
        return LibraryOp(
            kind_of_call(op, attributes),
            function,
            attributes,
            tuple(self.tensor(value) for value in operands),
            tuple(self.tensor(value) for value in op.results),
            (op.name, *steps),
            kernel_reads([op]),
        )

    def _opaque_node(self, group: OperatorGroup) -> OpaqueOp:
        (op,) = group.ops
        assert op.call is not None
        call, function = OpaqueCall(str(op.call.args[-1].value)), str(op.call.args[0].global_symbol)
        node = OpaqueOp(
            "opaque",
            function,
            call,
            tuple(self.tensor(view.base) for view in op.operands),
            tuple(self.tensor(value) for value in op.results),
            (call.operator,),
            kernel_reads([op]),
            tuple(view.shape for view in op.operands),
            call.reason,
        )
        space = open_sizes()
        if function != FOUND or space is None:
            return node
        return FoundOp(**attrs.asdict(node, recurse=False), found=found_by(node, space))

    def _open_node(
        self, group: OperatorGroup, needed: set[Value], maker: KernelMaker
    ) -> CustomOp | SpecializedOp:
        """A kernel for all sizes; else one that is compiled for the sizes of a call."""
        kernel, function = interface(group, needed), None
        try:
            name, function = self.kernels.function(kernel)
            made = maker.own(name, function)
            carried = with_carriers(kernel, made, self.program)
            if carried is not kernel:
                name, function = self.kernels.function(carried)
                made = maker.own(name, function)
            reason = maker.refusal(name, made)
        except MemoryError:
            raise
        except Exception as error:  # TVM raises many types, of what it cannot lower without numbers too
            log.info("kernel %s is compiled for each shape", group.name, exc_info=error)
            reason = (
                error.what if isinstance(error, UirError) else f"{type(error).__name__}: {last_line(error)}"
            )
        if not reason:
            return self._node(carried, name, made)
        return SpecializedOp(
            "kernel",
            SPECIALIZED,
            maker.later(kernel, signature(kernel), function, reason),
            tuple(self.tensor(parameter.value) for parameter in kernel.inputs),
            tuple(self.tensor(value) for value in kernel.outputs),
            tuple(op.name for op in group.ops),
            kernel_reads(group.ops),
            tuple(parameter.shape for parameter in kernel.inputs),
            final_hero(group),
            reason,
        )

    def _custom_node(self, group: OperatorGroup, needed: set[Value]) -> CustomOp:
        kernel = interface(group, needed)
        return self._node(kernel, *self.kernels.function(kernel))

    def _node(self, kernel: Kernel, name: str, function: tvm.tirx.PrimFunc) -> CustomOp:
        group = kernel.group
        return CustomOp(
            name,
            function,
            str(function.attrs["uir.hero"]),
            tuple(self.tensor(parameter.value) for parameter in kernel.inputs),
            tuple(self.tensor(value) for value in kernel.outputs),
            tuple(parameter.shape for parameter in kernel.inputs),
            tuple(op.name for op in group.ops),
            kernel_reads(group.ops),
        )
