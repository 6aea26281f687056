# SPDX-License-Identifier: Apache-2.0
"""Library operators on Ascend devices: aclnn, and on the host model of one the CPU's library.

Registered functions, destination-passing, with the signatures of `uir_tvm.library.cpu`::

    uir.library.ascend.matmul(a, b, [bias], [residual], attrs_json, out)
    uir.library.ascend.conv2d(x, w, [bias], attrs_json, out)

`uir_tvm.export.ascend` prints the calls of aclnn that the same attributes mean.
"""

from __future__ import annotations

from .cpu import locate

__all__ = ["CONV2D", "MATMUL", "locate"]

#: Names of the registered operators.
MATMUL, CONV2D = "uir.library.ascend.matmul", "uir.library.ascend.conv2d"
