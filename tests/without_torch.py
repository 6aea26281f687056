# SPDX-License-Identifier: Apache-2.0
"""Commands for processes of their own that need no PyTorch: TVM would import it, for more than a second."""

from __future__ import annotations

import sys
import textwrap

__all__ = ["program", "script"]

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None\n"
#: Runs the file that is the first argument, which sees the others.
FILE = "import runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


def program(code: str, *arguments: object) -> list[str]:
    """The command that runs Python code with arguments."""
    return [sys.executable, "-c", WITHOUT_TORCH + textwrap.dedent(code), *map(str, arguments)]


def script(file: object, *arguments: object) -> list[str]:
    """The command that runs a file with arguments."""
    return program(FILE, file, *arguments)
