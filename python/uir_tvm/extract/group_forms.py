# SPDX-License-Identifier: Apache-2.0
"""Reductions and broadcasts among the units of a set: pairs of blocks that become iOps of group scope.

`group_reduce` leaves ``R[u, i] = partial`` (shared by a set of k units) and ``S[i] = S[i] op R[u, i]``
over u.  The partial results need not go to sram by a move of their own: R stays in reg, where each unit
holds its part, and the second block becomes ``reduce.OP.AXIS.group S, R [buffer]``.  Where other units than
the leader go on with S, a ``broadcast.AXIS.group`` follows.  `group_broadcast` leaves a copy, which becomes
such a broadcast.

What does not have this form stays an exchange through sram: every unit stores its part and reads all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import tvm
from tvm import tirx

from ..igraph import IOp, IPointer, ISlice, Loop, make, map_iops
from ..igraph.affine import affine, var
from ..igraph.iops import spec_of
from ..igraph.iops_scalar import REDUCE
from ..schedule.annotations import BROADCAST, GROUP
from .function_pointers import PID, FunctionPointers, UniqueNames
from .leaf_access import accesses_of, loads_of, update_of
from .refusals import refuse
from .tree_nodes import GroupForm, Guarded, Leaf, Serial, Tree, TreeLoop


def recognise(tree: Tree) -> None:
    """Mark the leaves that become group forms, and keep their operands in reg."""
    tree.body = _recognised(tree.body, tree, _Uses(tree.body))


@attrs.define(eq=False)
class _Uses:
    """Who touches a buffer."""

    body: list[Any]
    by_buffer: dict[Any, list[tuple[Leaf, bool]]] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for leaf in leaves_of(self.body):
            for buffer, _, is_write in accesses_of(leaf):
                self.by_buffer.setdefault(buffer, []).append((leaf, is_write))

    def of(self, buffer: Any) -> list[Leaf]:
        """The leaves that touch a buffer."""
        return [leaf for leaf, _ in self.by_buffer.get(buffer, ())]

    def readers(self, buffer: Any) -> list[Leaf]:
        """The leaves that read it."""
        return [leaf for leaf, is_write in self.by_buffer.get(buffer, ()) if not is_write]


def leaves_of(body: Sequence[Any]) -> Iterator[Leaf]:
    """Every leaf of a loop tree."""
    for node in body:
        if isinstance(node, Serial):
            yield from leaves_of(node.body)
        else:
            yield node


def _recognised(body: Sequence[Any], tree: Tree, uses: _Uses) -> list[Any]:
    out: list[Any] = []
    for node in body:
        if isinstance(node, Serial):
            out.append(attrs.evolve(node, body=_recognised(node.body, tree, uses)))
        elif BROADCAST in node.annotations:
            _broadcast(node, tree)
            out.append(node)
        else:
            out += _reduction(node, tree, uses, out)
    return out


def _broadcast(leaf: Leaf, tree: Tree) -> None:
    """Copies of what the leader holds: the target lives in reg, in every unit."""
    size = int(leaf.annotations[BROADCAST])
    stmt = leaf.stmts[0].stmt
    copies = len(leaf.stmts) == 1 and isinstance(stmt, tirx.BufferStore)
    if not copies or not isinstance(stmt.value, tvm.ir.TensorLoad):
        refuse("A broadcast that is no copy.", leaf.block, stmt, need="the block that group_broadcast made")
    if tree.num_units % size:
        refuse(
            f"A group of {tree.num_units} units has no sets of {size}.",
            leaf.block,
            need="a size of set that divides the units of a group",
            remedy="map to more units per group, or share by fewer",
        )
    tree.levels[stmt.buffer] = "reg"
    leaf.form = GroupForm("broadcast", "", size, True)


def _reduction(leaf: Leaf, tree: Tree, uses: _Uses, before: list[Any]) -> list[Any]:
    """The leaf, or what takes its place; ``before`` are the nodes of the same body before it."""
    found = _pair(leaf, tree, uses)
    if found is None:
        return [leaf]
    op, partial, size, loop = found
    update = update_of(leaf)
    assert update is not None
    (guarded,) = leaf.stmts
    result = guarded.stmt.buffer
    init = _init_of(leaf, result, before)
    if init is None:
        return [leaf]  # it accumulates onto what was there before
    before.remove(init)
    tree.levels[partial] = "reg"
    tree.bindings[loop.var] = tree.members.of(size)
    indices = list(guarded.stmt.indices)
    rest = [lp for lp in leaf.loops if lp is not loop]
    inside = str(result.scope()) == "local"
    held = result if inside else _like(result)
    everyone = inside and any(_needs_all(user, tree) for user in uses.readers(result) if user is not leaf)
    made = Leaf(
        leaf.block,
        [Guarded(tirx.BufferStore(held, update.operand, indices), guarded.conditions)],
        rest,
        leaf.annotations,
        leaf.in_block,
        form=GroupForm("reduce", op, size, everyone),
    )
    if inside:
        return [made]
    load = tirx.BufferLoad(held, indices)
    conditions = guarded.conditions
    if tree.set_size == 1:  # otherwise `leaders_only` says it of all
        conditions = (tree.members.of(size) < 1, *conditions)
    store = Guarded(tirx.BufferStore(result, load, indices), conditions)
    return [made, Leaf(leaf.block, [store], list(rest), leaf.annotations, leaf.in_block)]


def _pair(leaf: Leaf, tree: Tree, uses: _Uses) -> tuple[str, Any, int, TreeLoop] | None:
    """(operation, buffer of partial results, size of set, the loop over its units) of a final reduction."""
    update = update_of(leaf)
    if update is None or leaf.group != 1 or update.op not in REDUCE:
        return None
    load = update.operand
    if not isinstance(load, tvm.ir.TensorLoad) or tree.level(load.source) != "sram":
        return None
    partial = load.source
    others = [user for user in uses.of(partial) if user is not leaf]
    sizes = {user.group for user in others}
    if len(sizes) != 1 or 1 in sizes or not any(GROUP in user.annotations for user in others):
        return None
    (size,) = sizes
    loop = _loop_of(load.indices[0], leaf, tree)
    alone = loop is not None and not any(_mentions(i, loop, leaf, tree) for i in load.indices[1:])
    if loop is None or loop.extent != size or not alone or len(list(loads_of(load))) != 1:
        return None
    if any(_mentions(c, loop, leaf, tree) for g in leaf.stmts for c in g.conditions):
        return None
    return update.op, partial, size, loop


def _loop_of(index: Any, leaf: Leaf, tree: Tree) -> TreeLoop | None:
    while isinstance(index, tvm.ir.Var) and index in tree.bindings:
        index = tree.bindings[index]
    return next((lp for lp in leaf.loops if lp.var.same_as(index) and lp.start == 0), None)


def _mentions(expr: Any, loop: TreeLoop, leaf: Leaf, tree: Tree) -> bool:
    """Whether an expression depends on a loop of the leaf, through the bindings."""
    from tvm_ffi.structural import structural_walk

    found = False

    def visit(node: Any) -> None:
        nonlocal found
        if node.same_as(loop.var):
            found = True
        elif node in tree.bindings:
            structural_walk(tree.bindings[node], [(tvm.ir.Var, visit)])

    structural_walk(expr, [(tvm.ir.Var, visit)])
    return found


def _init_of(leaf: Leaf, result: Any, before: Sequence[Any]) -> Leaf | None:
    for node in reversed(before):
        if isinstance(node, Leaf) and node.block == leaf.block and len(node.stmts) == 1:
            stmt = node.stmts[0].stmt
            if isinstance(stmt, tirx.BufferStore) and stmt.buffer.same_as(result):
                return None if list(loads_of(stmt.value)) else node
    return None


def _needs_all(user: Leaf, tree: Tree) -> bool:
    """Whether units other than the leader need what this leaf reads."""
    if BROADCAST in user.annotations:
        return False
    stores = [g.stmt for g in user.stmts if isinstance(g.stmt, tirx.BufferStore)]
    return user.group > 1 or tree.set_size == 1 or any(tree.level(s.buffer) == "reg" for s in stores)


def _like(buffer: Any) -> Any:
    shape = list(buffer.shape)
    return tirx.decl_buffer(shape, str(buffer.dtype), name=f"{buffer.name}_set", scope="local")


# -- emission -------------------------------------------------------------------------------------
@attrs.define
class FormEmitter:
    """Turns the moves that a marked leaf became into iOps of group scope; collects their buffers."""

    memory: FunctionPointers
    names: UniqueNames
    pointers: list[IPointer] = attrs.field(factory=list)
    temporaries: list[IPointer] = attrs.field(factory=list)

    def emit(self, leaf: Leaf, nodes: Sequence[Any]) -> list[Any]:
        """The nodes of a leaf, its moves exchanged."""
        form = leaf.form
        if form is None:
            return list(nodes)

        def exchanged(iop: IOp) -> list[Any]:
            t, s = (iop.target, iop.sources[0]) if spec_of(iop).copies else (None, None)
            if t is None or s is None or "pad" in iop.attrs or t.pointer.level != "reg":
                refuse(
                    "What the units of a set hand each other is no plain copy.",
                    leaf.block,
                    need="one element of every partial result for one of the result, without padding",
                    remedy="keep the partial results in sram",
                )
            return self._reduce(form, t, s) if form.kind == "reduce" else self._broadcast(form, t, s)

        return map_iops(nodes, exchanged)

    def _reduce(self, form: GroupForm, target: ISlice, source: ISlice) -> list[Any]:
        size = target.rows * target.cols
        up = self._buffer("up", str(target.pointer.dtype), form.size * size)
        out = self._lines(
            target,
            source,
            lambda t, s, axis, line, row: make.reduce(
                form.op, t, s, axis, "group", self._part(up, form.size, size, form.size, line, row), form.size
            ),
        )
        return out + (self._broadcast(form, target, target) if form.everyone else [])

    def _broadcast(self, form: GroupForm, target: ISlice, source: ISlice) -> list[Any]:
        out: list[Any] = []
        if source.pointer.level != "reg":
            size = target.rows * target.cols
            dtype = target.pointer.dtype
            held = IPointer(self.names.new(f"t_{dtype}"), "reg", dtype, size, "tmp")
            self.temporaries.append(held)
            piece = ISlice(held, 0, target.shape, rows=source.valid[:2], cols=source.valid[2:])
            leader = affine(1) - var(PID) % form.size
            if piece.row_end is None:
                bounds = (piece.row_begin, leader * piece.rows)
                mine = piece.replace(rows=bounds)
                out.append(make.move(mine, source.replace(rows=bounds)))
            else:
                out.append(make.move(piece, source))
            source = piece
        size = target.rows * target.cols
        down = self._buffer("down", str(target.pointer.dtype), size)
        return out + self._lines(
            target,
            source,
            lambda t, s, axis, line, row: make.broadcast(
                t, s, axis, "group", self._part(down, form.size, size, 1, line, row), form.size
            ),
        )

    def _buffer(self, hint: str, dtype: str, size: int) -> IPointer:
        """Sram for every set of a group; its size is settled by the first slice of it."""
        pointer = IPointer(self.names.new(hint), "sram", dtype, size, "tmp")
        self.pointers.append(pointer)
        return pointer

    def _part(self, buffer: IPointer, members: int, size: int, copies: int, line: int, row: Any) -> ISlice:
        """The part of a set, for a line of ``line`` elements of the tile of ``size``: ``copies`` of it."""
        units = self.memory.tree.num_units
        which = (var(PID) % units) // members if units > members else affine(0)
        whole = self._sized(buffer, (units // members) * copies * size)
        return ISlice(whole, which * (copies * size) + row * (copies * line), (copies, line))

    def _sized(self, buffer: IPointer, size: int) -> IPointer:
        made = IPointer(buffer.name, "sram", buffer.dtype, size, "tmp")
        self.pointers[:] = [made if p.name == made.name else p for p in self.pointers]
        return made

    def _lines(self, target: ISlice, source: ISlice, make_iop: Any) -> list[Any]:
        """iOps for a tile line by line: a group form joins the units for a row or a column of elements."""
        if target.cols == 1:
            return [make_iop(target, source, "row", target.rows, affine(0))]
        if target.rows == 1:
            return [make_iop(target, source, "col", target.cols, affine(0))]
        name = self.names.new("line")
        row = var(name)
        t, s = _line(target, row), _line(source, row)
        return [Loop(name, target.rows, [make_iop(t, s, "col", target.cols, row)])]


def _line(piece: ISlice, row: Any) -> ISlice:
    """One row of a slice; bounds of the rows become bounds of its columns, which leave all or nothing."""
    begin, end = piece.col_begin, piece.col_end
    if piece.row_begin is not None or piece.row_end is not None:
        twice = (piece.row_begin, begin), (piece.row_end, end)
        if any(row is not None and col is not None for row, col in twice):
            refuse(
                "A tile that units hand each other is bounded in rows and in columns.",
                str(piece.pointer.name),
                need="one ragged dimension",
                remedy="choose a tile that divides one of them",
            )
        begin = (piece.row_begin - row) * piece.cols if piece.row_begin is not None else begin
        end = (piece.row_end - row) * piece.cols if piece.row_end is not None else end
    return ISlice(
        piece.pointer,
        piece.offset + row * piece.stride[0],
        (1, piece.cols),
        (piece.cols, piece.stride[1]),
        cols=(begin, end),
    )


__all__ = ["FormEmitter", "leaves_of", "recognise"]
