# SPDX-License-Identifier: Apache-2.0
"""Units take groups in turn, in a loop of the graph, where sizes make more groups than run at once.

Before, on a device of 48 cores::

    parallel ((n + 3) / 4, 1) { move t, x[4*pid; rows :n - 4*pid];  move w, g;  binary.mul t, t, w;  ... }

After::

    parallel ((n + 3) / 4 up_to 48, 1) {
      for tile in 11184811 [dealt=true, pipeline=2] {
        move t, x[4*pid + 192*tile; rows :n - 4*pid - 192*tile];  move w, g;  binary.mul t, t, w;  ...
      }
    }

The printer would deal the groups itself, in a loop that no pass sees.  In one of the graph what is the same
for all of a unit's tiles is loaded once (`hoist`), and the next tile while this one is computed with
(`multibuffer`); it ends where a unit's tiles do (`igraph.dealt`).

Exact: every group is done by one unit, and groups depend on no other.  The result is verified at once: a
graph of which something is not proved stays as it is, as do graphs whose units share memory or meet, and
those with loops that have iterations in flight.
"""

from __future__ import annotations

import math

from ..errors import VerifyError
from ..igraph.dealt import DEALT, tile_of
from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, Loop
from ..igraph.rewrite import FreshNames, substituted
from ..verify import verify
from .multibuffer import PIPELINE

#: Tiles of a unit that are in flight: one is loaded while another is computed with.
IN_FLIGHT = 2


def run(graph: IGraph) -> IGraph:
    """The graph with a loop over a unit's groups; itself where every group has a unit, or must have one."""
    places = int(graph.hardware.num_groups) * int(graph.hardware.num_units)
    if graph.groups is None or int(graph.num_groups) <= places or not _is_dealable(graph):
        return graph
    name = FreshNames(graph).free("tile")
    tile = tile_of(name, places)
    attributes = {DEALT: True, PIPELINE: IN_FLIGHT} if _is_flat(graph) else {DEALT: True}
    rounds = math.ceil(int(graph.num_groups) / places)
    body = [substituted(node, {"pid": tile}) for node in graph.body]
    made = graph.replace(num_groups=places, body=[Loop(name, rounds, body, attributes)])
    try:
        verify(made)
    except VerifyError:
        return graph
    return made


def _is_dealable(graph: IGraph) -> bool:
    """Whether groups are single units that share nothing and meet nowhere, have no products, whose unit has
    places of its own, and load nothing ahead by themselves, nor count places.
    """
    if int(graph.num_units) != 1 or any(p.level != "reg" and not p.is_param for p in graph.pointers):
        return False
    if any(PIPELINE in loop.attrs for _, loops in graph.walk() for loop in loops):
        return False
    if any(spec_of(iop).by_place for iop, _ in graph.walk()):
        return False  # not every printer leaves elements outside of an iota's box as they are
    return not any(
        spec_of(iop).barrier or spec_of(iop).is_product or iop.attrs.get("scope") == "group"
        for iop, _ in graph.walk()
    )


def _is_flat(graph: IGraph) -> bool:
    """Whether a group is one iteration of everything."""
    return not any(loops for _, loops in graph.walk())


__all__ = ["IN_FLIGHT", "run"]
