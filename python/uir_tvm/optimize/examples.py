# SPDX-License-Identifier: Apache-2.0
"""The hardware model of the small graphs that show what a pass does."""

from __future__ import annotations

#: Two groups of two units, with room for a few tiles.
HARDWARE = """
hardware toy {
  kind = toy
  num_groups = 2
  num_units = 2
  reg_bytes = 4096
  sram_bytes = 4096
  vector_bytes = 64
}
"""
