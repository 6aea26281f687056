# SPDX-License-Identifier: Apache-2.0
"""Multi-buffered loops in CUDA C++: copies run ahead, and nothing reads what has not arrived."""

from __future__ import annotations

import re

import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.device.run import run
from uir_tvm.errors import DeviceModelError
from uir_tvm.igraph import IGraph, interpreter, parse_igraph
from uir_tvm.igraph.text import print_hardware
from uir_tvm.optimize import optimize
from uir_tvm.target.cuda.lower import lower

from .products import Product


def of_own(stages: int) -> IGraph:
    """Each warp loads its own rows ahead, into its own part of sram: no barriers between warps."""
    text = f"""
{print_hardware(hardware.get("h200", "cuda"))}
igraph ahead on h200 parallel (2, 2) {{
  a = iPointer(dram, fp32, 4096, in)
  b = iPointer(dram, fp32, 4096, out)
  s = iPointer(sram, fp32, 256)
  t = iPointer(reg, fp32, 128)
  u = iPointer(reg, fp32, 128)
  for k in 8 [pipeline={stages}] {{
    move.dram.sram.fp32 s[128*(pid % 2); (1,128); (128,1)], a[1024*pid + 128*k; (1,128); (128,1)]
    move.sram.reg.fp32 t[0; (1,128); (128,1)], s[128*(pid % 2); (1,128); (128,1)]
    unary.adds.fp32 u[0; (1,128); (128,1)], t[0; (1,128); (128,1)] [1.0]
    move.reg.dram.fp32 b[1024*pid + 128*k; (1,128); (128,1)], u[0; (1,128); (128,1)]
  }}
}}
"""
    passes = ["multibuffer", "insert_sync"]
    return optimize(parse_igraph(text), passes).graph


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_warps_wait_for_their_own_copies(stages: int) -> None:
    """As many groups are in flight as there are stages; the values are those of the interpreter."""
    graph = of_own(stages)
    kernel = lower(graph)
    assert f"cp_async_wait<{stages - 1}>" in str(kernel) and "cp_async_wait<0>" in str(kernel)
    x = np.random.default_rng(1).standard_normal(4096).astype(np.float32)
    (want,) = interpreter.run(graph, x)
    got = run(kernel, [x]).check().outputs["b"]
    np.testing.assert_array_equal(np.asarray(got).ravel(), np.asarray(want).ravel())


@pytest.mark.parametrize("depth", [128, 200])
def test_blocks_share_what_was_copied(depth: int) -> None:
    """Three stages over both operands; a ragged end is filled with zeros by the copies themselves."""
    graph = Product(64, 64, depth, "float16").graph()
    text = str(lower(graph))
    assert "cp_async_16" in text and text.count("cp_async_commit();\n") >= 2
    assert ("cp_async_16_zfill(" in text.split("extern")[-1]) == (depth == 200)


@pytest.mark.parametrize("fault", ["wait", "barrier"])
def test_the_host_model_sees_a_missing_wait_or_barrier(fault: str) -> None:
    """Without them the product reads what is still on its way."""
    product = Product(64, 64, 256, "float16")
    kernel = lower(product.graph())
    head, body = str(kernel).split('extern "C"', 1)
    pattern = r"cp_async_wait<\d>\(\);" if fault == "wait" else r"__syncthreads\(\);"
    broken, count = re.subn(pattern, "", body)
    assert count > 0
    with pytest.raises(DeviceModelError):
        run(kernel, product.inputs(), source=head + 'extern "C"' + broken).check()
