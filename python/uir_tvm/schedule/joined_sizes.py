# SPDX-License-Identifier: Apache-2.0
"""Neighbouring open dimensions that all blocks walk together, as one dimension of their product.

Before, with the sizes ``n`` and ``m``::

    for i, j, k in grid(n, m, 384): Y[i, j, k] = f(X[i, j, k])     # X, Y: (n, m, 384)

After::

    for p, k in grid(n_times_m, 384): Y[p, k] = f(X[p, k])         # X, Y: (n_times_m, 384)

Addresses keep constant strides that way: those of the first form are products of sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock, SBlockRealize
from tvm_ffi.structural import structural_map

from ..igraph.tir_sizes import SIZES, known_product, product_of, sizes_of
from .blocks import collect
from .make_tir import changed, with_body

SPATIAL = tirx.IterVar.DataPar


def join_sizes(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with open dimensions joined as long as two can be; itself where none can.

    Parameters keep their order and their bytes, with fewer dimensions.
    """
    while True:
        sizes = list(sizes_of(func))
        pairs = itertools.permutations(sizes, 2)
        found = next((pair for pair in pairs if _SizePair(func, *pair).goes_together()), None)
        if found is None:
            return func
        func = _SizePair(func, *found).joined()


@attrs.frozen(eq=False)
class _Nest:
    """A block under loops of its own, one for each of its variables and bound to just that."""

    loops: tuple[tirx.For, ...]
    realize: SBlockRealize

    @staticmethod
    def of(stmt: Any) -> _Nest | None:
        loops: list[tirx.For] = []
        while isinstance(stmt, tirx.For):
            loops.append(stmt)
            stmt = stmt.body
        if not isinstance(stmt, SBlockRealize) or collect(stmt.block.body, SBlockRealize):
            return None
        plain = all(
            int(loop.kind) == tirx.ForKind.SERIAL and not loop.annotations and _is_zero(loop.min)
            for loop in loops
        )
        bound = list(stmt.iter_values)
        same = len(bound) == len(loops) and all(
            isinstance(value, tvm.ir.Var) and value.same_as(loop.loop_var)
            for value, loop in zip(bound, loops, strict=True)
        )
        return _Nest(tuple(loops), stmt) if plain and same and _is_true(stmt.predicate) else None

    @property
    def block(self) -> SBlock:
        return self.realize.block


