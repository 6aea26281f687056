# SPDX-License-Identifier: Apache-2.0
"""uir-cuda: iGraph to CUDA C++, for GPUs of NVIDIA and for their host model.

lower       phases and the call of the printer, which is C++ (src/codegen/cuda)
place       whether there is a GPU, and which targets of TVM stand for it and for its host model
toolchain   nvcc or NVRTC: source to cubin
"""

from __future__ import annotations

from .lower import lower

__all__ = ["lower"]
