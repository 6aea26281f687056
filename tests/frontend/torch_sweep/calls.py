# SPDX-License-Identifier: Apache-2.0
"""One row of the sweep: a call of PyTorch, its inputs written as text, and how near its result must be."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
}
#: Relative error allowed to an element: some ten ULP of composed functions, two ULP of narrow floats.
RELATIVE = {torch.float64: 1e-12, torch.float32: 4e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
#: What floats meet rarely, and functions get wrong: no number, infinities, both zeros, denormals, halves
#: (ties of rounding), whole numbers, the range of exp, the largest.
EDGES = (
    math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 2.0, -3.0, 1e-3,
    -1e-3, 1e-7, -1e-7, 1e-40, 0.3, -0.7, 7.0, -6.5, 10.25, 88.0, -88.0, 104.0, -104.0, 1e5, 1e10,
    3e38, -3e38,
)  # fmt: skip
INTEGER_EDGES = (0, 1, -1, 2, -2, 3, 7, -7, 100, 127, -128, -100)
_SPEC = re.compile(r"(\w+)\[([\d,]*)\](?::([a-z]+)(-?\d+)?)?(\.t|\.s)?")

#: A refusal is a part of the typed error's text.
Function = Callable[..., Any]


@attrs.frozen
class Call:
    """One call.

    Parameters
    ----------
    name : str
        Unique: operator, then what is particular about the call.
    function : callable
        Of tensors, to a tensor or a tuple of tensors.
    inputs : str
        ``f32[3,5]:edges bool[5]``: dtype, shape, values (`values`), and ``.t`` (a transposed view) or ``.s``
        (a view of every second element).
    relative : float
        Relative error of an element, where it is more than that of the dtype (`RELATIVE`).
    cancels : bool
        Whether the error is relative to the first input where that is larger: differences of near numbers,
        of which PyTorch too keeps few digits.
    sums : bool
        Whether the error is relative to the largest of the result instead (sums and products of many).
    refused : str
        What the typed error says, for a call that is refused on purpose.
    """

    name: str
    function: Function
    inputs: str = "f32[3,5]"
    relative: float = 0.0
    sums: bool = False
    cancels: bool = False
    refused: str = ""

    def tensors(self, seed: int = 0) -> list[Tensor]:
        """The inputs; equal seeds give equal values."""
        generator = torch.Generator().manual_seed(zlib.crc32(self.name.encode()) + seed)
        return [tensor(spec, generator) for spec in self.inputs.split()]


def tensor(spec: str, generator: torch.Generator) -> Tensor:
    """The tensor of a text."""
    found = _SPEC.fullmatch(spec)
    if not found:
        raise ValueError(f"not an input: {spec!r}")
    name, sizes, kind, number, view = found.groups()
    shape = [int(size) for size in sizes.split(",") if size]
    whole = {".t": shape[::-1], ".s": [2 * size for size in shape], None: shape}[view]
    made = values(DTYPES[name], whole, kind or "", int(number or 0), generator)
    if view == ".t":
        return made.permute(*range(len(shape))[::-1])
    return made[tuple(slice(None, None, 2) for _ in shape)] if view == ".s" else made


def values(
    dtype: torch.dtype, shape: Sequence[int], kind: str, number: int, generator: torch.Generator
) -> Tensor:
    """Numbers of a kind.

    Empty: normal floats, small integers, coin flips. ``edges``: `EDGES` in turn. ``pos``: above 0.1, integers
    from 1; ``neg``: integers to -1; ``unit``: inside (-1, 1); ``big``: in the thousands; ``mixed``: few
    different numbers, some NaN; ``nan``, ``ninf``: normal with a first row of NaN or -inf; ``idx7``: integers
    below 7; ``perm``: a permutation of the last axis; ``wrap7``: integers in [-7, 7).
    """
    count = math.prod(shape)
    if kind == "perm":
        rows = [torch.randperm(shape[-1], generator=generator) for _ in range(count // max(shape[-1], 1))]
        return torch.stack(rows).reshape(list(shape)).to(dtype)
    if kind in ("idx", "wrap"):
        low = -number if kind == "wrap" else 0
        return torch.randint(low, number, list(shape), generator=generator).to(dtype)
    if dtype == torch.bool:
        return torch.rand(list(shape), generator=generator) > 0.5
    normal = torch.randn(count, generator=generator, dtype=torch.float64) * 2
    if kind == "edges":
        edges = torch.tensor(EDGES if dtype.is_floating_point else INTEGER_EDGES, dtype=torch.float64)
        normal = edges[torch.arange(count) % len(edges)] if count else normal
    made = {
        "pos": lambda: normal.abs() + 0.1,
        "unit": lambda: torch.tanh(normal / 2) * 0.99,
        "big": lambda: normal * 1000,
        "mixed": lambda: torch.where(normal > 2.5, torch.nan, normal.round()),
    }.get(kind, lambda: normal)()
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        if kind != "edges":
            made = (made * 3).round()
        if kind in ("pos", "neg"):
            made = made.abs().clamp(min=1) * (1 if kind == "pos" else -1)
        return made.clamp(max(info.min, -(2**40)), min(info.max, 2**40)).to(dtype).reshape(list(shape))
    made = made.reshape(list(shape))
    if kind in ("nan", "ninf") and count:
        first = made[0] if made.dim() > 1 else made[:1]
        first.fill_(math.nan if kind == "nan" else -math.inf)
    made = made.to(dtype)
    return torch.where(made.isnan(), made.abs(), made)  # a cast may set the sign of NaN, which says nothing


def check_names(table: Iterable[Call]) -> list[Call]:
    """The table, whose names are all different."""
    found: dict[str, Call] = {}
    for call in table:
        if call.name in found:
            raise ValueError(f"two calls are named {call.name!r}")
        found[call.name] = call
    return list(found.values())
