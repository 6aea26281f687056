# SPDX-License-Identifier: Apache-2.0
"""Buffers as pointers, and how much of each is kept alive.

Parameters and ``global`` buffers are dram pointers of the whole buffer.  A ``shared`` or ``local``
buffer is declared with its full shape but only a region of it lives at a time: the one touched in
one iteration of the loops that enclose all its accesses.  Its pointer has the size of that region,
and its addresses count from the region's start.

Iterations of the parallel loop do not see each other's buffers, so a ``shared`` buffer has a part for
each unit of the group; where units share loops (see `sharing`) there is one part for each of their sets.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm_ffi.structural import structural_walk

from ..errors import IGraphError
from ..igraph import IPointer, coordinates
from ..igraph.affine import Affine, affine, var
from ..igraph.dtypes import from_tvm
from ..igraph.space import NUMBER_LIMIT, Size, Space
from .affine_from_tir import AffineConverter
from .refusals import refuse
from .sets import OWNER, WITHIN, environment, owners
from .tree_nodes import Leaf, Serial, Tree, TreeLoop

PID = "pid"


@attrs.frozen
class Storage:
    """A pointer, and the region of the buffer that it holds: ``start + [0, shape)`` per dimension.

    ``base`` is where in the pointer the part of this unit begins.  ``dims`` are the dimensions where strides
    depend on sizes; ``shape`` has the greatest.
    """

    pointer: IPointer
    start: tuple[Affine, ...]
    shape: tuple[int, ...]
    base: Affine = attrs.field(factory=lambda: affine(0))
    dims: tuple[Affine, ...] = ()

    def strides(self) -> tuple[int | Affine, ...]:
        """Row-major strides of the region."""
        if self.dims:
            return tuple(s.constant if s.is_constant else s for s in coordinates.strides(self.dims))
        return tuple(math.prod(self.shape[k + 1 :]) for k in range(len(self.shape)))


@attrs.define
class _LeafAccess:
    """One access: the leaf, the loops of the tree around it, the indices."""

    leaf: Leaf
    loops: tuple[TreeLoop, ...]
    indices: Sequence[Any]


class UniqueNames:
    """Names that are identifiers, each given once."""

    def __init__(self, *taken: str) -> None:
        self.taken = set(taken)

    def new(self, hint: str) -> str:
        """A name like ``hint``."""
        base = "".join(c if c.isascii() and c.isalnum() else "_" for c in hint).strip("_") or "v"
        base = base if not base[0].isdigit() else f"v{base}"
        name, count = base, 0
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name


class FunctionPointers:
    """The pointers of a function.

    Parameters
    ----------
    in_part : the parameters that are written, but not every element of them for certain (`roles.in_part`).

    Attributes
    ----------
    storages : dict[tvm.tirx.Buffer, Storage]
        Every buffer that is a parameter or accessed.
    params : list[IPointer]
        In the order of the signature.
    """

    def __init__(self, func: Any, tree: Tree, names: UniqueNames, in_part: Container[Any] = ()) -> None:
        self.tree, self.names, self.in_part = tree, names, in_part
        self.size_space = Space({str(size.name): size for size in tree.sizes.values()})
        self.loop_names: dict[TreeLoop, str] = {}
        self.storages: dict[Any, Storage] = {}
        self.params: list[IPointer] = []
        self.reads: list[Any] = []
        self.accesses: dict[Any, list[_LeafAccess]] = {}
        self.roles: dict[Any, str] = {}
        self._collect(tree.body, ())
        for param in func.params:
            self._add_param(param)
        for buffer in self.accesses:
            if buffer not in self.storages:
                self._add_temporary(buffer)

    @property
    def pointers(self) -> list[IPointer]:
        """Parameters first, then the rest."""
        rest = [s.pointer for s in self.storages.values() if not s.pointer.is_param]
        return [*self.params, *rest]

    def loop_name(self, loop: TreeLoop) -> str:
        """The name of a tree loop's variable; the same whenever it is asked for."""
        if loop not in self.loop_names:
            self.loop_names[loop] = self.names.new(str(loop.var.name))
        return self.loop_names[loop]

    def environment(self, loops: Sequence[TreeLoop]) -> tuple[dict[Any, Affine], dict[str, int | Size]]:
        """What pid, sizes and some tree loops stand for, and what is known of them by name."""
        units = self.tree.num_groups * self.tree.num_units
        extents: dict[str, int | Size] = {PID: units}
        env = environment(self.tree, var(PID) if units > 1 else affine(0), extents)
        for variable, size in self.tree.sizes.items():
            env[variable] = size.expr
            extents[str(size.name)] = size
        for loop in loops:
            env[loop.var] = var(self.loop_name(loop)) + loop.start
            extents[self.loop_name(loop)] = loop.extent
        return env, extents

    # -- accesses -----------------------------------------------------------------------------
    def _collect(self, body: Sequence[Any], loops: tuple[TreeLoop, ...]) -> None:
        for node in body:
            if isinstance(node, Serial):
                self._collect(node.body, (*loops, node.loop))
                continue
            for guarded in node.stmts:
                self._collect_stmt(guarded.stmt, node, loops)

    def _collect_stmt(self, stmt: Any, leaf: Leaf, loops: tuple[TreeLoop, ...]) -> None:
        def visit(load: Any) -> None:
            self._access(load.source, leaf, loops, load.indices)
            self.roles.setdefault(load.source, "in")

        structural_walk(stmt.value, [(tvm.ir.TensorLoad, visit)])
        if isinstance(stmt, tirx.BufferStore):
            for index in stmt.indices:
                structural_walk(index, [(tvm.ir.TensorLoad, visit)])
            self._access(stmt.buffer, leaf, loops, stmt.indices)
            # read before it was written: the caller's values matter
            self.roles[stmt.buffer] = "inout" if self.roles.get(stmt.buffer) in ("in", "inout") else "out"

    def _access(self, buffer: Any, leaf: Leaf, loops: tuple[TreeLoop, ...], indices: Sequence[Any]) -> None:
        self.accesses.setdefault(buffer, []).append(_LeafAccess(leaf, loops, indices))

    # -- pointers -----------------------------------------------------------------------------
    def _add_param(self, param: Any) -> None:
        if not tirx.is_buffer_var(param):
            refuse(
                f"The parameter '{param.name}' is no buffer.",
                "",
                need="buffer parameters only",
                remedy="bind the scalar to a constant, or pass it as a buffer of one element",
            )
        role = self.roles.get(param, "in")
        if role == "out" and param in self.in_part:
            role = "inout"  # what is not written keeps the caller's values
        shape = self._shape(param)
        pointer = self._pointer(param, "dram", math.prod(shape), role, self._dims(param))
        self.params.append(pointer)
        dims = tuple(pointer.dims) if len(coordinates.joined_dims(pointer.dims)) > 1 else ()
        self.storages[param] = Storage(pointer, (affine(0),) * len(shape), shape, dims=dims)

    def _dims(self, param: Any) -> list[Affine]:
        """The dimensions of a parameter where sizes decide some of them; else none."""
        if all(isinstance(extent, tirx.IntImm) for extent in param.shape):
            return []
        env = {variable: size.expr for variable, size in self.tree.sizes.items()}
        dims = [AffineConverter(env, {}, self.size_space).try_convert(extent) for extent in param.shape]
        known = [dim for dim in dims if dim is not None]
        inner = coordinates.joined_dims(known)[1:] if len(known) == len(dims) else (None,)
        if any(dim is None or len(dim.terms) != 1 or dim.constant for dim in inner):
            refuse(
                f"The buffer '{param.name}' has the shape {list(param.shape)}.",
                "",
                need="dimensions that are affine in sizes, all but the outermost a number times one size",
                remedy="fix the other sizes: the kernel is then compiled for each of them",
            )
        return known

    def _add_temporary(self, buffer: Any) -> None:
        level, shape = self.tree.level(buffer), self._shape(buffer)
        if level is None:
            refuse(
                f"The buffer '{buffer.name}' has scope '{buffer.scope()}'.",
                "",
                need="one of global, shared, local",
                remedy="set another scope",
            )
        start: tuple[Affine, ...] = (affine(0),) * len(shape)
        parts, base = 1, affine(0)
        if level != "dram":
            sharing = owners((a.leaf for a in self.accesses[buffer]), self.tree) if level == "sram" else 1
            start, shape = self._region(buffer, sharing, shape)
            if level == "sram" and self.tree.num_units > sharing:
                parts = self.tree.num_units // sharing
                base = (var(PID) % self.tree.num_units) // sharing * math.prod(shape)
        pointer = self._pointer(buffer, level, parts * math.prod(shape), "tmp")
        self.storages[buffer] = Storage(pointer, start, shape, base)

    def _pointer(
        self, buffer: Any, level: str, size: int, role: str, dims: Sequence[Affine] = ()
    ) -> IPointer:
        if size > NUMBER_LIMIT:
            refuse(
                f"The buffer '{buffer.name}' has up to {size} elements.",
                "",
                need=f"at most {NUMBER_LIMIT}: addresses are numbers of 64 bits",
                remedy="give its sizes smaller upper bounds (tir_var_upper_bound)",
            )
        if size < 1:
            # TVM cuts a buffer to what is read of it, to less than nothing where no tile reads any
            refuse(
                f"The buffer '{buffer.name}' has {size} elements.",
                "",
                need="at least one",
                remedy="do not stage what no tile reads",
            )
        try:
            dtype = from_tvm(buffer.dtype)
        except IGraphError as error:
            refuse(f"The buffer '{buffer.name}' has dtype {buffer.dtype}.", "", need=error.need)
        return IPointer(self.names.new(str(buffer.name)), level, dtype, size, role, dims)

    def _shape(self, buffer: Any) -> tuple[int, ...]:
        """The dimensions of a buffer; of those that sizes decide the greatest."""
        if len(buffer.strides):
            self._require_compact(buffer)
        env = {variable: size.expr for variable, size in self.tree.sizes.items()}
        shape = []
        for extent in buffer.shape:
            dim = AffineConverter(env, self.tree.bindings, self.size_space).try_convert(extent)
            if dim is None:
                refuse(
                    f"The buffer '{buffer.name}' has a symbolic shape: {list(buffer.shape)}.",
                    "",
                    need="dimensions that are numbers, or affine in sizes of the parameters' shapes",
                    remedy="give the model concrete input shapes",
                )
            greatest = self.size_space.range(dim)[1]
            if greatest <= 0:
                refuse(
                    f"The buffer '{buffer.name}' has a dimension of size {greatest}.",
                    "",
                    need="every dimension at least 1",
                    remedy="drop the operator: an empty tensor has nothing to compute",
                )
            shape.append(greatest)
        return tuple(shape)

    def _require_compact(self, buffer: Any) -> None:
        expected = 1
        for extent, stride in reversed(list(zip(buffer.shape, buffer.strides, strict=True))):
            if not isinstance(stride, tirx.IntImm) or not isinstance(extent, tirx.IntImm):
                break
            if int(stride.value) != expected:
                break
            expected *= int(extent.value)
        else:
            return
        refuse(
            f"The buffer '{buffer.name}' has strides {list(buffer.strides)}.",
            "",
            need="compact row-major buffers",
            remedy="copy the buffer into a compact one first",
        )

    # -- regions ------------------------------------------------------------------------------
    def _region(
        self, buffer: Any, sharing: int, shape: tuple[int, ...]
    ) -> tuple[tuple[Affine, ...], tuple[int, ...]]:
        """(start, shape) of the region touched within one iteration of the common loops.

        ``sharing`` units touch it together.
        """
        accesses = self.accesses[buffer]
        common = set(accesses[0].loops).intersection(*(a.loops for a in accesses))
        starts, extents = [], []
        spans = [self._spans(access, common, sharing) for access in accesses]
        for extent, *along in zip(shape, *spans, strict=True):
            start, size = _join(along, extent)
            starts.append(start)
            extents.append(size)
        return tuple(starts), tuple(extents)

    def _spans(
        self, access: _LeafAccess, common: set[TreeLoop], sharing: int
    ) -> list[tuple[Affine, int, int] | None]:
        """(start, low, high) of each index: it runs over ``start + [low, high]``; None: not affine."""
        env, extents = self.environment(access.loops)
        fixed = {self.loop_name(loop) for loop in common} | {PID}
        if sharing > 1:
            units = self.tree.num_groups * self.tree.num_units
            extents.update({OWNER: units // sharing, WITHIN: sharing})
            env.update(environment(self.tree, var(OWNER) * sharing + var(WITHIN), extents))
            fixed = (fixed - {PID}) | {OWNER}
        for k, loop in enumerate(access.leaf.loops):
            name = f"leaf {k}"
            env[loop.var] = var(name) + loop.start
            extents[name] = loop.extent
        space = Space(extents)
        converter = AffineConverter(env, self.tree.bindings, space)
        owner = {OWNER: var(PID) // sharing}

        def span(index: Any) -> tuple[Affine, int, int] | None:
            expr = converter.try_convert(index)
            if expr is None:
                return None
            start, low, high = affine(0), 0, 0
            for term in expr.terms:
                alone = term.expr
                if set(alone.variables()) <= fixed:
                    start = start + alone
                    continue
                base, lo, hi = _spread(term, fixed, space)
                start, low, high = start + base, low + lo, high + hi
            return start.substitute(owner), low + expr.constant, high + expr.constant

        return [span(index) for index in access.indices]


def _spread(term: Any, fixed: set[str], space: Space) -> tuple[Affine, int, int]:
    """A term as ``base + [lo, hi]``, the base in fixed variables only."""
    c = term.coeff
    if term.kind != "floordiv":
        return affine(0), *space.range(term.expr)
    inner, k = term.argument, term.divisor
    base, lo, hi = affine(0), inner.constant, inner.constant
    for part in inner.terms:
        if set(part.expr.variables()) <= fixed:
            base = base + part.expr
        else:
            extra, low, high = _spread(part, fixed, space)
            base, lo, hi = base + extra, lo + low, hi + high
    # b is a multiple of g, which divides k: floor((b + x)/k) = floor((b/g + floor(x/g)) / (k/g)), which for
    # x in [lo, hi] lies in floor((b + lo)/k) + [0, ceil((floor(hi/g) - floor(lo/g)) / (k/g))]
    g = math.gcd(k, *(part.coeff for part in base.terms))
    ends = (0, c * -((lo // g - hi // g) // (k // g)))
    return space.floordiv(base + lo, k) * c, min(ends), max(ends)


def _join(spans: Sequence[tuple[Affine, int, int] | None], extent: int) -> tuple[Affine, int]:
    """The hull of all spans if they start alike and it is smaller than the dimension, else all of it."""
    if any(span is None for span in spans):
        return affine(0), extent
    known = [span for span in spans if span is not None]
    start = known[0][0]
    if any(span[0] != start for span in known):
        return affine(0), extent
    low, high = min(span[1] for span in known), max(span[2] for span in known)
    if start.is_constant:
        low, high = max(low, -start.constant), min(high, extent - 1 - start.constant)
    if high - low + 1 > extent:
        return affine(0), extent
    return start + low, high - low + 1
