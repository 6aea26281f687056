# SPDX-License-Identifier: Apache-2.0
"""Multi-buffered loops in CUDA C++: copies run ahead, and nothing reads what has not arrived."""

from __future__ import annotations

import re

import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.device.device_kernel import DeviceKernel
from uir_tvm.device.run_text import run
from uir_tvm.errors import DeviceModelError
from uir_tvm.igraph import IGraph, interpreter, parse_igraph
from uir_tvm.igraph.text import print_hardware
from uir_tvm.optimize import optimize
from uir_tvm.target.cuda import toolchain
from uir_tvm.target.cuda.lower import lower

from .products import Product


def staged(
    body: str,
    stages: int,
    model: str = "h200",
    turns: int = 1,
    passes: tuple[str, ...] = ("multibuffer", "insert_sync"),
) -> IGraph:
    """b = a + 1 by a loop of 8 iterations over tiles of 128 values in sram, `turns` times."""
    text = f"""
{print_hardware(hardware.get(model, "cuda"))}
igraph ahead on {model} parallel (2, 2) {{
  a = iPointer(dram, fp32, {4096 * turns}, in)
  b = iPointer(dram, fp32, {4096 * turns}, out)
  s = iPointer(sram, fp32, 256)
  t = iPointer(reg, fp32, 128)
  u = iPointer(reg, fp32, 128)
  for turn in {turns} {{
    for k in 8 [pipeline={stages}] {{
      {body}
      unary.adds.fp32 u[0; (1,128); (128,1)], t[0; (1,128); (128,1)] [1.0]
      move.reg.dram.fp32 b[4096*turn + 1024*pid + 128*k; (1,128); (128,1)], u[0; (1,128); (128,1)]
    }}
  }}
}}
"""
    return optimize(parse_igraph(text), list(passes)).graph


#: Each warp loads its own rows ahead, into its own part of sram: no barriers between warps.
OWN = """
    move.dram.sram.fp32 s[128*(pid % 2); (1,128); (128,1)], a[128*k + 1024*pid + 4096*turn; (1,128); (128,1)]
      move.sram.reg.fp32 t[0; (1,128); (128,1)], s[128*(pid % 2); (1,128); (128,1)]
"""

#: The same by rows that lie apart, each of which another lane copies.
OWN_ROWS = """
    move.dram.sram.fp32 s[128*(pid % 2); (4,32); (32,1)], a[128*k + 1008*pid + 4096*turn; (4,32); (36,1)]
      move.sram.reg.fp32 t[0; (1,128); (128,1)], s[128*(pid % 2); (1,128); (128,1)]
"""

#: The two warps of a group load columns of one tile, by rows that lie apart, and each reads the other's.
SHARED = """
      move.dram.sram.fp32 s[128*(pid % 2); (4,32); (32,1)], a[32*(pid % 2) + 256*k + AT; (4,32); (64,1)]
      move.sram.reg.fp32 t[0; (1,128); (128,1)], s[128 - 128*(pid % 2); (1,128); (128,1)]
""".replace("AT", "2048*(pid / 2) + 4096*turn")

#: The same, but the last values of an iteration do not exist.
RAGGED = SHARED.replace("(64,1)]", "(64,1); cols :30 - 2*k] [pad=0]")


def agrees(graph: IGraph, kernel: DeviceKernel) -> None:
    """The host model computes what the interpreter does."""
    x = np.random.default_rng(1).standard_normal(int(graph.pointers[0].size)).astype(np.float32)
    (want,) = interpreter.run(graph, x)
    got = run(kernel, [x]).check().outputs["b"]
    np.testing.assert_array_equal(np.asarray(got).ravel(), np.asarray(want).ravel())


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_warps_wait_for_their_own_copies(stages: int) -> None:
    """As many groups are in flight as there are stages; the values are those of the interpreter."""
    graph = staged(OWN, stages, "a100")
    kernel = lower(graph)
    assert f"cp_async_wait<{stages - 1}>" in str(kernel) and "cp_async_wait<0>" in str(kernel)
    assert "bulk_copy" not in str(kernel)
    assert "loop k: loads ahead by cp.async, since sm_80 has no bulk copies" in kernel.report["ahead"]
    agrees(graph, kernel)


@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("body", [OWN, SHARED], ids=["own", "shared"])
def test_bulk_copies(body: str, stages: int, turns: int) -> None:
    """Runs are fetched whole, also where barrier objects are in any phase when the loop begins again."""
    graph = staged(body, stages, turns=turns)
    kernel = lower(graph)
    text = str(kernel)
    assert "cp_async" not in text and "loop k: loads ahead by bulk copies" in kernel.report["ahead"]
    assert (
        text.count(f", {2 if body == SHARED else 1});\n  if") == stages
    )  # arrivals of a phase: one of each warp
    agrees(graph, kernel)


def test_a_warp_meets_at_its_start_where_nothing_later_orders_it() -> None:
    """One lane sets up the barrier objects; who else takes them comes behind a barrier, and one suffices."""
    starts = {
        body: lower(staged(body, 3)).source.split("fence_async();\n  ")[1].split("\n")[0]
        for body in (OWN, OWN_ROWS, SHARED)
    }
    assert starts[OWN].startswith("for (")
    assert starts[OWN_ROWS] == "__syncwarp();"
    assert starts[SHARED] == "__syncthreads();"


