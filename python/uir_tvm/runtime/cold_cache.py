# SPDX-License-Identifier: Apache-2.0
"""What a kernel of a CPU meets in a model: caches full of other data, inputs that were just written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import te
from tvm.s_tir import Schedule

from ..igraph.nodes import HardwareModel

#: Bytes of the last cache where a hardware model says none, and the most that count: what a large one holds
#: more is other programs'.
CACHE, MOST = 1 << 25, 1 << 26
#: What is copied at once; the rest of a tensor stays as it is.
WORD = np.dtype(np.int64)


class ColdCache:
    """Other kernels' work, to be done before a call.

    All of it is done by the threads that kernels have, each its share in one piece, as libraries and kernels
    cut theirs: what one thread wrote would be near to kernels of one thread only.

    Parameters
    ----------
    hw : HardwareModel
        Of the CPU.
    tensors, arrays : sequences of Tensor and ndarray
        What is written before every call, and with what, unless it would fill half of the last cache.
    """

    def __init__(
        self, hw: HardwareModel, tensors: Sequence[tvm.runtime.Tensor], arrays: Sequence[np.ndarray]
    ) -> None:
        cache = cache_of(hw)
        self._copy = _copier(max(int(hw.num_groups) * int(hw.num_units), 1), str(hw.figures["mcpu"]))
        self._pairs = [_others(cache // WORD.itemsize)]
        for tensor, array in zip(tensors, arrays, strict=True):
            if WORD.itemsize <= array.nbytes <= cache // 2:
                count = array.nbytes // WORD.itemsize
                self._pairs.append((_words(tvm.runtime.tensor(array), count), _words(tensor, count)))

    def __call__(self, *_tensors: Any) -> None:
        """Do it."""
        for source, target in self._pairs:
            self._copy(source, target)


def cache_of(hw: HardwareModel) -> int:
    """Bytes of the last cache that are to be filled."""
    return min(int(hw.figures.get("l3_bytes", 0)) or CACHE, MOST)


@functools.lru_cache(1)
def _others(count: int) -> tuple[tvm.runtime.Tensor, tvm.runtime.Tensor]:
    """What other kernels read and write: so many words each, the same for all that are timed by turns."""
    # pages of their own: those of zeros are all the same one
    first, second = (tvm.runtime.tensor(np.ones(count, WORD)) for _ in range(2))
    return first, second


def _words(tensor: tvm.runtime.Tensor, count: int) -> tvm.runtime.Tensor:
    """The same memory as so many words."""
    return tensor._create_view((count,), str(WORD))


@functools.cache
def _copier(threads: int, mcpu: str) -> Callable[[tvm.runtime.Tensor, tvm.runtime.Tensor], None]:
    """A kernel that copies words from a tensor to another."""
    count = te.var("count", "int64")
    source = te.placeholder((count,), str(WORD), "source")
    target = te.compute((count,), lambda at: source[at], "target")
    sch = Schedule(te.create_prim_func([source, target]).with_attr("global_symbol", "main"))
    (loop,) = sch.get_loops("target")
    part, _ = sch.split(loop, [threads, None])
    sch.parallel(part)
    found: Callable[..., None] = tvm.compile(
        sch.mod, target=tvm.target.Target({"kind": "llvm", "mcpu": mcpu})
    )["main"]
    return found
