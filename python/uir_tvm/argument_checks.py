# SPDX-License-Identifier: Apache-2.0
"""What a function asks of its arguments, asked together where a program is the only one that calls it.

TVM's `MakePackedAPI` asserts some ten things of every argument, each with a message of its own: of a small
kernel most of the code, and of the time that LLVM takes for it.  They tell a caller of `tvm.compile` what is
wrong.  A program gives its kernels what it planned for them; there it is enough that a call which does not
fit ends with an error.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import StringImm

_PROGRAM: contextvars.ContextVar[bool] = contextvars.ContextVar("uir_called_by_a_program", default=False)

#: What fails where a condition does that reads so many steps away from what a call is given: the list of
#: arguments, the tensors in it, their fields, their shapes.  Each is read once what leads there is known.
WRONG = (
    ("TypeError", "Another number of arguments than expected"),
    ("TypeError", "An argument of another type than expected"),
    ("ValueError", "An argument of another rank, dtype or device than expected, or without data"),
    ("ValueError", "An argument of another shape or layout than expected"),
)
#: Conditions that are one: LLVM takes long for more without a branch among them.
MOST = 16
#: How functions are called whose arguments `MakePackedAPI` checks (TVM's ``CallingConv::kCPackedFunc``).
PACKED = 1
#: Parts of TVM's messages that say which function was called.
CALLED = 3


@contextlib.contextmanager
def called_by_a_program() -> Iterator[None]:
    """Functions that are built inside are called by a program alone, and by nobody directly."""
    token = _PROGRAM.set(True)
    try:
        yield
    finally:
        _PROGRAM.reset(token)


def is_called_by_a_program() -> bool:
    """Whether what is built is called by a program alone."""
    return _PROGRAM.get()


def checked(mod: tvm.IRModule) -> tvm.IRModule:
    """A module behind `MakePackedAPI`, with the checks of arguments together if a program calls it."""
    if not is_called_by_a_program():
        return mod
    return tvm.IRModule({name: _function(func) for name, func in mod.functions.items()}, attrs=mod.attrs)


def _function(func: Any) -> Any:
    # others, which a function calls itself or a device runs, begin with what they do
    if not isinstance(func, tirx.PrimFunc) or (func.attrs or {}).get("calling_conv") != PACKED:
        return func
    try:
        return func.with_body(_together(func.body))
    except _OtherExpressionError:
        return func


class _OtherExpressionError(Exception):
    """An expression of a kind that `MakePackedAPI` makes none of."""


class _Prologue:
    """What a function binds and asserts before it computes, by how far it reads."""

    def __init__(self) -> None:
        self.far: dict[Any, int] = {}
        self.bound: list[list[tirx.Stmt]] = [[] for _ in WRONG]
        self.asserted: list[list[tuple[Any, tirx.AssertStmt]]] = [[] for _ in WRONG]
        self.around: list[tirx.AttrStmt] = []

    def take(self, step: tirx.Stmt) -> bool:
        """Note a step of the prologue; False of what is none."""
        if isinstance(step, tirx.Bind):
            far = self.reach(step.value)
            self.far[step.var] = far
            self.bound[far].append(step)
        elif isinstance(step, tirx.AssertStmt):
            self.asserted[self.reach(step.condition)].append((step.condition, step))
        elif isinstance(step, tirx.IfThenElse) and step.else_case is None:
            asserted = step.then_case
            if not isinstance(asserted, tirx.AssertStmt):
                return False
            far = max(self.reach(step.condition), self.reach(asserted.condition))
            true = tirx.const(True, "bool")
            self.asserted[far].append((tirx.if_then_else(step.condition, asserted.condition, true), asserted))
        else:
            return False
        return True

    def reach(self, node: Any) -> int:
        """How many reads lie between what the call is given and an expression."""
        if isinstance(node, tvm.ir.Var):
            return self.far.get(node, 0)
        if isinstance(node, tvm.ir.Call):
            reads = str(getattr(node.op, "name", "")) == "tirx.tvm_struct_get"
            return self._checked(max(map(self.reach, node.args), default=0) + reads)
        if isinstance(node, tirx.IntImm | tirx.FloatImm | StringImm):
            return 0
        if isinstance(node, tirx.Cast):
            return self.reach(node.value)
        if isinstance(node, tirx.Not):
            return self.reach(node.a)
        if hasattr(node, "a") and hasattr(node, "b"):
            return max(self.reach(node.a), self.reach(node.b))
        raise _OtherExpressionError(type(node).__name__)

    @staticmethod
    def _checked(far: int) -> int:
        if far >= len(WRONG):
            raise _OtherExpressionError(f"{far} reads")
        return far

    def steps(self) -> Iterator[tirx.Stmt]:
        """The same, with one assertion of all that is equally far."""
        called = None
        for bound, asserted, (kind, text) in zip(self.bound, self.asserted, WRONG, strict=True):
            yield from bound
            if not asserted:
                continue
            called = called or list(asserted[0][1].message_parts)[-CALLED:]
            for first in range(0, len(asserted), MOST):
                (condition, only), *others = asserted[first : first + MOST]
                for each, _ in others:
                    condition = tirx.And(condition, each)
                alone = condition.same_as(only.condition)
                told = tirx.AssertStmt(condition, StringImm(kind), [StringImm(text), *called])
                yield only if alone else told


def _together(body: tirx.Stmt) -> tirx.Stmt:
    """Before: binds and assertions one by one, attributes among them.  After: all of them first, together."""
    prologue = _Prologue()
    rest = _rest(body, prologue)
    for around in reversed(prologue.around):
        rest = [tirx.AttrStmt(around.node, around.attr_key, around.value, _sequence(rest))]
    return _sequence([*prologue.steps(), *rest])


def _rest(body: tirx.Stmt, prologue: _Prologue) -> list[tirx.Stmt]:
    """What comes behind the prologue."""
    steps = list(_flat(body))
    for at, step in enumerate(steps):
        if prologue.take(step):
            continue
        last = at == len(steps) - 1
        if last and isinstance(step, tirx.AttrStmt) and step.attr_key != "compute_scope":
            prologue.around.append(step)
            return _rest(step.body, prologue)
        return steps[at:]
    return []


def _flat(body: tirx.Stmt) -> Iterator[tirx.Stmt]:
    if not isinstance(body, tirx.SeqStmt):
        yield body
        return
    for step in body.seq:
        yield from _flat(step)


def _sequence(steps: list[tirx.Stmt]) -> tirx.Stmt:
    return steps[0] if len(steps) == 1 else tirx.SeqStmt(steps)
