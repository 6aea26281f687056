# SPDX-License-Identifier: Apache-2.0
"""How much is asked of the tests: what is quick, or all (``UIR_TEST_ALL=1``, as ``make campaign`` asks)."""

from __future__ import annotations

import os
from typing import TypeVar

__all__ = ["ALL", "asked"]

Asked = TypeVar("Asked")

ALL = bool(os.environ.get("UIR_TEST_ALL"))


def asked(few: Asked, many: Asked) -> Asked:
    """What the suite takes, or what the campaign does.

    >>> asked(5, 50)
    5
    """
    return many if ALL else few
