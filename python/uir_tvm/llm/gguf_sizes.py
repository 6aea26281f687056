# SPDX-License-Identifier: Apache-2.0
"""Whether a GGUF file's settings can be those of its tensors, asked before a model is made of them.

A damaged number would make a model with more layers, or wider ones, than there is time and memory for.
"""

from __future__ import annotations

import math
from typing import Any

from .gguf_file import GgufFile, damaged

#: Settings, behind the name of the architecture, of sides of tensors: none exceeds the values of a tensor.
SIDES = (
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "rope.dimension_count",
    "expert_count",
    "expert_used_count",
)
#: The setting of the number of layers, each of which has tensors.
LAYERS = "block_count"
#: Settings that are numbers above 0: what rows are divided by, and the base of rotary angles.
POSITIVE = ("attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon", "rope.freq_base")


def check_sizes(file: GgufFile) -> None:
    """Refuse settings that cannot be those of the file's tensors.

    Raises
    ------
    ModelFormatError
        More layers than tensors, sizes far beyond those of the tensors, numbers that are not finite.
    """
    largest = max((math.prod(tensor.shape) for tensor in file.tensors.values()), default=0)
    limits = {**dict.fromkeys(SIDES, (largest, "values of a tensor")), LAYERS: (len(file.tensors), "tensors")}
    for key, (most, what) in limits.items():
        for value in _numbers(file, key):
            if value > most:
                raise damaged(
                    file.path,
                    f"{file.architecture}.{key} is {value}",
                    f"a number that fits its {len(file.tensors)} tensors",
                    f"{what}: {most}",
                )
    for key in POSITIVE:
        for value in _numbers(file, key):
            if not (math.isfinite(value) and value > 0):
                raise damaged(
                    file.path, f"{file.architecture}.{key} is {value}", "a number above 0", f"{value}"
                )


def _numbers(file: GgufFile, key: str) -> list[Any]:
    """The numbers of a setting, of which there may be one for each layer."""
    found = file.settings.get(f"{file.architecture}.{key}")
    each = found if isinstance(found, list) else [found]
    return [value for value in each if isinstance(value, int | float) and not isinstance(value, bool)]
