# SPDX-License-Identifier: Apache-2.0
"""Launchers stand behind an emitted text, which itself stays as it is."""

from __future__ import annotations

from uir_tvm.target.ascend.launchers import kernels_of, with_launchers

SOURCE = """#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void softmax_1of2(GM_ADDR x, GM_ADDR part) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
}

extern "C" __global__ __aicore__ void softmax_2of2(GM_ADDR part, GM_ADDR x, GM_ADDR y, int64_t size_n) {
}
"""


def test_kernels_are_found_with_their_arguments() -> None:
    assert kernels_of(SOURCE) == {
        "softmax_1of2": ("GM_ADDR",) * 2,
        "softmax_2of2": ("GM_ADDR", "GM_ADDR", "GM_ADDR", "int64_t"),
    }
    assert kernels_of("// nothing here\n") == {}


def test_every_kernel_gets_a_launcher_after_the_text() -> None:
    made = with_launchers(SOURCE)
    assert made.startswith(SOURCE), "lines of the compiler's messages are those of the source"
    head, call = made[len(SOURCE) :].strip().splitlines()[:2]
    assert (
        head == 'extern "C" void softmax_1of2_launch(uint32_t blocks, void* stream, void* const* arguments) {'
    )
    assert call.strip() == (
        "softmax_1of2<<<blocks, nullptr, stream>>>"
        "(static_cast<uint8_t*>(arguments[0]), static_cast<uint8_t*>(arguments[1]));"
    )
    assert made.count("<<<") == 2
    assert "static_cast<uint8_t*>(arguments[2]), reinterpret_cast<int64_t>(arguments[3]));" in made
