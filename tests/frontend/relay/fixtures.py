# SPDX-License-Identifier: Apache-2.0
"""What an old TVM made (`scripts/make_relay_fixtures.py`): programs, and what it answered."""

from __future__ import annotations

import functools
import pathlib

import numpy as np
from uir_tvm.frontend.relay import parse
from uir_tvm.frontend.relay.relay_program import Program, TensorType

from .weights import numbers

HERE = pathlib.Path(__file__).parent
#: Network -> its input; the other parameters are weights.
NETWORKS = {"resnet": "data", "mobilenet": "data", "lstm": "data", "bert": "ids"}


def text_of(name: str) -> str:
    return (HERE / f"{name}.relay").read_text()


@functools.cache
def facts_of(name: str) -> Program:
    return parse(text_of(name), f"{name}.relay")


@functools.cache
def answers(name: str) -> dict[str, np.ndarray]:
    with np.load(HERE / f"{name}.npz") as file:
        return dict(file)


def values_of(name: str) -> dict[str, np.ndarray]:
    """A network's parameters, input and all."""
    found = {}
    for parameter in facts_of(name)["main"].params:
        assert isinstance(parameter.type, TensorType)
        shape = tuple(size or 0 for size in parameter.type.shape)
        found[parameter.name] = numbers(parameter.name, shape, parameter.type.dtype)
    return found
