# SPDX-License-Identifier: Apache-2.0
"""Matrix products in CUDA C++: on the host model they equal the interpreter, without bank conflicts."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from uir_tvm.device.run_text import run
from uir_tvm.igraph import interpreter
from uir_tvm.target.cuda.lower import lower

from .products import SUMS, Product

#: Relative to the largest result.  Sums are in fp32 (fp64): each of up to 200 additions rounds by half of
#: 2**-23 (2**-52) of what was summed so far; tf32 keeps 10 bits of each factor.
TOLERANCE = {"float32": 200 * 2.0**-24, "float64": 200 * 2.0**-53, "int32": 0.0, "tf32": 2.0**-9}

#: The instruction that the text must have for a dtype.
INSTRUCTIONS = {
    "float16": "mma_m16n8k16_f16(",
    "bfloat16": "mma_m16n8k16_bf16(",
    "float8_e4m3fn": "mma_m16n8k32_e4m3(",
    "float32": "fmaf(",
    "tf32": "mma_m16n8k8_tf32(",
    "float64": "mma_m8n8k4_f64(",
    "int8": "mma_m16n8k32_s8(",
    "uint8": "mma_m16n8k32_u8(",
    "int32": "wrap_mul(",
}


def check(product: Product, model: str = "h200", fast_math: bool = False) -> tuple[str, dict[str, int]]:
    """The text and the counters, after its results equal the interpreter's."""
    graph = product.graph(model, fast_math)
    kernel = lower(graph)
    inputs = product.inputs()
    (want,) = interpreter.run(graph, *inputs)
    ran = run(kernel, inputs).check()
    got = np.asarray(ran.outputs["out"]).astype(np.float64).ravel()
    want = np.asarray(want).astype(np.float64).ravel()
    limit = TOLERANCE["tf32" if fast_math else SUMS[product.dtype]] * np.abs(want).max()
    np.testing.assert_array_less(np.abs(got - want), limit + (limit == 0) * 0.5)
    return str(kernel), dict(ran.counters)


#: The transpositions of (a, b).
TURNED = [(False, False), (False, True), (True, False), (True, True)]


@pytest.mark.parametrize("a_transposed, b_transposed", TURNED)
@pytest.mark.parametrize("dtype", [*sorted(SUMS), "tf32"])
def test_every_dtype_runs_on_its_instruction(dtype: str, a_transposed: bool, b_transposed: bool) -> None:
    """Whole tiles, either operand transposed: no bank conflicts, and bytes come by whole matrices."""
    fast = dtype == "tf32"
    product = Product(32, 32, 128, "float32" if fast else dtype, a_transposed, b_transposed)
    text, counters = check(product, fast_math=fast)
    kernel = text[text.index('extern "C"') :]
    assert INSTRUCTIONS[dtype] in kernel.replace("<2>", "")
    assert counters["bank_conflicts"] == 0
    if np.dtype(getattr(ml_dtypes, product.dtype, product.dtype)).itemsize <= 2:
        assert "ldmatrix_x4" in kernel and "pack_fragment" not in kernel


@pytest.mark.parametrize(
    "product",
    [
        Product(100, 72, 200, "float16"),
        Product(33, 17, 51, "float16"),
        Product(7, 100, 70, "bfloat16"),
        Product(33, 17, 51, "float32"),
        Product(24, 40, 33, "float64"),
        Product(70, 90, 100, "int8", b_transposed=True),
        Product(1, 64, 96, "float16"),
        Product(40, 1, 96, "float32"),
    ],
    ids=str,
)
def test_ragged_sizes(product: Product) -> None:
    """No tile divides rows, columns or depth; single rows and columns."""
    check(product)


@pytest.mark.parametrize("a_transposed, b_transposed", [(False, True), (True, False), (True, True)])
def test_transposed_operands_are_read_by_ldmatrix(a_transposed: bool, b_transposed: bool) -> None:
    """Either operand may lie with its contracted side across memory."""
    text, counters = check(Product(64, 64, 64, "float16", a_transposed, b_transposed))
    assert ("ldmatrix_x4_trans" in text) == (a_transposed or not b_transposed)
    assert counters["bank_conflicts"] == 0


def test_batches() -> None:
    """Each matrix of a batch has tiles of its own."""
    check(Product(40, 24, 48, "bfloat16", batch=3))


def test_fp32_is_rounded_only_where_the_graph_allows_it() -> None:
    """tf32 needs the graph's attribute; without it sums are exact products."""
    text, _ = check(Product(50, 30, 70, "float32"), fast_math=True)
    assert "mma_m16n8k8_tf32(" in text
    text, _ = check(Product(50, 30, 70, "float32"))
    assert "mma" not in text.split("extern")[-1]


def test_deep_reads_leave_registers_for_the_sums() -> None:
    """Of 16 rows and 4 columns in a lane, 4 elements deep, b is held and a streamed: 16 + 4, not 80."""
    text = str(lower(Product(4096, 4096, 64, "float32", b_transposed=True).graph()))
    assert "reg<float, 64> product_local;" in text
    assert "reg<float, 4> a_part;" in text and "reg<float, 16> b_part;" in text
    # 64 sums and 4 elements: a turn has all the multiply-adds that may stand one after the other
    assert "#pragma unroll 1\n" in text


def test_an_instruction_that_the_architecture_lacks_is_not_printed() -> None:
    """fp8 on an A100 runs on fused multiply-adds."""
    text, _ = check(Product(32, 32, 32, "float8_e4m3fn"), "a100")
    assert "mma_m16n8k32_e4m3" not in text and "fmaf(" in text
