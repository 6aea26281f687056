# SPDX-License-Identifier: Apache-2.0
"""Why neighbours stayed two kernels, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from ..library.library_tables import LibraryTable
from .attention import AttentionDecision
from .fusion import Fusion
from .nodes import NotFused
from .op_kinds import FINDING, OPAQUE
from .operator_groups import OperatorGroup
from .operator_traffic import reads_of_kernel
from .program import Op, Value


@frozen(eq=False)
class NodeOperators:
    """The operators of one node: those of a group, or (``unmerged`` says why) one of them."""

    group: OperatorGroup
    ops: list[Op]
    unmerged: str = ""


def not_fused(
    parts: Sequence[NodeOperators],
    fusion: Fusion,
    table: LibraryTable,
    decisions: Sequence[AttentionDecision] = (),
) -> tuple[NotFused, ...]:
    """One entry for every pair of nodes of which one reads the other's result.

    Parameters
    ----------
    parts : sequence of NodeOperators
        One for each node, in the order of the nodes.
    decisions : sequence of AttentionDecision
        What was decided about the attentions of the program.
    """
    inside = {value: f"attention: {each.reason}" for each in decisions for value in each.values}
    place = {op: index for index, part in enumerate(parts) for op in part.ops}
    found: dict[tuple[int, int], NotFused] = {}
    for index, consumer in enumerate(parts):
        for op in consumer.ops:
            for view in op.operands:
                writer = view.base.producer
                if writer is None or place[writer] == index or (place[writer], index) in found:
                    continue
                producer = parts[place[writer]]
                tensors, saved = _cost(producer, consumer, fusion)
                found[place[writer], index] = NotFused(
                    writer.results[0].name,
                    op.results[0].name,
                    inside.get(view.base) or _reason(producer, consumer, writer, op, fusion, table),
                    place[writer],
                    index,
                    tuple(value.name for value in tensors),
                    saved,
                )
    return tuple(found.values())


def _cost(producer: NodeOperators, consumer: NodeOperators, fusion: Fusion) -> tuple[list[Value], int]:
    """What passes from one to the other, and the bytes of it that one kernel would not move."""
    written = [value for op in producer.ops for value in op.results]
    reads = reads_of_kernel(consumer.ops)
    passed = [value for value in written if value in reads]
    private = [value for value in passed if value not in fusion.outputs and _sole(value, consumer, fusion)]
    return passed, sum(reads[value] for value in passed) + sum(value.nbytes for value in private)


def _sole(value: Value, consumer: NodeOperators, fusion: Fusion) -> bool:
    """Whether nothing but these operators reads a value."""
    return all(reader in consumer.ops for reader, _ in fusion.users.get(value, []))


def _reason(
    producer: NodeOperators,
    consumer: NodeOperators,
    writer: Op,
    reader: Op,
    fusion: Fusion,
    table: LibraryTable,
) -> str:
    """The first thing that stands between two kernels."""
    if not fusion.enabled:
        return "every operator was asked to be a kernel of its own"
    if producer.group is consumer.group:
        return f"they could not be merged: {consumer.unmerged}"
    if {OPAQUE, FINDING} & {writer.name, reader.name}:
        return "PyTorch computes one of them"
    if consumer.group.hero == "library":
        return f"{reader.name} reads its operands from memory: the library takes no prologue"
    if producer.group.hero == "library":
        count = fusion.counts.get(writer.results[0], 0)
        if count > 1:
            return f"the result of {writer.name} has {count} readers"
        if reader.kind.kind != "elementwise":
            return f"{reader.name} is no epilogue of {writer.name}"
        if reader.name not in table.activations and reader.name != "add":
            return f"the library has no epilogue {reader.name}"
        return _no_epilogue(writer, reader)
    answers = [fusion.obstacle(consumer.group, writer), fusion.obstacle(producer.group, reader)]
    obstacles = [answer for answer in answers if answer is not None]
    # That both are heroes says least: what stands between their elements says more.
    telling = min(obstacles, key=lambda each: each.of_groups, default=None)
    return "another hero took it first" if telling is None else telling.reason


def _no_epilogue(writer: Op, reader: Op) -> str:
    """Why an operator that the library knows as an epilogue is none here."""
    others = [view for view in reader.operands if view.base is not writer.results[0]]
    if any(view.layout.broadcasts() for view in others):
        return (
            f"{reader.name} repeats its other operand along more than one axis: that is neither a bias nor a "
            f"residual of {writer.name}"
        )
    taken = ", ".join(writer.attrs["epilogue"]) or "nothing yet"
    return f"{reader.name} does not fit the epilogue of {writer.name} ({taken})"
