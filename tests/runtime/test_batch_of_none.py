# SPDX-License-Identifier: Apache-2.0
"""Models from ONNX whose batch is open, of a batch of none: an empty result, wherever they run."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
import torch
import uir_tvm
from torch.export import Dim
from uir_tvm.options import CompileOptions
from uir_tvm.target.registry import TARGETS

from tests.asked import in_turn
from tests.models.open_models import OPEN_MODELS

#: The axis of the batch in every input, and the batch's place among a case's sizes, where it has one.
CASES = {"gpt2": (0, None), "vit": (0, 0), "convolutions": (0, 0), "lstm": (1, None)}
#: Where each is run.
PLACES: dict[str, list[str]] = {name: [] for name in CASES}
for _name, _target in in_turn(CASES, TARGETS):
    PLACES[_name].append(_target)


@pytest.mark.parametrize("name", CASES)
def test_a_batch_of_none_gives_an_empty_result(name: str) -> None:
    """PyTorch itself has no GPT-2 of none: a -1 in a view could be any size."""
    (axis, place), case = CASES[name], OPEN_MODELS[name]
    torch.manual_seed(3)
    module = case.module("small").eval().requires_grad_(False)
    sizes = [5 if each == place else 8 for each in range(len(case.sizes("small")))]
    given = tuple(torch.cat([x] * 5, axis) if place is None else x for x in case.inputs("small", *sizes))
    batch = Dim("batch", min=1, max=16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module, given, dynamo=True, verbose=False, dynamic_shapes=tuple({axis: batch} for _ in given)
        )
    assert program is not None
    model = onnx.load_model_from_string(program.model_proto.SerializeToString())
    want = list(module(*given).shape)
    want[axis] = 0
    none = [np.take(x.numpy(), [], axis) for x in given]
    for target in PLACES[name]:
        options = CompileOptions() if target == "uir-cpu" else CompileOptions(device="model")
        found = np.asarray(uir_tvm.compile(model, target, options=options)(*none))
        assert list(found.shape) == want and found.dtype == np.float32, target
