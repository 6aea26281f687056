# SPDX-License-Identifier: Apache-2.0
"""What of an exported program is state, and what of its changes is refused."""

from __future__ import annotations

import pytest
import torch
import uir_tvm
from torch import Tensor, nn
from uir_tvm.errors import FrontendError, PositionError
from uir_tvm.frontend import from_torch
from uir_tvm.model_state import state_of


class Counter(nn.Module):
    """Multiplies by how often it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.full((), 3.0))
        self.other = torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        self.count.add_(1)
        return x * self.count


def test_buffers_become_inputs_and_results_behind_all_others() -> None:
    mod = from_torch(Counter(), (torch.ones(3),))
    (entry,) = state_of(mod)
    assert (entry.name, entry.parameter, entry.output) == ("count", 1, 1) and entry.initial.numpy() == 3
    assert [param.name for param in mod["main"].params][0] == "x"


def test_parameters_as_inputs_leave_state_refused() -> None:
    with pytest.raises(FrontendError, match="changes its state.*count"):
        from_torch(Counter(), (torch.ones(3),), weights_as_inputs=True)


def test_tensors_that_are_not_registered_are_refused() -> None:
    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.held = {"cache": torch.zeros(3)}

        def forward(self, x: Tensor) -> Tensor:
            self.held["cache"].add_(x)
            return self.held["cache"] * 2

    with torch.no_grad():
        program = torch.export.export(Hidden(), (torch.ones(3),), strict=False)
    with pytest.raises(FrontendError, match="does not register") as caught:
        from_torch(program)
    assert "register_buffer" in caught.value.need and "strict=True" in caught.value.remedy


class Cache(nn.Module):
    """Rows of an argument, at a place that a tensor holds."""

    def forward(self, x: Tensor, cache: Tensor, place: Tensor) -> Tensor:
        first = place.item()
        torch._check(first >= 0)
        torch._check(first + 2 <= 6)
        cache[:, first : first + 2] = x
        cache.select(1, first).add_(1)
        return cache.sum(0)


def test_changed_arguments_are_state_and_places_may_be_tensors() -> None:
    x, cache = torch.ones(2, 2, 3), torch.full((2, 6, 3), 0.5)
    exe = uir_tvm.compile(Cache(), args=(x, cache.clone(), torch.tensor(1)))
    assert exe.structure is not None
    for place in (3, 0, 4):
        torch.testing.assert_close(
            exe(x, place=torch.tensor(place)), Cache()(x, cache, torch.tensor(place)), msg=str(place)
        )
        torch.testing.assert_close(exe.state.torch("cache"), cache)
    with pytest.raises(PositionError, match="Position 6"):
        exe(x, None, torch.tensor(5))
    assert {each.how for each in exe.info.state} == {"in place"}


def test_a_static_cache_of_transformers_decodes_as_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    executorch = pytest.importorskip("transformers.integrations.executorch")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=40,
        max_position_embeddings=32,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    model.generation_config.use_cache = True
    model.generation_config.cache_implementation = "static"
    module = executorch.TorchExportableModuleWithStaticCache(
        model, batch_size=1, max_cache_len=16, device=torch.device("cpu")
    )
    first = torch.zeros((1, 1), dtype=torch.int64)
    step = {"input_ids": first, "cache_position": first[0]}
    with torch.no_grad():
        exe = uir_tvm.compile(torch.export.export(module, (), step, strict=True))
        ids = torch.randint(0, 40, (1, 5))
        for place in range(5):
            got = exe(input_ids=ids[:, place : place + 1], cache_position=torch.tensor([place]))
            want = model(ids[:, : place + 1], use_cache=False).logits[:, -1:]
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    caches = [each for each in exe.info.state if "cache" in each.name]
    assert len(caches) == 2 and {(each.how, each.written) for each in caches} == {("in place", 2 * 8 * 4)}
    with pytest.raises(PositionError):
        exe(input_ids=ids[:, :1], cache_position=torch.tensor([16]))
