# SPDX-License-Identifier: Apache-2.0
"""What a library takes, by operator, dtype and CPU."""

from __future__ import annotations

import tvm
from uir_tvm.target.cpu.library import TABLE


def takes(mcpu: str, operator: str, *dtypes: str, constant: bool = False) -> bool:
    table = TABLE.on(tvm.target.Target({"kind": "llvm", "mcpu": mcpu}))
    return table.takes(operator, *dtypes, constant=constant)


def test_bfloat16_where_the_cpu_has_its_products() -> None:
    for operator in ("matmul", "conv2d"):
        assert takes("znver4", operator, "bfloat16", "bfloat16")
        assert not takes("x86-64-v4", operator, "bfloat16", "bfloat16")
        assert not takes("znver4", operator, "float32", "bfloat16")
        assert not takes("znver4", operator, "float16")
        assert takes("x86-64-v3", operator, "float32", "float32", "float32")
    for dtype in ("float16", "bfloat16"):
        assert takes("x86-64-v3", "matmul", dtype, dtype, constant=True)
    assert not takes("x86-64-v2", "matmul", "float16", constant=True)
    assert not takes("x86-64-v3", "conv2d", "float16", constant=True)
    assert takes("x86-64-v2", "attention", "float16") and takes("x86-64-v2", "attention", "bfloat16")
    assert not takes("znver4", "recurrence", "bfloat16")
    assert not takes("znver4", "softmax", "float32")


def test_a_target_of_another_kind_has_no_features_of_cpus() -> None:
    assert not TABLE.on(tvm.target.Target("c")).takes("matmul", "bfloat16")
