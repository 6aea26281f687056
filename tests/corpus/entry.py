# SPDX-License-Identifier: Apache-2.0
"""One graph of the corpus."""

from __future__ import annotations

from typing import Literal

import attrs
from tvm import tirx
from uir_tvm.igraph import IGraph


@attrs.frozen(eq=False)
class Entry:
    """A valid iGraph.

    Attributes
    ----------
    name : str
        Unique within the corpus.
    prim_func : tvm.tirx.PrimFunc or None
        The unscheduled function that it was made of; None for a graph written by hand.
    graph : IGraph
        The graph.
    origin : str
        ``recipe``, ``model`` or ``hand``.
    """

    name: str
    prim_func: tirx.PrimFunc | None
    graph: IGraph
    origin: Literal["recipe", "model", "hand"]
