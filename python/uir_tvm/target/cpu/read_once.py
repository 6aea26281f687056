# SPDX-License-Identifier: Apache-2.0
"""Operands of expressions: which are read once, right where they are made, and so need no cell.

A cell is an allocation, a store, a load and a remark for debuggers until LLVM makes a register of it; three
of four cells of a kernel would be read once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr

from ...igraph.nodes import IOp
from .actions import MAP, Action
from .code import Code
from .values import OperandValues, Origin, is_row_value

#: iOps and functions that read each operand once, by iOp; of others an operand may stand several times.
ONCE: dict[str, frozenset[str]] = {
    "unary": frozenset(
        "copy adds subs muls divs rsubs rdivs sqrt recip abs neg floor ceil round trunc".split()
    ),
    "binary": frozenset({"add", "sub", "mul", "div"}),
}
#: iOps whose value is their operand.
COPIES = frozenset({"move", "broadcast", "transpose", "reduce"})
#: Reductions that read both what they have and what comes once.
SUMS = frozenset({"add", "mul"})
#: dtypes that are computed in as they are stored: no rounding reads a value twice.  What TVM simplifies of
#: integers takes longer the longer an expression is.
PLAIN = frozenset({"fp32", "fp64"})
#: Expressions that TVM's simplifier puts together with what they stand in.
OPEN = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Min, tirx.Max, tirx.Select, tirx.Cast)


def operands(code: Code, values: Sequence[Expr], once: bool) -> list[Expr]:
    """Values as an expression may have them: in cells, or in place where it has each ``once``.

    What two places read is behind a call at the second, and so is an expression that is read in place: TVM's
    simplifier takes ``x - x`` of floats for 0 and ``(x + 1) - 1`` for x, as they are of real numbers, but
    does not look through calls.
    """
    held: list[Expr] = []
    for value in values:
        here = value if once else code.bind(value)
        seen = any(tvm_ffi.structural_equal(here, other) for other in held)
        held.append(_behind_a_call(here) if seen or (once and isinstance(here, OPEN)) else here)
    return held


def _behind_a_call(value: Expr) -> Expr:
    """A value that LLVM gets as it is."""
    return tvm.ir.Call("tirx.reinterpret", [value], ret_ty=value.ty)


def reads_once(action: Action) -> bool:
    """Whether the value of an action has each operand once, as it is.

    Of what is added to in memory operands are held: loads of several columns then come before a store.
    """
    iop, stored = action.iop, action.write.pointer.name
    once = iop.dtype in PLAIN and (iop.op in COPIES or iop.name in ONCE.get(iop.op, ()))
    return once and all(read.access.pointer.name != stored for read in action.reads)


def combines_once(iop: IOp) -> bool:
    """Whether a reduction combines by an expression that has each side once."""
    return iop.dtype in PLAIN and iop.name in SUMS


def read_at_all(actions: Sequence[Action], values: OperandValues) -> frozenset[int]:
    """The actions of a group, by id, that something comes of: memory, a reduction, or another's operand."""
    found: set[int] = set()
    own = _ids(actions)
    for action in reversed(actions):
        if action.kind != MAP or values.stored(action) or is_row_value(action) or id(action) in found:
            found |= {id(action), *_readings(action, values, own)}
    return frozenset(found)


def handed_on(actions: Sequence[Action], values: OperandValues) -> frozenset[int]:
    """The actions of a group, by id, whose value the next one reads, once, and nothing else does.

    Nothing is stored between the two, so that the next may compute the value itself.  What is stored has a
    cell: TVM's `StorageRewrite` gives a result the memory of an operand in the same statement, and columns
    that are made twice would be made of results.
    """
    live = read_at_all(actions, values)
    order = [action for action in actions if id(action) in live]
    readings = readings_of(order, values)
    return frozenset(
        id(action)
        for action, reader in zip(order, order[1:], strict=False)
        if action.kind == MAP
        and not values.stored(action)
        and not is_row_value(action)
        and readings[id(action)] == 1
        and reads_once(reader)
        and any(source.maker is action for source in values.sources[id(reader)])
    )


def readings_of(actions: Sequence[Action], values: OperandValues) -> Counter[int]:
    """How often actions of a group, and what is computed again for them, read the value of each, by id."""
    own = _ids(actions)
    return Counter(reading for action in actions for reading in _readings(action, values, own))


def _readings(action: Action, values: OperandValues, own: frozenset[int]) -> list[int]:
    """Whose values an action reads, by id; those of what it computes again among them."""
    found = []
    for source in values.sources[id(action)]:
        if source.maker is not None and source.origin in (Origin.REGISTER, Origin.AGAIN):
            found.append(id(source.maker))
            if id(source.maker) not in own:
                found += _readings(source.maker, values, own)
    return found


def _ids(actions: Sequence[Action]) -> frozenset[int]:
    return frozenset(map(id, actions))
