# SPDX-License-Identifier: Apache-2.0
"""A PrimFunc as TVM itself lowers it, on numbers and on residues: the reference of `equivalent`."""

from __future__ import annotations

import collections
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import s_tir, tirx
from tvm_ffi import structural_equal
from tvm_ffi.structural import structural_hash, structural_map, structural_walk

from ..argument_checks import called_by_a_program
from ..bf16_roundings import keep_bf16_roundings
from ..bound_kernel import bound_kernel, symbols_in
from ..errors import last_line
from ..igraph.dtypes import from_tvm
from ..igraph.tir_sizes import factored
from ..quantized import PACKING
from .cases import HIGHEST_INTEGER, FunctionBuffer
from .field_tir import to_field
from .index_limits import index_limits
from .sides import FIELD_METHOD, VALUES_METHOD, Output, UndecidedError

#: Operations that a reference may take where a sample is allowed: some seconds of residues.
LIMIT = {FIELD_METHOD: 5e8, VALUES_METHOD: 5e9}


class FunctionSide:
    """A PrimFunc, scheduled or not; see `sides.Side`.

    Parameters
    ----------
    full : bool
        Whether it runs whatever it takes.
    """

    def __init__(self, func: tirx.PrimFunc, full: bool = False) -> None:
        self.func, self.full = without_traps(func).with_attr("global_symbol", "main"), full
        name = (func.attrs or {}).get("global_symbol", "main")
        self.label = f"the function `{name}`"
        self.buffers = [p for p in func.params if tirx.buffer.is_buffer_var(p)]
        limits = index_limits(func)
        self.parameters = [
            FunctionBuffer(
                str(b.name),
                from_tvm(b.dtype),
                math.prod(int(n) for n in b.shape),
                min(limits.get(str(b.name), HIGHEST_INTEGER), HIGHEST_INTEGER),
            )
            for b in self.buffers
        ]
        self.sums, self.regroups = sums(func), regroups(func)
        self._lowered: tirx.PrimFunc | None = None

    def run(self, method: str, arrays: Sequence[np.ndarray], roles: Sequence[str]) -> list[Output]:
        """As `sides.Side.run`; the whole function runs."""
        if not self.full:
            work = operations(self.lowered())
            if work > LIMIT[method]:
                raise UndecidedError(
                    f"the function takes {work:.1e} operations, more than {LIMIT[method]:.0e}"
                )
        # what an element of an output holds afterwards is written if it does not follow what it held before
        other = [_complement(a) if role == "out" else a for a, role in zip(arrays, roles, strict=True)]
        once, again = self._results(method, arrays), self._results(method, other)
        return [
            (
                first,
                _written(first, before, second, changed) if role == "out" else np.ones(first.size, np.bool_),
            )
            for first, before, second, changed, role in zip(once, arrays, again, other, roles, strict=True)
            if role != "in"
        ]

    def _results(self, method: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """All parameters after a call, flat."""
        run = self._function(method)
        shapes = [tuple(int(n) for n in b.shape) for b in self.buffers]
        tensors = [
            tvm.runtime.tensor(np.ascontiguousarray(a).reshape(shape))
            for a, shape in zip(arrays, shapes, strict=True)
        ]
        run(*tensors)
        return [t.numpy().reshape(-1) for t in tensors]

    def lowered(self) -> tirx.PrimFunc:
        """The function without blocks."""
        if self._lowered is None:
            self._lowered = without_blocks(self.func)
        return self._lowered

    def _function(self, method: str) -> Any:
        return _BUILDS.of(method, self.func, lambda: self._build(method))

    def _build(self, method: str) -> Any:
        made = to_field(self.lowered()) if method == FIELD_METHOD else propagating_nan(self.func)
        # LLVM takes longer to optimise a small function than to run it
        level = 0 if operations(self.lowered()) <= SMALL else 3
        try:
            return built_by_tvm(made, {"opt-level": level})["main"]
        except Exception as error:  # of the many that TVM raises for what it does not lower
            raise UndecidedError(f"TVM does not build the function: {last_line(error)}") from error


class Builds:
    """What was built of functions, those used last: one is the reference of its kernels on all targets.

    Parameters
    ----------
    most : int
        How many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._kept: collections.OrderedDict[tuple[str, int], tuple[tirx.PrimFunc, Any]] = (
            collections.OrderedDict()
        )

    def of(self, method: str, func: tirx.PrimFunc, build: Callable[[], Any]) -> Any:
        """What ``build`` makes of a function, or made of one that is the same but for the names in it."""
        key = (method, structural_hash(func, map_free_vars=True))
        with self._lock:
            known, built = self._kept.pop(key, (None, None))
            if known is None or not structural_equal(known, func, map_free_vars=True):
                known, built = func, None
            else:
                self._kept[key] = (known, built)
        if built is None:
            built = build()
            with self._lock:
                self._kept[key] = (known, built)
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
        return built


_BUILDS = Builds(64)


def built_by_tvm(func: tirx.PrimFunc, config: Mapping[str, Any]) -> tvm.runtime.Module:
    """A module with a function as its ``main``, by TVM's own lowering and LLVM.

    Parameters
    ----------
    config : mapping
        Of TVM's target ``llvm``.
    """
    # a kernel of a model carries its target, which would bring it back to this project's pipeline
    plain = keep_bf16_roundings(func).without_attr("target").with_attr("global_symbol", "main")
    with called_by_a_program():
        return tvm.compile(
            tvm.IRModule({"main": plain}), target=tvm.target.Target({"kind": "llvm", **config})
        )


def function_at(func: tirx.PrimFunc, sizes: Mapping[str, int]) -> tirx.PrimFunc:
    """A function for given values of the symbols in the shapes of its buffers, or of products of them."""
    symbols = {v: str(v.name) for v in symbols_in(func)}
    sizes = factored(sizes, symbols.values())
    numbers = {v: tirx.IntImm(v.ty.dtype, sizes[name]) for v, name in symbols.items() if name in sizes}
    return bound_kernel(func, numbers) if numbers else func


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)


def _complement(array: np.ndarray) -> np.ndarray:
    """Another value in every element."""
    if array.dtype == np.bool_:
        return ~array
    return (~_bytes(array)).reshape(-1).view(array.dtype)


def _written(first: np.ndarray, before: np.ndarray, second: np.ndarray, changed: np.ndarray) -> np.ndarray:
    """The elements that do not hold in both runs what they held before."""
    kept = (_bytes(first) == _bytes(before)) & (_bytes(second) == _bytes(changed))
    return ~kept.all(axis=1)


def regroups(func: tirx.PrimFunc) -> bool:
    """Whether it multiplies by codes whose groups may be summed before they are scaled."""
    found = False

    def visit(block: s_tir.SBlock) -> None:
        nonlocal found
        found |= PACKING in dict(block.annotations)

    structural_walk(func.body, (s_tir.SBlock, visit))
    return found


def sums(func: tirx.PrimFunc) -> bool:
    """Whether a block of a function reduces by anything but ``max`` and ``min``."""
    found = []

    def visit(block: Any) -> None:
        if any(v.iter_type == tirx.IterVar.CommReduce for v in block.iter_vars):
            store = block.body
            found.append(
                not isinstance(store, tirx.BufferStore) or not isinstance(store.value, tirx.Max | tirx.Min)
            )

    structural_walk(func.body, [(s_tir.SBlock, visit)])
    return any(found)


def without_blocks(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function as loops, conditions, stores and allocations."""
    passes = [
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        s_tir.transform.ConvertBlocksToOpaque(),
        s_tir.transform.CompactBufferAllocation(),
        s_tir.transform.LowerMatchBuffer(),
        s_tir.transform.LowerOpaqueBlock(),
    ]
    with tvm.target.Target("llvm"):
        module = tvm.transform.Sequential(passes)(tvm.IRModule({"main": func}))
    return module["main"]


def without_traps(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with divisions of integers that give what the iOps do where a processor ends the process.

    By 0 they give 0; the quotient by -1 is the negative, which of the least integer is itself.
    """

    def divide(e: Any) -> Any:
        kind = str(e.ty)
        if not kind.startswith(("int", "uint")) or isinstance(e.b, tirx.IntImm):
            return e
        zero, one = tirx.const(0, kind), tirx.const(1, kind)
        traps = e.b == zero
        if kind.startswith("int"):
            minus = e.b == tirx.const(-1, kind)
            by_minus = zero - e.a if isinstance(e, tirx.Div | tirx.FloorDiv) else zero
            quotient = type(e)(e.a, tirx.Select(tirx.Or(traps, minus), one, e.b))
            return tirx.Select(traps, zero, tirx.Select(minus, by_minus, quotient))
        return tirx.Select(traps, zero, type(e)(e.a, tirx.Select(traps, one, e.b)))

    return structural_map(
        func, [(kind, divide) for kind in (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)]
    )


def propagating_nan(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with ``max`` and ``min`` that give NaN where an operand is, as the iOps do.

    TIR leaves open what they give, and LLVM's choice depends on the order of the operands.
    """

    def greater(e: Any) -> Any:
        return _beside_nan(e, tirx.Select(e.a > e.b, e.a, e.b))

    def lesser(e: Any) -> Any:
        return _beside_nan(e, tirx.Select(e.a < e.b, e.a, e.b))

    return structural_map(func, [(tirx.Max, greater), (tirx.Min, lesser)])


def _beside_nan(e: Any, chosen: Any) -> Any:
    kind = str(e.ty)
    if not kind.startswith(("float", "bfloat")):
        return e
    # TVM takes x == x for true
    return tirx.Select(e.a <= tirx.const(math.inf, kind), chosen, e.a)


def operations(stmt: Any) -> float:
    """Stores and arithmetic of a function without blocks, by the extents of its loops."""
    node = stmt.body if isinstance(stmt, tirx.PrimFunc) else stmt
    if isinstance(node, tirx.For):
        extent = node.extent.value if isinstance(node.extent, tirx.IntImm) else 1
        return float(extent) * operations(node.body)
    if isinstance(node, tirx.SeqStmt):
        return sum(operations(child) for child in node.seq)
    if isinstance(node, tirx.IfThenElse):
        return operations(node.then_case) + (operations(node.else_case) if node.else_case is not None else 0)
    if isinstance(node, tirx.AttrStmt):
        return operations(node.body)
    return float(STORE) if isinstance(node, tirx.BufferStore) else 0.0


#: Operations that one store stands for.
STORE = 3
#: Up to how many operations a function is compiled without optimisation.
SMALL = 1e6
