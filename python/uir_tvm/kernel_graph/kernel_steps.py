# SPDX-License-Identifier: Apache-2.0
"""A kernel with open sizes as functions for numbers: one, or one for each operator that it has."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import attrs
import tvm

from ..errors import UnsupportedOperatorError, is_own_fault, last_line
from ..one_at_a_time import one_at_a_time
from ..sizes.size_space import SizeSpace
from .grouped import kernel_in_numbers
from .legalize import lowering_for
from .merge import Kernel, interface, merge
from .operator_groups import singleton
from .program import Value

log = logging.getLogger(__name__)


@attrs.frozen(eq=False)
class KernelPart:
    """A function, and the tensors that it is called with.

    Attributes
    ----------
    name : str
    function : tvm.tirx.PrimFunc
        Not scheduled; inputs, then outputs.
    tensors : tuple of (int, tuple of int or None)
        Places among the kernel's inputs, its outputs and what steps make, in this order, and the shape in
        which the function sees the bytes; None: as they are.
    makes : tuple of (int, tuple of int, str)
        Place, shape and dtype of what only later steps read.
    """

    name: str
    function: tvm.tirx.PrimFunc
    tensors: tuple[tuple[int, tuple[int, ...] | None], ...]
    makes: tuple[tuple[int, tuple[int, ...], str], ...] = ()


@one_at_a_time
def kernels_at(
    kernel: Kernel, space: SizeSpace, sizes: Mapping[str, int], keys: Iterable[str], name: str
) -> list[KernelPart]:
    """The functions of a kernel for sizes that meet the space's conditions.

    Parameters
    ----------
    kernel : Kernel
        With open sizes.
    space : SizeSpace
    sizes : mapping of str to int
        A number for each symbol.
    keys : iterable of str
        The target's, as of `legalize.lowering_for`.
    name : str
        Of the function; of several, what their names start with.

    Raises
    ------
    UnsupportedOperatorError
        TVM cannot lower an operator.
    """
    given = kernel_in_numbers(kernel, space, sizes)
    with lowering_for(keys):
        try:
            function = merge(given, name)
        except Exception as error:  # TVM raises many types; every one of them means: not merged
            if isinstance(error, MemoryError) or (is_own_fault(error) and len(given.group.ops) == 1):
                raise
            log.info("kernel %s is not merged: %s", name, last_line(error), exc_info=error)
            return _apart(given, name)
    count = len(given.inputs) + len(given.outputs)
    return [KernelPart(name, function, tuple((place, None) for place in range(count)))]


def _apart(kernel: Kernel, name: str) -> list[KernelPart]:
    """A function for each operator."""
    values = [parameter.value for parameter in kernel.inputs] + kernel.outputs
    places: dict[Value, int] = {value: place for place, value in enumerate(values)}
    steps = []
    for index, op in enumerate(kernel.group.ops):
        part = interface(singleton(op), set(op.results))
        label = f"{name}_{index}"
        try:
            function = merge(part, label)
        except MemoryError:
            raise
        except Exception as error:  # TVM raises many types
            raise UnsupportedOperatorError(
                f"TVM cannot lower the operator {op.name}",
                where=last_line(error),
                remedy="express the model by other operators",
            ) from error
        makes = []
        for value in op.results:
            if value not in places:
                places[value] = len(places)
                makes.append((places[value], value.shape, value.dtype))
        read = [(places[parameter.value], parameter.shape) for parameter in part.inputs]
        steps.append(
            KernelPart(label, function, (*read, *((places[v], v.shape) for v in part.outputs)), tuple(makes))
        )
    return steps
