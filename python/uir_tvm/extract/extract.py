# SPDX-License-Identifier: Apache-2.0
"""The entry of extraction: scheduled PrimFunc -> iGraph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx

from ..errors import ExtractionError
from ..igraph import HardwareModel, IGraph, Loop
from ..igraph.rewrite import pointers_of
from ..schedule.annotations import LITTLE_WORK_ATTR, VECTOR, VECTOR_ATTR
from ..schedule.tile_facts import space_of
from .function_pointers import PID, FunctionPointers, UniqueNames
from .group_forms import FormEmitter, leaves_of, recognise
from .joined import joined
from .leaf import LeafExtractor
from .roles import in_part
from .sharing import check_same_for_set, leaders_only
from .tree import build_tree
from .tree_nodes import Serial, TreeLoop, pipeline_attrs

#: Temporaries of a full tile that must fit in reg at once, where no schedule chose the tile.
_LIVE_TEMPORARIES = 16


def extract(prim_func: Any, hardware: HardwareModel, name: str | None = None) -> IGraph:
    """The iGraph of an S-TIR PrimFunc.

    Parameters
    ----------
    prim_func : tvm.tirx.PrimFunc
        Shapes of numbers, or of variables that are sizes of the graph (`igraph.tir_sizes`), those of inner
        dimensions bounded from above; scheduled as the contract in ``docs/architecture.md`` says.  Without a
        loop annotated ``uir.parallel`` one unit computes everything, in tiles that fit in reg.
    hardware : HardwareModel
        The device; it becomes part of the graph.
    name : str, optional
        Name of the graph; by default the function's ``global_symbol``.

    Returns
    -------
    IGraph
        With one dram pointer per parameter, in the order of the signature, and a reg pointer per value.  What
        units hand each other follows from the order of the iOps alone: `optimize.completed` removes what
        nobody reads and places the syncs.

    Raises
    ------
    uir_tvm.errors.ExtractionError
        What no iGraph expresses; the message names the block and the statement.
    """
    if not isinstance(prim_func, tirx.PrimFunc):
        raise ExtractionError(
            f"Extraction needs a PrimFunc, not a {type(prim_func).__name__}.",
            remedy='pass one function of the module: mod["main"]',
        )
    symbol = (prim_func.attrs or {}).get("global_symbol")
    graph_name = name or (str(symbol) if symbol else "main")
    prim_func = joined(prim_func)
    tree = build_tree(prim_func)
    names = UniqueNames(PID, *(str(size.name) for size in tree.sizes.values()))
    recognise(tree)
    leaders_only(leaves_of(tree.body), tree)
    memory = FunctionPointers(prim_func, tree, names, in_part(prim_func))
    limit = None if tree.parallel is not None else max(64, hardware.reg_bytes // (4 * _LIVE_TEMPORARIES))
    leaves = LeafExtractor(memory, limit)
    forms = FormEmitter(memory, names)
    body = _extract_body(tree.body, (), leaves, forms)
    used = pointers_of(body)
    every = [*memory.pointers, *leaves.temporaries, *forms.temporaries, *forms.pointers]
    return IGraph(
        graph_name,
        hardware,
        tree.num_groups,
        tree.num_units,
        [p for p in every if p.is_param or str(p.name) in used],
        body,
        _vectors(tree.vector_bytes, hardware) | _little_work(tree.little_work),
        list(tree.sizes.values()),
        tree.groups,
    )


def _vectors(asked: int, hardware: HardwareModel) -> dict[str, int]:
    """The graph's attribute for vectors that are not the hardware's own (`schedule.annotations.VECTOR`)."""
    own, factors = int(hardware.vector_bytes), space_of(hardware).vectors
    if asked in (0, own):
        return {}
    if not factors:
        raise ExtractionError(
            f"Vectors of {asked} bytes are asked for by {VECTOR}.",
            need=f"no such annotation for {hardware.name}: its vector instructions take whole tiles",
            remedy="leave the annotation out and choose the tile",
        )
    if asked > own * max(factors):
        raise ExtractionError(
            f"Vectors of {asked} bytes are asked for by {VECTOR}.",
            limit=f"{int(own * max(factors))} bytes on {hardware.name}",
            remedy="leave the annotation out, or ask for less",
        )
    return {VECTOR_ATTR: asked}


def _little_work(little: int) -> dict[str, int]:
    """The graph's attribute for what one thread does alone (`schedule.annotations.LITTLE_WORK`)."""
    return {LITTLE_WORK_ATTR: little} if little else {}


def _extract_body(
    nodes: Sequence[Any], around: tuple[TreeLoop, ...], leaves: LeafExtractor, forms: FormEmitter
) -> list[Any]:
    memory = forms.memory
    out: list[Any] = []
    for node in nodes:
        if isinstance(node, Serial):
            body = _extract_body(node.body, (*around, node.loop), leaves, forms)
            if body:
                attrs = pipeline_attrs(node.loop.pipeline)
                out.append(Loop(memory.loop_name(node.loop), node.loop.extent, body, attrs))
        else:
            check_same_for_set(node, memory.tree, around)
            out.extend(forms.emit(node, leaves.extract(node, around)))
    return out
