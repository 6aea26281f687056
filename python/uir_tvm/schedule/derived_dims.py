# SPDX-License-Identifier: Apache-2.0
"""Inner dimensions of parameters that are expressions of sizes, as sizes that follow from them.

Before, with the size ``n``::

    for i, j, r in grid(4, n // 2, 2): Y[i, j] = max(Y[i, j], X[i, 2*j + r])      # X: (4, n), Y: (4, n // 2)

After, with the size ``n_over_2`` too, which a launch computes::

    for i, j, r in grid(4, n_over_2, 2):                                         # X: (4, n), Y: (4, n_over_2)
      Y[i, j] = max(Y[i, j], X[i, 2*j + r] if 2*j + r < n else 0)

Strides are then products of numbers and sizes.  What recipes, proofs and printers see are two sizes of which
each may have any value: where an index stays within its dimension because of what one has to do with the
other, a condition says so.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock
from tvm_ffi.structural import structural_equal, structural_map

from ..igraph.size_names import name_of
from ..igraph.tir_sizes import SIZES, size_that_follows, sizes_of, with_sizes
from .blocks import collect, conjuncts, uses
from .make_tir import changed, with_body
from .representative import is_open

#: A comparison as differences that are below zero where it holds.
_BELOW: dict[type, Any] = {
    tirx.LT: lambda c: c.a - c.b,
    tirx.LE: lambda c: c.a - c.b - 1,
    tirx.GT: lambda c: c.b - c.a,
    tirx.GE: lambda c: c.b - c.a - 1,
}


def with_derived_dims(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with a size for each such dimension; itself where there is none, or no name for one.

    Also where a store might leave its buffer, if each size could have any value.
    """
    made: tirx.PrimFunc = func
    variables: list[Any] = []
    while (dim := next(iter(_derived(made)), None)) is not None:
        replaced = _DerivedDim(made, dim)
        after = replaced.function()
        if after is None:
            break
        made, variables = after, [*variables, replaced.variable]
    blocks = collect(made.body, SBlock) if variables else []
    if not blocks or any(not _stays_inside(block, variables) for block in blocks):
        return func
    body = structural_map(made.body, (SBlock, lambda block: _guarded(block, variables)))
    return tirx.PrimFunc(made.params, body, made.ret_type, made.attrs)


def _derived(func: tirx.PrimFunc) -> Iterator[Any]:
    """Dimensions inside of others that are neither numbers nor a number times one size, and have a name."""
    for param in func.params:
        dims = list(param.ty.shape) if tirx.is_buffer_var(param) else []
        outer = next((k for k, dim in enumerate(dims) if is_open(dim) or int(dim) != 1), len(dims))
        for dim in dims[outer + 1 :]:
            if is_open(dim) and not isinstance(dim, tvm.ir.Var) and not _is_multiple(dim):
                if name_of(dim) is not None:
                    yield dim


def _is_multiple(dim: Any) -> bool:
    return isinstance(dim, tirx.Mul) and {type(dim.a), type(dim.b)} == {tirx.IntImm, tvm.ir.Var}


class _DerivedDim:
    """A function, and an expression that becomes a size."""

    def __init__(self, func: tirx.PrimFunc, dim: Any) -> None:
        self.func, self.dim = func, dim
        self.analyzer = tvm.sym.Analyzer()
        self.variable = tvm.ir.Var(str(name_of(dim)), str(dim.ty))
        root = func.body.block if isinstance(func.body, tvm.s_tir.SBlockRealize) else None
        allocated = [] if root is None else list(root.alloc_buffers)
        params = [param for param in func.params if tirx.is_buffer_var(param)]
        self.buffers = {
            buffer: tirx.decl_buffer(
                list(map(self._size, buffer.shape)), str(buffer.dtype), buffer.name, scope=buffer.scope()
            )
            for buffer in (*params, *allocated)
            if any(map(self._is_it, buffer.shape))
        }

    def function(self) -> tirx.PrimFunc | None:
        """The function, without conditions; None where the size has no value."""
        sizes = {str(size.name): size for size in sizes_of(self.func).values()}
        own = size_that_follows(self.func, str(self.variable.name), sizes)
        if own is None or str(own.name) in sizes:
            return None
        body = structural_map(self.func.body, [(tvm.ir.Var, self._var), (tirx.For, self._loop)])
        body = structural_map(body, (SBlock, self._block))
        params = [self.buffers.get(param, param) for param in self.func.params]
        made = tirx.PrimFunc(params, body, self.func.ret_type, self.func.attrs)
        given = dict((self.func.attrs or {}).get(SIZES) or {})
        known = {name: list(map(int, row)) for name, row in given.items() if name not in sizes}
        made = with_sizes(made, {**sizes, str(own.name): own})
        return made.with_attr(SIZES, {**known, **dict(made.attrs[SIZES])})

    # -- the size in the place of the expression --------------------------------------------------
    def _is_it(self, expr: Any) -> bool:
        return is_open(expr) and bool(self.analyzer.can_prove_equal(expr, self.dim))

    def _size(self, expr: Any) -> Any:
        return self.variable if self._is_it(expr) else expr

    def _var(self, variable: Any) -> Any:
        return self.buffers.get(variable, variable)

    def _loop(self, loop: tirx.For) -> Any:
        if not self._is_it(loop.extent):
            return loop
        return tirx.For(
            loop.loop_var, loop.min, self.variable, loop.kind, loop.body, annotations=loop.annotations
        )

    def _block(self, block: SBlock) -> SBlock:
        iter_vars = [
            tirx.IterVar(tvm.ir.Range(iv.dom.min, self._size(iv.dom.extent)), iv.var, iv.iter_type)
            for iv in block.iter_vars
        ]
        allocated = [self.buffers.get(buffer, buffer) for buffer in block.alloc_buffers]
        return with_body(changed(block, iter_vars=iter_vars, alloc_buffers=allocated), block.body)


