# SPDX-License-Identifier: Apache-2.0
"""No kernel of a model falls back that did not: the table of `fallbacks`, for one small model on all targets.

``scripts/check_fallbacks.py`` counts all models and the corpus, at both scales.
"""

from __future__ import annotations

import pytest
import tvm
from uir_tvm.target.registry import TARGETS

from tests.models import MODELS

from . import fallbacks

#: The model with the most different kernels.
MODEL = "minilm"


@pytest.fixture(scope="module")
def model() -> tvm.IRModule | None:
    """The model, imported once."""
    return fallbacks.imported(MODEL, "small")


@pytest.mark.parametrize("target", TARGETS)
def test_no_kernel_falls_back_that_did_not(target: str, model: tvm.IRModule) -> None:
    found, expected = fallbacks.count(model, target), fallbacks.known()["small"][MODEL][target]
    assert fallbacks.new(found, expected) == []


def test_the_table_names_every_model_and_target() -> None:
    known = fallbacks.known()
    assert set(known) == {"small", "full"}
    for models in known.values():
        assert set(models) == {*MODELS, fallbacks.CORPUS}
        assert all(set(targets) == set(TARGETS) for targets in models.values())


def test_a_new_fall_back_is_told_with_its_reason() -> None:
    before = fallbacks.Count(3, {"a": "old"}, ("b",))
    after = fallbacks.Count(3, {"a": "old", "b": "source: no room"}, ("a", "c"))
    assert fallbacks.new(after, before) == ["b is left to the host: source: no room", "c runs on one unit"]
    assert fallbacks.new(before, before) == []
