# SPDX-License-Identifier: Apache-2.0
"""The nodes of an iGraph as plain Python objects with compiled expressions, for the interpreter's inner loop.

Reading a field of a node or evaluating an expression crosses into C++ every time; a kernel runs its
iOps thousands of times, so both are done once here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .affine import Affine
from .iops import IOPS, IOpSpec
from .iops_meaning import Box
from .nodes import ROUNDS, IOp, ISlice, Loop

Env = dict[str, int]


@functools.lru_cache(maxsize=4096)
def _compiled(source: str) -> Callable[[Env], int]:
    return eval(f"lambda e: {source}", {})  # source made of numbers and quoted names only


def compile_affine(expression: Affine) -> Callable[[Env], int]:
    """A Python function of the environment; `KeyError` there means an unbound variable."""
    return _compiled(expression.render({v: f"e[{v!r}]" for v in expression.variables()}, "python"))


class BoundSlice:
    """An iSlice: its shape and strides as ints, its offset and bounds as functions."""

    __slots__ = (
        "node",
        "pointer",
        "name",
        "level",
        "rows",
        "cols",
        "shape",
        "strides",
        "offset",
        "_bounds",
        "_full",
    )

    def __init__(self, node: ISlice) -> None:
        self.node = node
        self.pointer = node.pointer
        self.name, self.level = str(node.pointer.name), str(node.pointer.level)
        self.rows, self.cols = self.shape = node.shape
        self.strides = (int(node.row_stride), int(node.col_stride))
        self.offset = compile_affine(node.offset)
        bounds = node.valid
        self._bounds = (
            None
            if all(b is None for b in bounds)
            else [None if b is None else compile_affine(b) for b in bounds]
        )
        self._full: Box = (0, self.rows, 0, self.cols)

    def box(self, env: Env) -> Box:
        """The valid box (as `ISlice.valid_box`)."""
        if self._bounds is None:
            return self._full
        b0, b1, b2, b3 = self._bounds
        rows, cols = self.shape
        r0 = 0 if b0 is None else min(max(b0(env), 0), rows)
        r1 = rows if b1 is None else min(max(b1(env), 0), rows)
        c0 = 0 if b2 is None else min(max(b2(env), 0), cols)
        c1 = cols if b3 is None else min(max(b3(env), 0), cols)
        return (r0, max(r0, r1), c0, max(c0, c1))


class BoundIOp:
    """An iOp with the attributes that `iops_meaning` reads, and its row of the table."""

    __slots__ = (
        "node",
        "spec",
        "op",
        "name",
        "dtype",
        "targets",
        "sources",
        "attrs",
        "buffer",
        "reads",
        "reads_target",
    )

    def __init__(self, node: IOp) -> None:
        self.node = node
        self.spec: IOpSpec = IOPS[node.op]
        self.op, self.name, self.dtype = str(node.op), str(node.name), str(node.dtype)
        self.targets = [BoundSlice(s) for s in node.targets]
        self.sources = [BoundSlice(s) for s in node.sources]
        self.attrs: dict[str, Any] = dict(node.attrs.items())
        if "params" in self.attrs:
            self.attrs["params"] = tuple(self.attrs["params"])
        self.buffer = BoundSlice(self.attrs["buffer"]) if "buffer" in self.attrs else None
        self.reads = self.spec.reads(node)
        self.reads_target = self.spec.reads_target(node)

    @property
    def target(self) -> BoundSlice:
        """The first target."""
        return self.targets[0]

    @property
    def is_group(self) -> bool:
        """Whether it joins units of a group."""
        return self.attrs.get("scope") == "group"


class BoundLoop:
    """A loop over bound nodes; ``written`` names the pointers that they write.

    ``targets`` is what `working_rounds` knows of them, ``full`` how often in a row it found that all rounds
    work, and ``unasked`` how many walks of the loop it is not to ask for.  ``rounds`` says after how many it
    ends, where it does so before its extent.
    """

    __slots__ = ("var", "extent", "body", "written", "rounds", "targets", "full", "unasked")

    def __init__(self, node: Loop) -> None:
        self.var, self.extent = str(node.var), int(node.extent)
        self.body = bind(node.body)
        self.rounds = compile_affine(node.attrs[ROUNDS]) if ROUNDS in node.attrs else None
        self.written: set[str] = set()
        self.targets: list[Any] | None = None
        self.full = self.unasked = 0
        for child in self.body:
            if isinstance(child, BoundLoop):
                self.written |= child.written
            else:
                self.written |= {piece.name for piece in child.targets}


def bind(body: Sequence[Any]) -> list[BoundIOp | BoundLoop]:
    """A loop tree as bound nodes."""
    return [BoundLoop(node) if isinstance(node, Loop) else BoundIOp(node) for node in body]
