# SPDX-License-Identifier: Apache-2.0
"""Small configurations of transformers' architectures, derived from the default ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VOCABULARY = 128
#: Tokens of inputs lie below; special tokens above.
ORDINARY = 100

#: Field -> its small value. Lists of the same length stand for lists; fields that a configuration lacks,
#: or has as None, are left alone.
SIZES: dict[str, Any] = {
    # widths
    **dict.fromkeys(
        (
            "hidden_size", "d_model", "n_embd", "embed_dim", "dim", "hidden_dim", "embedding_size", "emb_dim",
            "word_embed_proj_dim", "projection_dim", "decoder_hidden_size", "encoder_hidden_size",
            "rnn_hidden_size", "attention_hidden_size", "channels", "d_inner_hid",
        ),
        32,
    ),
    **dict.fromkeys(
        (
            "intermediate_size", "ffn_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner",
            "ffn_hidden_size", "intermediate_dim", "mlp_dim", "decoder_intermediate_size",
            "shared_expert_intermediate_size",
            "moe_intermediate_size", "dense_intermediate_size", "expert_ffn_dim", "feed_forward_size",
            "dim_feedforward", "shared_intermediate_size",
        ),
        64,
    ),
    # layers
    **dict.fromkeys(
        (
            "num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
            "num_decoder_layers", "num_encoder_layers", "decoder_num_hidden_layers", "num_hidden_groups",
            "decoder_depth", "encoder_depth", "depth",
        ),
        2,
    ),
    # heads
    **dict.fromkeys(
        (
            "num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads",
            "decoder_attention_heads", "decoder_num_attention_heads", "attention_heads", "n_attention_heads",
        ),
        4,
    ),
    "num_key_value_heads": 2,
    **dict.fromkeys(("head_dim", "d_kv", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "d_head"), 8),
    **dict.fromkeys(("kv_lora_rank", "q_lora_rank"), 16),
    # experts
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k"), 2),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "first_k_dense_replace"), 1),
    # texts
    "vocab_size": VOCABULARY,
    **dict.fromkeys(
        (
            "max_position_embeddings", "n_positions", "n_ctx", "max_source_positions",
            "max_target_positions",
        ),
        128,
    ),
    # images and sound
    "image_size": 64,
    "patch_size": 16,
    "num_mel_bins": 16,
    "depths": 1,
}  # fmt: skip


#: Fields with the number of layers, and those with a kind for each.
LAYERS = ("num_hidden_layers", "num_layers", "n_layer")
KINDS = ("layer_types", "layers_block_type", "attention_layers", "mlp_layer_types")
#: Of models in stages only these are made small: the others depend on each other.
STAGED = ("depths", "image_size", "vocab_size", "max_position_embeddings")


def tiny(config_class: Any, changes: Mapping[str, Any] | None = None) -> Any:
    """A configuration of a class with `SIZES`, its parts alike, and ``changes`` (mappings: of the parts)."""
    default, changes = config_class(), dict(changes or {})
    staged = isinstance(getattr(default, "depths", getattr(default, "depth", None)), list | tuple)
    fields: dict[str, Any] = {}
    for name, small in SIZES.items():
        value = getattr(default, name, None)
        if (staged and name not in STAGED) or _is_derived(config_class, name):
            continue
        if isinstance(value, list | tuple) and value and isinstance(value[0], int):
            fields[name] = type(value)([small] * len(value))
        elif isinstance(value, int) and not isinstance(value, bool) and value > small:
            fields[name] = small
    fields |= {} if staged else _layers(default)
    fields |= _special_tokens(default)
    for name in getattr(config_class, "sub_configs", {}):
        part = getattr(default, name, None)
        # a part of another class than the default one is said whole
        if "model_type" not in changes.get(name, {}) and hasattr(part, "to_dict"):
            stages = {"out_features": out} if (out := getattr(part, "out_features", None)) else {}
            fields[name] = tiny(type(part), stages | changes.pop(name, {})).to_dict()
    for name, value in changes.items():
        fields[name] = value
    return config_class(**{name: value for name, value in fields.items() if value is not None})


def _is_derived(config_class: Any, name: str) -> bool:
    """Whether a field is computed from others."""
    found = getattr(config_class, name, None)
    return isinstance(found, property) and found.fset is None


def _layers(default: Any) -> dict[str, Any]:
    """One layer of every kind, at least two, where a configuration has a list with a kind for each layer."""
    count = next(
        (getattr(default, name) for name in LAYERS if isinstance(getattr(default, name, None), int)), 0
    )
    lists = {
        name: list(value)
        for name, value in vars(default).items()
        if isinstance(value, list | tuple) and count and len(value) == count
    }
    kinds = [lists[name] for name in KINDS if name in lists]
    if not kinds:
        return {name: value[:2] for name, value in lists.items()}
    chosen = list(
        {tuple(row): place for place, row in reversed([*enumerate(zip(*kinds, strict=True))])}.values()
    )
    chosen = sorted(chosen) if len(chosen) > 1 else [0, 1]
    fields: dict[str, Any] = {name: [value[place] for place in chosen] for name, value in lists.items()}
    return fields | {name: len(chosen) for name in LAYERS if isinstance(getattr(default, name, None), int)}


def _special_tokens(default: Any) -> dict[str, int]:
    """Tokens outside of the small vocabulary, numbered from its end."""
    names = [
        name
        for name, value in sorted(vars(default).items())
        if name.endswith(("_token_id", "_token_index")) and isinstance(value, int) and value >= VOCABULARY
    ]
    return {name: VOCABULARY - 1 - place for place, name in enumerate(names)}
