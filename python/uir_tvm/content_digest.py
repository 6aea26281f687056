# SPDX-License-Identifier: Apache-2.0
"""A digest of what a model consists of: texts and arrays, each told with its length."""

from __future__ import annotations

import hashlib

import numpy as np


class ContentDigest:
    """SHA-256 of parts in their order; what was one part is never taken for two."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def text(self, part: str) -> None:
        """Add a text."""
        self._add(memoryview(part.encode()))

    def array(self, part: np.ndarray) -> None:
        """Add an array: dtype, shape and contents, wherever it lies."""
        self.text(f"{part.dtype.str} {part.shape}")
        if part.dtype.hasobject:
            raise TypeError("an array of Python's objects has no contents of its own")
        self._add(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)

    def data(self, part: bytes) -> None:
        """Add bytes."""
        self._add(memoryview(part))

    def digest(self) -> bytes:
        """The digest of all that was added."""
        return self._digest.digest()

    def _add(self, part: memoryview) -> None:
        self._digest.update(part.nbytes.to_bytes(8, "little"))
        self._digest.update(part)
