# SPDX-License-Identifier: Apache-2.0
"""One architecture of a suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

#: A module in eval mode, and the arguments of its call by place and by name.
Built = tuple[Any, tuple[Any, ...], dict[str, Any]]


@attrs.frozen
class ModelCase:
    """How an architecture is built.

    Parameters
    ----------
    suite, name : str
        The library and its name of the architecture.
    family : str
        What it is, for the table.
    build : callable
        Weights and inputs are random; the caller seeds PyTorch's generator.
    """

    suite: str
    name: str
    family: str
    build: Callable[[], Built]
