# SPDX-License-Identifier: Apache-2.0
"""Keep a known note of TVM's C++ off the user's terminal."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator

#: TVM warns once for every constant that it writes or reads, of a memory scope that is empty.
SCOPE_NOTE = re.compile(rb"Warning: Scope (Saving|Loaded):\s*$")


@contextlib.contextmanager
def without_scope_notes() -> Iterator[None]:
    """Drop the lines of `SCOPE_NOTE` from standard error; everything else appears at the end."""
    try:
        sys.stderr.flush()
        saved = os.dup(2)
    except (OSError, ValueError, AttributeError):  # there is no standard error to keep clean
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.flush()
            os.dup2(saved, 2)
            held.seek(0)
            rest = b"".join(line for line in held if not SCOPE_NOTE.search(line) and line.strip())
            with contextlib.suppress(OSError):
                os.write(saved, rest)
            os.close(saved)
