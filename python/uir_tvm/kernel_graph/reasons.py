# SPDX-License-Identifier: Apache-2.0
"""Why neighbours stayed two kernels."""

from __future__ import annotations

from ..library.registry import LibraryTable
from .fusion import Fusion
from .groups import Group
from .nodes import NotFused
from .program import Op


def not_fused(groups: list[Group], fusion: Fusion, table: LibraryTable) -> tuple[NotFused, ...]:
    """One reason for every pair of kernels of which one reads the other's result."""
    found: dict[tuple[Group, Group], NotFused] = {}
    for consumer in groups:
        for op in consumer.ops:
            for view in op.operands:
                writer = view.base.producer
                if writer is None or writer in consumer.roles:
                    continue
                producer = fusion.groups[writer]
                key = (producer, consumer)
                if key not in found:
                    reason = _reason(producer, consumer, writer, op, fusion, table)
                    found[key] = NotFused(writer.results[0].name, op.results[0].name, reason)
    return tuple(found.values())


def _reason(
    producer: Group, consumer: Group, writer: Op, reader: Op, fusion: Fusion, table: LibraryTable
) -> str:
    """The first thing that stands between two kernels."""
    if consumer.hero == "library":
        return f"{reader.name} reads its operands from memory"
    if producer.hero == "library":
        count = fusion.counts.get(writer.results[0], 0)
        if count > 1:
            return f"the result of {writer.name} has {count} readers"
        if reader.kind.kind != "elementwise":
            return f"{reader.name} is no epilogue of {writer.name}"
        if reader.name not in table.activations and reader.name != "add":
            return f"the library has no epilogue {reader.name}"
        taken = ", ".join(writer.attrs["epilogue"]) or "nothing yet"
        return f"{reader.name} does not fit the epilogue of {writer.name} ({taken})"
    answers = [fusion.fit(consumer, writer), fusion.fit(producer, reader)]
    reasons = [answer for answer in answers if isinstance(answer, str)]
    # That both are heroes says least: what stands between their elements says more.
    reasons.sort(key=lambda reason: "hero of its own" in reason or "another kernel" in reason)
    return reasons[0] if reasons else "another hero took it first"
