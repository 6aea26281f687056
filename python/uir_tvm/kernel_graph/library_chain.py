# SPDX-License-Identifier: Apache-2.0
"""Convolutions that follow each other as one call of the library, which keeps what lies between on chip.

A window for each channel takes few products for what it reads and writes.  Where the image before it or
behind it is wide, moving that takes the time; a call that has the convolutions beside it makes some rows of
it at a time (docs/library-operators.md, "Chains of convolutions").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve

from ..library.attrs import Conv2dAttrs
from ..library.chain_attrs import Conv2dChainAttrs, by_channel, of_pixels
from ..library.library_tables import ChainLimits, LibraryTable
from ..library.reference import activation_name
from ..sizes.open_arithmetic import is_open
from .channels_last import CONVOLUTION, TO_FIRST
from .choices import DEFAULT
from .library_call import conv2d_attrs, dense_bias, packed_weight
from .library_match import dense, operand
from .op_kinds import LIBRARY_CHAIN
from .program import Op, Program, Value, View
from .strided_views import Layout

#: How convolutions of pixels are computed in a chain.
TILES = "tiles"
#: Element type of all of a chain.
DTYPE = "float32"


def chain_convolutions(program: Program, table: LibraryTable) -> None:
    """Make one operator of a window for each channel and the convolutions of pixels beside it.

    Before: y = conv2d(x, w0); z = conv2d(y, w1) by channel; out = conv2d(z, w2) + x.  After: out =
    library.conv2d_chain(x, w0, w1, w2, x), whose attribute ``parts`` are the three.

    Parameters
    ----------
    program : Program
        Changed in place; after `channels_last.keep_channels_last`.
    table : LibraryTable
        Its ``chains`` says which.
    """
    limits = table.chains
    if limits is None or not table.packs:
        return
    users, outputs = program.users(), program.output_bases()

    def sole_reader(value: Value) -> Op | None:
        """The convolution that alone reads a value, as images."""
        readers = users.get(value, ())
        if len(readers) != 1 or value in outputs or value.memory is not None:
            return None
        ((reader, position),) = readers
        return reader if position == 0 and _is_part(reader, limits) else None

    for op in [op for op in program.ops if _is_part(op, limits) and by_channel(conv2d_attrs(op))]:
        if op.result.shape[-1] % limits.channels:
            continue
        parts, between = [op], 0
        before = op.operands[0].base.producer
        if before is not None and _is_of_pixels(before, limits) and sole_reader(before.result) is op:
            parts.insert(0, before)
            between = before.result.nbytes
        behind = sole_reader(op.result)
        if behind is not None and _is_of_pixels(behind, limits) and operand(op, "residual") is None:
            parts.append(behind)
            between = max(between, op.result.nbytes)
        if between >= limits.min_bytes:
            _join(program, parts)
    program.sort()


def _is_part(op: Op, limits: ChainLimits) -> bool:
    """Whether a convolution lies and computes as those of a chain do."""
    if op.name != CONVOLUTION or op.attrs.get("option", DEFAULT) != DEFAULT:
        return False
    (data, weight), layouts = op.operands[:2], ("input_layout", "output_layout")
    shapes = (*data.shape, *op.shape)
    if is_open(shapes) or any(op.attrs["conv"].get(name) != "NHWC" for name in layouts):
        return False
    if weight.base.constant is None or {data.base.dtype, op.result.dtype} != {DTYPE}:
        return False
    if activation_name(conv2d_attrs(op).activation) not in limits.activations:
        return False
    n, c, h, w = data.shape
    image = Layout.contiguous((n, h, w, c)).permute(TO_FIRST)
    return data.base.size == n * c * h * w and data.layout == image


def _is_of_pixels(op: Op, limits: ChainLimits) -> bool:
    return _is_part(op, limits) and of_pixels(conv2d_attrs(op))


def _join(program: Program, parts: Sequence[Op]) -> None:
    """One operator in the place of several."""
    operands: list[View] = [parts[0].operands[0]]
    for part in parts:
        operands += part.operands[1:]  # weight, bias, and a residual of the last
    steps = [step for part in parts for step in (part.name, *part.attrs["epilogue"])]
    last = parts[-1]
    made = Op(LIBRARY_CHAIN, None, operands, last.results, {"parts": tuple(parts), "epilogue": tuple(steps)})
    program.ops[program.ops.index(last)] = made
    for part in parts[:-1]:
        program.ops.remove(part)
    last.result.producer = made


def chain_call(program: Program, op: Op, table: LibraryTable) -> tuple[str, Conv2dChainAttrs, list[Value]]:
    """What the library is called with, as `library_call.library_call` says it."""
    parts: list[Conv2dAttrs] = []
    operands: list[Value] = [op.operands[0].base]
    for part in op.attrs["parts"]:
        attributes: Any = conv2d_attrs(part)
        if by_channel(attributes):
            windows = dense(part.operands[1], 4)[:, 0].transpose(1, 2, 0)
            weight = program.constant(np.ascontiguousarray(windows), "weight")
        else:
            attributes, weight = packed_weight(program, part.operands[1], evolve(attributes, plan=TILES))
        operands.append(weight)
        if operand(part, "bias") is not None:
            operands.append(dense_bias(program, part))
        residual = operand(part, "residual")
        if residual is not None:
            operands.append(residual.base)
        parts.append(attributes)
    return table.functions["conv2d_chain"], Conv2dChainAttrs(parts=parts), operands
