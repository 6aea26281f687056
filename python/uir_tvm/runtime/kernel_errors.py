# SPDX-License-Identifier: Apache-2.0
"""Errors of kernels that are compiled while TVM's virtual machine runs, which keeps their text alone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

#: What such a kernel raised last, by thread.
_FAILED = threading.local()


def note(error: Exception) -> None:
    """Remember an error that is about to cross the machine."""
    _FAILED.error = error


@contextlib.contextmanager
def failing() -> Iterator[None]:
    """Let an error that is noted inside keep its class."""
    _FAILED.error = None
    try:
        yield
    except Exception as error:
        if _FAILED.error is not None and _FAILED.error is not error:
            raise _FAILED.error from None
        raise
    finally:
        _FAILED.error = None
