# SPDX-License-Identifier: Apache-2.0
"""Weights that nodes, graphs and executables share: of constants with the same contents one is kept.

Steps of a recurrence read one weight, which then stays in the caches; a model is compiled again for each of
its shapes.  Of weights that are packed to the same bytes a process keeps one, as long as an executable that
reads it is alive.  Most are not even packed again (`src/library/packed_weight.cc`) but are that one's memory,
whose digest is known.

A digest is of some of the bytes of a large constant: models are read in less time than all their bytes take.
Where two constants have one digest, all bytes are compared, and if they differ, one gets the digest of all.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import math
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Set

import numpy as np
import tvm

from .tensor_view import bytes_of, same_bytes, view_of

#: How a packed weight begins (`src/library/packed_weight.cc`).  It is memory of our own, which nobody
#: changes; others may be a model's own tensors, which training changes after they were looked at.
PACKED = b"UIRWGHT\0"
#: Smaller constants are not worth a look at their contents, in bytes.
LEAST = 4096
#: Of a constant of more bytes only so many are in its digest, in pieces of `PIECE` all over it.
SAMPLED, PIECE = 1 << 16, 256


class LiveConstants:
    """Packed weights that executables read that are alive, by their contents."""

    def __init__(self) -> None:
        self._kept: dict[bytes, tvm.ir.GenericConst] = {}
        self._readers: Counter[bytes] = Counter()
        #: By the addresses of their bytes, which are theirs alone while they are kept.
        self._digests: dict[int, bytes] = {}
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, digest: bytes) -> tvm.ir.GenericConst | None:
        """The constant of these contents, if an executable that is alive reads it."""
        with self._lock:
            return self._kept.get(digest)

    def digest_of(self, array: np.ndarray) -> bytes | None:
        """The digest of a kept constant, by the memory that it lies in."""
        with self._lock:
            found = self._digests.get(array.ctypes.data)
            return (
                found
                if found is not None and view_of(self._kept[found].value).nbytes == array.nbytes
                else None
            )

    def hold(self, reader: object, constants: SharedConstants) -> None:
        """Keep constants for others as long as ``reader`` is alive."""
        kept = set()
        with self._lock:
            for digest, constant in constants.packed().items():
                of_all = self._kept.setdefault(digest, constant)
                if not same_bytes(of_all.value, constant.value):
                    digest = _digest_of_all(constant)
                    of_all = self._kept.setdefault(digest, constant)
                self._digests[view_of(of_all.value).ctypes.data] = digest
                kept.add(digest)
            self._readers.update(kept)
        weakref.finalize(reader, self._release, frozenset(kept)).atexit = False

    def _release(self, digests: frozenset[bytes]) -> None:
        with self._lock:
            self._readers.subtract(digests)
            for digest in digests:
                if self._readers[digest] <= 0:
                    del self._digests[view_of(self._kept[digest].value).ctypes.data]
                    del self._readers[digest], self._kept[digest]


#: Those of this process.
LIVE = LiveConstants()


class SharedConstants:
    """Constants by their contents; packed weights that executables of this process read are theirs."""

    def __init__(self) -> None:
        self._kept: dict[bytes, tvm.ir.GenericConst] = {}
        self._asked: set[bytes] = set()
        self._packed: set[bytes] = set()

    def one_of(self, constant: tvm.ir.GenericConst) -> tvm.ir.GenericConst:
        """The first constant of these contents, shape and dtype."""
        value = constant.value
        dtype, shape = str(value.dtype), tuple(map(int, value.shape))
        array = np.ascontiguousarray(view_of(value)) if math.prod(shape) >= LEAST // 8 else None
        if array is None or array.nbytes < LEAST:
            return constant
        key = LIVE.digest_of(array) or _digest(array, dtype, shape)
        if key in self._kept and not same_bytes(self._kept[key].value, value):
            key = _digest_of_all(constant)
        self._asked.add(key)
        if key not in self._kept:
            if array.view(np.uint8).reshape(-1)[: len(PACKED)].tobytes() == PACKED:
                self._packed.add(key)
            live = LIVE.find(key)
            self._kept[key] = constant if live is None or not same_bytes(live.value, value) else live
        return self._kept[key]

    def packed(self) -> dict[bytes, tvm.ir.GenericConst]:
        """The packed weights among them, by the digest of their contents."""
        return {key: constant for key, constant in self._kept.items() if key in self._packed}

    def asked(self) -> set[bytes]:
        """What was asked for since this was called last."""
        found, self._asked = self._asked, set()
        return found

    def keep(self, used: Set[bytes]) -> None:
        """Forget the others."""
        self._kept = {digest: constant for digest, constant in self._kept.items() if digest in used}


def _digest(array: np.ndarray, dtype: str, shape: tuple[int, ...]) -> bytes:
    """Of contents, dtype and shape; of a large array's contents some."""
    data = array.view(np.uint8).reshape(-1)
    if data.size > SAMPLED:
        places = np.linspace(0, data.size - PIECE, SAMPLED // PIECE).astype(np.int64)
        data = data[places[:, None] + np.arange(PIECE)]
    return _hashed(data, f"{dtype}{shape}")


def _digest_of_all(constant: tvm.ir.GenericConst) -> bytes:
    """Of all contents, dtype and shape; none that `_digest` gives."""
    value = constant.value
    return _hashed(bytes_of(value), f"all of {value.dtype}{tuple(map(int, value.shape))}")


def _hashed(data: np.ndarray, told: str) -> bytes:
    digest = hashlib.sha256(told.encode())
    digest.update(data.data)
    return digest.digest()


_current: contextvars.ContextVar[SharedConstants | None] = contextvars.ContextVar(
    "uir_shared_constants", default=None
)


@contextlib.contextmanager
def sharing(constants: SharedConstants | None) -> Iterator[None]:
    """Graphs that are built inside share their constants; None: each has its own."""
    token = _current.set(constants)
    try:
        yield
    finally:
        _current.reset(token)


def shared_constants() -> SharedConstants:
    """Those of this context, or some for one graph."""
    return _current.get() or SharedConstants()
