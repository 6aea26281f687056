# SPDX-License-Identifier: Apache-2.0
"""Products that four warps make together: they equal the interpreter's; when they are chosen, and why not."""

from __future__ import annotations

import re
from typing import Any

import attrs
import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.device.device_kernel import DeviceKernel
from uir_tvm.device.run_text import run
from uir_tvm.errors import DeviceModelError
from uir_tvm.igraph import IGraph, interpreter
from uir_tvm.optimize import optimize
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.contraction import shared_product
from uir_tvm.target.cuda import toolchain
from uir_tvm.target.cuda.lower import lower

from tests.extracted import extracted

from .products import Product

#: Relative to the largest result: fp32 sums of up to 200 products; tf32 cuts factors to 10 bits.
TOLERANCE = {"float16": 200 * 2.0**-24, "bfloat16": 200 * 2.0**-24, "int8": 0.0, "float32": 2.0**-8}


@pytest.fixture
def tile(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes products of one tile: 16 rows a warp, all columns."""

    def choose(rows: int, cols: int) -> None:
        only = shared_product.ProductTile(rows, cols, rows // 16, 1)
        space = attrs.evolve(shared_product.PRODUCT_SPACES["cuda"], tiles=(only,), joint={})
        monkeypatch.setattr(shared_product, "PRODUCT_SPACES", {"cuda": space})

    return choose


def graph_of(product: Product, model: str = "h200", **given: Any) -> IGraph:
    graph = product.graph(model)
    return graph.replace(attrs={**graph.attrs, **given})


def check(product: Product, graph: IGraph) -> tuple[str, dict[str, int], list[str]]:
    """The text, the counters and the report's lines on products, after results equal the interpreter's."""
    kernel = lower(graph)
    inputs = product.inputs()
    (want,) = interpreter.run(graph, *inputs)
    ran = run(kernel, inputs).check()
    got = np.asarray(ran.outputs["out"]).astype(np.float64).ravel()
    want = np.asarray(want).astype(np.float64).ravel()
    limit = TOLERANCE[product.dtype] * np.abs(want).max()
    np.testing.assert_array_less(np.abs(got - want), limit + (limit == 0) * 0.5)
    return str(kernel), dict(ran.counters), notes(kernel)


def notes(kernel: DeviceKernel) -> list[str]:
    """What the report says of products."""
    return [line for lines in kernel.report.values() for line in lines if line.startswith("product ")]


@pytest.mark.parametrize(
    "product, rows, cols, call",
    [
        (Product(64, 64, 128, "float16"), 64, 64, "wgmma_m64n64k16_f16<1>("),
        (Product(128, 128, 64, "bfloat16", b_transposed=True), 128, 128, "wgmma_m64n128k16_bf16<0>("),
        (Product(128, 128, 64, "float16"), 128, 128, "wgmma_m64n128k16_f16<1>("),
        (Product(64, 64, 64, "int8", b_transposed=True), 64, 64, "wgmma_m64n64k32_s8_tiles("),
        (Product(100, 72, 200, "float16"), 64, 64, "wgmma_m64n64k16_f16<1>("),
        (Product(40, 32, 48, "bfloat16", batch=2), 64, 32, "wgmma_m64n32k16_bf16"),
    ],
    ids=str,
)
def test_products(tile: Any, product: Product, rows: int, cols: int, call: str) -> None:
    """b lies either way, in lines of an atom or longer ones; ragged sizes are padded; no bank conflicts."""
    tile(rows, cols)
    text, counters, said = check(product, graph_of(product))
    assert call in text and counters["wgmmas"] > 0 and counters["mmas"] == 0
    assert counters["bank_conflicts"] == 0
    assert all("wgmma, since" in line for line in said), said


def test_a_from_shared_memory_too(tile: Any) -> None:
    """Rows of a that four warps stage together are 64 rows of one tile."""
    tile(64, 64)
    product = Product(64, 64, 128, "float16", a_transposed=True)
    text, _, _ = check(product, graph_of(product))
    assert "wgmma_m64n64k16_f16_tiles<1, 1>(" in text


def test_the_compiler_mends_nothing(tile: Any) -> None:
    """Sums, and factors that are computed and not just loaded, are operands of fence and wait.

    Without, it says C7519: it put in a fence, because factors were set after the text's own.
    """
    if not toolchain.available():
        pytest.skip("no compiler for CUDA")
    tile(64, 32)
    kernel = lower(graph_of(Product(40, 32, 48, "bfloat16", batch=2)))
    assert re.search(r"wgmma_fence\(\w+, \w+\);", str(kernel))
    assert toolchain.compile(str(kernel), "sm_90a").warnings == ()


def test_tf32_needs_leave_to_round(tile: Any) -> None:
    """Its factors are cut; b must lie along the contracted side."""
    tile(64, 64)
    product = Product(64, 64, 48, "float32", b_transposed=True)
    text, counters, _ = check(product, graph_of(product, fast_math=True))
    assert "wgmma_m64n64k8_tf32(" in text and counters["wgmmas"] > 0
    assert "wgmma" not in str(lower(graph_of(product)))
    (said,) = set(notes(lower(graph_of(Product(64, 64, 48, "float32"), fast_math=True))))
    assert "does not lie along the contracted side" in said


@pytest.mark.parametrize("asked", [True, False])
def test_the_graph_may_ask(tile: Any, asked: bool) -> None:
    """The attribute decides both ways, also for what does not pay."""
    tile(64, 64)
    product = Product(64, 64, 64, "float16")
    text, counters, (said, *_) = check(product, graph_of(product, wgmma=asked))
    assert (counters["wgmmas"] > 0) == asked and ("mma_m16n8k16_f16(" in text) != asked
    assert ("asked for" if asked else "forbids") in said


def test_what_does_not_pay_is_left_alone(tile: Any) -> None:
    """8 columns: the wait at the end costs more than reading b four times."""
    tile(64, 8)
    said = notes(lower(graph_of(Product(64, 8, 64, "float16", b_transposed=True))))
    assert said and all("mma.sync, since" in line and "cycles" in line for line in said)


def test_warps_that_do_not_share_columns() -> None:
    """Two by two warps have different parts of b."""
    product = Product(64, 64, 64, "float16")
    only = shared_product.ProductTile(64, 64, 2, 2)
    space = attrs.evolve(shared_product.PRODUCT_SPACES["cuda"], tiles=(only,), joint={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_product, "PRODUCT_SPACES", {"cuda": space})
        said = notes(lower(graph_of(product)))
    assert said and all("is not the same for four warps" in line for line in said)


def test_other_architectures_print_what_they_did() -> None:
    """No report of it, no instruction of it."""
    kernel = lower(graph_of(Product(128, 128, 64, "float16"), "a100"))
    assert "wgmma" not in str(kernel) and not notes(kernel)


def test_the_recipe_asks_for_it() -> None:
    """On sm_90a 16-bit products get tiles for it by default."""
    hw = hardware.get("h200", "cuda")
    product = Product(1024, 1024, 64, "float16")
    made = optimize(extracted(apply_default(product.func(), hw), hw, name="product", check=False)).graph
    assert "wgmma_m64n64k16_f16" in str(lower(made))


@pytest.mark.parametrize(
    "pattern, replacement, kind",
    [
        (r"wgmma_wait<0>\([^;]*\);", "", "wgmma-in-flight"),
        (r"wgmma_wait<0>\([^;]*\);", "wgmma_wait<0>();", "wgmma-wait"),
        (r"wgmma_fence\((\w+), \w+\);", r"wgmma_fence(\1);", "wgmma-fence"),
        (r"wgmma_commit\(\);", "", "wgmma-in-flight"),
        (r"wgmma_fence\([^;]*\);", "", "wgmma-fence"),
        (r"fence_async\(\);", "", "proxy"),
        (r"(wgmma_tile<8>\(.*), 1024\)\)", r"\1, 2048))", "unwritten|race|in-flight|bounds|proxy"),
        (r"    (wgmma_fence\([^;]*\);)", r"    if (unit == 1) continue;\n    \1", "divergent"),
    ],
    ids=["wait", "sums of wait", "a of fence", "commit", "fence", "proxy fence", "stride", "missing warp"],
)
def test_planted_faults(tile: Any, pattern: str, replacement: str, kind: str) -> None:
    """A fence, a wait or a warp that is missing, and a wrong descriptor, are found."""
    tile(64, 64)
    product = Product(64, 64, 192, "float16")
    kernel = lower(graph_of(product))
    source = re.sub(pattern, replacement, str(kernel))
    assert source != str(kernel)
    with pytest.raises(DeviceModelError) as raised:
        run(kernel, product.inputs(), source=source).check()
    assert re.search(kind, str(raised.value) + str(getattr(raised.value, "findings", ""))), raised.value
