# SPDX-License-Identifier: Apache-2.0
"""From the statements of a PrimFunc to a tree of serial loops over leaf nests.

A *leaf* is straight-line code (stores, lets, guards) under loops that enclose nothing else; what
becomes of its loops (rows, columns, serial) is decided later, leaf by leaf.  Reductions lose their
init here: it becomes a leaf of its own before the outermost reduction loop.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NoReturn

import attrs
import tvm
from tvm import s_tir, tirx
from tvm_ffi.structural import structural_walk

from ..igraph.affine import Affine
from ..igraph.rounds import MOST_ROUNDS
from ..igraph.space import Space
from ..igraph.tir_sizes import MOST, sizes_of
from ..schedule.annotations import LITTLE_WORK, LOOP, PARALLEL, PIPELINE, VECTOR, parse_parallel
from .affine_from_tir import AffineConverter
from .chosen import chosen
from .conditions import always, conjuncts, loaded, substituted, variables
from .refusals import refuse
from .sharing import check_loop, check_sizes, group_of, shared_loop
from .tree_nodes import Guarded, Leaf, Members, Pair, Serial, Tree, TreeLoop

REDUCTION_AXIS = 2  # tvm.tirx.IterVar.CommReduce


@attrs.define(eq=False)
class _Pending:
    """An init on its way out of the loops ``reduced`` (with their starts); ``stop`` is the outermost."""

    leaf: Leaf
    stop: Any
    reduced: dict[Any, Any]


def build_tree(func: Any) -> Tree:
    """The loop tree of an S-TIR PrimFunc.

    Raises
    ------
    uir_tvm.errors.ExtractionError
        A statement that no iGraph has, a loop without a constant bound or of extent zero, or blocks
        outside of the parallel loop.
    """
    return _TreeBuilder(func).run()


class _TreeBuilder:
    def __init__(self, func: Any) -> None:
        self.func = func
        self.bindings: dict[Any, Any] = {}
        self.domains: dict[Any, Any] = {}
        self.buffers: list[Any] = []
        self.stored: Counter[Any] = Counter()
        self.loops: list[TreeLoop] = []
        self.blocks: list[str] = []
        self.pending: list[_Pending] = []
        self.parallel: TreeLoop | None = None
        self.units = (1, 1)
        self.set_size = 1
        self.vector_bytes = 0
        self.little_work = 0
        self.members = Members()
        self.sizes = sizes_of(func)
        self.groups: Affine | None = None

    def run(self) -> Tree:
        count = [(tirx.BufferStore, lambda store: self.stored.update([store.buffer]))]
        structural_walk(self.func.body, count)
        body = self.build(self.func.body)
        if self.parallel is not None:
            if len(body) != 1 or not isinstance(body[0], Serial) or body[0].loop is not self.parallel:
                self.refuse(
                    "Not all blocks lie inside the parallel loop.",
                    need="one loop annotated uir.parallel that encloses every block",
                    remedy="compute the other blocks at that loop, or fuse them into the mapped block",
                )
            body = body[0].body
        check_sizes(_leaves(body), self.set_size)
        return Tree(
            _flatten(body),
            self.bindings,
            self.buffers,
            self.parallel,
            *self.units,
            self.set_size,
            self.members,
            vector_bytes=self.vector_bytes,
            little_work=self.little_work,
            sizes=self.sizes,
            groups=self.groups,
        )

    @property
    def block(self) -> str:
        return self.blocks[-1] if self.blocks else ""

    def refuse(self, what: str, node: Any = None, **parts: str) -> NoReturn:
        refuse(what, self.block, node, **parts)

    # -- statements ---------------------------------------------------------------------------
    def build(self, stmt: Any) -> list[Any]:
        """The nodes of a statement, in order."""
        handler: Any = _STATEMENTS.get(type(stmt))
        if handler is None:
            self.refuse(f"A {type(stmt).__name__} has no meaning in an iGraph.", stmt)
        return handler(self, stmt)

    def sequence(self, stmt: Any) -> list[Any]:
        """Neighbouring straight-line statements make one leaf; anything else stands by itself."""
        out: list[Any] = []
        run: list[Any] = []
        for part in stmt.seq:
            if _is_straight(part):
                run.append(part)
                continue
            self._inline_binds(run, out)
            run = []
            out.extend(self.build(part))
        if run:
            out.extend(self.straight(run))
        return out

    def _inline_binds(self, run: list[Any], out: list[Any]) -> None:
        """Straight-line code before a loop; its lets reach into the loop, so they are substituted."""
        for part in run:
            if isinstance(part, tirx.Bind):
                if loaded(part.value, {}) & set(self.stored):
                    self.refuse(
                        "A let of a value that the kernel may change reaches into a loop.",
                        part,
                        remedy="load the value inside the loop",
                    )
                self.bindings[part.var] = part.value
        rest = [part for part in run if not isinstance(part, tirx.Bind)]
        if rest:
            out.extend(self.straight(rest))

    def straight(self, stmts: list[Any]) -> list[Any]:
        """One leaf of straight-line statements; index lets are substituted, others computed once."""
        items: list[Guarded] = []
        for stmt in stmts:
            self._straight_into(stmt, (), items)
        return [Leaf(self.block, items)] if any(not isinstance(g.stmt, tirx.Bind) for g in items) else []

    def _straight_into(self, stmt: Any, conditions: tuple[Any, ...], items: list[Guarded]) -> None:
        if isinstance(stmt, tirx.SeqStmt):
            for part in stmt.seq:
                self._straight_into(part, conditions, items)
        elif isinstance(stmt, tirx.IfThenElse) and (stores := chosen(stmt, self.bindings)) is not None:
            for store in stores:
                self._straight_into(store, conditions, items)
        elif isinstance(stmt, tirx.IfThenElse):
            self._straight_into(stmt.then_case, (*conditions, stmt.condition), items)
            if stmt.else_case is not None:
                self._straight_into(stmt.else_case, (*conditions, tirx.Not(stmt.condition)), items)
        elif isinstance(stmt, tirx.Bind) and not loaded(stmt.value, {}):
            self.bindings[stmt.var] = stmt.value
        elif isinstance(stmt, tirx.BufferStore | tirx.Bind):
            items.append(Guarded(stmt, conditions))

    def evaluate(self, stmt: Any) -> list[Any]:
        """An Evaluate of a constant does nothing; every call is refused."""
        if not isinstance(stmt.value, tirx.IntImm):
            self.refuse("A call for its effect has no iGraph.", stmt, remedy="express it with stores")
        return []

    def branch(self, stmt: Any) -> list[Any]:
        """A condition around loops becomes a condition of every store inside."""
        if _is_straight(stmt):
            return self.straight([stmt])
        out = self._under(stmt.condition, stmt.then_case)
        if stmt.else_case is not None:
            out += self._under(tirx.Not(stmt.condition), stmt.else_case)
        return out

    def _under(self, condition: Any, stmt: Any) -> list[Any]:
        first = len(self.pending)
        nodes = self.build(stmt)
        for leaf in _leaves(nodes):
            leaf.guard(condition)
        for pending in self.pending[first:]:
            self._guard_init(pending.leaf, condition, pending.reduced)
        return nodes

    # -- loops --------------------------------------------------------------------------------
    def loop(self, stmt: Any) -> list[Any]:
        """A loop: of the tree, or one more loop of the only leaf in it."""
        loop, end = self._open(stmt)
        if loop.extent == 1 and end is None and loop is not self.parallel:
            self.bindings[stmt.loop_var] = tirx.IntImm(str(stmt.loop_var.ty), loop.start)
            return self.build(stmt.body)
        self.loops.append(loop)
        first = len(self.pending)
        children = self.build(stmt.body) if end is None else self._under(loop.var < end, stmt.body)
        self.loops.pop()
        inits = self._close(loop, first)
        if loop.group > 1:
            return self._shared(loop, children, inits, end is not None, first)
        if not children:
            return inits
        node = self._wrap(loop, children)
        if len(inits) == 1 and isinstance(node, Leaf):
            return [Pair(inits[0], node)]
        return [*inits, node]

    def _shared(
        self, loop: TreeLoop, children: list[Any], inits: list[Leaf], has_end: bool, first: int
    ) -> list[Any]:
        """A loop of which each unit of a set runs one iteration: its variable is the unit's number."""
        check_loop(loop, has_end, self.units[1], self.block)
        if inits:
            self.refuse(
                f"The reduction over '{loop.var.name}' is shared by the units of a set.",
                need="a partial result for each unit",
                remedy="share it with sch.group_reduce",
            )
        self.bindings[loop.var] = self.members.of(loop.group)
        for leaf in (*_leaves(children), *(pending.leaf for pending in self.pending[first:])):
            if leaf.group not in (1, loop.group):
                self.refuse(f"Loops are shared by sets of {leaf.group} and of {loop.group} units.")
            leaf.group = loop.group
        return children

    def _open(self, stmt: Any) -> tuple[TreeLoop, Any]:
        """The loop, and its end if that is no constant."""
        start, extent, end = _constant(stmt.min), _constant(stmt.extent), None
        name = str(stmt.loop_var.name)
        if start is None:
            self.refuse(f"The loop '{name}' does not start at a constant.", stmt.min)
        if stmt.step is not None and _constant(stmt.step) != 1:
            self.refuse(f"The loop '{name}' has a step other than 1.", stmt.step)
        if stmt.kind == tirx.ForKind.THREAD_BINDING:
            self.refuse(
                f"The loop '{name}' is bound to a thread axis.",
                remedy="annotate the parallel loop with uir.parallel instead of binding it",
            )
        if extent is None and PARALLEL in stmt.annotations:
            extent = 1  # decided below
        if extent is None:
            extent, end = self._upper_bound(stmt), stmt.extent + stmt.min
        if extent <= 0:
            self.refuse(
                f"The loop '{name}' has extent {extent}.",
                need="every dimension at least 1",
                remedy="drop the operator: an empty tensor has nothing to compute",
            )
        stages = int(stmt.annotations.get(PIPELINE, 0))
        serial, ahead = LOOP in stmt.annotations or stages > 0, stages if stages > 1 else 0
        loop = TreeLoop(stmt.loop_var, start, extent, serial, pipeline=ahead)
        if PARALLEL in stmt.annotations:
            self._open_parallel(loop, stmt)
            return loop, None
        loop.group = group_of(stmt.annotations)
        return loop, end

    def _open_parallel(self, loop: TreeLoop, stmt: Any) -> None:
        if self.parallel is not None or self.loops:
            self.refuse(
                f"The parallel loop '{stmt.loop_var.name}' is not the only outermost loop.",
                need="one loop annotated uir.parallel, outside of all others",
                remedy="map one block to the units and compute the others at its loops",
            )
        size = group_of(stmt.annotations)
        groups, units = parse_parallel(stmt.annotations[PARALLEL], loop.extent * size)
        fits = units % size == 0 and loop.start == 0
        if _constant(stmt.extent) is None:
            # how many groups there are follows, whatever the annotation says of the sizes it was written for
            found = self._groups(stmt.extent, units // size) if fits else None
            if found is None:
                self.refuse(
                    f"The parallel loop '{stmt.loop_var.name}' has the extent {stmt.extent}.",
                    need="a number, or an affine expression of sizes that whole groups divide",
                    limit=f"groups of {units} units",
                    remedy="fix some of the sizes: the kernel is then compiled for each of them",
                )
            self.groups, groups = found
            loop.extent = groups * units // size
        if groups * units != loop.extent * size or not fits:
            self.refuse(
                f"The parallel loop '{stmt.loop_var.name}' has extent {loop.extent}.",
                need=f"extent {groups * units // size} from 0, "
                f"as uir.parallel = '{stmt.annotations[PARALLEL]}' says"
                + (f" for sets of {size} units" if size > 1 else ""),
            )
        self.parallel, self.units, self.set_size = loop, (groups, units), size
        self.little_work = int(stmt.annotations.get(LITTLE_WORK, 0))
        self.vector_bytes = int(stmt.annotations.get(VECTOR, 0))
        if self.vector_bytes < 0 or self.vector_bytes & (self.vector_bytes - 1):
            self.refuse(
                f"Vectors of {self.vector_bytes} bytes are asked for by {VECTOR}.",
                need="a power of two",
                remedy="leave the annotation out, or name half or a multiple of the hardware's vector_bytes",
            )

    def _groups(self, extent: Any, sets: int) -> tuple[Affine, int] | None:
        """The number of groups of so many iterations, an expression of sizes, and its greatest value."""
        env = {variable: size.expr for variable, size in self.sizes.items()}
        space = Space({str(size.name): size for size in self.sizes.values()})
        total = AffineConverter(env, {}, space).try_convert(extent)
        if total is None:
            return None
        groups = space.floordiv(total, sets)
        return (groups, space.range(groups)[1]) if space.fold(groups * sets - total) == 0 else None

    def _upper_bound(self, stmt: Any) -> int:
        analyzer = tvm.sym.Analyzer()
        for variable, size in self.sizes.items():
            analyzer.bind(variable, tvm.ir.Range(int(size.low), int(size.high) + 1))
        for loop in self.loops:
            analyzer.bind(loop.var, tvm.ir.Range(loop.start, loop.start + loop.extent))
        for var, domain in self.domains.items():
            analyzer.bind(var, domain)
        bound = analyzer.const_int_bound(analyzer.simplify(stmt.extent)).max_value
        if bound > MOST_ROUNDS and variables(stmt.extent, self.bindings) & set(self.sizes):
            self.refuse(
                f"The loop '{stmt.loop_var.name}' runs up to {bound} times, as sizes decide.",
                stmt.extent,
                limit=f"{MOST_ROUNDS} rounds: a loop of a unit has as many for all sizes",
                remedy="give its sizes smaller upper bounds (tir_var_upper_bound)",
            )
        if bound >= MOST:
            self.refuse(
                f"The loop '{stmt.loop_var.name}' has no constant bound.",
                stmt.extent,
                need="a constant bound",
                remedy="map the block to units, or give the model concrete input shapes",
            )
        return int(bound)

    def _wrap(self, loop: TreeLoop, children: list[Any]) -> Any:
        if loop is not self.parallel and len(children) == 1:
            (child,) = children
            if isinstance(child, Leaf):
                child.loops.insert(0, loop)
                return child
            if isinstance(child, Pair) and isinstance(child.update, Leaf) and not loop.serial:
                # the init was generated here: both walk this loop's iterations independently
                child.init.loops.insert(0, loop)
                child.update.loops.insert(0, loop)
                return child
        return Serial(loop, _flatten(children))

    def _close(self, loop: TreeLoop, first: int) -> list[Leaf]:
        """Inits that leave this loop: those whose outermost reduction loop it is; others take it along."""
        done: list[_Pending] = []
        going: list[_Pending] = []
        for pending in self.pending[first:]:
            (done if pending.stop is loop.var else going).append(pending)
        self.pending[first:] = going
        for pending in going:
            if loop.var not in pending.reduced and loop.group == 1:
                pending.leaf.loops.insert(0, loop)
        return [pending.leaf for pending in done]

    # -- blocks -------------------------------------------------------------------------------
    def realize(self, stmt: Any) -> list[Any]:
        """A block: its iteration variables are bindings, its predicate guards, its init is set apart."""
        block = stmt.block
        if len(block.match_buffers):
            refuse(
                "A block with match_buffer has no iGraph.",
                str(block.name_hint),
                remedy="do not tensorize what an iGraph kernel is made of",
            )
        self.buffers.extend(block.alloc_buffers)
        for iter_var, value in zip(block.iter_vars, stmt.iter_values, strict=True):
            self.bindings[iter_var.var] = value
            self.domains[iter_var.var] = iter_var.dom
        self.blocks.append(str(block.name_hint))
        if group_of(block.annotations) > 1:
            shared_loop(block, stmt.iter_values, self.loops).group = group_of(block.annotations)
        try:
            nodes = self.build(block.body)
            conditions = conjuncts(stmt.predicate)
            for leaf in _leaves(nodes):
                if not leaf.in_block:
                    leaf.in_block = True
                    for loop in leaf.loops:
                        loop.raw = True
                leaf.annotations.update(dict(block.annotations.items()))
                for condition in conditions:
                    if not self._may_be_dropped(condition, leaf):
                        leaf.guard(condition)
            if block.init is None:
                return nodes
            return self._with_init(stmt, nodes, conditions)
        finally:
            self.blocks.pop()

    def _with_init(self, stmt: Any, nodes: list[Any], conditions: list[Any]) -> list[Any]:
        block = stmt.block
        reduced: set[Any] = set()
        for iter_var, value in zip(block.iter_vars, stmt.iter_values, strict=True):
            if iter_var.iter_type == REDUCTION_AXIS:
                reduced |= variables(value, self.bindings)
        built = self.straight([block.init]) if _is_straight(block.init) else []
        if len(built) != 1:
            self.refuse("An init that is not straight-line code.", block.init)
        (init,) = built
        starts = {
            loop.var: tirx.const(loop.start, str(loop.var.ty)) for loop in self.loops if loop.var in reduced
        }
        for condition in conditions:
            self._guard_init(init, condition, starts)
        if not starts:
            return [Pair(init, nodes[0])] if len(nodes) == 1 else [init, *nodes]
        self.pending.append(_Pending(init, next(iter(starts)), starts))
        return nodes

    def _guard_init(self, init: Leaf, condition: Any, reduced: dict[Any, Any]) -> None:
        """Put an init under a condition, which must hold in the first iteration of the reduced loops.

        What is no parameter starts from the identity wherever it may be read: a unit of a set without an
        iteration of its own gives that to the others.
        """
        if variables(condition, self.bindings) & set(reduced):
            if not any(self._is_parameter(store.stmt.buffer) for store in init.stmts):
                return
            # iteration variables of blocks may be made of several loops
            condition = tvm.sym.Analyzer().simplify(substituted(condition, reduced, self.bindings))
            if always(condition, self.loops, self.bindings):
                return
        for part in conjuncts(condition):
            init.guard(part)

    def _may_be_dropped(self, condition: Any, leaf: Leaf) -> bool:
        """Whether a block's predicate reads data, and guards the only stores of temporaries.

        An element that is made without need is read by nobody; a gather beyond its table reads nothing.
        """
        if not loaded(condition, self.bindings):
            return False
        stores = [each.stmt for each in leaf.stmts if isinstance(each.stmt, tirx.BufferStore)]
        return not any(
            self._is_parameter(store.buffer)
            or self.stored[store.buffer] > 1
            or store.buffer in loaded(store.value, self.bindings)
            for store in stores
        )

    def _is_parameter(self, buffer: Any) -> bool:
        """Whether a buffer is the caller's."""
        return any(buffer.same_as(own) for own in self.func.params)

    def allocate(self, stmt: Any) -> list[Any]:
        """An allocation statement declares a buffer."""
        self.buffers.append(stmt.buffer)
        return []


def _constant(expr: Any) -> int | None:
    if isinstance(expr, int):
        return expr
    return int(expr.value) if isinstance(expr, tirx.IntImm) else None


def _is_straight(stmt: Any) -> bool:
    if isinstance(stmt, tirx.SeqStmt):
        return all(_is_straight(part) for part in stmt.seq)
    if isinstance(stmt, tirx.IfThenElse):
        return _is_straight(stmt.then_case) and (stmt.else_case is None or _is_straight(stmt.else_case))
    return isinstance(stmt, tirx.BufferStore | tirx.Bind)


def _leaves(nodes: list[Any]) -> list[Leaf]:
    out: list[Leaf] = []
    for node in nodes:
        if isinstance(node, Leaf):
            out.append(node)
        elif isinstance(node, Pair):
            out.extend(_leaves([node.init, node.update]))
        else:
            out.extend(_leaves(node.body))
    return out


def _flatten(nodes: list[Any]) -> list[Any]:
    out: list[Any] = []
    for node in nodes:
        out.extend(_flatten([node.init, node.update]) if isinstance(node, Pair) else [node])
    return out


_STATEMENTS: dict[type, Any] = {
    tirx.SeqStmt: _TreeBuilder.sequence,
    tirx.BufferStore: lambda b, s: b.straight([s]),
    tirx.Bind: lambda b, s: b.straight([s]),
    tirx.IfThenElse: _TreeBuilder.branch,
    tirx.Evaluate: _TreeBuilder.evaluate,
    tirx.For: _TreeBuilder.loop,
    tirx.AllocBuffer: _TreeBuilder.allocate,
    s_tir.SBlockRealize: _TreeBuilder.realize,
    tirx.AttrStmt: lambda b, s: b.build(s.body),
}
