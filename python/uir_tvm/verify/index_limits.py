# SPDX-License-Identifier: Apache-2.0
"""How large the integers of a function's parameters may be: what they index must have so many elements.

TVM's own lowering reads and writes wherever an index says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import tirx
from tvm.ir import TensorLoad
from tvm_ffi.structural import structural_walk

from .cases import HIGHEST_INTEGER


def index_limits(func: tirx.PrimFunc) -> dict[str, int]:
    """Extent of what an integer parameter indexes, by its name.

    Where it is computed with on its way to the index, no more than `HIGHEST_INTEGER` of it is taken for safe.
    """
    sources: dict[str, dict[str, bool]] = {str(p.name): {str(p.name): True} for p in func.params}
    loads: list[Any] = []
    stores: list[Any] = []
    structural_walk(func.body, [(TensorLoad, loads.append), (tirx.BufferStore, stores.append)])
    # two rounds for every store: a value may be computed from one that a later block stores
    for store in stores * 2:
        found = sources.setdefault(str(store.buffer.name), {})
        for name, plain in _loaded(store.value, sources).items():
            found[name] = found.get(name, True) and plain
    limits: dict[str, int] = {}
    for access in (*loads, *stores):
        buffer = access.source if isinstance(access, TensorLoad) else access.buffer
        for index, extent in zip(access.indices, buffer.shape, strict=True):
            for name, plain in _loaded(index, sources).items():
                most = int(extent) if plain else min(int(extent), HIGHEST_INTEGER)
                limits[name] = min(limits.get(name, most), most)
    return limits


def _loaded(expr: object, sources: Mapping[str, Mapping[str, bool]]) -> dict[str, bool]:
    """The parameters whose integers an expression is made of, and whether it is such an integer as it is."""
    inner = expr
    while isinstance(inner, tirx.Cast):
        inner = inner.value
    loads: list[Any] = []
    structural_walk(expr, [(TensorLoad, loads.append)])
    found: dict[str, bool] = {}
    for load in loads:
        if str(load.source.dtype).startswith(("int", "uint", "bool")):
            for name, as_it_is in sources.get(str(load.source.name), {}).items():
                found[name] = found.get(name, True) and isinstance(inner, TensorLoad) and as_it_is
    return found
