# SPDX-License-Identifier: Apache-2.0
"""The iGraph: one custom operator as a dataflow graph of iOps on iSlices."""

from .affine import Affine, affine, var
from .nodes import HardwareModel, IGraph, IOp, IPointer, ISlice, Loop, from_json, map_iops, walk_body
from .parser import parse_igraph
from .text import print_igraph

__all__ = [
    "Affine",
    "HardwareModel",
    "IGraph",
    "IOp",
    "IPointer",
    "ISlice",
    "Loop",
    "affine",
    "from_json",
    "map_iops",
    "parse_igraph",
    "print_igraph",
    "var",
    "walk_body",
]
