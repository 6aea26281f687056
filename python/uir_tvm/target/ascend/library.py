# SPDX-License-Identifier: Apache-2.0
"""Library operators on Ascend devices: aclnn, and on the host model of one the CPU's library.

Registered functions, destination-passing, with the signatures of `uir_tvm.library.cpu`::

    uir.library.ascend.matmul(a, b, [bias], [residual], attrs_json, out)
    uir.library.ascend.conv2d(x, w, [bias], attrs_json, out)
    uir.library.ascend.integer_matmul(a, b, scale, attrs_json, out)

`uir_tvm.target.ascend.project` prints the calls of aclnn that the same attributes mean.
"""

from __future__ import annotations

from ...hardware.library_costs import LibraryCost
from ...library.cpu import locate
from ...library.integer_matmul_attrs import IntegerMatmulLimits
from ...library.library_tables import AttentionLimits, LibraryTable
from . import costs

__all__ = ["CONV2D", "COST", "INTEGER_MATMUL", "MATMUL", "TABLE", "locate"]

#: Names of the registered operators.
MATMUL, CONV2D = "uir.library.ascend.matmul", "uir.library.ascend.conv2d"
INTEGER_MATMUL = "uir.library.ascend.integer_matmul"
#: aclnn. A product is aclnnMatmul, with one tensor to add aclnnAddmm or aclnnBaddbmm; aclnnConvolution takes
#: a bias. Factors and activations are left to the vector cores: a kernel that reads the result applies them
#: for nothing. Opposite sides pad alike: the order of four pads is not documented. Products of int8 into
#: int32 are aclnnQuantMatmulV4 (CANN 8), which wants a factor of the result: 1.
TABLE = LibraryTable(
    functions={"matmul": MATMUL, "conv2d": CONV2D, "integer_matmul": INTEGER_MATMUL},
    dtypes=frozenset({"float32", "float16", "bfloat16"}),
    activations={},
    attention=AttentionLimits(dtypes=frozenset({"float32", "float16", "bfloat16"}), max_head=256),
    epilogues=(("bias",), ("residual",)),
    packs=False,
    unit_stride=True,
    symmetric_padding=True,
    scales=False,
    refuses={"conv2d": frozenset({"residual"})},
    integer_matmul=IntegerMatmulLimits(scaled=True),
    rounds_not="its products with packed weights are kernels of ours, which unpack to float32",
    unpacks=frozenset({"float32", "float16", "bfloat16"}),
    place_major=True,
)

_LOAD, _STORE = costs.PIPES["MTE2"], costs.PIPES["MTE3"]
COST = LibraryCost(
    cores="aic_cores",
    operations={"float16": 8192, "bfloat16": 8192, "float32": 2048, "int8": 16384},
    start_cycles=costs.KERNEL_CYCLES + _LOAD.head + _STORE.head,
    start_cycles_per_core=_LOAD.head_per_block,
    arithmetic_share=0.8,
    memory_share=1.0,
    source="a cube core multiplies blocks of 16 x 16 x 32 bytes, one in a cycle, of fp32 in two cycles; "
    "start: what our kernels take before their first and last transfer (costs.py); shares: assumed, "
    "0.8 of the cube's rate and the whole bandwidth",
)
