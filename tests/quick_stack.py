# SPDX-License-Identifier: Apache-2.0
"""A quick `inspect.stack`, for the decorators of TVMScript.

They ask for the stack before they parse a function, and look at the frames and at the text of the line where
a class of functions would begin.  The standard library seeks the module and the text of every frame: under
pytest some sixty, against some thousands of modules.  A third of the suite's collection went there.
"""

from __future__ import annotations

import inspect
import linecache
import sys

__all__ = ["install", "stack"]

#: Frames whose text is given: the decorator, who calls it, and who called that, where a class would begin.
NEAR = 3


def stack(context: int = 1) -> list[inspect.FrameInfo]:
    """The caller's frames, inmost first; the line of text is known of the first `NEAR` alone."""
    frames: list[inspect.FrameInfo] = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        near = context > 0 and len(frames) < NEAR
        line = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals) if near else ""
        text = ([line], 0) if line else (None, None)
        frames.append(inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, *text))
        frame = frame.f_back  # type: ignore[assignment]
    return frames


def install() -> None:
    """Use it in this process."""
    inspect.stack = stack  # type: ignore[assignment]