@attrs.frozen(eq=False)
class _SizePair:
    """Two sizes of a function, which may be neighbouring dimensions, the first outside."""

    func: tirx.PrimFunc
    first: Any
    second: Any

    def goes_together(self) -> bool:
        """Whether every buffer has both as neighbours or none, and every block walks them together."""
        nests, sizes = self._nests(), sizes_of(self.func)
        taken = {str(size.name) for size in sizes.values()}
        if str(product_of(sizes[self.first], sizes[self.second]).name) in taken:
            return False
        if nests is None or not all(map(self._joinable, self._buffers())):
            return False
        return any(self._place(b) is not None for b in self._buffers()) and all(map(self._walks, nests))

    def joined(self) -> tirx.PrimFunc:
        """The function with one dimension in the place of both."""
        product = known_product(self.func, *(sizes_of(self.func)[each] for each in (self.first, self.second)))
        variable = tvm.ir.Var(str(product.name), str(self.first.ty.dtype))
        buffers = {b: self._flattened(b, variable) for b in self._buffers() if self._place(b) is not None}
        root = self.func.body.block
        body = [self._rewritten(nest, variable, buffers) for nest in self._nests() or ()]
        block = changed(
            root,
            body=body[0] if len(body) == 1 else tirx.SeqStmt(body),
            alloc_buffers=[buffers.get(b, b) for b in root.alloc_buffers],
        )
        realize = SBlockRealize(list(self.func.body.iter_values), self.func.body.predicate, block)
        params = [buffers.get(p, p) for p in self.func.params]
        known = {str(size.name): size for size in (*sizes_of(self.func).values(), product)}
        rows = {name: [size.low, size.high, size.multiple_of] for name, size in known.items()}
        # what is known of products of more of them is for when they are joined
        rows = {**dict((self.func.attrs or {}).get(SIZES) or {}), **rows}
        left = {n: row for n, row in rows.items() if n not in (self.first.name, self.second.name)}
        return tirx.PrimFunc(params, realize, self.func.ret_type, self.func.attrs).with_attr(SIZES, left)

    # -- what there is ----------------------------------------------------------------------------
    def _nests(self) -> list[_Nest] | None:
        body = self.func.body
        if not isinstance(body, SBlockRealize) or body.block.iter_vars:
            return None
        stmts = body.block.body.seq if isinstance(body.block.body, tirx.SeqStmt) else [body.block.body]
        nests = [_Nest.of(stmt) for stmt in stmts]
        return None if any(nest is None for nest in nests) else [nest for nest in nests if nest is not None]

    def _buffers(self) -> list[Any]:
        params = [p for p in self.func.params if tirx.is_buffer_var(p)]
        return [*params, *self.func.body.block.alloc_buffers]

    def _place(self, buffer: Any) -> int | None:
        """Where the first of both stands among a buffer's dimensions."""
        return next((k for k, dim in enumerate(buffer.shape) if self._is(dim, self.first)), None)

    def _joinable(self, buffer: Any) -> bool:
        uses = [k for k, dim in enumerate(buffer.shape) if _mentions(dim, (self.first, self.second))]
        if not uses:
            return True
        at = self._place(buffer)
        return (
            at is not None
            and not len(buffer.strides)
            and uses == [at, at + 1]
            and self._is(buffer.shape[at + 1], self.second)
        )

    def _is(self, expr: Any, variable: Any) -> bool:
        return isinstance(expr, tvm.ir.Var) and expr.same_as(variable)

    def _axes(self, nest: _Nest) -> tuple[int, int] | None:
        """The block's variables that run over both; None where there are none or more than one each."""
        found = [
            [k for k, iv in enumerate(nest.block.iter_vars) if self._is(iv.dom.extent, size)]
            for size in (self.first, self.second)
        ]
        return (found[0][0], found[1][0]) if [len(f) for f in found] == [1, 1] else None

    def _walks(self, nest: _Nest) -> bool:
        """Whether a block uses its variables of both only as the neighbouring indices of these buffers."""
        both = (self.first, self.second)
        axes = self._axes(nest)
        if axes is None:
            extents = [iv.dom.extent for iv in nest.block.iter_vars]
            return not any(_mentions(extent, both) for extent in extents) and not self._touches(nest)
        one, other = (nest.block.iter_vars[axis] for axis in axes)
        spatial = {int(one.iter_type), int(other.iter_type)} == {SPATIAL}
        if not spatial or axes[1] != axes[0] + 1:
            return False
        outside = list(_outside(nest.block, lambda b: self._place(b), (one.var, other.var)))
        return not any(_mentions(expr, (one.var, other.var, *both)) for expr in outside)

    def _touches(self, nest: _Nest) -> bool:
        """Whether a block reads or writes a buffer that has both."""
        block = nest.block
        buffers = [region.source for region in (*block.reads, *block.writes)]
        return any(self._place(buffer) is not None for buffer in buffers)

    # -- what becomes of it -----------------------------------------------------------------------
    def _flattened(self, buffer: Any, variable: Any) -> Any:
        at = self._place(buffer)
        assert at is not None
        shape = [*buffer.shape[:at], variable, *buffer.shape[at + 2 :]]
        return tirx.decl_buffer(shape, str(buffer.ty.dtype), name=buffer.name, scope=str(buffer.scope()))

    def _rewritten(self, nest: _Nest, variable: Any, buffers: dict[Any, Any]) -> Any:
        axes, index = self._axes(nest), _dtype(variable)
        loops, block = list(nest.loops), nest.block
        iter_vars = list(block.iter_vars)
        values = list(nest.realize.iter_values)
        own = tvm.ir.Var(str(variable.name), index)
        if axes is not None:
            at = axes[0]
            loop_var = tvm.ir.Var(f"{loops[at].loop_var.name}_{loops[at + 1].loop_var.name}", index)
            own = tvm.ir.Var(f"{iter_vars[at].var.name}_{iter_vars[at + 1].var.name}", index)
            domain = tvm.ir.Range(tirx.const(0, index), variable)
            iter_vars[at : at + 2] = [tirx.IterVar(domain, own, SPATIAL)]
            values[at : at + 2] = [loop_var]
            start = tirx.const(0, index)
            joint = tirx.For(loop_var, start, variable, tirx.ForKind.SERIAL, loops[at].body)
            loops[at : at + 2] = [joint]

        def indices(buffer: Any, given: Sequence[Any]) -> list[Any]:
            place = self._place(buffer)
            return list(given) if place is None else [*given[:place], own, *given[place + 2 :]]

        def load(node: TensorLoad) -> Any:
            if node.source not in buffers:
                return node
            return tirx.BufferLoad(buffers[node.source], indices(node.source, node.indices))

        def write(node: tirx.BufferStore) -> Any:
            if node.buffer not in buffers:
                return node
            return tirx.BufferStore(buffers[node.buffer], node.value, indices(node.buffer, node.indices))

        kinds = [(TensorLoad, load), (tirx.BufferStore, write)]
        init = None if block.init is None else structural_map(block.init, kinds)
        block = with_body(changed(block, iter_vars=iter_vars), structural_map(block.body, kinds), init)
        stmt: Any = SBlockRealize(values, nest.realize.predicate, block)
        for loop in reversed(loops):
            stmt = tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, stmt)
        return stmt


