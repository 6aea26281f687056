# SPDX-License-Identifier: Apache-2.0
"""Real model structures for tests and benchmarks: ``MODELS[name].build(scale)``."""

from __future__ import annotations

from . import gpt2, llama, minilm, resnet, vit
from .registry import ModelEntry, Scale

MODELS: dict[str, ModelEntry] = {
    entry.name: entry
    for entry in (
        ModelEntry("minilm", minilm.build, onnx=True),
        ModelEntry("gpt2", gpt2.build, onnx=True),
        ModelEntry("llama", llama.build, onnx=True),
        ModelEntry("vit", vit.build, onnx=True),
        ModelEntry("resnet", resnet.build, onnx=True),
    )
}

__all__ = ["MODELS", "ModelEntry", "Scale"]
