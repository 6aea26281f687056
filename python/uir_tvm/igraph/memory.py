# SPDX-License-Identifier: Apache-2.0
"""The memory of the interpreter: bytes, and beside them who wrote each element, if anyone."""

from __future__ import annotations

import numpy as np

from .domain import VALUES, Values
from .nodes import IPointer

#: A box of a slice in memory: address of its first element, (rows, columns), (row stride, column stride).
Place = tuple[int, tuple[int, int], tuple[int, int]]

#: Marks in `Memory.writer`: nobody wrote it since all units met; a scatter did, whose order is not checked.
NOBODY, SCATTER = -1, -2


class Memory:
    """One copy of an iPointer.

    Parameters
    ----------
    pointer : IPointer
        What it is a copy of.
    initial : numpy.ndarray, optional
        Values at the start, flat, of the pointer's size; copied.  Without it, no element
        holds anything.
    domain : Values
        What stands for an element of its dtype.

    Attributes
    ----------
    written : numpy.ndarray or None
        Whether each element holds a value; None = all do, for good.
    complete : bool
        Whether every element is known to hold a value, so that ``written`` need not be looked at.
    writer : numpy.ndarray or None
        Of dram that the kernel may write: `NOBODY`, `SCATTER`, or the first of the units for which what
        stands in an element is settled: that which wrote it, and those that met it at a barrier since.
    reach : numpy.ndarray or None
        How many units these are, with consecutive pids; None while it is one everywhere.
    """

    def __init__(self, pointer: IPointer, initial: np.ndarray | None = None, domain: Values = VALUES) -> None:
        self.size = int(pointer.size)
        self.dtype = domain.storage(str(pointer.dtype))
        # raw bytes: NumPy makes no views on the buffer of an array of ml_dtypes
        self._bytes = np.zeros(self.size * self.dtype.itemsize, np.uint8)
        self.written = None if initial is not None else np.zeros(self.size, np.bool_)
        self.complete = initial is not None
        writable = pointer.level == "dram" and pointer.role != "in"
        self.writer = np.full(self.size, NOBODY, np.int32) if writable else None
        self.reach: np.ndarray | None = None
        if initial is not None:
            self.array()[:] = initial

    def array(self) -> np.ndarray:
        """All values, flat, as a view."""
        return self._bytes.view(self.dtype)

    def forget(self) -> None:
        """Leave nothing in any element."""
        if self.written is not None:
            self.written[:] = False
            self.complete = False

    def values(self, place: Place) -> np.ndarray:
        """The view of a place."""
        return _view(self._bytes, self.dtype, place)

    def holds(self, place: Place) -> np.ndarray:
        """Whether each element of a place holds a value, as a view; not of a memory that always does."""
        assert self.written is not None
        return _view(self.written, _BOOL, place)

    def unwritten(self, place: Place) -> tuple[int, int] | None:
        """(row, column) in a place, counted from its first element, of an element that holds nothing."""
        if self.complete or self.written is None:
            return None
        written = self.holds(place)
        if written.all():
            return None
        row, col = np.argwhere(~written)[0]
        return int(row), int(col)

    def mark(self, place: Place, written: bool = True) -> None:
        """Every element of a place holds a value (or nothing) from now on."""
        if self.written is None or (self.complete and written):
            return
        view = self.holds(place)
        view[...] = written
        # one store that covers the memory is what loops do to their registers
        self.complete = written and view.size == self.size and bool(self.written.all())

    def foreign(self, place: Place, pid: int) -> tuple[int, int, int] | None:
        """(row, column, writer) of an element of a place that another unit wrote, with no barrier between."""
        if self.writer is None:
            return None
        writer = _view(self.writer, _PID, place)
        others = (writer >= 0) & (writer != pid)
        if self.reach is not None:
            others &= (pid < writer) | (pid >= writer + _view(self.reach, _PID, place))
        if not others.any():
            return None
        row, col = np.argwhere(others)[0]
        return int(row), int(col), int(writer[row, col])

    def claim(self, place: Place, pid: int) -> None:
        """The unit ``pid`` wrote this place."""
        if self.writer is not None:
            _view(self.writer, _PID, place)[...] = pid
            if self.reach is not None:
                _view(self.reach, _PID, place)[...] = 1

    def settle(self, size: int, units: int) -> None:
        """All sets of ``size`` consecutive units, out of ``units``, have met at barriers."""
        if self.writer is None:
            return
        if size >= units:
            self.writer[self.writer >= 0] = NOBODY
        elif size > 1:
            reach = np.ones(self.size, np.int32) if self.reach is None else self.reach
            first = self.writer // size * size
            last = -(-(self.writer + reach) // size) * size
            written = self.writer >= 0
            self.reach = np.where(written, last - first, 1).astype(np.int32)
            self.writer[written] = first[written]


_BOOL, _PID = np.dtype(np.bool_), np.dtype(np.int32)


def _view(array: np.ndarray, dtype: np.dtype, place: Place) -> np.ndarray:
    start, shape, (down, right) = place
    if 0 in shape:
        return np.empty(shape, dtype)
    item = dtype.itemsize
    # the constructor, since as_strided costs ten times as much
    return np.ndarray(shape, dtype, array, start * item, (down * item, right * item))


def outside(place: Place, size: int) -> tuple[int, int, int] | None:
    """(row, column, address) of an element of a place outside ``[0, size)``; None when all lie inside."""
    start, (rows, cols), strides = place
    if not rows or not cols:
        return None
    down, right = (rows - 1) * strides[0], (cols - 1) * strides[1]
    low = start + (down if down < 0 else 0) + (right if right < 0 else 0)
    high = start + (down if down > 0 else 0) + (right if right > 0 else 0)
    if low >= 0 and high < size:
        return None
    if high >= size:
        return rows - 1 if down > 0 else 0, cols - 1 if right > 0 else 0, high
    return rows - 1 if down < 0 else 0, cols - 1 if right < 0 else 0, low
