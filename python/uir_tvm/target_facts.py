# SPDX-License-Identifier: Apache-2.0
"""The table of registered targets, and single facts of all of them, by kind of hardware.

Modules that work for every target ask here; what they get lies in the target's own folder
(`uir_tvm.target.record`), which is imported when it is first asked for.  Targets of this package are found as
the folders of `uir_tvm.target`; others call `uir_tvm.target.record.register_target`.
"""

from __future__ import annotations

import functools
import importlib
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Described(Protocol):
    """What this table needs of a record."""

    @property
    def name(self) -> str:
        """As users write it."""

    @property
    def kind(self) -> str:
        """Kind of its hardware models."""

    @property
    def rank(self) -> int:
        """Where it stands in lists."""

    def fact(self, name: str) -> Any:
        """A field of the record; None where the target has nothing of that sort."""


_records: dict[str, Any] = {}
_watchers: list[Callable[[Any], None]] = []


def add(record: Described) -> None:
    """Enter a record; what watches the table is told.

    Raises
    ------
    ValueError
        Another target has its name or kind.
    """
    for other in _records.values():
        if record.name == other.name or record.kind == other.kind:
            raise ValueError(f"{other.name} of kind {other.kind} is registered already.")
    _records[record.name] = record
    _in_order.cache_clear()
    for watcher in _watchers:
        watcher(record)


def remove(name: str) -> None:
    """Take a target out of the table."""
    del _records[name]
    _in_order.cache_clear()


def watch(watcher: Callable[[Any], None]) -> None:
    """Call a function with every record: those of now, and later ones when they come."""
    for record in records().values():
        watcher(record)
    _watchers.append(watcher)


def records() -> Mapping[str, Any]:
    """The records by name, in the order of lists."""
    _load_built_in()
    return _in_order()


@functools.cache
def _in_order() -> Mapping[str, Any]:
    return {record.name: record for record in sorted(_records.values(), key=lambda record: record.rank)}


def kind_of(keys: Iterable[str]) -> str | None:
    """The kind of hardware of a TVM target, by its keys: the first that is one; None where none is."""
    kinds = {record.kind for record in records().values()}
    return next((key for key in keys if key in kinds), None)


@functools.cache
def _load_built_in() -> None:
    folder = pathlib.Path(__file__).with_name("target")
    for place in sorted(folder.glob("*/__init__.py")):
        importlib.import_module(f"{__package__}.target.{place.parent.name}")


class Facts(Mapping[str, T], Generic[T]):
    """One fact of every target that has it, by kind of hardware: a field of the records as a table.

    Parameters
    ----------
    field : str
        Of `uir_tvm.target.record.TargetRecord`.
    by : str
        What the keys are: ``kind``, or ``name``.
    """

    def __init__(self, field: str, by: str = "kind") -> None:
        self._field, self._by = field, by

    def __getitem__(self, key: str) -> T:
        for record in records().values():
            if getattr(record, self._by) == key and (found := record.fact(self._field)) is not None:
                return found
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        for record in records().values():
            if record.fact(self._field) is not None:
                yield getattr(record, self._by)

    def __len__(self) -> int:
        return sum(1 for _ in self)


__all__ = ["Described", "Facts", "add", "kind_of", "records", "remove", "watch"]