def test_a_ragged_end_is_copied_by_lanes() -> None:
    """A bulk copy has no mask: the lanes' copies fill with zeros."""
    graph = staged(RAGGED, 2)
    kernel = lower(graph)
    assert "bulk_copy" not in str(kernel) and "cp_async_16_zfill(" in str(kernel)
    assert "loop k: loads ahead by cp.async, since a has a ragged end" in kernel.report["ahead"]
    agrees(graph, kernel)


def test_short_rows_and_swizzled_tiles_are_copied_by_lanes() -> None:
    """A bulk copy moves whole runs of 16 bytes, and leaves them in their order."""
    move, read = OWN.strip("\n").split("\n")
    move = move[: move.index("s[")] + "s[128*(pid % 2); (64,2); (2,1)], a[2*k + 16*pid; (64,2); (64,1)]"
    short = lower(staged(f"{move}\n{read}", 2))
    assert "cp_async_8(" in str(short) and any(
        "multiples of 16 bytes" in line for line in short.report["ahead"]
    )
    swizzled = lower(Product(64, 64, 128, "float16").graph())
    assert any(line.endswith("is swizzled") for line in swizzled.report["product"])


def test_full_shared_memory_has_no_room_for_barrier_objects() -> None:
    """They are not what makes a kernel exceed its memory."""
    full = lower(staged(OWN, 3, "a100")).launches[0].shared_bytes
    text = str(staged(OWN, 3)).replace("  sram_bytes = 232448", f"  sram_bytes = {full}")
    kernel = lower(parse_igraph(text))
    assert kernel.launches[0].shared_bytes == full
    assert any("no room for barrier objects" in line for line in kernel.report["ahead"])


def test_what_the_kernel_writes_is_copied_by_lanes() -> None:
    """Bulk copies read memory past the order in which threads see their own stores."""
    text = str(staged(OWN, 2)).replace(
        "a = iPointer(dram, fp32, 4096, in)", "a = iPointer(dram, fp32, 4096, inout)"
    )
    store = "  move.reg.dram.fp32 a[1024*pid; (1,128); (128,1)], t[0; (1,128); (128,1)]"
    kernel = lower(parse_igraph(f"{text.rstrip()[:-1]}{store}\n}}\n"))
    assert any(line.endswith("since the kernel writes a itself") for line in kernel.report["ahead"])


@pytest.mark.parametrize("shape", [(64, 64, 128), (96, 64, 256)])
def test_a_product_by_bulk_copies(shape: tuple[int, int, int]) -> None:
    """The recipe's own tiles in sram: several rows of both operands are one group."""
    product = Product(*shape, "float32")
    graph, inputs = product.graph(), product.inputs()
    kernel = lower(graph)
    assert "bulk_copy" in str(kernel) and "cp_async" not in str(kernel)
    (want,) = interpreter.run(graph, *inputs)
    got = run(kernel, inputs).check().outputs["out"]
    # sums of as many products as the depth, in another order
    np.testing.assert_allclose(np.asarray(got).ravel(), np.asarray(want).ravel(), rtol=1e-5, atol=1e-4)


BULK_FAULTS = {
    "no wait": (r"for \(; waited.*\n *mbarrier_wait\(.*\n *}", ""),
    "wait for one group fewer": (r"waited( \+ \d)? < begun", r"waited + 1\1 < begun"),
    "other parity": (r"(mbarrier_wait\(.*) % 2\);", r"\1 % 2 ^ 1);"),
    "other barrier object": (r"mbarrier_wait\(full \+ waited", "mbarrier_wait(full + (waited + 1)"),
    "fewer bytes": (r"(mbarrier_expect_tx\(.*), 512\);", r"\1, 256);"),
    "no initialisation": (r"if .* mbarrier_init\(full \+ 1, .*", ""),
    "no barrier before a tile is written again": (r"__sync(threads|warp)\(\);", ""),
}


@pytest.mark.parametrize("fault", BULK_FAULTS)
@pytest.mark.parametrize("body", [OWN, SHARED], ids=["own", "shared"])
def test_the_host_model_sees_faults_of_bulk_copies(body: str, fault: str) -> None:
    """Each makes a warp read what is on its way, or wait for what never comes."""
    kernel = lower(staged(body, 3))
    pattern, instead = BULK_FAULTS[fault]
    head, text = str(kernel).split('extern "C"', 1)
    broken, count = re.subn(pattern, instead, text)
    assert count > 0
    x = np.zeros(4096, np.float32)
    with pytest.raises(DeviceModelError):
        run(kernel, [x], source=head + 'extern "C"' + broken).check()


@pytest.mark.parametrize("body", [OWN, SHARED], ids=["own", "shared"])
def test_bulk_copies_compile(body: str) -> None:
    """The real compiler takes the text without warnings, and keeps all in registers."""
    tool = toolchain.available()
    if tool is None:
        pytest.skip("no compiler for CUDA")
    cubin = toolchain.compile(str(lower(staged(body, 3))), "sm_90a", tool=tool)
    assert cubin.warnings == () and cubin.spills == ()


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
