# SPDX-License-Identifier: Apache-2.0
"""What an executable says of its state; needs no more than TVM's runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

#: How a tensor of the state gets its new value.
IN_PLACE, COPIED, UNCHANGED, GROWS = "in place", "copied", "unchanged", "grows"


def _shape(given: Iterable[int]) -> tuple[int, ...]:
    return tuple(given)


@attrs.frozen
class StateSpec:
    """What an executable says of a tensor of its state.

    Attributes
    ----------
    name, shape, dtype
        As the model calls and declares it.
    how : str
        ``in place``: a call writes what it changes, where it is. ``copied``: the new value, or the old one
        for what still reads it, is written elsewhere first. ``unchanged``. ``grows``: the new value is
        another tensor, which the next call is given.
    why : str
        Why something is copied; empty where nothing is.
    written, copied : int
        Bytes of the tensor that a call writes, and bytes that are written elsewhere for it.
    zeros : bool
        Whether it begins as zeros; a file then holds no initial value.
    """

    name: str
    shape: tuple[int, ...] = attrs.field(converter=_shape)
    dtype: str
    how: str
    why: str = ""
    written: int = 0
    copied: int = 0
    zeros: bool = True

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        text = f"{self.name}: {self.dtype}[{shape}], {self.how}, writes {self.written} bytes a call"
        return text + (f", copies {self.copied} ({self.why})" if self.why else "")


def rows_of(specs: Sequence[StateSpec]) -> list[Mapping[str, Any]]:
    """The specs as plain data, for reports."""
    return [{**attrs.asdict(each), "shape": list(each.shape)} for each in specs]
