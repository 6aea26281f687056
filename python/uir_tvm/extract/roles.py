# SPDX-License-Identifier: Apache-2.0
"""What a function does to each of its parameters: reads it, makes all of it, or changes what the caller gave.

A parameter is an output only where every element is written and none is read before; its old values count
otherwise, and it is ``inout``.  The accesses become relations of isl (when -> which element) by the order of
the statements; what is not affine is taken as a read of anything, and as no write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import attrs
import islpy
import tvm
from tvm import s_tir, tirx
from tvm_ffi.structural import structural_walk

from ..igraph import bounded_isl as isl
from ..igraph.affine import var
from ..igraph.space import Size, Space
from ..igraph.tir_calls import call_name
from ..igraph.tir_sizes import sizes_of
from .affine_from_tir import AffineConverter
from .leaf_access import children
from .tree import REDUCTION_AXIS

#: isl's steps for one parameter (see `bounded_isl.MAX_OPERATIONS`).
MAX_OPERATIONS = 200_000


def roles_of(func: tirx.PrimFunc) -> list[str]:
    """The role of each parameter, in order: ``in``, ``out`` or ``inout``.

    ``out`` is proved; a parameter is ``inout`` where it is written and no proof is found.
    """
    uses = _AccessWalk(func)
    return [_role(uses, param) for param in func.params]


def in_part(func: tirx.PrimFunc) -> set[tirx.Var]:
    """The parameters that are written, but not proved to be written as a whole."""
    uses = _AccessWalk(func, reads=False)
    return {param for param in func.params if uses.writes(param) and uses.written_whole(param) is False}


def _role(uses: _AccessWalk, param: Any) -> str:
    if not uses.writes(param):
        return "in"
    fresh = uses.written_whole(param) and uses.written_before_read(param)
    return "out" if fresh else "inout"


@attrs.frozen
class _Access:
    """One access: when and where it happens, in the variables of the loops around it.

    ``element`` has None where an index is not affine; ``certain`` says that nothing but ``clauses`` decides
    whether it happens.
    """

    buffer: Any
    is_write: bool
    variables: tuple[str, ...]
    clauses: tuple[str, ...]
    when: tuple[str, ...]
    element: tuple[str | None, ...]
    certain: bool

    @property
    def written(self) -> tuple[Any, ...]:
        """What it writes, whenever that is."""
        return self.is_write, self.buffer, self.variables, self.clauses, self.element


class _Parameters:
    """The sizes of a function as parameters of isl: what it finds then holds for all their values."""

    def __init__(self, func: tirx.PrimFunc, space: Space, env: dict[Any, Any]) -> None:
        self.clauses: list[str] = []
        names = []
        for number, (variable, size) in enumerate(sizes_of(func).items()):
            name = f"s{number}"
            names.append(name)
            space.bind(name, Size(name, size.low, size.high, size.multiple_of))
            env[variable] = var(name)
            self.clauses += [f"{size.low} <= {name} <= {size.high}", f"{name} mod {size.multiple_of} = 0"]
        self.prefix = f"[{', '.join(names)}] -> " if names else ""


class _AccessWalk:
    """Every access of a function, in order; without ``reads`` only the stores into its parameters.

    What takes buffers apart inside an expression is not seen then: the extractor refuses it.
    """

    def __init__(self, func: tirx.PrimFunc, reads: bool = True) -> None:
        self.accesses: list[_Access] = []
        self._reads, self._params = reads, frozenset(func.params)
        self.opaque: set[Any] = set()
        self._env: dict[Any, Any] = {}
        self._bindings: dict[Any, Any] = {}
        self._space = Space({})
        self._converter = AffineConverter(self._env, self._bindings, self._space)
        self._parameters = _Parameters(func, self._space, self._env)
        self._variables: list[str] = []
        self._clauses: list[str] = []
        self._when: list[str] = []
        self._certain = True
        self._visit(func.body)

    # -- answers ------------------------------------------------------------------------------
    def writes(self, param: Any) -> bool:
        """Whether anything may write it."""
        return param in self.opaque or any(a.is_write and a.buffer.same_as(param) for a in self.accesses)

    def written_whole(self, param: Any) -> bool | None:
        """Whether every element is written for certain; None where isl cannot tell."""
        for written in (self._places_written, self._written_when):
            try:
                return isl.bounded(partial(self._covers, param, written), MAX_OPERATIONS)
            except isl.Exhausted:
                pass
        return None

    def written_before_read(self, param: Any) -> bool:
        """Whether it is proved that every element is written before it is read."""
        try:
            return isl.bounded(lambda: self._precedes(param), MAX_OPERATIONS)
        except isl.Exhausted:
            return False

    def _covers(self, param: Any, written: Callable[[Any], islpy.Set | None]) -> bool:
        elements = written(param)
        return elements is not None and self._elements(param).is_subset(elements)

    def _written_when(self, param: Any) -> islpy.Set | None:
        """The elements that are written for certain, of what is written when."""
        written = self._written(param)
        return None if written is None else written.range()

    def _places_written(self, param: Any) -> islpy.Set | None:
        """The same, whenever that is: isl reads it in a quarter of the time."""
        found: islpy.Set | None = None
        for access in self._sure_writes(param):
            element, clauses, exists = self._place(access, param)
            text = f"{{ [{', '.join(element)}] : {exists}{' and '.join(clauses) or '0 = 0'} }}"
            one = isl.read_set(self._parameters.prefix + text)
            found = one if found is None else found.union(one)
        return found

    def _precedes(self, param: Any) -> bool:
        if param in self.opaque:
            return False
        reads = [a for a in self.accesses if a.buffer.same_as(param) and not a.is_write]
        if not reads:
            return True
        written = self._written(param)
        if written is None:
            return False
        earlier = islpy.Map.lex_gt(written.get_space().domain())
        ready = earlier.apply_range(written)
        return all(self._relation(read, param).is_subset(ready) for read in reads)

    def _written(self, param: Any) -> islpy.Map | None:
        found: islpy.Map | None = None
        for access in self._sure_writes(param):
            one = self._relation(access, param)
            found = one if found is None else found.union(one)
        return found

    def _sure_writes(self, param: Any) -> Iterator[_Access]:
        return (a for a in self.accesses if a.is_write and a.certain and a.buffer.same_as(param))

    def _relation(self, access: _Access, param: Any) -> islpy.Map:
        """``{ [when] -> [element] }``."""
        depth = max(len(a.when) for a in self.accesses)
        when = [f"t{k}" for k in range(depth)]
        given = [*access.when, *["0"] * (depth - len(access.when))]
        element, clauses, exists = self._place(access, param)
        clauses += [f"{t} = {text}" for t, text in zip(when, given, strict=True)]
        text = f"{{ [{', '.join(when)}] -> [{', '.join(element)}] : {exists}{' and '.join(clauses)} }}"
        return isl.read_map(self._parameters.prefix + text)

    def _place(self, access: _Access, param: Any) -> tuple[list[str], list[str], str]:
        """Names of the indices of an access, what isl is told of them, and what is before that."""
        element = [f"e{k}" for k in range(len(access.element))]
        clauses = [*access.clauses, *self._inside(param, element)]
        for name, text in zip(element, access.element, strict=True):
            clauses += [f"{name} = {text}"] if text is not None else []
        return element, clauses, f"exists {', '.join(access.variables)} : " if access.variables else ""

    def _inside(self, param: Any, element: Sequence[str]) -> list[str]:
        """Conditions for indices within a parameter."""
        extents = [self._converter.convert(extent) for extent in param.shape]
        within = [
            f"0 <= {name} < {self._text(extent)}" for name, extent in zip(element, extents, strict=True)
        ]
        return [*self._parameters.clauses, *within]

    def _elements(self, param: Any) -> islpy.Set:
        names = [f"e{k}" for k in range(len(param.shape))]
        clauses = self._inside(param, names)
        text = f"{{ [{', '.join(names)}] : {' and '.join(clauses)} }}" if clauses else "{ [] }"
        return isl.read_set(self._parameters.prefix + text)

    # -- statements ---------------------------------------------------------------------------
    def _visit(self, stmt: Any) -> None:
        handler: Any = _STATEMENTS.get(type(stmt), _AccessWalk._unknown)
        handler(self, stmt)

    @contextmanager
    def _at(self, place: int | str) -> Iterator[None]:
        self._when.append(str(place))
        yield
        self._when.pop()

    @contextmanager
    def _under(self, conditions: Sequence[Any], negate: bool = False) -> Iterator[None]:
        """Inside of what only happens where conditions hold (where the only one does not)."""
        size, certain = len(self._clauses), self._certain
        for condition in conditions:
            text = self._condition(condition, negate)
            if text is None:
                self._certain = False
            else:
                self._clauses.append(text)
        yield
        del self._clauses[size:]
        self._certain = certain

    def _sequence(self, stmt: Any) -> None:
        for place, part in enumerate(stmt.seq):
            with self._at(place):
                self._visit(part)

    def _branch(self, stmt: Any) -> None:
        self._load(stmt.condition)
        first = len(self.accesses)
        with self._at(0), self._under([stmt.condition]):
            self._visit(stmt.then_case)
        second = len(self.accesses)
        if stmt.else_case is None:
            return
        with self._at(1), self._under([stmt.condition], negate=True):
            self._visit(stmt.else_case)
        if self._certain and self._condition(stmt.condition, False) is None:
            # data decides, and what both sides write is written
            both = {access.written for access in self.accesses[first:second]}
            sure = [a for a in self.accesses[second:] if a.is_write and a.written in both]
            self.accesses += [attrs.evolve(access, certain=None not in access.element) for access in sure]

    def _loop(self, stmt: Any) -> None:
        start, end = (self._converter.try_convert(e) for e in (stmt.min, stmt.min + stmt.extent))
        name, certain, size = f"v{len(self._space.variables)}", self._certain, len(self._clauses)
        if start is None or end is None or (stmt.step is not None and not _is_one(stmt.step)):
            # it may have any iterations: nothing in it happens for certain, all of it may
            self._certain = False
            self._space.bind(name, 1)
            self._converter.forget()
            with self._at(name):
                self._variables.append(name)
                self._clauses.append(f"{name} = 0")
                self._visit(stmt.body)
            self._variables.pop()
        elif start.is_constant and end.is_constant and int(end.constant - start.constant) == 1:
            self._env[stmt.loop_var] = start
            self._converter.forget()
            with self._at(0):
                self._visit(stmt.body)
        else:
            low, high = self._space.range(start)[0], self._space.range(end)[1]
            self._space.bind(name, max(high - low, 1))
            value = var(name) + low
            self._env[stmt.loop_var] = value
            self._converter.forget()
            self._variables.append(name)
            self._clauses.append(f"0 <= {name} < {high - low}")
            if not (start.is_constant and end.is_constant):
                self._clauses += [f"{self._text(value - start)} >= 0", f"{self._text(end - value)} >= 1"]
            with self._at(name):
                self._visit(stmt.body)
            self._variables.pop()
        del self._clauses[size:]
        self._certain = certain

    def _realize(self, stmt: Any) -> None:
        block = stmt.block
        parts = [part for part in (block.init, block.body) if part is not None]
        if not block.match_buffers and all(map(self._is_beside, parts)):
            return
        first = []
        for iter_var, value in zip(block.iter_vars, stmt.iter_values, strict=True):
            self._bindings[iter_var.var] = value
            if iter_var.iter_type == REDUCTION_AXIS:
                first.append(tirx.EQ(value, iter_var.dom.min.astype(str(value.ty.dtype))))
        self._converter.forget()
        with self._under([stmt.predicate]):
            for match in block.match_buffers:
                self._takes_apart(match.source.buffer)
            if block.init is not None:
                with self._at(0), self._under(first):
                    self._visit(block.init)
            with self._at(1):
                self._visit(block.body)

    def _is_beside(self, stmt: Any) -> bool:
        """Whether a statement is a store that nothing was asked about."""
        return not self._reads and isinstance(stmt, tirx.BufferStore) and stmt.buffer not in self._params

    def _store(self, stmt: Any) -> None:
        if self._is_beside(stmt):
            return
        if self._reads:
            with self._at(0):
                self._load(stmt.value)
                for index in stmt.indices:
                    self._load(index)
        with self._at(1):
            self._access(stmt.buffer, stmt.indices, True)

    def _bind(self, stmt: Any) -> None:
        self._load(stmt.value)
        self._bindings[stmt.var] = stmt.value
        self._converter.forget()

    def _evaluate(self, stmt: Any) -> None:
        structural_walk(stmt.value, [(tvm.ir.Var, self._takes_apart)])

    def _unknown(self, stmt: Any) -> None:
        structural_walk(stmt, [(tvm.ir.Var, self._takes_apart)])

    def _takes_apart(self, var: Any) -> None:
        """A use of a buffer that is no load and no store: it may read and write anything."""
        self.opaque.add(var)

    # -- expressions --------------------------------------------------------------------------
    def _load(self, expr: Any) -> None:
        if isinstance(expr, tvm.ir.TensorLoad):
            self._access(expr.source, expr.indices, False)
        chosen = _choice(expr)
        if chosen is None:
            if tirx.is_buffer_var(expr):
                self._takes_apart(expr)
            for child in children(expr):
                self._load(child)
            return
        condition, a, b = chosen
        self._load(condition)
        with self._under([condition]):
            self._load(a)
        with self._under([condition], negate=True):
            self._load(b)

    def _access(self, buffer: Any, indices: Sequence[Any], is_write: bool) -> None:
        if not (is_write or self._reads):
            return
        element = [self._converter.try_convert(index) for index in indices]
        certain = self._certain and all(index is not None for index in element)
        self.accesses.append(
            _Access(
                buffer,
                is_write,
                tuple(self._variables),
                tuple(self._clauses),
                tuple(self._when),
                tuple(None if index is None else self._text(index) for index in element),
                certain,
            )
        )

    def _condition(self, condition: Any, negate: bool) -> str | None:
        """A condition, or its opposite, for isl; None where data or something not affine decides."""
        known = self._converter.decide(condition)
        if known is not None:
            return "0 = 0" if known is not negate else "0 = 1"
        if isinstance(condition, tvm.ir.Call) and call_name(condition) == "likely":
            return self._condition(condition.args[0], negate)
        if isinstance(condition, tirx.Not):
            return self._condition(condition.a, not negate)
        if isinstance(condition, tirx.And | tirx.Or):
            a, b = self._condition(condition.a, negate), self._condition(condition.b, negate)
            word = "and" if isinstance(condition, tirx.And) is not negate else "or"
            return None if a is None or b is None else f"(({a}) {word} ({b}))"
        words = _COMPARES.get(type(condition))
        if words is None:
            return None
        left, right = (self._converter.try_convert(side) for side in (condition.a, condition.b))
        return None if left is None or right is None else f"{self._text(left - right)} {words[negate]} 0"

    def _text(self, value: Any) -> str:
        return str(value.render({name: name for name in self._space.variables}, "isl"))


def _choice(expr: Any) -> tuple[Any, Any, Any] | None:
    """Condition and sides of a choice."""
    if isinstance(expr, tirx.Select):
        return expr.condition, expr.true_value, expr.false_value
    if isinstance(expr, tvm.ir.Call) and call_name(expr) == "if_then_else":
        condition, a, b = expr.args
        return condition, a, b
    return None


def _is_one(step: Any) -> bool:
    return isinstance(step, tirx.IntImm) and int(step.value) == 1


#: How isl writes a comparison, and its opposite.
_COMPARES: dict[type, tuple[str, str]] = {
    tirx.LT: ("<", ">="),
    tirx.LE: ("<=", ">"),
    tirx.GT: (">", "<="),
    tirx.GE: (">=", "<"),
    tirx.EQ: ("=", "!="),
    tirx.NE: ("!=", "="),
}

_STATEMENTS: dict[type, Any] = {
    tirx.SeqStmt: _AccessWalk._sequence,
    tirx.IfThenElse: _AccessWalk._branch,
    tirx.For: _AccessWalk._loop,
    s_tir.SBlockRealize: _AccessWalk._realize,
    tirx.BufferStore: _AccessWalk._store,
    tirx.Bind: _AccessWalk._bind,
    tirx.Evaluate: _AccessWalk._evaluate,
    tirx.AttrStmt: lambda walk, stmt: walk._visit(stmt.body),
    tirx.AllocBuffer: lambda walk, stmt: None,
}
