# SPDX-License-Identifier: Apache-2.0
"""Equal kernels share one function."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx
from tvm_ffi import structural_equal, structural_hash
from tvm_ffi.structural import structural_walk

from ..sizes.size_space import SizeSpace, open_sizes
from .merge import Kernel, merge, signature

NAME_LENGTH = 48


class KernelTable:
    """The distinct functions of a graph.

    Groups with equal signatures are merged once; functions that come out structurally equal for different
    signatures (a reshape more or less) are found by hash and comparison. Functions along different open sizes
    are one where these have the same range, and no condition tells one from the other.
    """

    def __init__(self) -> None:
        self._by_signature: dict[str, tuple[str, tirx.PrimFunc]] = {}
        self._by_hash: dict[tuple[int, Any], list[tuple[str, tirx.PrimFunc, tirx.PrimFunc]]] = {}
        self._names: dict[str, int] = {}

    def function(self, kernel: Kernel) -> tuple[str, tirx.PrimFunc]:
        """Name and function of a kernel.

        Raises
        ------
        Exception
            What `merge.merge` raises.
        """
        key = signature(kernel)
        if key not in self._by_signature:
            self._by_signature[key] = self._shared(kernel)
        return self._by_signature[key]

    def _shared(self, kernel: Kernel) -> tuple[str, tirx.PrimFunc]:
        name = kernel.group.name[:NAME_LENGTH].rstrip("_")
        count = self._names.get(name, 0)
        unique = f"{name}_{count}" if count else name
        function = merge(kernel, unique)
        anonymous = function.without_attr("global_symbol").without_attr("uir.ops")
        key = structural_hash(anonymous), sizes_of(function, open_sizes() if kernel.is_open else None)
        candidates = self._by_hash.setdefault(key, [])
        for known, existing, body in candidates:
            if structural_equal(body, anonymous):
                return known, existing
        self._names[name] = count + 1
        candidates.append((unique, function, anonymous))
        return unique, function


def sizes_of(function: tirx.PrimFunc, space: SizeSpace | None) -> tuple[Any, ...]:
    """What is known of the open sizes of a function, in the order in which it names them.

    Parameters
    ----------
    function : tvm.tirx.PrimFunc
    space : SizeSpace, optional
        Of its sizes; None where all are numbers.

    Returns
    -------
    tuple
        Of every size its range, and the conditions on it.
    """
    if space is None:
        return ()
    names = {str(variable.name): name for name, variable in space.variables.items()}
    used: dict[str, None] = {}

    def meet(variable: Any) -> None:
        if str(variable.name) in names:
            used.setdefault(names[str(variable.name)])

    for param in function.params:
        for size in param.shape if tirx.is_buffer_var(param) else [param]:
            structural_walk(size, (tvm.ir.Var, meet))
    structural_walk(function.body, (tvm.ir.Var, meet))
    return tuple(
        (
            space.range_of(name),
            tuple(str(each) for each in space.conditions if name in space.names_in(each.size)),
        )
        for name in used
    )
