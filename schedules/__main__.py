# SPDX-License-Identifier: Apache-2.0
"""``python schedules HERO``: show what a recipe makes of its example, and check the numbers."""

from __future__ import annotations

import argparse
import sys

from uir_tvm.schedules import RECIPES
from uir_tvm.schedules.demo import show

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hero", choices=RECIPES.heroes)
    sys.exit(show(RECIPES[parser.parse_args().hero]))
