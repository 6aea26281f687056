# SPDX-License-Identifier: Apache-2.0
"""The sample of the standard's cases that runs on devices: one of every operator in every dtype."""

from __future__ import annotations

from .cases import load
from .document import load_record
from .run import PASSED


def sample() -> list[str]:
    """The first case of each operator and dtype of its first input, of those that pass on uir-cpu."""
    states = {name: state for rows in load_record().values() for name, (state, _) in rows.items()}
    first: dict[tuple[str, int], str] = {}
    for name, case in load().items():
        if states.get(name) == PASSED and case.kind != "light":
            inputs = case.model.graph.input
            dtype = inputs[0].type.tensor_type.elem_type if inputs else 0
            first.setdefault((case.group, dtype), name)
    return list(first.values())
