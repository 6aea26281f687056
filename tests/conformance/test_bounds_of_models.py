# SPDX-License-Identifier: Apache-2.0
"""Functions of torch that are built of others keep small results and tails, on every target."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import uir_tvm
from uir_tvm import CompileOptions
from uir_tvm.target.registry import TARGETS

X = (-100.0, -8.0, -6.0, -5.0, -0.6, -1e-3, -1e-20, 1e-20, 1e-6, 1e-3, 0.5, 8.0, 80.0, 1e3, 1e6, 2e6)


class _Functions(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.nn.functional.gelu(x), torch.expm1(x), torch.sin(x)


@pytest.mark.parametrize("target", TARGETS)
def test_tails_and_small_results(target: str) -> None:
    x = torch.tensor(X)
    program = torch.export.export(_Functions(), (x,))
    options = None if target == "uir-cpu" else CompileOptions(device="model")
    exe = uir_tvm.compile(program, target, options=options)
    gelu, expm1, sine = (np.asarray(y, np.float64) for y in exe(x))
    wanted = [y.numpy() for y in _Functions()(x.double())]
    np.testing.assert_allclose(gelu, wanted[0], rtol=1e-6, atol=6e-7)
    assert (gelu[:2] == 0).all()
    np.testing.assert_allclose(expm1, wanted[1].astype(np.float32), rtol=1e-6)
    np.testing.assert_allclose(sine, wanted[2], rtol=6e-7)
