# SPDX-License-Identifier: Apache-2.0
"""The real model structures keep their numbers through both front ends."""

from __future__ import annotations

import io

import numpy as np
import onnx
import pytest
import torch
import tvm_ffi
from tvm import relax
from uir_tvm.frontend import from_onnx, from_torch

from tests.asked import asked
from tests.frontend.stock import assert_close, operators, run
from tests.models import MODELS, minilm

# fp32 through some ten layers: sums in another order differ by some 1e-6 of the largest value.
LIMIT = 1e-5
# What the kernel graph may meet. A model that needs more must be looked at, not waved through.
OPERATORS = frozenset(
    "abs add astype broadcast_to concat divide greater isnan less matmul max maximum mean multiply negative "
    "nn.conv2d nn.gelu nn.layer_norm nn.max_pool2d nn.relu nn.silu nn.softmax not_equal permute_dims reshape "
    "rsqrt "
    "sigmoid sqrt strided_slice sum take tanh where".split()
)

#: Models that stock TVM computes here: one of products, one of convolutions; all with ``UIR_TEST_ALL=1``.
COMPUTED = asked(("minilm", "resnet"), tuple(MODELS))


def through_onnx(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> onnx.ModelProto:
    """The module as an ONNX model, by PyTorch's exporter."""
    file = io.BytesIO()
    torch.onnx.export(module, inputs, dynamo=True, verbose=False).save(file)
    return onnx.load_from_string(file.getvalue())


@pytest.mark.parametrize("name", MODELS)
def test_torch_import_keeps_the_numbers(name: str) -> None:
    """By TVM's own lowering; tests/conformance compares the numbers of every model on every target."""
    module, inputs = MODELS[name].build("small")
    mod = from_torch(module, inputs)
    if name in COMPUTED:
        assert_close(run(mod, inputs), [module(*inputs)], LIMIT)
    assert set(operators(mod)) <= OPERATORS


@pytest.mark.parametrize("name", [name for name, entry in MODELS.items() if entry.onnx])
def test_onnx_import_keeps_the_numbers(name: str) -> None:
    module, inputs = MODELS[name].build("small")
    mod = from_onnx(through_onnx(module, inputs))
    assert_close(run(mod, inputs), [module(*inputs)], LIMIT)
    assert set(operators(mod)) <= OPERATORS


@pytest.mark.parametrize("name", MODELS)
def test_builds_are_reproducible(name: str) -> None:
    (first, inputs), (second, others) = MODELS[name].build("small"), MODELS[name].build("small")
    assert all(torch.equal(a, b) for a, b in zip(inputs, others, strict=True))
    assert torch.equal(first(*inputs), second(*inputs))


def test_resnet_has_its_batch_normalisations_folded() -> None:
    module, inputs = MODELS["resnet"].build("small")
    counts = operators(from_torch(module, inputs))
    assert counts["nn.batch_norm"] == counts["multiply"] == 0
    assert counts["nn.conv2d"] == sum(isinstance(m, torch.nn.Conv2d) for m in module.modules())


def test_nothing_is_left_for_the_inference_decomposition() -> None:
    """TVM's DecomposeOpsForInference finds no batch normalisation to take apart."""
    module, inputs = MODELS["resnet"].build("small")
    mod = from_torch(module, inputs)
    assert tvm_ffi.structural_equal(mod, relax.transform.DecomposeOpsForInference()(mod))


def test_full_minilm_is_the_real_encoder() -> None:
    """The real weights give the similarities that the sentences suggest, and import at full scale."""
    encoder = minilm.load()
    inputs = minilm.tokenize(minilm.SENTENCES, length=32)
    embedded = encoder(*inputs).numpy()
    similarity = embedded @ embedded.T
    np.testing.assert_allclose(np.diag(similarity), 1, atol=1e-5)  # unit rows in fp32
    assert similarity[0, 1] > 0.5 > 0.2 > similarity[0, 2:].max()
    main = from_torch(encoder, inputs)["main"]
    assert [param.name for param in main.params] == ["input_ids", "attention_mask"]
    assert [int(size) for size in main.ret_ty.shape.values] == [len(minilm.SENTENCES), 384]
