# SPDX-License-Identifier: Apache-2.0
"""Every second element is loaded by two vectors side by side, which end with the last one."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
import tvm_ffi
from uir_tvm.igraph import IGraph
from uir_tvm.target.cpu.lower import lower

from .support import compiled, parsed, signature


def every(step: int, role: str = "in", dtype: str = "fp32", count: int = 100) -> IGraph:
    """o[i] = x[step * i], of just so many elements as are needed."""
    size = step * (count - 1) + 1
    return parsed(
        f"x = iPointer(dram, {dtype}, {size}, {role})\no = iPointer(dram, {dtype}, {count}, out)",
        f"move.dram.dram.{dtype} o[0; (1,{count}); ({count},1)], x[0; (1,{count}); ({count * step},{step})]",
    )


@pytest.mark.parametrize(
    ("step", "role", "vectors"),
    [(2, "in", True), (3, "in", False), (2, "inout", False)],
    ids=["every second", "every third", "what others may write"],
)
def test_which_elements_are_loaded_by_vectors(step: int, role: str, vectors: bool) -> None:
    graph = every(step, role)
    assert ("T.Shuffle" in str(lower(graph, signature(graph)))) == vectors


def forbid(address: int, size: int) -> None:
    """Let every access to so many bytes end the process."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), 0) == 0


@pytest.mark.parametrize("count", [1, 3, 16, 37, 100])
@pytest.mark.parametrize("dtype", ["fp32", "fp64", "fp16", "int8", "bool"])
def test_no_element_behind_the_last_is_touched(dtype: str, count: int) -> None:
    """A tensor ends at the end of what the process may read."""
    graph = every(2, dtype=dtype, count=count)
    kind = np.dtype({"fp32": "f4", "fp64": "f8", "fp16": "f2", "int8": "i1", "bool": "?"}[dtype])
    size = (2 * count - 1) * kind.itemsize
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    room = np.frombuffer(pages, np.uint8)
    forbid(room.ctypes.data + mmap.PAGESIZE, mmap.PAGESIZE)
    x = room[mmap.PAGESIZE - size : mmap.PAGESIZE].view(kind)
    x[:] = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, x.size)
    out = np.zeros(count, kind)
    compiled(graph)["kernel"](tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(out))
    np.testing.assert_array_equal(out, x[::2])
