# SPDX-License-Identifier: Apache-2.0
"""A causal model of transformers as one exported program: tokens at positions in, logits of the last one out.

The most likely token by these logits comes out beside them.

Rows of several prompts end at the same place, so that shorter ones begin later; what stands before is masked.
Keys and values of all tokens are the program's state. The number of tokens of a call is open, so that prompts
and single tokens are one program. So may be the number of keys that attention reads: those of all tokens so
far. Without it all are read that there is room for, and the mask closes those behind.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from transformers import GenerationConfig, PreTrainedModel
from transformers.cache_utils import StaticLayer
from transformers.integrations.executorch import TorchExportableModuleWithStaticCache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface

from ..errors import TorchExportError, first_line
from .compiled_model import VALID, ModelBytes

#: What the module calls keys and values of a layer, which are state.
CACHES = ("key_cache_", "value_cache_")
#: What transformers calls `attention_of_kept`.
ATTENTION = "uir_kept"
#: Tokens of the example that is traced: a number that no dimension of a model is likely to be.
EXAMPLE = 7
#: Keys of tokens before them: their sum is another such number.
KEYS_BEFORE = 4


class PlacedLayer(StaticLayer):  # type: ignore[misc]
    """Keys and values of a layer, written at the positions of a call.

    Attributes
    ----------
    positions : Tensor of int64, (tokens,)
        Of the call that is traced.
    valid : int, optional
        Keys that attention reads; None: all that there is room for.
    """

    positions: torch.Tensor
    valid: int | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write keys and values, (rows, heads, tokens, size), and return those that attention reads."""
        kept: Any = (self.keys, self.values)
        for state, new in zip(kept, (key_states, value_states), strict=True):
            state.index_copy_(2, self.positions, new.to(state.dtype))
        return kept if self.valid is None else tuple(state[:, :, : self.valid] for state in kept)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Keys of a mask, and the first of them."""
        return self.max_cache_len if self.valid is None else self.valid, 0


def attention_of_kept(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention in the type of the kept keys; what it returns is of the queries' type."""
    if attention_mask is not None and attention_mask.is_floating_point():
        attention_mask = attention_mask.to(key.dtype)
    made, _ = sdpa_attention_forward(module, query.to(key.dtype), key, value, attention_mask, **kwargs)
    return made.to(query.dtype), None


AttentionInterface.register(ATTENTION, attention_of_kept)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