def _walkers(block: SBlock, variables: Sequence[Any]) -> list[Any]:
    """The block's variables that run up to one of these sizes."""
    return [
        iv.var
        for iv in block.iter_vars
        if isinstance(iv.dom.extent, tvm.ir.Var) and any(iv.dom.extent.same_as(v) for v in variables)
    ]


def _ranges(block: SBlock) -> Any:
    analyzer = tvm.sym.Analyzer()
    for iv in block.iter_vars:
        analyzer.bind(iv.var, iv.dom)
    return analyzer


def _stays_inside(block: SBlock, variables: Sequence[Any]) -> bool:
    """Whether what a block stores lies in its buffer, whatever the sizes are."""
    walkers, analyzer = _walkers(block, variables), _ranges(block)
    stores = collect(block.body, tirx.BufferStore)
    return not any(_missing(store.buffer, store.indices, walkers, analyzer) for store in stores)


def _guarded(block: SBlock, variables: Sequence[Any]) -> SBlock:
    """The block with conditions where it reads beyond what is known of the sizes."""
    walkers, analyzer = _walkers(block, variables), _ranges(block)
    found: list[tuple[Any, list[Any]]] = []
    for store in collect(block.body, tirx.BufferStore) if walkers else ():
        for load, known in _loads(store.value, ()):
            missing = _missing(load.source, load.indices, walkers, analyzer)
            left = [condition for condition in missing if not _implied(condition, known, analyzer)]
            if left:
                found.append((load, left))

    def guarded(load: TensorLoad) -> Any:
        conditions = next((c for other, c in found if structural_equal(other, load)), None)
        if conditions is None:
            return load
        return tirx.if_then_else(
            functools.reduce(tirx.And, conditions), load, tirx.const(0, str(load.source.dtype))
        )

    return with_body(block, structural_map(block.body, (TensorLoad, guarded))) if found else block


def _missing(buffer: Any, indices: Sequence[Any], walkers: list[Any], analyzer: Any) -> list[Any]:
    """The conditions under which indices that the size decides are those of elements; none that are so."""
    out = []
    for index, dim in zip(indices, buffer.shape, strict=True):
        if isinstance(index, int) or not uses(index, walkers) or collect(index, TensorLoad):
            continue
        out += [c for c in (index >= 0, index < dim) if not analyzer.can_prove(c)]
    return out


def _loads(expr: Any, known: tuple[Any, ...]) -> Iterator[tuple[TensorLoad, tuple[Any, ...]]]:
    """Every load with the conditions under which it is reached."""
    if isinstance(expr, TensorLoad):
        yield expr, known
        for index in expr.indices:
            yield from _loads(index, known)
    elif isinstance(expr, tvm.ir.Call) and str(getattr(expr.op, "name", "")).endswith("if_then_else"):
        condition, value, other = expr.args
        yield from _loads(condition, known)
        yield from _loads(value, (*known, *conjuncts(condition)))
        yield from _loads(other, known)
    elif isinstance(expr, tvm.ir.Call):
        for argument in expr.args:
            yield from _loads(argument, known)
    else:
        for name in ("a", "b", "value", "condition", "true_value", "false_value", "body"):
            if isinstance(part := getattr(expr, name, None), tvm.ir.Expr):
                yield from _loads(part, known)


def _implied(condition: Any, known: Sequence[Any], analyzer: Any) -> bool:
    """Whether one of other conditions says as much."""
    wanted = _BELOW[type(condition)](condition) if type(condition) in _BELOW else None
    if wanted is None:
        return False
    for other in known:
        if type(other) in _BELOW:
            rest = analyzer.simplify(wanted - _BELOW[type(other)](other))
            if isinstance(rest, tirx.IntImm) and int(rest) <= 0:
                return True
    return False
