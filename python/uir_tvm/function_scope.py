# SPDX-License-Identifier: Apache-2.0
"""Relax functions that are built whole or given up quietly."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tvm import relax


@contextlib.contextmanager
def function_scope(
    builder: relax.BlockBuilder,
    name: str,
    params: Sequence[relax.Var],
    attrs: Mapping[str, Any] | None = None,
) -> Iterator[None]:
    """As ``builder.function``; what is raised within leaves no open block, which TVM would warn of."""
    with builder.function(name, list(params), attrs=dict(attrs) if attrs else None):
        try:
            yield
        except BaseException:
            builder._end_block()
            raise
