# SPDX-License-Identifier: Apache-2.0
"""Attributes of library operators whose sizes may be open: expressions of named sizes instead of numbers.

A size is a number or a `sizes.open_size.OpenSize`. The text of such attributes has expressions as strings
(``"m":"b*s"``); ``uir.library.sized`` (`uir_tvm.library.sized`) puts numbers in their place at the call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import attrs

from ..errors import ShapeError
from ..sizes.open_arithmetic import is_open, representative, structure
from ..sizes.open_size import AnySize, OpenSize, at


def sizes(value: Iterable[AnySize]) -> tuple[AnySize, ...]:
    """Sizes, of which those that are no open ones become ints."""
    return tuple(v if isinstance(v, OpenSize) else int(v) for v in value)


def not_below(least: int, remedy: str) -> Any:
    """A validator of a size or of several; of open ones the space is asked."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if any(number < least for number in (value if isinstance(value, tuple) else (value,))):
            raise ShapeError(
                f"{type(instance).__name__}: {attribute.name} is {value}.",
                need=f"at least {least} in every dimension",
                remedy=remedy,
            )

    return check


@attrs.frozen
class OperandLayout:
    """Where an operand's elements lie in the contiguous tensor that holds it.

    Parameters
    ----------
    strides : tuple of int
        In elements: batch dimensions first, then the two of the matrix; 0 repeats.
    offset : int
        In elements, of the first one.
    """

    strides: tuple[int, ...] = attrs.field(converter=sizes, eq=structure)
    offset: int = attrs.field(eq=structure, default=0)


class OpenAttrs:
    """What attributes of operators have in common."""

    __slots__ = ()

    @property
    def is_open(self) -> bool:
        """Whether a size is no number."""
        return is_open(_sizes_in(_values(self).values()))

    @property
    def symbols(self) -> tuple[str, ...]:
        """The sizes that it is in terms of, in the order of their space."""
        found = [size for size in _sizes_in(_values(self).values()) if isinstance(size, OpenSize)]
        named = {name for size in found for name in size.names}
        return tuple(name for name in found[0].space.names if name in named) if found else ()

    def at(self, sizes: Mapping[str, int]) -> Self:
        """The attributes in numbers.

        Parameters
        ----------
        sizes : mapping of str to int
            A number for each of `symbols`.

        Raises
        ------
        ShapeError
            The numbers make no operator.
        """
        return self._with(lambda size: at(size, sizes))

    def representative(self) -> Self:
        """The attributes in the numbers that stand for all sizes (`open_arithmetic.representative`)."""
        return self._with(representative)

    def _with(self, number: Callable[[AnySize], Any]) -> Self:
        changed = {name: _each(value, number) for name, value in _values(self).items()}
        return attrs.evolve(self, **changed)  # type: ignore[misc]

    def to_json(self) -> str:
        """The text that the operator takes, or ``uir.library.sized`` where a size is open.

        Equal attributes give equal text.
        """
        # how it runs is said where it was chosen: texts, and what is kept under them, stay as they are
        settled = {
            field.name: field.default
            for field in attrs.fields(type(self))  # type: ignore[arg-type]
            if field.metadata.get("settled")
        }
        fields = {
            name: _plain(value)
            for name, value in _values(self).items()
            if name not in settled or value != settled[name]
        }
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def _values(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}


def _sizes_in(values: Iterable[Any]) -> Iterator[Any]:
    """All that may be a size."""
    for value in values:
        if isinstance(value, OperandLayout):
            yield value.offset
            yield from value.strides
        elif isinstance(value, tuple):
            yield from value
        else:
            yield value


def _each(value: Any, number: Callable[[AnySize], Any]) -> Any:
    """With a number for each size."""
    if isinstance(value, OperandLayout):
        return OperandLayout(_each(value.strides, number), number(value.offset))
    return tuple(map(number, value)) if isinstance(value, tuple) else number(value)


def _plain(value: Any) -> Any:
    """As JSON has it: an open size is its text."""
    if isinstance(value, OperandLayout):
        return [_plain(value.offset), _plain(value.strides)]
    if isinstance(value, tuple):
        return [_plain(size) for size in value]
    return str(value) if isinstance(value, OpenSize) else value


def contiguous_strides(shape: Sequence[AnySize]) -> tuple[AnySize, ...]:
    """Strides in elements of a contiguous tensor of `shape`, the last dimension fastest."""
    strides: list[AnySize] = []
    step: AnySize = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))
