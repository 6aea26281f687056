# SPDX-License-Identifier: Apache-2.0
"""Architectures of transformers, each with a small configuration and random weights."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs

from .case import Built, ModelCase
from .transformers_rows import FAMILIES, ROWS


@attrs.frozen
class Row:
    """What is said of one architecture beside its family.

    Parameters
    ----------
    image_tokens : int
        How many tokens of the text stand for an image's features.
    config : mapping
        Fields of the configuration that differ from `tiny_config.SIZES`; mappings are of its parts.
    auto : str
        The class that picks the model.
    reads : str
        One of `example_inputs.READERS`; empty: that of the family.
    inputs : mapping
        Further inputs, or others: a shape (a tuple) stands for random floats, a list for a tensor of it.
    """

    image_tokens: int = 0
    config: Mapping[str, Any] = attrs.field(factory=dict)
    auto: str = "AutoModel"
    reads: str = ""
    inputs: Mapping[str, Any] = attrs.field(factory=dict)


def cases() -> dict[str, ModelCase]:
    """Every architecture by the name of its configuration."""
    return {
        name: ModelCase("transformers", name, family, partial(build, name, reads))
        for family, (reads, names) in FAMILIES.items()
        for name in names.split()
    }


def build(name: str, reads: str) -> Built:
    """A model with its inputs by name."""
    import torch
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    from .example_inputs import READERS, found
    from .tiny_config import tiny

    row = Row(**ROWS.get(name, {}))
    config = tiny(CONFIG_MAPPING[name.partition("+")[0]], row.config)
    for part in (config, *(getattr(config, part, None) for part in config.sub_configs)):
        if part is not None:
            part.use_cache = False
    config.architectures = config.architectures or []
    module = getattr(transformers, row.auto).from_config(config).eval()
    kwargs = dict(READERS[row.reads or reads](config))
    if row.image_tokens:
        image = found(config, "image_token_id", "image_token_index")
        kwargs["input_ids"] = torch.cat([torch.full((1, row.image_tokens), image), kwargs["input_ids"]], 1)
        kwargs["attention_mask"] = torch.ones_like(kwargs["input_ids"])
    for key, value in row.inputs.items():
        kwargs[key] = torch.randn(value) if isinstance(value, tuple) else torch.tensor(value)
    known = inspect.signature(module.forward).parameters
    if "use_cache" in known:
        kwargs["use_cache"] = False
    return module, (), {key: value for key, value in kwargs.items() if key in known and value is not None}
