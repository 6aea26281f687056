# SPDX-License-Identifier: Apache-2.0
"""``python -m uir_tvm.cli``: the command ``uir``."""

from .command import main

main()
