# SPDX-License-Identifier: Apache-2.0
"""The host models share memory, loaded kernels and source lines: launches run one at a time, on all."""

from __future__ import annotations

import pathlib
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
import uir_tvm
from uir_tvm.options import CompileOptions
from uir_tvm.target.cuda import host_model as simt

from tests import tiny
from tests.device import ascend_texts, bang_texts

#: Seconds that the slow launch takes: it ends by its limit.
LIMIT = 0.5
SPIN = """
extern "C" __global__ void spin(volatile int* x) {
  while (x[0] == 0) __syncwarp();
}
"""


def bang() -> None:
    bang_texts.run(bang_texts.text("  __bang_write_value(a, 64, 1.0f);"), []).check()


def ascend() -> None:
    ascend_texts.run(ascend_texts.text("  (void)gx;"), [np.zeros(8, "float32")] * 3).check()


@pytest.mark.parametrize("other", [bang, ascend])
def test_a_launch_waits_for_one_on_another_model(other: Callable[[], None]) -> None:
    other()  # compiled, before it is a matter of time
    compiled, zero = simt.compile(SPIN), np.zeros(1, "int32")
    begun, kinds = threading.Event(), []

    def spin() -> None:
        begun.set()
        result = simt.launch(compiled, "spin", [zero], grid=1, block=1, max_seconds=LIMIT)
        kinds.extend(finding.kind for finding in result.findings)

    thread = threading.Thread(target=spin)
    thread.start()
    assert begun.wait(10)
    time.sleep(LIMIT / 5)
    start = time.perf_counter()
    other()
    waited = time.perf_counter() - start
    thread.join()
    assert kinds == ["time-limit"] and waited > LIMIT / 3


def mapped() -> int:
    """Kernels of modules that are mapped into this process."""
    maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
    return len({line.split(maxsplit=5)[-1] for line in maps if "/uir-kernel-" in line})


@pytest.mark.parametrize("target", ["uir-cuda", "uir-ascend", "uir-bang"])
def test_kernels_go_with_their_module(target: str) -> None:
    """A process that compiles one model after the other would map all their kernels."""
    mod, x = tiny.module(), tiny.example()
    before = mapped()
    for _ in range(2):
        exe = uir_tvm.compile(mod, target, options=CompileOptions(device="model"))
        np.testing.assert_allclose(exe(x), tiny.expected(x), atol=1e-4)
        assert mapped() > before
        del exe
        assert mapped() == before
