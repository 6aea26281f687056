# SPDX-License-Identifier: Apache-2.0
"""All structures of the sweep by name."""

from __future__ import annotations

from collections.abc import Mapping

from . import addresses, in_place, values
from .structure import Structure

STRUCTURES: Mapping[str, Structure] = {
    structure.name: structure
    for structure in (*in_place.STRUCTURES, *addresses.STRUCTURES, *values.STRUCTURES)
}

#: Structures that TVM's own lowering takes, with what the report says of them.
FALL_BACKS: Mapping[str, str] = {}
