# SPDX-License-Identifier: Apache-2.0
"""Programs that choose tokens are compiled once for all models of the folder that have the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
import tvm
from uir_tvm.llm.token_chooser import TokenPrograms
from uir_tvm.options import ACTIVATIONS, CompileOptions

#: By all that they are made of; a model uses clones, which have states of their own.
MADE: dict[tuple[Any, ...], TokenPrograms] = {}


@pytest.fixture(scope="package", autouse=True)
def shared_token_programs() -> Iterator[None]:
    """They take longer to compile than the small models whose tokens they choose."""
    compiled = TokenPrograms.compiled

    def shared(
        rows: int, vocabulary: int, target: str | tvm.target.Target, options: CompileOptions | None
    ) -> TokenPrograms:
        # of the model's options not those that `compiled` leaves to the model
        given = attrs.evolve(options or CompileOptions(), activation=ACTIVATIONS[0], specialize=())
        key = rows, vocabulary, str(target), repr(given)
        if key not in MADE:
            MADE[key] = compiled(rows, vocabulary, target, options)
        return MADE[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TokenPrograms, "compiled", staticmethod(shared))
        yield
