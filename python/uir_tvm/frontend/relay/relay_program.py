# SPDX-License-Identifier: Apache-2.0
"""A program of Relay, as the text and the JSON are read into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np


@attrs.frozen(eq=False)
class TensorType:
    """A tensor's shape (None where a size is open) and dtype."""

    shape: tuple[int | None, ...]
    dtype: str


#: None: a type that is not said, or that no tensor has.
Type = TensorType | tuple["Type", ...] | None


@attrs.frozen(eq=False)
class RelayNode:
    """An expression and its place: line and column of the text, or the number of the JSON's node."""

    where: str


@attrs.frozen(eq=False)
class Constant(RelayNode):
    value: np.ndarray


@attrs.frozen(eq=False)
class Local(RelayNode):
    """A variable; ``key`` is what bindings of it are known by."""

    key: Any
    name: str


@attrs.frozen(eq=False)
class Global(RelayNode):
    name: str


@attrs.frozen(eq=False)
class Operator(RelayNode):
    name: str


@attrs.frozen(eq=False)
class Call(RelayNode):
    """``attributes`` are those that are written; ``kind`` is their class where the program names it."""

    callee: RelayNode
    args: Sequence[RelayNode]
    attributes: Mapping[str, Any]
    kind: str = ""


@attrs.frozen(eq=False)
class Tuple(RelayNode):
    fields: Sequence[RelayNode]


@attrs.frozen(eq=False)
class TupleItem(RelayNode):
    value: RelayNode
    index: int


@attrs.frozen(eq=False)
class Bound(RelayNode):
    """``let key = value; body``; what the printer calls %0 is bound alike."""

    key: Any
    value: RelayNode
    body: RelayNode


@attrs.frozen(eq=False)
class Branch(RelayNode):
    condition: RelayNode
    then: RelayNode
    otherwise: RelayNode


@attrs.frozen(eq=False)
class FunctionParameter:
    key: Any
    name: str
    type: Type
    where: str


@attrs.frozen(eq=False)
class Function(RelayNode):
    params: Sequence[FunctionParameter]
    body: RelayNode


@attrs.frozen(eq=False)
class MetaAttributes(RelayNode):
    """Attributes kept in the metadata section; only an argument of a call."""

    kind: str
    attributes: Mapping[str, Any]


Program = Mapping[str, Function]
