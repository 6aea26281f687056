# SPDX-License-Identifier: Apache-2.0
"""Whether a program of PyTorch means the same where a size that it leaves open is 1.

PyTorch reads programs for sizes of at least 2, and takes operators apart by rules for those. Of the operators
here the rules for 1 are the same; others may drop an axis of 1, or divide by what is 0 then.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from .torch_graph import ASSERTIONS, target_name

#: Operators by element.
ELEMENTWISE = (
    "__and__ __or__ __xor__ abs add addcdiv addcmul bitwise_and bitwise_not bitwise_or ceil celu clamp "
    "clamp_max clamp_min clone contiguous copy cos detach detach_ div dropout elu eq erf erfc exp exp2 "
    "expm1 floor floor_divide fmod ge gelu gt hardsigmoid hardswish hardtanh isfinite isinf isnan le "
    "leaky_relu lift_fresh_copy log log1p log2 logical_and logical_not logical_or logical_xor logit lt "
    "masked_fill maximum minimum mish mul ne neg nan_to_num pow prelu reciprocal relu relu6 remainder "
    "round rsqrt rsub selu sigmoid sign silu sin sinh softplus sqrt square sub tan tanh to _to_copy "
    "trunc type_as where"
).split()
#: What moves elements, and makes tensors.
VIEWS = (
    "alias cat chunk expand expand_as flatten flip narrow permute repeat reshape select slice split "
    "split_with_sizes stack t transpose unbind unflatten unsqueeze _unsafe_view view arange empty "
    "empty_like full full_like new_full new_ones new_zeros ones ones_like zeros zeros_like tril triu "
    "embedding gather index index_copy index_copy_ index_select"
).split()
#: Contractions, reductions and layers.
LAYERS = (
    "adaptive_avg_pool2d addmm all amax amin any argmax argmin avg_pool2d baddbmm batch_norm bmm conv1d "
    "conv2d conv3d convolution cumprod cumsum group_norm gru layer_norm linalg_vector_norm linear "
    "log_softmax logsumexp lstm matmul max max_pool2d mean min mm native_layer_norm prod rms_norm "
    "rnn_relu rnn_tanh "
    "scaled_dot_product_attention softmax _softmax _log_softmax sum _native_batch_norm_legit_no_training"
).split()
#: On sizes, and what is no operator.
OTHERS = "add ceil floordiv floor ge getitem gt le lt mod mul neg sub sym_max sym_min sym_size".split()
SAME = frozenset([*ELEMENTWISE, *VIEWS, *LAYERS, *OTHERS])
#: Take axes away that are of size 1.
SQUEEZES = ("squeeze",)


def same_at_one(program: ExportedProgram, converters: Collection[str]) -> bool:
    """Whether every operator that sees an open size is one that does not ask whether it is 1.

    Parameters
    ----------
    program : ExportedProgram
    converters : collection of str
        Operators of the user's own, of which nothing is known.
    """
    calls = (node for node in program.graph.nodes if node.op == "call_function")
    return not converters and all(_is_same(node) for node in calls if _sees_open(node))


def _is_same(node: fx.Node) -> bool:
    full = target_name(node)
    name = full.partition(".")[0]
    if name in SQUEEZES:
        source = node.args[0]
        sizes = _sizes(source)
        axes = node.args[1] if len(node.args) > 1 else range(len(sizes))
        chosen = [axes] if isinstance(axes, int) else list(axes)  # type: ignore[arg-type]
        return all(isinstance(sizes[axis], int) for axis in chosen)
    return name in SAME or full in ASSERTIONS or name.startswith("_assert")


def _sees_open(node: fx.Node) -> bool:
    """Whether an operand or a result has an open size, or is one."""
    return any(not isinstance(size, int) for each in (node, *node.all_input_nodes) for size in _sizes(each))


def _sizes(node: Any) -> tuple[Any, ...]:
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    if isinstance(value, torch.Tensor):
        return tuple(value.shape)
    if isinstance(value, tuple | list):
        return tuple(size for each in value if isinstance(each, torch.Tensor) for size in each.shape)
    return (value,) if isinstance(value, torch.SymInt) else ()
