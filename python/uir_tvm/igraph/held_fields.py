# SPDX-License-Identifier: Apache-2.0
"""Fields of immutable C++ objects, read once for each Python object that stands for one.

A field that holds several nodes comes out of C++ as an array that makes a Python object of an element
whenever the element is asked for: most of the time of a pass went there.  Held as a tuple, the elements are
made once, and hold their own fields in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import tvm_ffi

C = TypeVar("C", bound=type)

_length = tvm_ffi.get_global_func("ffi.ArraySize")
_element = tvm_ffi.get_global_func("ffi.ArrayGetItem")


class Immutable(tvm_ffi.Object):
    """A C++ object that never changes; the Python object keeps what it read of it."""

    __slots__ = ("__dict__",)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: `{name}` cannot be set; build a new one")


class _HeldMap(dict[str, Any]):
    """A map of a node; a dict, which tvm-ffi takes for a map again, that refuses to be changed."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("the attributes of a node are immutable; build a new node")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse  # type: ignore[assignment]


def _as_it_is(value: Any) -> Any:
    return value


def _as_tuple(value: tvm_ffi.Array) -> tuple[Any, ...]:
    return tuple([_element(value, i) for i in range(_length(value))])


def _as_map(value: tvm_ffi.Map) -> Mapping[str, Any]:
    return _HeldMap(value.items())


#: How a field is held, by the beginning of its annotation.
CONVERSIONS: dict[str, Callable[[Any], Any]] = {"tuple[": _as_tuple, "Mapping[": _as_map}


class _HeldField:
    """A field that is read when it is first asked for.

    It defines no ``__set__``, so that Python finds what is held without asking here again.
    """

    __slots__ = ("_convert", "_name", "_read", "set")

    def __init__(self, name: str, field: Any, annotation: str) -> None:
        found = (made for begin, made in CONVERSIONS.items() if annotation.startswith(begin))
        self._name, self._read, self._convert = name, field.fget, next(found, _as_it_is)
        #: For ``__replace__`` of tvm-ffi, which sets fields of the copy that it makes.
        self.set: Callable[[Any, Any], None] = field.set

    def __get__(self, node: Any, owner: type | None = None) -> Any:
        if node is None:
            return self
        value = node.__dict__[self._name] = self._convert(self._read(node))
        return value


def held(cls: C) -> C:
    """Hold every field of a class of `Immutable` objects; arrays as tuples, maps as dicts."""
    for name, annotation in cls.__annotations__.items():
        setattr(cls, name, _HeldField(name, cls.__dict__[name], annotation))
    return cls


def hold(node: Immutable, **fields: Any) -> None:
    """Hold what a node was just made of: the Python objects of its fields, arrays as tuples."""
    node.__dict__.update(fields)


def held_attrs(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The field ``attrs`` for `hold` where it was read from another node; else C++ may convert values."""
    return {"attrs": given} if isinstance(given, _HeldMap) else {}
