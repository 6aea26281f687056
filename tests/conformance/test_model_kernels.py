# SPDX-License-Identifier: Apache-2.0
"""Every distinct kernel of every model: interpreter = emitted code = TVM's own lowering of the PrimFunc."""

from __future__ import annotations

import pytest
import torch
from uir_tvm import api, kernel_graph
from uir_tvm.target.registry import TARGETS

from tests.models import MODELS

from .three_ways import compare


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_kernels(name: str, target: str) -> None:
    module, inputs = MODELS[name].build("small")
    mod = api.import_model(torch.export.export(module, inputs))
    chosen = TARGETS[target].target()
    graph = kernel_graph.build(mod, chosen)
    assert graph.kernels
    reasons = {}
    for label, func in graph.kernels.items():
        record = compare(func, chosen, label)
        if record.fallback:
            reasons[label] = record.fallback
    assert reasons == {}
