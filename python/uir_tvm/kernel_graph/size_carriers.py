# SPDX-License-Identifier: Apache-2.0
"""Inputs that a kernel is given for their shapes alone: a call learns its sizes from dimensions of buffers.

Before, of keys of which the first ``m`` are valid, where no buffer has ``m`` as a dimension::

    f(query: (4, n, 8), kept: (98, 8), m)

After, where the model has an input of as many elements::

    f(query: (4, n, 8), kept: (98, 8), valid: (m,))     # valid is not read
"""

from __future__ import annotations

import attrs
from tvm import tirx

from ..sizes.open_size import expressions
from ..sizes.size_space import open_sizes
from .merge import Kernel, KernelBuffer, unsaid_sizes
from .program import Program, Value


def with_carriers(kernel: Kernel, function: tirx.PrimFunc, program: Program) -> Kernel:
    """The kernel with inputs of the program that have its sizes as dimensions.

    Parameters
    ----------
    kernel : Kernel
    function : tvm.tirx.PrimFunc
        What `merge.merge` made of it.
    program : Program
        Its inputs are there wherever the kernel is called.

    Returns
    -------
    Kernel
        The same where buffers say all sizes already, or no input says one of them.
    """
    space = open_sizes()
    missing = [str(variable.name) for variable in unsaid_sizes(function)]
    if space is None or not missing:
        return kernel
    state = {each.value for each in program.state}
    given = [value for value in program.inputs if value not in state]
    found: dict[Value, None] = {}
    for name in missing:
        carriers = [value for value in given if name in map(str, expressions(value.shape))]
        if not carriers:
            return kernel
        found[min(carriers, key=lambda value: len(value.shape))] = None
    known = {buffer.value for buffer in kernel.inputs}
    more = [KernelBuffer(value, value.shape) for value in found if value not in known]
    return attrs.evolve(kernel, inputs=[*kernel.inputs, *more])
