# SPDX-License-Identifier: Apache-2.0
"""What a function asks of its arguments, asked together where a program is the only one that calls it.

TVM's `MakePackedAPI` asserts some ten things of every argument, each with a message of its own: of a small
kernel most of the code, and of the time that LLVM takes for it.  They tell a caller of `tvm.compile` what is
wrong.  A program gives its kernels what it planned for them; there it is enough that a call which does not
fit ends with an error.  One call of the native library asks (`expected_arguments`); where lengths are
expressions of sizes the function asks for these itself, and of what numbers cannot say it asks everything, in
a few assertions.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import PrimType, StringImm
from tvm.tirx.analysis import undefined_vars

from .expected_arguments import check_of, expected_of, has_expressions, takes_addresses

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
#: What tvm-ffi calls a tensor that is an object (``kTVMFFITensor``).
OBJECT = 70
#: What a function begins with.
BEGINNING = (tirx.Bind, tirx.AssertStmt)
#: How TVM's messages begin about a length that is no size.
OF_A_LENGTH = "Invalid "
#: Attribute of a function: what it expects, before `MakePackedAPI` took its parameters away.
EXPECTED = "uir.expected_arguments"


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


def expecting(mod: tvm.IRModule, by_address: Callable[[Any], bool]) -> tvm.IRModule:
    """A module before `MakePackedAPI`, whose functions say what they expect if a program calls it.

    Parameters
    ----------
    by_address : callable
        Whether a function may be given addresses of tensors, as by another of the module.
    """
    if not is_called_by_a_program():
        return mod
    made = {name: _expecting(func, by_address) for name, func in mod.functions.items()}
    return tvm.IRModule(made, attrs=mod.attrs)


def _expecting(func: Any, by_address: Callable[[Any], bool]) -> Any:
    if not isinstance(func, tirx.PrimFunc) or "target" not in (func.attrs or {}):
        return func
    device = int(func.attrs["target"].get_target_device_type())
    expected = expected_of(func, device, by_address(func))
    return func if expected is None else func.with_attr(EXPECTED, expected)


def checked(mod: tvm.IRModule) -> tvm.IRModule:
    """A module behind `MakePackedAPI`, with the checks of arguments together if a program calls it."""
    if not is_called_by_a_program():
        return mod
    return tvm.IRModule({name: _function(func) for name, func in mod.functions.items()}, attrs=mod.attrs)


def _function(func: Any) -> Any:
    if not isinstance(func, tirx.PrimFunc):
        return func
    attrs = func.attrs or {}
    expected = [int(word) for word in attrs[EXPECTED]] if EXPECTED in attrs else None
    if expected is not None:
        func = func.without_attr(EXPECTED)
    # others, which a function calls itself or a device runs, begin with what they do
    if attrs.get("calling_conv") != PACKED:
        return func
    try:
        body = _together(func.body) if expected is None else _asked(func, expected)
        return func.with_body(body)
    except _OtherExpressionError:
        return func


class _OtherExpressionError(Exception):
    """An expression of a kind that `MakePackedAPI` makes none of."""


class _Prologue:
    """What a function binds and asserts before it computes, by how far it reads.

    Parameters
    ----------
    kept : callable
        Which of the assertions it keeps.
    """

    def __init__(self, kept: Callable[[tirx.AssertStmt], bool] = lambda _: True) -> None:
        self.kept = kept
        #: Of an assertion that it takes.
        self.called: list[StringImm] = []
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
            return True
        alone = step.then_case if isinstance(step, tirx.IfThenElse) and step.else_case is None else step
        if not isinstance(alone, tirx.AssertStmt):
            return False
        self.called = self.called or list(alone.message_parts)[-CALLED:]
        if self.kept(alone):
            condition, true = alone.condition, tirx.const(True, "bool")
            if alone is not step:
                condition = tirx.if_then_else(step.condition, condition, true)
            self.asserted[self.reach(condition)].append((condition, alone))
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
        if isinstance(node, tirx.Select):
            return max(map(self.reach, (node.condition, node.true_value, node.false_value)))
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
        for bound, asserted, (kind, text) in zip(self.bound, self.asserted, WRONG, strict=True):
            yield from bound
            for first in range(0, len(asserted), MOST):
                (condition, only), *others = asserted[first : first + MOST]
                for each, _ in others:
                    condition = tirx.And(condition, each)
                alone = condition.same_as(only.condition)
                told = tirx.AssertStmt(condition, StringImm(kind), [StringImm(text), *self.called])
                yield only if alone else told


def _together(body: tirx.Stmt) -> tirx.Stmt:
    """Before: binds and assertions one by one, attributes among them.  After: all of them first, together."""
    prologue = _Prologue()
    rest = _within(prologue, _rest(body, prologue))
    return _sequence([*prologue.steps(), *rest])


def _asked(func: tirx.PrimFunc, expected: list[int]) -> tirx.Stmt:
    """Before: as above.  After: one call asks; what is bound, and asserted of lengths, follows it."""
    prologue = _Prologue(_of_an_expression if has_expressions(expected) else lambda _: False)
    rest = _within(prologue, _rest(func.body, prologue))
    if not prologue.called:
        raise _OtherExpressionError("nothing is asked")
    called = "".join(str(part.value) for part in prologue.called)
    _, given, count, _ = func.params
    check, text = check_of(expected, called, f"uir_check.{func.attrs['global_symbol']}", given, count)
    steps = [*prologue.steps(), *rest]
    if not takes_addresses(expected):
        steps = [_of_an_object(step) for step in steps]
    body = _sequence([check, *_used(steps)])
    return tirx.AttrStmt(tirx.const(0, "int32"), "pragma_import_llvm", text, body)


def _of_an_object(step: tirx.Stmt) -> tirx.Stmt:
    """Before: where a tensor lies, by whether it is an object or an address.  After: it is an object."""
    value = step.value if isinstance(step, tirx.Bind) else None
    if not isinstance(value, tvm.ir.Call) or getattr(value.op, "name", "") != "prim.if_then_else":
        return step
    asked, of_object, _ = value.args
    is_object = isinstance(asked, tirx.EQ) and isinstance(asked.b, tirx.IntImm) and int(asked.b) == OBJECT
    return tirx.Bind(step.var, of_object) if is_object else step


def _of_an_expression(asserted: tirx.AssertStmt) -> bool:
    """Whether sizes decide what a length is compared with."""
    if str(asserted.message_parts[0].value) != OF_A_LENGTH:
        return False
    return any(isinstance(each.ty, PrimType) for each in undefined_vars(asserted, []))


def _used(steps: list[tirx.Stmt]) -> list[tirx.Stmt]:
    """Without what is bound at the beginning and read by nothing."""
    first = next((at for at, step in enumerate(steps) if not isinstance(step, BEGINNING)), len(steps))
    read = set(undefined_vars(_sequence(steps[first:]), []))
    kept = steps[first:]
    for step in reversed(steps[:first]):
        if isinstance(step, tirx.Bind) and step.var not in read:
            continue
        read.update(undefined_vars(step, []))
        kept.insert(0, step)
    return kept


def _within(prologue: _Prologue, rest: list[tirx.Stmt]) -> list[tirx.Stmt]:
    """What comes behind the prologue, within the attributes of its beginning."""
    for around in reversed(prologue.around):
        rest = [tirx.AttrStmt(around.node, around.attr_key, around.value, _sequence(rest))]
    return rest


def _rest(body: tirx.Stmt, prologue: _Prologue) -> list[tirx.Stmt]:
    """What comes behind the prologue."""
    steps = list(_flat(body))
    for at, step in enumerate(steps):
        if prologue.take(step):
            continue
        last = at == len(steps) - 1
        if last and isinstance(step, tirx.AttrStmt) and step.attr_key != "compute_scope":
            if not _says_nothing(step):
                prologue.around.append(step)
            return _rest(step.body, prologue)
        return steps[at:]
    return []


def _says_nothing(step: tirx.AttrStmt) -> bool:
    """Whether an attribute tells that a buffer lies as each of its elements has to."""
    if step.attr_key != "storage_alignment" or not tirx.is_buffer_var(step.node):
        return False
    return 8 * int(step.value) <= tvm.DataType(str(step.node.dtype)).bits


def _flat(body: tirx.Stmt) -> Iterator[tirx.Stmt]:
    if not isinstance(body, tirx.SeqStmt):
        yield body
        return
    for step in body.seq:
        yield from _flat(step)


def _sequence(steps: list[tirx.Stmt]) -> tirx.Stmt:
    return steps[0] if len(steps) == 1 else tirx.SeqStmt(steps)
