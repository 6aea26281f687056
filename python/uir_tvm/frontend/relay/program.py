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
class Node:
    """An expression and its place: line and column of the text, or the number of the JSON's node."""

    where: str


@attrs.frozen(eq=False)
class Constant(Node):
    value: np.ndarray


@attrs.frozen(eq=False)
class Local(Node):
    """A variable; ``key`` is what bindings of it are known by."""

    key: Any
    name: str


@attrs.frozen(eq=False)
class Global(Node):
    name: str


@attrs.frozen(eq=False)
class Operator(Node):
    name: str


@attrs.frozen(eq=False)
class Call(Node):
    """``attributes`` are those that are written; ``kind`` is their class where the program names it."""

    callee: Node
    args: Sequence[Node]
    attributes: Mapping[str, Any]
    kind: str = ""


@attrs.frozen(eq=False)
class Tuple(Node):
    fields: Sequence[Node]


@attrs.frozen(eq=False)
class Item(Node):
    value: Node
    index: int


@attrs.frozen(eq=False)
class Bound(Node):
    """``let key = value; body``; what the printer calls %0 is bound alike."""

    key: Any
    value: Node
    body: Node


@attrs.frozen(eq=False)
class Branch(Node):
    condition: Node
    then: Node
    otherwise: Node


@attrs.frozen(eq=False)
class Parameter:
    key: Any
    name: str
    type: Type
    where: str


@attrs.frozen(eq=False)
class Function(Node):
    params: Sequence[Parameter]
    body: Node


@attrs.frozen(eq=False)
class MetaAttributes(Node):
    """Attributes kept in the metadata section; only an argument of a call."""

    kind: str
    attributes: Mapping[str, Any]


Program = Mapping[str, Function]
