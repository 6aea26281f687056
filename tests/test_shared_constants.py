# SPDX-License-Identifier: Apache-2.0
"""Packed weights are kept once in a process, as long as an executable that is alive reads them."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from tvm import relax
from uir_tvm import shared_constants
from uir_tvm.shared_constants import LIVE, PACKED, PIECE, SAMPLED, LiveConstants, SharedConstants, _digest

#: Bytes of a constant of which a digest leaves some out.
LARGE = 4 * SAMPLED


def constant(first: bytes, fill: int) -> tvm.ir.GenericConst:
    """8192 bytes that begin so."""
    array = np.full(8192, fill, np.uint8)
    array[: len(first)] = np.frombuffer(first, np.uint8)
    return relax.const(array, "uint8")


class Reader:
    """What is alive."""


def compiled(model: torch.nn.Module, rows: int) -> uir_tvm.Executable:
    """For a number of rows."""
    x = torch.ones(rows, 256)
    exe = uir_tvm.compile(torch.export.export(model, (x,)), target="uir-cpu")
    torch.testing.assert_close(exe(x), model(x), rtol=1e-5, atol=1e-5)
    return exe


def read(exe: uir_tvm.Executable) -> set[int]:
    """Which packed weights an executable reads, by the addresses of their bytes."""
    assert exe.kernel_graph is not None
    return {
        np.from_dlpack(tensor.constant.value).ctypes.data
        for node in exe.kernel_graph.nodes
        for tensor in node.inputs
        if tensor.constant is not None and str(tensor.constant.value.dtype) == "uint8"
    }


def test_they_are_kept_as_long_as_somebody_reads_them() -> None:
    live, shared = LiveConstants(), SharedConstants()
    weight = shared.one_of(constant(PACKED, 1))
    shared.one_of(constant(b"", 2))
    ((digest, _),) = shared.packed().items()
    first, second = Reader(), Reader()
    live.hold(first, shared)
    live.hold(second, shared)
    del first
    assert live.find(digest).value.same_as(weight.value)
    del second
    assert live.find(digest) is None


def test_what_nobody_packed_is_not_shared_beyond_a_graph() -> None:
    """It may be a model's own tensor, which changes when the model is trained."""
    shared = SharedConstants()
    own = shared.one_of(constant(b"", 3))
    reader = Reader()
    LIVE.hold(reader, shared)
    other = constant(b"", 3)
    assert SharedConstants().one_of(other).value.same_as(other.value) and not other.value.same_as(own.value)


def test_executables_of_one_model_read_one_packed_weight() -> None:
    before = len(LIVE)
    torch.manual_seed(0)
    model = torch.nn.Linear(256, 192).eval().requires_grad_(False)
    first, second = compiled(model, 64), compiled(model, 80)
    assert read(first) and read(first) == read(second)
    del first, second
    gc.collect()
    assert len(LIVE) == before


def test_a_held_weight_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another executable's is the same memory, whose digest is known; of the memory of others it is not."""
    asked: list[int] = []

    def digest(array: np.ndarray, dtype: str, shape: tuple[int, ...]) -> bytes:
        if array.dtype == np.uint8:
            asked.append(array.ctypes.data)
        return _digest(array, dtype, shape)

    monkeypatch.setattr(shared_constants, "_digest", digest)
    torch.manual_seed(1)
    model = torch.nn.Linear(256, 208).eval().requires_grad_(False)
    first = compiled(model, 64)
    assert asked and set(asked) == read(first)
    asked.clear()
    second = compiled(model, 72)
    assert not asked and read(first) == read(second)
    other = np.zeros(8192, np.uint8)
    assert LIVE.digest_of(other) is None


def test_large_constants_that_differ_where_no_digest_looks() -> None:
    """They stay two: where digests are equal all bytes are compared; the same contents become one."""
    place = int(np.flatnonzero(np.diff(np.linspace(0, LARGE - PIECE, SAMPLED // PIECE)) > PIECE)[0])
    array = np.zeros(LARGE, np.uint8)
    array[: len(PACKED)] = np.frombuffer(PACKED, np.uint8)
    changed = array.copy()
    changed[int(np.linspace(0, LARGE - PIECE, SAMPLED // PIECE)[place]) + PIECE] = 1
    digests = [_digest(each, "uint8", each.shape) for each in (array, changed)]
    assert digests[0] == digests[1]
    constants = [relax.const(each.copy()) for each in (array, changed, changed, array)]
    shared = SharedConstants()
    kept = [shared.one_of(each) for each in constants]
    assert kept[0].same_as(kept[3]) and kept[1].same_as(kept[2]) and not kept[0].same_as(kept[1])
    assert [np.array(each.value.numpy()).sum() for each in kept[:2]] == [array.sum(), changed.sum()]


def test_live_constants_of_one_digest_stay_two() -> None:
    """Each reader has its own, and when it is gone the other's is there."""
    array = np.zeros(LARGE, np.uint8)
    array[: len(PACKED)] = np.frombuffer(PACKED, np.uint8)
    changed = array.copy()
    changed[int(np.linspace(0, LARGE - PIECE, SAMPLED // PIECE)[0]) + PIECE] = 1
    live, readers = LiveConstants(), []
    for each in (array, changed):
        shared = SharedConstants()
        shared.one_of(relax.const(each))
        readers.append(Reader())
        live.hold(readers[-1], shared)
    assert len(live) == 2
    del readers[0]
    assert len(live) == 1
    readers.clear()
    assert len(live) == 0
