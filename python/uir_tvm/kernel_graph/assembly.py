# SPDX-License-Identifier: Apache-2.0
"""Groups of operators -> the nodes of a kernel graph, each of which calls one thing."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import attrs
import tvm

from ..errors import UirError, UnsupportedOperatorError, is_own_fault, last_line
from ..function_attributes import origin_of
from ..library.library_tables import LibraryTable
from ..opaque_call import FOUND, OpaqueCall
from ..shared_constants import shared_constants
from ..sizes.size_space import open_sizes
from .attention import AttentionDecision
from .choices import APART, asked, pick
from .dedup import KernelTable
from .found_sizes import found_by
from .fusion import Fusion
from .integer_matmul import integer_matmul_call
from .integer_products import integer_call
from .kept_state import spec_of, written_of
from .kernel_maker import SPECIALIZED, KernelMaker
from .library_attention import attention_call
from .library_call import kind_of_call, library_call
from .library_chain import chain_call
from .library_sort import library_sort
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
    LIBRARY_CHAIN,
    LIBRARY_SORT,
    OPAQUE,
    RECURRENCE,
)
from .operator_groups import OperatorGroup, final_hero, singleton
from .operator_traffic import kernel_reads
from .program import Program, Value
from .reasons import NodeOperators, not_fused
from .recurrence import recurrence_call
from .size_carriers import with_carriers

log = logging.getLogger(__name__)

#: Operators of a library that are called in a way of their own.
LIBRARY_CALLS: dict[str, Callable[..., Any]] = {
    INTEGER_MATMUL: integer_matmul_call,
    INTEGER_PRODUCT: integer_call,
    RECURRENCE: recurrence_call,
    LIBRARY_SORT: library_sort,
    LIBRARY_ATTENTION: attention_call,
    LIBRARY_CHAIN: chain_call,
}


def _site_of(group: OperatorGroup, node: CustomOp) -> str:
    """A kernel by what it computes, whatever its attributes."""
    return f"kernel {group.name} {origin_of(node.prim_func)}"


class Assembly:
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
