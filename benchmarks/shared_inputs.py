# SPDX-License-Identifier: Apache-2.0
"""Inputs that several processes read from the same memory.

How fast a tensor is read depends on where its pages lie: the same code in two processes, each with inputs
of its own, differs by a quarter.  Every process maps these pages instead.  Inputs begin at pages, which
peers take as they are, without a copy.  A process that writes into an input has that page for itself from
then on, so that it changes nothing for others.
"""

from __future__ import annotations

import mmap
import os
import pathlib
from collections.abc import Iterator, Sequence

import torch

_PAGE = mmap.PAGESIZE


class SharedInputs:
    """Inputs in memory that other processes of this user map (`mapped`), until it is closed.

    Parameters
    ----------
    inputs : sequence of torch.Tensor

    Attributes
    ----------
    file : pathlib.Path
        What the others open.
    """

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        self._descriptor = os.memfd_create("inputs")
        self.file = pathlib.Path(f"/proc/{os.getpid()}/fd/{self._descriptor}")
        os.ftruncate(self._descriptor, _end(inputs))
        memory = mmap.mmap(self._descriptor, _end(inputs))
        for source, place in zip(inputs, _placed(memory, inputs), strict=True):
            place.copy_(source)

    def close(self) -> None:
        """No further process maps it; those that have it keep it."""
        os.close(self._descriptor)


def mapped(file: pathlib.Path, like: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The inputs of a file (`SharedInputs.file`), of the types and shapes that it was made of."""
    with file.open("rb") as opened:
        memory = mmap.mmap(
            opened.fileno(), _end(like), flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE
        )
    return tuple(_placed(memory, like))


def _placed(memory: mmap.mmap, like: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Tensors of these types and shapes in memory, each from a page on."""
    for at, each in zip(_starts(like)[:-1], like, strict=True):
        if each.numel():
            flat = torch.frombuffer(memory, dtype=each.dtype, count=each.numel(), offset=at)
            yield flat.view(each.shape)
        else:
            yield torch.empty_like(each)


def _starts(like: Sequence[torch.Tensor]) -> list[int]:
    """Where each begins; at last where all have ended."""
    starts = [0]
    for each in like:
        starts.append(starts[-1] + -(-each.numel() * each.element_size() // _PAGE) * _PAGE)
    return starts


def _end(like: Sequence[torch.Tensor]) -> int:
    """Bytes of all; a mapping has one page at least."""
    return max(_starts(like)[-1], _PAGE)
