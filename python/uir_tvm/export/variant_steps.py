# SPDX-License-Identifier: Apache-2.0
"""What a project's program launches in a kernel's place where a variant of it is for the sizes of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..runtime.model_info import KernelInfo
from ..sizes.saved_sizes import holds
from ..sizes.symbolic_shapes import Size, symbols_of
from .device_program import Buffer, KernelStep, VariantSteps
from .kernel_call import KernelLaunches
from .open_sizes import named_values


def launches(
    kernel: KernelInfo,
    operands: Sequence[str],
    buffers: dict[str, Buffer],
    call: KernelLaunches,
    prefix: str,
) -> tuple[tuple[KernelStep, ...], tuple[VariantSteps, ...]]:
    """The launches of a kernel, and those of its variants in the order in which a run asks for them.

    Parameters
    ----------
    kernel : KernelInfo
    operands : sequence of str
        Buffers that the kernel is called with.
    buffers : dict of str to Buffer
        Of the program; what launches hand over is added.
    call : KernelLaunches
        Of the kernel itself.
    prefix : str
        Of the names of what launches hand over.

    Raises
    ------
    ExportError
        No dimension says what a size of a variant is.
    """
    shapes = [buffers[name].shape for name in operands]
    found: list[VariantSteps] = []
    for row in kernel.variants:
        if "code" not in row:  # the device does not take it: the kernel itself serves its sizes
            continue
        ranges, code = row["ranges"], row["code"]
        values = named_values([each["name"] for each in ranges], kernel.code, shapes)
        texts = [text for each in ranges for text in taken_texts(values[each["name"]], each)]
        if not all(symbols_of(text) or holds(text, {}) for text in texts):
            continue
        own = named_values([size["name"] for size in code.get("sizes", ())], kernel.code, shapes)
        made = KernelLaunches(code, operands, buffers, call.open, own)
        steps = made.steps(f"{prefix}{len(found)}_", sometimes=True)
        conditions = tuple(text for text in texts if symbols_of(text))
        if not conditions:
            return steps, tuple(found)
        found.append(VariantSteps(conditions, steps))
    return call.steps(prefix), tuple(found)


def taken_texts(value: Size, size: Mapping[str, Any]) -> list[str]:
    """When a size of a launch lies in the range of a variant (``low``, ``high``, ``multiple_of``)."""
    whole = value if isinstance(value, int) or value.isidentifier() else f"({value})"
    if size["low"] == size["high"]:
        return [f"{value} == {size['low']}"]
    least = f"{size['low']} <= " if size["low"] > 0 else ""
    divided = [f"{whole} % {size['multiple_of']} == 0"] if size["multiple_of"] > 1 else []
    return [f"{least}{value} <= {size['high']}", *divided]
