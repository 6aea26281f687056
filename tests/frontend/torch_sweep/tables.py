# SPDX-License-Identifier: Apache-2.0
"""All tables of the sweep, and which of their calls the suite makes at every run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import elementwise, movement, neural, reductions
from .calls import Call, check_names

TABLES: dict[str, Callable[[], Iterator[Call]]] = {
    "elementwise": elementwise.table,
    "reductions": reductions.table,
    "movement": movement.table,
    "neural": neural.table,
}


_EDGES, _PAIR, _CUBE = "f32[35]:edges", "f32[35]:edges f32[35]:edges.s", "f32[3,5,4]"
_IMAGE, _RESIZED = "f32[2,4,9,10]", "f32[2,3,10,12]"
#: Function -> the inputs with which the suite calls it at every run: of each class of fault one or more.
FAST: dict[str, str] = {
    **dict.fromkeys(("atanh", "expm1", "log1p", "selu", "signbit", "exp2", "sign"), _EDGES),
    **dict.fromkeys(("F.celu", "F.elu", "F.softshrink", "clamp", "erfc"), _EDGES),
    **dict.fromkeys(("add alpha", "sub alpha", "rsub alpha", "copysign", "fmax", "fmin"), _PAIR),
    **dict.fromkeys(("remainder", "fmod", "div trunc"), "i32[12]:edges i32[12]:pos"),
    "acos": "i32[12]:edges",
    "isinf": "bool[5]",
    "add": "f16[3] f32[3]",
    "mul": "f64[] f32[3]",
    "pow": "i64[6] i64[6]:idx5",
    "floor_divide": "i64[12]:edges i64[12]:neg",
    **dict.fromkeys(("amax 1", "min 1", "argmin 1"), "f32[3,5,4]:nan"),
    **dict.fromkeys(("argmax 1", "max 1"), "f32[3,5,4]:ninf"),
    **dict.fromkeys(("mean 1", "sum 1", "var 1", "std 1", "norm", "softmax"), "f16[2,2000,1]:pos"),
    **dict.fromkeys(("any 1", "all 1"), "u8[3,5,4]"),
    "sum": "f32[3,0,4]",
    "mean": "f32[3,0,4]",
    "prod 1": "bool[3,5,4]",
    **dict.fromkeys(("logsumexp", "vector_norm 0", "bucketize", "cummax"), _CUBE),
    "isin": "i64[9]",
    **dict.fromkeys(("avg_pool2d divisor", "avg_pool2d ceil padded", "max_pool2d indices"), _IMAGE),
    **dict.fromkeys(("adaptive_max_pool2d indices", "group_norm alone"), _IMAGE),
    **dict.fromkeys(("nearest to 13,17", "bilinear by 1.7", "bilinear antialias", "bicubic"), _RESIZED),
    "layer_norm two axes": "f32[4,3,5]",
    "index split": "f32[3,5,4] i64[4]:idx3 i64[4]:idx4",
    "cat": "f32[2,0] f32[2,3]",
    "any": "f32[3,0,4]",
    "as_strided": "f32[3,5,4]",
    "clamp max": "u8[6]",
    "clamp tensors": "f32[3,1,4] f32[5,1]",
    "conv1d long": "f16[1,200,20] f16[4,200,9] f16[4]",
    "conv2d": "f64[2,4,9,10] f64[6,4,3,3] f64[6]",
    "conv_transpose3d": "f32[1,2,5,6,7] f32[2,3,2,2,2]",
    "diagonal_scatter below": "f32[3,5,4] f32[5,3]",
    "embedding_bag max": "f32[7,3] i64[8]:idx7",
    "F.gelu": "f16[35]:edges",
    "floor_divide -3": "u8[5]",
    "hypot": "f32[35]:edges f32[35]:edges.s",
    "index_reduce amax": "f32[3,5]:nan i64[7]:idx5 f32[3,7]:mixed",
    "ldexp": "f32[9] i32[9]",
    "mask put row": "f32[5,3] bool[5] f32[3]",
    "max_pool2d": "f32[2,4,9,10]:ninf",
    "nanmedian 1": "f32[3,12]:mixed",
    "neg": "u8[6]",
    "pow 0.5": "f16[35]:edges",
    "rsub 2.5": "u8[5]",
    "scalar floordiv": "f32[5]",
    "scatter part": "f32[3,4,5,6] i64[2,3,4,5]:idx1 f32[3,4,5,6]",
    "scatter_add of views": "f32[3,5] i64[3,5]:idx3 f32[3,5]",
    "sort of small": "bf16[3,12,4]:mixed",
    "topk of small": "i8[3,5]",
    "unfold 0": "f32[3,5,4]",
    "cross_entropy": "f32[4,5] i64[4]:idx5",
}


def table(name: str | None = None, *, fast: bool = False) -> list[Call]:
    """The calls of one table, or of all."""
    chosen = [name] if name else list(TABLES)
    rows = check_names(call for key in chosen for call in TABLES[key]())
    return (
        [call for call in rows if call.name.partition(" (")[2][:-1] == FAST.get(call.name.partition(" (")[0])]
        if fast
        else rows
    )
