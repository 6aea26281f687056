# SPDX-License-Identifier: Apache-2.0
"""The ``uir`` command.

It stands outside the package, whose import is what fails where TVM and tvm-ffi do not fit together:
the reason is then printed by itself, as every other error of the command is.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run ``uir_tvm.cli``; exit code 1 and a line where the package cannot be imported, 130 after Ctrl-C."""
    try:
        _run()
    except KeyboardInterrupt:  # while modules are imported, before the command itself sees to it
        sys.exit(130)


def _run() -> None:
    try:
        from uir_tvm.cli import main as cli
    except ImportError as error:
        if type(error).__name__ != "EnvironmentMismatchError":
            raise
        print(error, file=sys.stderr)
        sys.exit(1)
    cli()


if __name__ == "__main__":
    main()
