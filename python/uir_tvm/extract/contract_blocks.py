# SPDX-License-Identifier: Apache-2.0
"""Blocks annotated ``uir.contract``: ``c[m, n] += a[m, k] * b[k, n]`` as one contract iOp per tile."""

from __future__ import annotations

from typing import Any

import attrs
import tvm
from tvm import tirx

from ..igraph import ISlice, make
from ..schedule.annotations import CONTRACT
from .affine_from_tir import NotAffineError
from .box import Atom
from .emit import Emitter, reboxed
from .expression import TileContext
from .function_pointers import FunctionPointers
from .leaf_access import address_of, loads_of
from .load import affine_address, slice_at
from .plan import LeafPlan, PlanLoop, Planner
from .refusals import refuse

#: Factors that a contraction takes as they are, by the dtype of its sums.
_NARROW = {"float32": ("float16", "bfloat16")}


@attrs.define
class Roles:
    """The loops of a contraction; None = extent 1."""

    m: PlanLoop | None
    n: PlanLoop | None
    k: PlanLoop | None


def is_contraction(planner: Planner) -> bool:
    """Whether the leaf asks for contract and has its form."""
    return CONTRACT in planner.leaf.annotations


def plan_contraction(planner: Planner) -> tuple[LeafPlan, Roles, tuple[Any, Any]]:
    """Choose the loops m, n and k, and which factor is a (has m) and which is b (has n).

    Raises
    ------
    uir_tvm.errors.ExtractionError
        The statement is no sum of products.
    """
    update = planner.update
    if update is None or update.op != "add":
        refuse(
            "A block annotated uir.contract is no contraction.",
            planner.leaf.block,
            planner.leaf.stmts[0].stmt,
            need="c[m, n] = c[m, n] + a[m, k] * b[k, n]",
            remedy="drop the annotation",
        )
    planner.normalise()
    factors = _factors(update.operand)
    if factors is None:
        refuse("The operand of a contraction is no product.", planner.leaf.block, update.store)
    reduced = planner.reduced()
    free = [loop for loop in planner.loops if not loop.serial]
    used = [_names(planner, factor) for factor in factors]
    stored = [loop for loop in free if loop.name not in reduced]
    only = [[lp for lp in stored if lp.name in used[x] and lp.name not in used[1 - x]] for x in (0, 1)]
    both = [lp for lp in free if lp.name in reduced and lp.name in used[0] and lp.name in used[1]]
    # n is the side whose loop walks the stored columns
    n_first = bool(only[0]) and any(
        item.kind == "store" and item.expr.coefficient(only[0][-1].name) == 1 for item in planner.items
    )
    a, b = (1, 0) if n_first else (0, 1)
    roles = Roles(*(side[-1] if side else None for side in (only[a], only[b], both)))
    tile = {loop.name for loop in (roles.m, roles.n, roles.k) if loop is not None}
    serial = sorted((lp for lp in planner.loops if lp.name not in tile), key=lambda lp: lp.name in reduced)
    plan = LeafPlan(planner.leaf, update, serial, reduced, roles.m, roles.n, planner.converter, planner.tails)
    return plan, roles, (factors[a], factors[b])


def _factors(expr: Any) -> tuple[Any, Any] | None:
    """The two factors of a product, casts of it moved into them; widening both is the contraction's own."""
    if isinstance(expr, tirx.Mul):
        a, b = _before_widening(expr.a), _before_widening(expr.b)
        same = a is not None and b is not None and str(a.ty) == str(b.ty)
        return (a, b) if same else (expr.a, expr.b)
    if isinstance(expr, tirx.Cast) and isinstance(expr.value, tirx.Mul):
        return expr.value.a.astype(str(expr.ty)), expr.value.b.astype(str(expr.ty))
    return None


def _before_widening(expr: Any) -> Any | None:
    """What a factor was before a cast that holds all of its values; None where there is no such cast."""
    if not isinstance(expr, tirx.Cast) or str(expr.value.ty) not in _NARROW.get(str(expr.ty), ()):
        return None
    return expr.value


def _names(planner: Planner, expr: Any) -> set[str]:
    names: set[str] = set()
    for load in loads_of(expr):
        storage = planner.memory.storages[load.source]
        try:
            names |= set(address_of(storage, load.indices, planner.converter).variables())
        except NotAffineError:
            names |= {loop.name for loop in planner.loops}
    return names


def emit_contraction(
    emitter: Emitter,
    memory: FunctionPointers,
    plan: LeafPlan,
    roles: Roles,
    factors: tuple[Any, Any],
    atoms: list[Atom],
) -> None:
    """The contract iOp of one tile; ``atoms`` are the conditions under which an iteration exists."""
    assert plan.update is not None

    def context(rows: PlanLoop | None, cols: PlanLoop | None, other: PlanLoop | None) -> TileContext:
        """A tile over two of the three loops, under the conditions that leave out the third."""
        tile = (rows.extent if rows else 1, cols.extent if cols else 1)
        names = (rows.name if rows else None, cols.name if cols else None)
        made = TileContext(emitter, memory, plan.converter, tile, names, plan.leaf.block)
        mine = [atom for atom in atoms if other is None or other.name not in atom.expr.variables()]
        made.restrict(mine)
        return made

    a = _operand(context(roles.m, roles.k, roles.n), factors[0])
    b = _operand(context(roles.k, roles.n, roles.m), factors[1])
    whole = context(roles.m, roles.n, roles.k)
    storage = memory.storages[plan.update.store.buffer]
    home = slice_at(whole, storage, address_of(storage, plan.update.store.indices, plan.converter))
    place = home
    if home.pointer.level != "reg":
        place = whole.result(str(home.pointer.dtype), home.shape)
        emitter.move(place, home)
    emitter.add(make.contract(place, a, b, accumulate=True))
    if place is not home:
        emitter.move(home, place)


def _operand(c: TileContext, expr: Any) -> ISlice:
    """A factor over its tile, valid where the conditions hold: contract sums over the valid columns of a.

    What lies in sram is read there.
    """
    if isinstance(expr, tvm.ir.TensorLoad):
        storage = c.memory.storages[expr.source]
        address = affine_address(c, storage, expr.indices) if storage.pointer.level == "sram" else None
        piece = None if address is None else slice_at(c, storage, address)
        if piece is not None and piece.shape == c.tile:
            return reboxed(piece, c.box)
    return reboxed(c.place(c.evaluate(expr), c.tile).slice, c.box)
