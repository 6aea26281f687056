# SPDX-License-Identifier: Apache-2.0
"""The versions of Cambricon's compiler for which texts are spelled apart."""

from __future__ import annotations

from ...toolkits import Toolkit

#: Checked in the vendor's public headers: see `uir_tvm.target.bang.apis`.
CNCC = Toolkit(
    option="cncc",
    target="uir-bang",
    name="cncc",
    what="Cambricon's compiler (its major version)",
    language="BANG C",
    needs={"3": "CNToolkit 3", "4": "CNToolkit 4.1 or later"},
    default="4",
    remedy="`cncc --version` names it; 4 comes with CNToolkit 4.1 and later, 3 with CNToolkit 3",
)
