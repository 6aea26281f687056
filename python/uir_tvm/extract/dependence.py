# SPDX-License-Identifier: Apache-2.0
"""Which loops of a leaf must run one iteration after the other, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tvm_ffi.structural import structural_equal

from ..igraph.affine import Affine
from ..igraph.coordinates import coordinates_of, joined_dims
from .affine_from_tir import AffineConverter, NotAffineError
from .function_pointers import FunctionPointers, Storage
from .leaf_access import Update, accesses_of, address_of
from .tree_nodes import Leaf


class _Loop(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def extent(self) -> int: ...
    @property
    def serial(self) -> bool: ...


def carried(
    leaf: Leaf,
    update: Update | None,
    memory: FunctionPointers,
    converter: AffineConverter,
    loops: Sequence[_Loop],
) -> set[str]:
    """Names of the loops that may carry a dependence.

    Iterations of a loop are independent when no two of them touch an element that one of them
    writes.  An update whose operand does not read its buffer may run in any order.

    - Where two accesses of a written buffer differ in some dimension, only loops that an equal
      dimension pins down (``c*v + constant`` in it) are independent.
    - Where all are equal, loops that do not move the stored address repeat it: they are serial
      (unless the leaf is an update), and the others must reach distinct addresses.
    """
    raw = any(loop.raw for loop in leaf.loops)
    names = [loop.name for loop in loops]
    every = list(accesses_of(leaf))
    written = [(buffer, indices) for buffer, indices, is_write in every if is_write]
    out: set[str] = set()
    for buffer, indices in written:
        pinned = _pinned(indices, converter, names)
        others = [x for b, x, _ in every if b.same_as(buffer)]
        equal = _equal_dimensions(indices, others, converter)
        if not all(equal):
            kept = {name for dim, same in enumerate(equal) if same for name in pinned[dim]}
            out |= set(names) - kept
            continue
        try:
            address = address_of(memory.storages[buffer], indices, converter)
        except NotAffineError:
            # a scatter: a later iteration may overwrite an earlier one, which scatter does in order;
            # reading the buffer as well, each must see what the one before it wrote
            if len(others) > 1:
                out |= set(names) - {name for dim in pinned for name in dim}
            continue
        still = {name for name in names if name not in address.variables()}
        if update is None:
            out |= still
        # the iteration variables of a block name each element once, in whatever order serial loops run
        moving = [lp for lp in loops if lp.name not in still and (raw or not lp.serial)]
        if not _distinct(address, memory.storages[buffer], converter, moving):
            out |= set(names) - {name for dim in pinned for name in dim} - (still if update else set())
    return out


def _pinned(indices: Sequence[Any], converter: AffineConverter, names: Sequence[str]) -> list[set[str]]:
    """For each dimension, the loop that its index determines (if it is the only one in it)."""
    out = []
    for index in indices:
        expr = converter.try_convert(index)
        used = set() if expr is None else set(expr.variables()) & set(names)
        out.append(used if len(used) == 1 and expr is not None and expr.is_linear_in(*used) else set())
    return out


def _equal_dimensions(
    indices: Sequence[Any], others: Sequence[Sequence[Any]], converter: AffineConverter
) -> list[bool]:
    out = []
    for dim, index in enumerate(indices):
        mine = converter.try_convert(index)
        same = True
        for other in others:
            theirs = converter.try_convert(other[dim])
            if mine is not None and theirs is not None:
                same = same and mine == theirs
            else:
                same = same and mine is None and theirs is None and structural_equal(index, other[dim])
        out.append(same)
    return out


def _distinct(address: Affine, storage: Storage, converter: AffineConverter, loops: Sequence[_Loop]) -> bool:
    """Whether no two iterations of loops share an address: each loop has a dimension that tells it apart."""
    parts: Sequence[Affine] | None = (address,)
    if storage.dims:
        parts = coordinates_of(address, joined_dims(storage.dims), converter.space)
    left = list(loops)
    for part in parts or ():
        own = [loop for loop in left if loop.name in part.variables()]
        if not _injective(part, own):
            return False
        left = [loop for loop in left if loop not in own]
    return not left


def _injective(address: Affine, loops: Sequence[_Loop]) -> bool:
    """Whether strides are wide enough that no two iterations share an address."""
    if not all(address.is_linear_in(loop.name) for loop in loops):
        return False
    span = 0
    for stride, extent in sorted((abs(address.coefficient(lp.name)), lp.extent) for lp in loops):
        if stride <= span:
            return False
        span += stride * (extent - 1)
    return True
