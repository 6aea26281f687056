# SPDX-License-Identifier: Apache-2.0
"""One leaf as loops and iOps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx

from ..errors import IGraphError
from ..igraph import IPointer, Loop
from ..igraph.affine import var
from ..igraph.dtypes import from_tvm
from ..igraph.rewrite import substituted
from .box import Atom, NotABoxError, conjunction, is_conjunction
from .contract_blocks import emit_contraction, is_contraction, plan_contraction
from .emit import Emitter
from .expression import TileContext
from .function_pointers import FunctionPointers
from .leaf_access import identity_of, is_same_element, update_of
from .load import store
from .plan import LeafPlan, PlanLoop, Planner
from .reduction import Accumulation
from .refusals import NeedsSerialError, refuse
from .tree_nodes import Guarded, Leaf, TreeLoop, pipeline_attrs


class LeafExtractor:
    """Turns leaves into loop-tree nodes.

    Parameters
    ----------
    limit : the most elements of a tile in a function without a parallel loop; None = as scheduled.

    Attributes
    ----------
    temporaries : one pointer for each value of all leaves so far.
    """

    def __init__(self, memory: FunctionPointers, limit: int | None) -> None:
        self.memory, self.limit = memory, limit
        self.temporaries: list[IPointer] = []

    def extract(self, leaf: Leaf, around: Sequence[TreeLoop]) -> list[Any]:
        """The nodes of one leaf.

        Tries with as many tile loops as there are; every statement that cannot carry one names it,
        and the next try makes it serial.  Where sizes are open and that ends with more conditions than a box
        has sides, it begins again, with those that concern no row and no column as one.
        """
        self._mask_update(leaf, around)
        self._mask_scatter(leaf, around)
        forced: set[str] = set()
        jointly = False
        while True:
            emitter = Emitter(self.memory.names)
            try:
                nodes = self._attempt(leaf, around, forced, emitter, jointly)
            except NotABoxError as error:
                if not jointly and self.memory.tree.sizes:
                    forced, jointly = set(), True
                    continue
                refuse(
                    "A statement under more conditions than a box has sides.",
                    leaf.block,
                    leaf.stmts[0].stmt,
                    need=f"at most four bounds; too many with {error}",
                    remedy="choose tiles that divide the shapes, so that fewer conditions are left",
                )
            except IGraphError as error:
                refuse(error.what, leaf.block, leaf.stmts[0].stmt, need=error.where)
            except NeedsSerialError as error:
                if error.loop in forced:
                    refuse(
                        "A condition of this statement is no box of a tile.", leaf.block, leaf.stmts[0].stmt
                    )
                forced.add(error.loop)
                continue
            self.temporaries.extend(emitter.temporaries)
            return nodes

    def _mask_update(self, leaf: Leaf, around: Sequence[TreeLoop]) -> None:
        """Move conditions that are no boxes into the operand of an update: elsewhere it adds nothing."""
        update = update_of(leaf) if _is_guarded(leaf) else None
        if update is None:
            return
        converter = Planner(leaf, self.memory, around).converter
        (guarded,) = leaf.stmts
        kept, operand = [], update.operand
        for condition in guarded.conditions:
            if is_conjunction(condition, converter):
                kept.append(condition)
            else:
                nothing = tirx.const(identity_of(update, from_tvm(operand.ty)), str(operand.ty))
                operand = tirx.if_then_else(condition, operand, nothing)
        if len(kept) < len(guarded.conditions):
            old = (
                guarded.stmt.value.a
                if is_same_element(guarded.stmt.value.a, guarded.stmt)
                else guarded.stmt.value.b
            )
            value = type(guarded.stmt.value)(old, operand)
            store = tirx.BufferStore(guarded.stmt.buffer, value, list(guarded.stmt.indices))
            leaf.stmts[:] = [Guarded(store, tuple(kept))]

    def _mask_scatter(self, leaf: Leaf, around: Sequence[TreeLoop]) -> None:
        """Move conditions that are no boxes into the index of a scatter: elsewhere it is no element's."""
        if not _is_guarded(leaf):
            return
        converter = Planner(leaf, self.memory, around).converter
        for position, guarded in enumerate(leaf.stmts):
            kept: list[Any] = []
            data: list[Any] = []
            for condition in guarded.conditions:
                (kept if is_conjunction(condition, converter) else data).append(condition)
            if not data or not isinstance(guarded.stmt, tirx.BufferStore):
                continue
            indices = list(guarded.stmt.indices)
            found = [at for at, index in enumerate(indices) if converter.try_convert(index) is None]
            if len(found) != 1:
                continue
            index = indices[found[0]]
            indices[found[0]] = tirx.Select(tirx.all(*data), index, tirx.const(-1, str(index.ty)))
            store = tirx.BufferStore(guarded.stmt.buffer, guarded.stmt.value, indices)
            leaf.stmts[position] = Guarded(store, tuple(kept))

    def _attempt(
        self, leaf: Leaf, around: Sequence[TreeLoop], forced: set[str], emitter: Emitter, jointly: bool
    ) -> list[Any]:
        planner = Planner(leaf, self.memory, around, forced, self.limit)
        if is_contraction(planner):
            plan, roles, factors = plan_contraction(planner)
            emit_contraction(emitter, self.memory, plan, roles, factors, self._atoms(plan, leaf.stmts[0]))
            return self._in_loops(plan, plan.serial, emitter.body)
        plan = planner.plan()
        context = TileContext(
            emitter, self.memory, plan.converter, plan.tile, plan.tile_names, leaf.block, jointly
        )
        if plan.update is not None and plan.reduced:
            return self._reduction(plan, context)
        for guarded in leaf.stmts:
            context.restrict(self._atoms(plan, guarded))
            if isinstance(guarded.stmt, tirx.BufferStore):
                store(context, guarded.stmt)
                context.forget()
            else:
                context.lets[guarded.stmt.var] = context.evaluate(guarded.stmt.value)
        return self._in_loops(plan, plan.serial, emitter.body)

    def _reduction(self, plan: LeafPlan, context: TileContext) -> list[Any]:
        """The accumulator is loaded before the serial reduction loops and stored after them."""
        atoms = self._atoms(plan, plan.leaf.stmts[0])
        of_element = [atom for atom in atoms if not set(atom.expr.variables()) & plan.reduced]
        element_box = context.box_of(of_element)
        context.restrict(atoms)
        accumulation = Accumulation(context, plan, element_box)
        emitter = context.emitter
        accumulation.begin()
        begin, emitter.body = emitter.body, []
        accumulation.step()
        inner = [loop for loop in plan.serial if loop.name in plan.reduced]
        step, emitter.body = self._in_loops(plan, inner, emitter.body), []
        accumulation.end()
        outer = [loop for loop in plan.serial if loop.name not in plan.reduced]
        return self._in_loops(plan, outer, [*begin, *step, *emitter.body])

    def _atoms(self, plan: LeafPlan, guarded: Guarded) -> list[Atom]:
        """The conditions of a statement, and the ends of loops that were cut."""
        atoms = [Atom(tail) for tail in plan.tails]
        for condition in guarded.conditions:
            try:
                atoms += conjunction(condition, plan.converter)
            except NotABoxError as error:
                refuse(
                    "A statement under a condition that is no box.",
                    plan.leaf.block,
                    guarded.stmt,
                    need=f"a conjunction of affine bounds; this is none: {error}",
                    remedy="write the condition into the value with T.Select",
                )
        return atoms

    def _in_loops(self, plan: LeafPlan, loops: Sequence[PlanLoop], body: list[Any]) -> list[Any]:
        """The body inside of serial loops, each under a name of the graph."""
        if not body:
            return []
        for loop in reversed(loops):
            name = self.memory.names.new(loop.name.split(".")[0])
            inside = [substituted(node, {loop.name: var(name)}) for node in body]
            body = [Loop(name, loop.extent, inside, pipeline_attrs(loop.pipeline))]
        return body


def _is_guarded(leaf: Leaf) -> bool:
    """Whether a statement of a leaf has conditions."""
    return any(guarded.conditions for guarded in leaf.stmts)
