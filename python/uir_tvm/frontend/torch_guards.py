# SPDX-License-Identifier: Apache-2.0
"""The conditions under which PyTorch exported a program, as texts: its guards run on what only records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from ..errors import OpenSizeError
from ..sizes.symbolic_shapes import Size


def guard_texts(guards: Callable[..., Any], arguments: Iterable[Any]) -> tuple[str, ...]:
    """What a program asserts of the sizes of its inputs.

    Parameters
    ----------
    guards : callable
        PyTorch's function of all inputs, which calls ``torch._assert`` for each condition.
    arguments : iterable
        `SaidTensor` and `Said` for what is open, constants as they are.

    Raises
    ------
    OpenSizeError
        It asks what is no comparison of sizes.
    """
    said: list[str] = []
    try:
        guards(*[_with(argument, said) for argument in arguments])
    except Exception as error:  # whatever guards ask of a tensor beside its sizes
        raise OpenSizeError(
            "The conditions of the program have no text.",
            where=f"{type(error).__name__}: {error}",
            need="comparisons of sizes",
            remedy="compile the model for chosen sizes: specialize=[...] (--specialize)",
        ) from error
    return tuple(said)


def _with(argument: Any, found: list[str]) -> Any:
    if isinstance(argument, SaidTensor | Said):
        argument.found = found
    return argument


class Said:
    """A size, or what is asked of sizes, of which only the text is known."""

    def __init__(self, text: str, found: list[str] | None = None) -> None:
        self.text = text
        #: The texts of what was asserted.
        self.found = found if found is not None else []

    def __bool__(self) -> bool:
        raise TypeError(f"whether {self.text} holds is not known")

    def _joined(self, word: str, other: Any, turned: bool = False) -> Said:
        mine, its = f"({self.text})", f"({other.text if isinstance(other, Said) else int(other)})"
        return Said(f"{its} {word} {mine}" if turned else f"{mine} {word} {its}", self.found)

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Keep what PyTorch asserts of it."""
        if function is not torch._assert:
            raise TypeError(f"{function} is asked of a size")
        args[0].found.append(args[0].text)


def _operator(word: str, turned: bool) -> Callable[[Said, Any], Said]:
    return lambda self, other: self._joined(word, other, turned)


for _name, _word in {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}.items():
    setattr(Said, f"__{_name}__", _operator(_word, False))
    setattr(Said, f"__r{_name}__", _operator(_word, True))
for _name, _word in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Said, f"__{_name}__", _operator(_word, False))


class SaidTensor:
    """A tensor of which only the shape is known, in texts and numbers."""

    def __init__(self, sizes: Sequence[Size]) -> None:
        self._sizes = sizes
        self.found: list[str] = []

    def size(self) -> tuple[Said | int, ...]:
        """Its sizes, which record what is asked."""
        return tuple(size if isinstance(size, int) else Said(size, self.found) for size in self._sizes)

    @property
    def shape(self) -> tuple[Said | int, ...]:
        """As `size`."""
        return self.size()
