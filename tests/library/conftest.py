# SPDX-License-Identifier: Apache-2.0
"""Both ways to compute a library operator, on one thread and on two."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

# TVM reads it when its thread pool starts, which no test has done while this file is imported.
os.environ.setdefault("TVM_NUM_THREADS", "2")

import tvm_ffi
from uir_tvm.library import cpu


@pytest.fixture(params=[1, 2], ids=["1thread", "2threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """The size of TVM's pool while the test runs."""
    configure = tvm_ffi.get_global_func("runtime.config_threadpool")
    before = cpu.available().threads
    configure(1, request.param)
    yield request.param
    configure(1, before)


@pytest.fixture(params=[True, False], ids=["onednn", "plain"])
def library(request: pytest.FixtureRequest) -> Iterator[bool]:
    """With oneDNN and without: the results must agree."""
    if request.param and not cpu.available():
        pytest.skip(f"oneDNN is not installed: {cpu.available().error}")
    enable = tvm_ffi.get_global_func("uir.library.cpu.set_enabled")
    enable(request.param)
    yield request.param
    enable(True)


#: The code of convolutions in tiles: for this CPU's vectors, and that for AVX512 in pairs of vectors of AVX2.
VECTORS = [str(name) for name in tvm_ffi.get_global_func("uir.library.cpu.tile_vectors")()]


@pytest.fixture(params=VECTORS)
def vectors(request: pytest.FixtureRequest) -> Iterator[str]:
    """Which of them runs."""
    choose = tvm_ffi.get_global_func("uir.library.cpu.set_tile_vectors")
    choose(request.param)
    yield request.param
    choose(VECTORS[0])
