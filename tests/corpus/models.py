# SPDX-License-Identifier: Apache-2.0
"""Every distinct kernel of the test models, at the small scale."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from tvm import tirx
from uir_tvm import kernel_graph
from uir_tvm.schedule import apply_default
from uir_tvm.target.registry import TARGETS

from tests.extracted import extracted
from tests.models import MODELS
from tests.models.imported import imported

from .entry import Entry
from .recipes import HARDWARE

#: The models' kernels are made for this one; its preset does not depend on the machine.
MACHINE = "cpu"


@functools.cache
def kernels(model: str) -> dict[str, tirx.PrimFunc]:
    """The kernels of a model by name."""
    return dict(kernel_graph.build(imported(model), TARGETS["uir-cpu"].target()).kernels)


@functools.cache
def of_model(model: str) -> tuple[Entry, ...]:
    """The entries of one model."""
    hw = HARDWARE[MACHINE]
    return tuple(
        Entry(f"{model}/{label}", func, extracted(apply_default(func, hw), hw, name=label), "model")
        for label, func in kernels(model).items()
    )


def entries() -> Iterator[Entry]:
    """The kernels of every model."""
    for model in MODELS:
        yield from of_model(model)
