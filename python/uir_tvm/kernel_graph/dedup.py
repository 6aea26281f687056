# SPDX-License-Identifier: Apache-2.0
"""Equal kernels share one function."""

from __future__ import annotations

from tvm import tirx
from tvm_ffi import structural_equal, structural_hash

from .merge import Kernel, merge, signature

NAME_LENGTH = 48


class KernelTable:
    """The distinct functions of a graph.

    Groups with equal signatures are merged once; functions that come out structurally equal for different
    signatures (a reshape more or less) are found by hash and comparison.
    """

    def __init__(self) -> None:
        self._by_signature: dict[str, tuple[str, tirx.PrimFunc]] = {}
        self._by_hash: dict[int, list[tuple[str, tirx.PrimFunc, tirx.PrimFunc]]] = {}
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
        candidates = self._by_hash.setdefault(structural_hash(anonymous), [])
        for known, existing, body in candidates:
            if structural_equal(body, anonymous):
                return known, existing
        self._names[name] = count + 1
        candidates.append((unique, function, anonymous))
        return unique, function
