# SPDX-License-Identifier: Apache-2.0
"""One recipe per hero, tried in this order.

A recipe is a module with ``HERO`` (its name), ``matches(sch)``, ``schedule(sch, hardware)`` (which may return
another schedule, of a rewritten function) and
``example()``; run as a script it shows what it does.
"""

from __future__ import annotations

from types import ModuleType

from . import (
    attention,
    column_reduction,
    concat,
    contraction,
    elementwise,
    fallback,
    gather,
    normalization,
    phases,
    reduction,
    transpose,
)

#: From the most particular hero to the fallback that always builds.
RECIPES: tuple[ModuleType, ...] = (
    attention,
    contraction,
    normalization,
    reduction,
    column_reduction,
    transpose,
    gather,
    concat,
    elementwise,
    phases,
    fallback,
)

__all__ = ["RECIPES"]
