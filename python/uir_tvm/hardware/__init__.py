# SPDX-License-Identifier: Apache-2.0
"""Hardware models as data: how many units a device has, what memory each has, how wide its vectors are."""

from .hardware_models import assumed_figures, get, kinds, name_of, names, with_instructions_of

__all__ = ["assumed_figures", "get", "kinds", "name_of", "names", "with_instructions_of"]
