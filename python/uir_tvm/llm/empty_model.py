# SPDX-License-Identifier: Apache-2.0
"""Models of transformers that have no memory for their weights yet, for files that are read here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..errors import MissingPackageError, first_line
from .quantized_modules import QuantizedEmbedding, QuantizedLinear


def model_without_weights(config: Any) -> Any:
    """The model with parameters that have no memory; its buffers are computed.

    Raises
    ------
    MissingPackageError
        ``accelerate`` or transformers is not installed.
    """
    try:
        import accelerate
        from transformers import AutoModelForCausalLM
    except ImportError as error:
        raise MissingPackageError(
            f"Packed weights are read with a package that is not there: {first_line(error)}",
            remedy="pip install 'uir_tvm[llm]'",
        ) from error
    with accelerate.init_empty_weights(include_buffers=False):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.tie_weights()
    return model


def owners(model: Any) -> Iterator[tuple[str, torch.nn.Module, str]]:
    """Every parameter: its name, its module, and its name there; of tied ones the first."""
    modules = dict(model.named_modules())
    for name, _ in model.named_parameters():
        owner, _, attribute = name.rpartition(".")
        yield name, modules[owner], attribute


def tie(model: Any) -> None:
    """Let the last product read the embedding's weight."""
    embedding = model.get_input_embeddings()
    if isinstance(embedding, QuantizedEmbedding):
        model.set_output_embeddings(QuantizedLinear.sharing(embedding))
    else:
        model.tie_weights()
