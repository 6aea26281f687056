# SPDX-License-Identifier: Apache-2.0
"""Transcendental functions as TIR expressions that vectorise.

TVM lowers ``tirx.exp`` and its like to calls of the C library, one per element. The functions here are
built of additions, multiplications, fused multiply-adds, selections and integer operations instead, so that
inside a vectorised loop, or on a vector itself, they stay in vector registers. `docs/numerics.md` states
their errors; ``python -m uir_tvm.target.cpu.vector_math`` measures them.
"""

from .functions import MATH, OF_NEGATIVE, emit
from .ops import avx512, bind_in_cells, binding, const_like

__all__ = ["MATH", "OF_NEGATIVE", "avx512", "bind_in_cells", "binding", "const_like", "emit"]
