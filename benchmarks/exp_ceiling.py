# SPDX-License-Identifier: Apache-2.0
"""The limit of operators that exponentials bind: loops written by hand, of AVX-512 or AVX2, on all threads.

What a case takes here is what its exponentials and its memory ask for: nothing is checked, no size is open,
and an exponential is as short as float32 allows (arguments are at most zero, results 1e-38 at least).

    python benchmarks/cpu.py --only softmax swiglu --peers uir-cpu "hand-written loop"
"""

from __future__ import annotations

import ctypes
import functools
import math
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch
from copy_ceiling import compiled

SOURCE = pathlib.Path(__file__).with_name("exp_ceiling.cc")
#: Bytes of a result above which it is stored past the caches.
BEYOND_CACHES = 16 << 20
Call = Callable[[], torch.Tensor]


@attrs.frozen
class Loop:
    """A function of `SOURCE` that is an operator: of its inputs a result like the first, row by row."""

    function: str
    #: Inputs -> further sizes that the function is told.
    sizes: Callable[[Sequence[torch.Tensor]], tuple[int, ...]] = lambda inputs: ()


#: Operators by the first word, or words, of their names (`operators.py`).
LOOPS: dict[str, Loop] = {
    "softmax": Loop("softmax"),
    "masked softmax": Loop("masked_softmax", lambda inputs: _mask(*inputs)),
    "log-softmax": Loop("log_softmax"),
    "swiglu": Loop("swiglu"),
}


def _mask(x: torch.Tensor, mask: torch.Tensor) -> tuple[int, int]:
    """Rows of x that have the same row of the mask, one after another; rows of the mask."""
    rows = math.prod(mask.shape[:-1])
    alone = mask.dim() > 2  # one row for all heads and queries of an image
    return (math.prod(x.shape[:-1]) // rows if alone else 1), rows


def hand_written(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Call:
    """The loop of an operator.

    Raises
    ------
    ValueError
        There is no loop for this case.
    """
    name = str(getattr(module, "name", "a model")).rpartition(" ")[0]
    if name not in LOOPS:
        raise ValueError(f"no loop is written for {name or 'this'}; there is one for {', '.join(LOOPS)}")
    loop = LOOPS[name]
    function = getattr(library(), loop.function)
    x = inputs[0]
    out = aligned(x.shape)
    streams = int(out.numel() * 4 > BEYOND_CACHES)
    sizes = (x.numel() // x.shape[-1], x.shape[-1], *loop.sizes(inputs))
    held = (out, *inputs)  # as long as they are called with
    arguments: list[Any] = [ctypes.c_void_p(each.data_ptr()) for each in held]
    arguments += [ctypes.c_long(each) for each in (*sizes, streams, torch.get_num_threads())]

    def call() -> torch.Tensor:
        function(*arguments)
        return held[0]

    return call


@functools.cache
def library(*flags: str) -> ctypes.CDLL:
    """The loops, for this CPU."""
    return compiled(SOURCE.read_text(), "exp", *(flags or ("-march=native",)), "-fopenmp")


def aligned(shape: Sequence[int]) -> torch.Tensor:
    """Memory that begins at a cache line, touched."""
    count = math.prod(shape)
    raw = torch.zeros(count + 16)
    start = (-raw.data_ptr() % 64) // 4
    return raw[start : start + count].view(shape)