class LastLogits(TorchExportableModuleWithStaticCache):  # type: ignore[misc]
    """Logits of the last token of a call, and the token that is most likely to follow."""

    def forward(  # type: ignore[override]
        self,
        input_ids: torch.Tensor,
        cache_position: torch.Tensor,
        begins: torch.Tensor | None = None,
        valid: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The logits that follow the last token, float32 (rows, vocabulary), and their argmax, int32 (rows,).

        Parameters
        ----------
        input_ids : Tensor of int64, (rows, tokens)
        cache_position : Tensor of int64, (tokens,)
            Consecutive.
        begins : Tensor of int64, (rows,), optional
            The place of each row's first token; what stands before it is none of the row. Default: 0.
        valid : Tensor of bool, (keys,), optional
            As many elements as there are tokens so far, this call's too; what they are is not read. Without,
            attention reads all keys that there is room for.
        """
        layers: Any = self.static_cache.layers
        count = None if valid is None else valid.shape[0]
        begin: Any = cache_position[0]
        given: dict[str, Any] = {"attention_mask": None}
        if begins is None and count is not None:
            # sizes alone say which keys are open; where rows begin apart positions do
            begin = count - input_ids.shape[1]
            given["position_ids"] = cache_position[None]
        for index, layer in enumerate(layers):
            # what is traced are the buffers, of which export knows that they are state
            layer.keys, layer.values = (
                getattr(self, f"{CACHES[0]}{index}"),
                getattr(self, f"{CACHES[1]}{index}"),
            )
            layer.cumulative_length, layer.positions, layer.valid = begin, cache_position, count
        if begins is not None:
            places = torch.arange(layers[0].keys.shape[2] if count is None else count)
            given["attention_mask"] = places[None] >= begins[:, None]
            given["position_ids"] = (cache_position[None] - begins[:, None]).clamp(min=0)
        outputs: Any = self.model(
            input_ids=input_ids,
            **given,
            past_key_values=self.static_cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = outputs.logits[:, -1].float()
        return logits, logits.argmax(-1).to(torch.int32)


def exported(
    model: PreTrainedModel,
    max_length: int,
    chunk: int,
    batch: int = 1,
    cache: torch.dtype | None = None,
    counts_keys: bool = False,
) -> ExportedProgram:
    """The program of a model.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        For causal language modelling.
    max_length : int
        Tokens that the state has room for.
    chunk : int
        Tokens of each row that one call takes at most.
    batch : int
        Rows of a call; where there are several, the program takes where each begins.
    cache : torch.dtype, optional
        Of keys and values, and of the attention over them. Default: the model's own.
    counts_keys : bool
        Whether calls say how many keys there are (`VALID`), and attention reads no others.

    Raises
    ------
    TorchExportError
        PyTorch cannot export it.
    """
    kept: Any = model.generation_config
    # one more is never written: torch.export takes a slice of all of a dimension for another program
    room = max_length + 1 if counts_keys else max_length
    attention = model.config._attn_implementation
    model.generation_config = GenerationConfig(
        use_cache=True,
        cache_implementation="static",
        cache_config={"batch_size": batch, "max_cache_len": room, "device": "cpu"},
    )
    example = min(EXAMPLE, chunk)
    inputs = {
        "input_ids": torch.zeros((batch, example), dtype=torch.int64),
        "cache_position": torch.arange(example),
    }
    length = Dim("length", min=1, max=chunk)
    sizes: dict[str, Any] = {"input_ids": {1: length}, "cache_position": {0: length}}
    if batch > 1:
        inputs["begins"], sizes["begins"] = torch.zeros(batch, dtype=torch.int64), None
    if counts_keys:
        inputs[VALID] = torch.ones(min(example + KEYS_BEFORE, max_length), dtype=torch.bool)
        sizes[VALID] = {0: Dim("keys", min=1, max=max_length)}
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            module = LastLogits(model, batch_size=batch, max_cache_len=room)
            if cache not in (None, model.dtype):
                model.set_attn_implementation(ATTENTION)
                for index in range(len(module.static_cache.layers)):
                    for name in CACHES:
                        state = getattr(module, f"{name}{index}")
                        module.register_buffer(f"{name}{index}", state.to(cache), persistent=False)
            layers: Any = module.static_cache.layers
            for layer in layers:
                layer.__class__ = PlacedLayer  # its tensors are there already
            return torch.export.export(
                module,
                (),
                inputs,
                dynamic_shapes=sizes,
            )
    except Exception as error:  # whatever torch.export and the model raise
        raise TorchExportError(
            f"torch.export cannot export {type(model).__name__} with its cache: {first_line(error)}",
            need="a causal model of transformers that takes a static cache",
            remedy="try the model's TorchExportableModuleWithStaticCache, and follow its message",
        ) from error
    finally:
        model.generation_config = kept
        if model.config._attn_implementation != attention:
            model.set_attn_implementation(attention)


def program_vocabulary(program: ExportedProgram) -> int:
    """The logits of each row of a program of `exported`."""
    (made, *_), *_ = program.graph.output_node().args
    return int(made.meta["val"].shape[1])


def bytes_of(program: ExportedProgram) -> ModelBytes:
    """Of a program of `exported`, weights that several names share once."""
    named = {**program.state_dict, **program.constants}
    parts = {
        (tensor.data_ptr(), tensor.shape): (name.rpartition(".")[2].startswith(CACHES), tensor.nbytes)
        for name, tensor in named.items()
        if isinstance(tensor, torch.Tensor)
    }
    return ModelBytes(
        sum(size for cached, size in parts.values() if not cached),
        sum(size for cached, size in parts.values() if cached),
    )
