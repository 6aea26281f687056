# SPDX-License-Identifier: Apache-2.0
"""Models that leave sizes open are compiled once, and right at every shape, on every target."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import uir_tvm

from ..runtime.test_symbolic_programs import MODELS, SHAPES, expect_close, exported

ALL = bool(os.environ.get("UIR_TEST_ALL"))
#: Targets beside the CPU, each with the models that it runs; all of them with ``UIR_TEST_ALL=1``.
DEVICES = {"uir-cuda": ("gpt",), "uir-ascend": ("cnn", "gpt"), "uir-bang": ("gpt",)}
CASES = [("uir-cpu", name) for name in MODELS]
CASES += [(target, name) for target, names in DEVICES.items() for name in (MODELS if ALL else names)]


@pytest.mark.compares_itself
@pytest.mark.parametrize(("target", "name"), CASES)
def test_one_compilation_serves_every_shape(target: str, name: str) -> None:
    module, program, inputs, symbols = exported(name)
    options = uir_tvm.CompileOptions(device="auto" if target == "uir-cpu" else "model")
    exe: Any = uir_tvm.compile(program, target, options=options)
    rng = np.random.default_rng(2)
    for _ in range(SHAPES):
        sizes = rng.choice(np.arange(2, 40), len(symbols), replace=False)
        args = inputs(*map(int, sizes))
        expect_close(exe(*args), module(*args))
    report = exe.report()
    (made,) = report["programs"]
    assert report["compiled"] == 1 and made["shapes"] == SHAPES and report["imported_by_shape"] == ""
    assert made["kernels_by_sizes"] == [] and made["kernels_for_all_sizes"] + made["library"] > 2
