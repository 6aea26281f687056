# SPDX-License-Identifier: Apache-2.0
"""Models whose weights, activations and state have 16 bits."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import ModelFormatError

#: What `uir_tvm.llm.load` calls these types.
HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def narrowed(values: torch.Tensor, weights: str) -> torch.Tensor:
    """A weight in a type of 16 bits.

    Parameters
    ----------
    values : Tensor of floats
    weights : str
        One of `HALVES`.

    Raises
    ------
    ModelFormatError
        The type does not reach as far as a value.
    """
    found = values.to(HALVES[weights])
    if bool(torch.isfinite(found).all()):
        return found
    raise ModelFormatError(
        f"A weight has values that {weights} has not.",
        need=f"finite values, of magnitude up to {torch.finfo(HALVES[weights]).max:g}",
        limit=f"the greatest is {values.float().abs().max():g}",
        remedy='load it with weights="float32"',
    )


def narrow(model: Any, weights: str) -> None:
    """Bring a model's parameters to a type of 16 bits; buffers, as the rates of rotary angles, stay.

    Raises
    ------
    ModelFormatError
        As of `narrowed`.
    """
    for parameter in model.parameters():
        if parameter.is_floating_point():
            parameter.requires_grad_(False)
            parameter.data = narrowed(parameter.data, weights)
