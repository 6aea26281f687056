# SPDX-License-Identifier: Apache-2.0
"""Running a Relax module by TVM's own lowering, the reference for imported modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
import tvm
from tvm import relax
from uir_tvm.frontend.relax_view import op_name
from uir_tvm.frontend.sorting import expand_sorts

from tests.stock import stock


def run(mod: tvm.IRModule, inputs: Sequence[np.ndarray | torch.Tensor]) -> list[np.ndarray]:
    """Outputs of ``main``, compiled by stock TVM for one thread of this machine."""
    lowered = relax.transform.LegalizeOps()(expand_sorts(mod))
    machine = relax.VirtualMachine(stock(lowered), tvm.cpu())
    result = machine["main"](*[tvm.runtime.tensor(np.asarray(value)) for value in inputs])
    return [result.numpy()] if isinstance(result, tvm.runtime.Tensor) else [item.numpy() for item in result]


def operators(mod: tvm.IRModule) -> Counter[str]:
    """How often ``main`` applies each operator."""
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    return Counter(name for binding in bindings if (name := op_name(binding.value)))


def assert_close(
    ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray | torch.Tensor], limit: float
) -> None:
    """Shapes and dtypes agree, and values to ``limit`` relative to the largest magnitude of each output."""
    assert len(ours) == len(theirs)
    for have, want in zip(ours, map(np.asarray, theirs), strict=True):
        assert (have.shape, have.dtype) == (want.shape, want.dtype)
        if have.dtype.kind in "biu":
            np.testing.assert_array_equal(have, want)
            continue
        scale = np.abs(want[np.isfinite(want)]).max(initial=1e-30)
        np.testing.assert_allclose(have / scale, want / scale, rtol=0, atol=limit)
