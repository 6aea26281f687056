# SPDX-License-Identifier: Apache-2.0
"""The versions of the CANN toolkit for which texts are spelled apart."""

from __future__ import annotations

from ...toolkits import Toolkit

#: Checked in the vendor's public headers: see `uir_tvm.target.ascend.apis`.
CANN = Toolkit(
    option="cann",
    target="uir-ascend",
    name="CANN",
    what="the CANN toolkit",
    language="Ascend C",
    needs={"8": "CANN 7.0 or later", "9.0": "CANN 9.0 or later", "9.1": "CANN 9.1 or later"},
    default="8",
    remedy="ascend_toolkit_install.info in the toolkit's folder names it; later ones build texts for 8 too",
)
