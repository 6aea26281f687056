# SPDX-License-Identifier: Apache-2.0
"""Golden pairs: ``golden/PASS.before.igraph`` and what the pass makes of it, ``PASS.after.igraph``.

``UIR_UPDATE_GOLDEN=1 pytest tests/optimize/test_goldens.py`` writes the graphs after the passes anew.
"""

from __future__ import annotations

import pathlib

from uir_tvm.igraph import IGraph, parse_igraph

FOLDER = pathlib.Path(__file__).parent / "golden"

#: The hardware model of small graphs: two groups of two units, with room for a few tiles.
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


def text(name: str, which: str) -> str:
    """The text of one side, ``before`` or ``after``."""
    return (FOLDER / f"{name}.{which}.igraph").read_text()


def example(name: str, which: str) -> IGraph:
    """The graph of one side."""
    return parse_igraph(text(name, which))
