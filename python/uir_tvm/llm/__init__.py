# SPDX-License-Identifier: Apache-2.0
"""Language models: loaded, compiled once for prompts and tokens, and asked for text.

import uir_tvm.llm

model = uir_tvm.llm.load("SmolLM2-135M-Instruct.Q4_1.gguf", max_length=512)
print(model.generate("What is the capital of France?", max_new_tokens=32))
for piece in model.generate("Tell me a story.", stream=True, temperature=0.8, seed=1):
    print(piece, end="", flush=True)
"""

from __future__ import annotations

from .batched_model import BatchedModel
from .compiled_model import AnswerFigures, ModelBytes
from .language_model import LanguageModel
from .load_model import load
from .next_token import Sampling

__all__ = ["AnswerFigures", "BatchedModel", "LanguageModel", "ModelBytes", "Sampling", "load"]
