# SPDX-License-Identifier: Apache-2.0
"""Weights that nodes and graphs share: of constants with the same contents one is kept.

Steps of a recurrence read one weight, which then stays in the caches; a model is compiled again for each of
its shapes.  Each time weights are packed anew, to the same bytes.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import math
from collections.abc import Iterator, Set

import numpy as np
import tvm

from .tensor_view import view_of

#: Smaller constants are not worth a look at their contents, in bytes.
LEAST = 4096


class SharedConstants:
    """Constants by their contents."""

    def __init__(self) -> None:
        self._kept: dict[bytes, tvm.ir.GenericConst] = {}
        self._asked: set[bytes] = set()

    def one_of(self, constant: tvm.ir.GenericConst) -> tvm.ir.GenericConst:
        """The first constant of these contents, shape and dtype."""
        value = constant.value
        dtype, shape = str(value.dtype), tuple(map(int, value.shape))
        array = np.ascontiguousarray(view_of(value)) if math.prod(shape) >= LEAST // 8 else None
        if array is None or array.nbytes < LEAST:
            return constant
        digest = hashlib.sha256(f"{dtype}{shape}".encode())
        digest.update(array.view(np.uint8).data)
        self._asked.add(digest.digest())
        return self._kept.setdefault(digest.digest(), constant)

    def asked(self) -> set[bytes]:
        """What was asked for since this was called last."""
        found, self._asked = self._asked, set()
        return found

    def keep(self, used: Set[bytes]) -> None:
        """Forget the others."""
        self._kept = {digest: constant for digest, constant in self._kept.items() if digest in used}


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