def _outside(block: SBlock, place: Any, pair: tuple[Any, Any]) -> Iterator[Any]:
    """Every expression of a block but the pair where it stands as neighbouring indices of joined buffers."""

    def rest(buffer: Any, given: Sequence[Any]) -> Iterator[Any]:
        at = place(buffer)
        if at is not None and all(
            isinstance(index, tvm.ir.Var) and index.same_as(wanted)
            for index, wanted in zip(given[at : at + 2], pair, strict=True)
        ):
            yield from (*given[:at], *given[at + 2 :])
        else:
            yield from given
            if at is not None:
                yield pair[0]  # another walk of a joined buffer

    for stmt in (block.body, *([] if block.init is None else [block.init])):
        for load in collect(stmt, TensorLoad):
            yield from (e for e in rest(load.source, load.indices) if not isinstance(e, int))
        for store in collect(stmt, tirx.BufferStore):
            yield from (e for e in rest(store.buffer, store.indices) if not isinstance(e, int))
        yield from _values(stmt)


def _values(stmt: Any) -> Iterator[Any]:
    """Expressions of a statement with its loads taken out."""

    def without(node: TensorLoad) -> Any:
        return tirx.const(0, str(node.source.ty.dtype))

    for store in collect(stmt, tirx.BufferStore):
        yield structural_map(store.value, (TensorLoad, without))
    for kind, parts in (
        (tirx.IfThenElse, ("condition",)),
        (tirx.For, ("min", "extent")),
        (tirx.Bind, ("value",)),
    ):
        for node in collect(stmt, kind):
            yield from (structural_map(getattr(node, part), (TensorLoad, without)) for part in parts)


def _mentions(expr: Any, variables: Sequence[Any]) -> bool:
    if isinstance(expr, int):
        return False
    return any(found.same_as(v) for found in collect(expr, tvm.ir.Var) for v in variables)


def _dtype(variable: Any) -> str:
    return str(variable.ty.dtype)


def _is_zero(expr: Any) -> bool:
    return isinstance(expr, tirx.IntImm) and int(expr) == 0


def _is_true(expr: Any) -> bool:
    return isinstance(expr, tirx.IntImm) and bool(expr.value)
