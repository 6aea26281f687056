# SPDX-License-Identifier: Apache-2.0
"""Weights, state and packed blocks lie in large pages where the system has them."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from uir_tvm.library import cpu
from uir_tvm.library.cpu import MatmulAttrs

MIB = 1 << 20
SETTING = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")


def gathers_at_once() -> bool:
    """Linux 6.1 and later, whose pages are not all small."""
    release = pathlib.Path("/proc/sys/kernel/osrelease")
    if not SETTING.is_file() or "[never]" in SETTING.read_text():
        return False
    major, minor = map(int, release.read_text().split(".")[:2])
    return (major, minor) >= (6, 1)


pytestmark = pytest.mark.skipif(not gathers_at_once(), reason="the system has no large pages to ask for")


def mappings() -> Iterator[tuple[range, int]]:
    """Addresses of this process, and bytes of large pages behind them."""
    addresses = range(0)
    for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            addresses = range(int(found[1], 16), int(found[2], 16))
        elif line.startswith("AnonHugePages:"):
            yield addresses, int(line.split()[1]) * 1024


def large_bytes() -> int:
    return sum(size for _, size in mappings())


class Layers(torch.nn.Module):
    """Weights of 1 MiB each, none of which fills a large page, and a state of 8 MiB."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(512, 512, bias=False) for _ in range(24))
        self.register_buffer("seen", torch.zeros(4096, 512))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        self.seen.add_(x)  # type: ignore[operator]
        return x


def program() -> None:
    """A program's first call, in a process whose memory nobody has used before."""
    x = torch.randn(1, 512)
    module = Layers().eval()
    exe = uir_tvm.compile(torch.export.export(module, (x,)))
    before = large_bytes()
    got = exe(x.numpy())
    assert large_bytes() - before >= 8 * MIB, large_bytes()  # of 32, as far as they lie side by side
    with torch.no_grad():
        want = module(x).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(exe.state["seen"], np.broadcast_to(want, (4096, 512)), rtol=1e-4, atol=1e-5)


def test_weights_of_a_program_and_its_state() -> None:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_packed_weight() -> None:
    """It begins on a large page, and all that is whole of it lies in such pages."""
    w = np.random.default_rng(0).standard_normal((1024, 2560)).astype(np.float32)
    blob: Any = cpu.pack_weight(
        tvm.runtime.tensor(w), MatmulAttrs.contiguous((33, 1024), (1024, 2560), packed=True)
    )
    array = np.from_dlpack(blob)
    assert array.ctypes.data % (2 * MIB) == 0
    behind = [size for addresses, size in mappings() if array.ctypes.data in addresses]
    assert behind and behind[0] >= array.nbytes // (2 * MIB) * 2 * MIB


if __name__ == "__main__":
    program()
