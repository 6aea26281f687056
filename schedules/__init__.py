# SPDX-License-Identifier: Apache-2.0
"""One recipe per hero (`uir_tvm.schedule.recipe.Recipe`), tried in the order of `RECIPES`.

A recipe of one file is ``schedules/HERO.py``; one with parts of its own is a folder.  ``python schedules
HERO`` shows what it does.
"""

from __future__ import annotations

from uir_tvm.schedule.recipe import Registry

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
    update,
)

#: From the most particular hero to the fallback that always builds.
RECIPES = Registry(
    attention.RECIPE,
    contraction.RECIPE,
    normalization.RECIPE,
    reduction.RECIPE,
    column_reduction.RECIPE,
    transpose.RECIPE,
    update.RECIPE,
    gather.RECIPE,
    concat.RECIPE,
    elementwise.RECIPE,
    phases.RECIPE,
    fallback.RECIPE,
)

__all__ = ["RECIPES"]
