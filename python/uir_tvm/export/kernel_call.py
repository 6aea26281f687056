# SPDX-License-Identifier: Apache-2.0
"""A kernel's launches in a project's program: on which buffers, of how many blocks, with which sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..sizes.symbolic_shapes import Size, in_terms_of
from .device_program import WORKING, Buffer, KernelStep
from .open_sizes import OpenSizes


class KernelLaunches:
    """The launches of a kernel on some tensors.

    Parameters
    ----------
    code : mapping
        What is kept of the kernel (`DeviceKernel.described`).
    operands : sequence of str
        Buffers of its parameters, in its order.
    buffers : dict of str to Buffer
        Of the program; what the launches hand over is added.
    sizes : OpenSizes
        Of the program.
    values : mapping of str to int or str
        What the kernel's own sizes are in terms of these.
    """

    def __init__(
        self,
        code: Mapping[str, Any],
        operands: Sequence[str],
        buffers: dict[str, Buffer],
        sizes: OpenSizes,
        values: Mapping[str, Size],
    ) -> None:
        self._code, self._buffers, self._values = code, buffers, values
        params = [row["name"] for row in code["params"]]
        assert len(params) == len(operands), (params, operands)
        self._names = dict(zip(params, operands, strict=True))
        #: The sizes of the program, with the conditions of this kernel.
        self.open = sizes.meeting(code.get("sizes", ()), self._values)

    def steps(self, prefix: str, sometimes: bool = False) -> tuple[KernelStep, ...]:
        """The launches; names of what they hand over begin with the prefix.

        Parameters
        ----------
        prefix : str
        sometimes : bool
            Whether they run at some sizes alone: at others what they hand over has no size of theirs.
        """
        for row in self._code["workspace"]:
            shape = tuple(in_terms_of(dim, self._values) for dim in row.get("dims", ()))
            if sometimes:
                shape = tuple(dim if isinstance(dim, int) else f"max(0, {dim})" for dim in shape)
            shape = (*shape, row["item_bytes"]) if shape else (int(row["bytes"]),)
            name = self._names[row["name"]] = prefix + row["name"]
            self._buffers[name] = Buffer(name, "uint8", shape, self.open.nbytes(shape, "uint8"), WORKING)
        return tuple(
            KernelStep(
                row["name"],
                int(row["grid"]),
                tuple(self._names[param] for param in row["params"]),
                in_terms_of(row["groups"], self._values) if "groups" in row else "",
                tuple(self._values[size["name"]] for size in self._code.get("sizes", ())),
            )
            for row in self._code["launches"]
        )
