# SPDX-License-Identifier: Apache-2.0
"""The query heads on one head of keys as rows, where there is one row for each (decoding)."""

from __future__ import annotations

from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm_ffi.structural import structural_map
from uir_tvm.schedule import make_tir as t
from uir_tvm.schedule.blocks import collect
from uir_tvm.schedule.representative import is_open
from uir_tvm.schedules.attention.parts import Formula, Parts


def fold_heads(parts: Parts) -> Parts:
    """The query heads of one key head as rows, where there is one row for each (decoding).

    Before: head h, row 0, keys of head h // g.  After: key head, rows of its g heads.
    """
    if is_open(parts.rows) or parts.rows != 1 or not parts.batch or is_open(parts.batch[-1]):
        return parts
    size = _heads_per_key(parts)
    axis = len(parts.batch) - 1
    if size is None or parts.batch[axis] % size:
        return parts

    def folded(form: Formula, row: int | None) -> Formula:
        """The form with head = new * size + row; ``row`` is the position of the row among its variables."""
        head, new, free = form.variables[axis], tvm.ir.Var("head", t.INDEX), tvm.ir.Var("row", t.INDEX)

        def divided(node: Any) -> Any:
            return new if isinstance(node, tirx.FloorDiv) and node.a.same_as(head) else node

        expr = structural_map(form.expr, (tirx.FloorDiv, divided))
        if row is None:
            return Formula(_replaced(form.variables, {axis: new}), Formula((head,), expr)(new * size))
        only = (head, form.variables[row])  # the one row that there was is row 0
        return Formula(
            _replaced(form.variables, {axis: new, row: free}),
            Formula(only, expr)(new * size + free, t.index(0)),
        )

    row = len(parts.batch)
    output = parts.output
    return attrs.evolve(
        parts,
        batch=(*parts.batch[:axis], parts.batch[axis] // size),
        rows=size,
        usual=attrs.evolve(
            parts.usual, batch=(*parts.usual.batch[:axis], parts.batch[axis] // size), rows=size
        ),
        query=folded(parts.query, row),
        key=folded(parts.key, None),
        score=folded(parts.score, row),
        value=folded(parts.value, None),
        output=attrs.evolve(
            output,
            indices=tuple(folded(form, row) for form in output.indices),
            value=folded(output.value, row),
        ),
    )


def _replaced(variables: tuple[Any, ...], new: dict[int, Any]) -> tuple[Any, ...]:
    return tuple(new.get(position, var) for position, var in enumerate(variables))


def _heads_per_key(parts: Parts) -> int | None:
    """g where keys and values depend on the head h by h // g alone; None where they do not."""
    axis, found = len(parts.batch) - 1, set()
    for form in (parts.key, parts.value):
        head = form.variables[axis]
        divisions = [n for n in collect(form.expr, tirx.FloorDiv) if n.a.same_as(head)]
        alone = [v for v in collect(form.expr, tvm.ir.Var) if v.same_as(head)]
        if len(divisions) != len(alone) or not divisions:
            return None
        found |= {int(n.b.value) for n in divisions if isinstance(n.b, tirx.IntImm)}
    return found.pop() if len(found) == 1 else None
