# SPDX-License-Identifier: Apache-2.0
"""uir-bang: iGraph to BANG C, for the cores and clusters of Cambricon MLU and for their host model.

lower       phases and the call of the printer, which is C++ (src/codegen/bang)
places      whether there is a device, and which targets of TVM stand for it and for its host model
toolchain   the vendor's compiler: source to code for a device
"""

from __future__ import annotations

from .lower import lower

__all__ = ["lower"]
