# SPDX-License-Identifier: Apache-2.0
"""Candidates of fusion that their prices decided: both prices, as the kernel graph keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs


@attrs.frozen
class WayCost:
    """One way of a candidate: all kernels that it changes. All figures are modelled.

    Attributes
    ----------
    modelled_seconds : float
    bytes, operations : int
        What the kernels move, and compute in plain operations of words.
    units : int
        Units that have work in the kernel that keeps fewest busy.
    """

    modelled_seconds: float
    bytes: int
    operations: int
    units: int


@attrs.frozen
class FusionChoice:
    """A candidate of fusion, with equal ones of other layers.

    Attributes
    ----------
    candidate : str
        Its sort (`uir_tvm.kernel_graph.fusion_cost`).
    values : tuple of str
        What is computed again, or read by siblings: one for each of the equal candidates.
    kernels : tuple of str
        What is merged, or changed, by its operators.
    merged : bool
        Which way it went.
    apart, together : WayCost
        Of one of them.
    """

    candidate: str
    values: tuple[str, ...]
    kernels: tuple[str, ...]
    merged: bool
    apart: WayCost
    together: WayCost


def fusion_choices(graph: Mapping[str, Any]) -> tuple[FusionChoice, ...]:
    """The choices of a kernel graph, those with most at stake first.

    Parameters
    ----------
    graph : mapping
        What `KernelGraph.to_json` says; one that was saved before choices were kept has none.
    """
    found: dict[tuple[Any, ...], FusionChoice] = {}
    for entry in graph.get("fusion", ()):
        ways = [_way(entry[name]) for name in ("apart", "together")]
        kernels = tuple(entry["kernels"])
        key = entry["candidate"], kernels, entry["merged"], *ways
        known = found.get(key)
        values = (*(() if known is None else known.values), entry["value"])
        found[key] = FusionChoice(entry["candidate"], values, kernels, entry["merged"], *ways)
    return tuple(sorted(found.values(), key=lambda each: -at_stake(each)))


def at_stake(choice: FusionChoice) -> float:
    """Modelled seconds between both ways."""
    difference = choice.apart.modelled_seconds - choice.together.modelled_seconds
    return abs(difference) * len(choice.values)


def _way(price: Mapping[str, Any]) -> WayCost:
    return WayCost(price["seconds"], price["bytes"], price["operations"], price["units"])
