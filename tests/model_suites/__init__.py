# SPDX-License-Identifier: Apache-2.0
"""Public architectures, built small with random weights: what the whole sweep of models compiles."""

from __future__ import annotations

from . import torchvision, transformers
from .case import ModelCase

#: Suite -> its cases by name. Nothing is built, and no library imported, before a case asks for it.
SUITES: dict[str, dict[str, ModelCase]] = {
    "torchvision": torchvision.cases(),
    "transformers": transformers.cases(),
}
