# SPDX-License-Identifier: Apache-2.0
"""Stores on which data decides, as stores of a choice: between a value and what the element holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import tirx
from tvm_ffi.structural import structural_equal

from ..igraph.tir_calls import call_name
from .conditions import loaded


def chosen(branch: tirx.IfThenElse, bindings: Mapping[Any, Any]) -> list[tirx.BufferStore] | None:
    """The stores of a branch without its condition; None where the condition has to stay one.

    Conditions of data are taken into the values.  Where both sides store to the same element they are one
    store; so are those under a condition of index variables that no box of a tile has (``i == 0``, or not).
    Those of stores where data says stay: they are taken into the place (`LeafExtractor`), so that nothing is
    read there.

    Parameters
    ----------
    bindings : variables that stand for expressions.
    """
    read = loaded(branch.condition, bindings)
    if not read and not _is_equality(branch.condition):
        return None
    first = _stores(branch.then_case, bindings)
    second = [] if branch.else_case is None else _stores(branch.else_case, bindings)
    if first is None or second is None:
        return None
    if len(first) == len(second) == 1 and _same_element(first[0], second[0]):
        return [_choice(first[0], branch.condition, first[0].value, second[0].value)]
    if not read:
        return None
    if any(loaded(index, bindings) for store in (*first, *second) for index in store.indices):
        return None
    if len(first) + len(second) > 1 and any(store.buffer in read for store in (*first, *second)):
        return None  # the condition would be looked at again, after what it reads has changed
    opposite = tirx.Not(branch.condition)
    return [
        _choice(store, condition, store.value, tirx.BufferLoad(store.buffer, store.indices))
        for stores, condition in ((first, branch.condition), (second, opposite))
        for store in stores
    ]


def _stores(stmt: Any, bindings: Mapping[Any, Any]) -> list[tirx.BufferStore] | None:
    if isinstance(stmt, tirx.BufferStore):
        return [stmt]
    if isinstance(stmt, tirx.IfThenElse):
        return chosen(stmt, bindings)
    if isinstance(stmt, tirx.SeqStmt):
        parts = [_stores(part, bindings) for part in stmt.seq]
        return None if any(part is None for part in parts) else [s for part in parts if part for s in part]
    return None


def _choice(store: tirx.BufferStore, condition: Any, a: Any, b: Any) -> tirx.BufferStore:
    return tirx.BufferStore(store.buffer, tirx.if_then_else(condition, a, b), list(store.indices))


def _same_element(a: tirx.BufferStore, b: tirx.BufferStore) -> bool:
    return a.buffer.same_as(b.buffer) and all(
        structural_equal(x, y) for x, y in zip(a.indices, b.indices, strict=True)
    )


def _is_equality(condition: Any) -> bool:
    if isinstance(condition, tvm.ir.Call) and call_name(condition) == "likely":
        return _is_equality(condition.args[0])
    if isinstance(condition, tirx.Not):
        return _is_equality(condition.a)
    return isinstance(condition, tirx.EQ | tirx.NE)
