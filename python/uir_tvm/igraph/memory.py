# SPDX-License-Identifier: Apache-2.0
"""The memory of the interpreter: bytes, and beside them who wrote each element, if anyone."""

from __future__ import annotations

import numpy as np

from .dtypes import numpy_of
from .iops_meaning import Box, extent
from .nodes import IPointer

#: Marks in `Memory.writer`: nobody wrote it since the last sync; a scatter did, whose order is not checked.
NOBODY, SCATTER = -1, -2


class Memory:
    """One copy of an iPointer.

    Parameters
    ----------
    pointer : IPointer
        What it is a copy of.
    initial : numpy.ndarray, optional
        Values at the start, flat, of the pointer's dtype and size; copied.  Without it, no element
        holds anything.

    Attributes
    ----------
    written : numpy.ndarray or None
        Whether each element holds a value; None = all do.
    writer : numpy.ndarray or None
        Of dram that the kernel may write: the pid that wrote each element, `NOBODY` or `SCATTER`.
    """

    def __init__(self, pointer: IPointer, initial: np.ndarray | None = None) -> None:
        self.size = int(pointer.size)
        self.dtype = numpy_of(pointer.dtype)
        # raw bytes: NumPy makes no views on the buffer of an array of ml_dtypes
        self._bytes = np.zeros(self.size * self.dtype.itemsize, np.uint8)
        self.written = None if initial is not None else np.zeros(self.size, np.bool_)
        writable = pointer.level == "dram" and pointer.role != "in"
        self.writer = np.full(self.size, NOBODY, np.int32) if writable else None
        if initial is not None:
            self.array()[:] = initial

    def array(self) -> np.ndarray:
        """All values, flat, as a view."""
        return self._bytes.view(self.dtype)

    def forget(self) -> None:
        """Leave nothing in any element."""
        if self.written is not None:
            self.written[:] = False

    def values(self, start: int, strides: tuple[int, int], box: Box) -> np.ndarray:
        """The view of a box that starts at the element ``start``; it must lie inside."""
        return _view(self._bytes, self.dtype, start, strides, box)

    def written_at(self, start: int, strides: tuple[int, int], box: Box) -> np.ndarray | None:
        """The view of ``written``, or None where all is."""
        return None if self.written is None else _view(self.written, self.written.dtype, start, strides, box)

    def writer_at(self, start: int, strides: tuple[int, int], box: Box) -> np.ndarray | None:
        """The view of ``writer``, or None where it is not tracked."""
        return None if self.writer is None else _view(self.writer, self.writer.dtype, start, strides, box)


def _view(array: np.ndarray, dtype: np.dtype, start: int, strides: tuple[int, int], box: Box) -> np.ndarray:
    shape = extent(box)
    if 0 in shape:
        return np.empty(shape, dtype)
    item = dtype.itemsize
    # the constructor, since as_strided costs ten times as much
    return np.ndarray(shape, dtype, array, start * item, (strides[0] * item, strides[1] * item))


def outside(start: int, strides: tuple[int, int], box: Box, size: int) -> tuple[int, int, int] | None:
    """(row, column, address) of an element of the box that lies outside ``[0, size)``; None when all lie inside."""
    rows, cols = extent(box)
    if not rows or not cols:
        return None
    across = ((rows - 1) * strides[0], (cols - 1) * strides[1])
    low = start + min(across[0], 0) + min(across[1], 0)
    high = start + max(across[0], 0) + max(across[1], 0)
    if low >= 0 and high < size:
        return None
    if high >= size:
        at = tuple((n - 1) if a > 0 else 0 for n, a in zip((rows, cols), across, strict=True))
    else:
        at = tuple((n - 1) if a < 0 else 0 for n, a in zip((rows, cols), across, strict=True))
    return box[0] + at[0], box[2] + at[1], high if high >= size else low
