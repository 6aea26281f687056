# SPDX-License-Identifier: Apache-2.0
"""PyTorch operators in terms of simpler ones, applied to an exported program before its import."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table as core
from torch.export import ExportedProgram
from torch.export.decomp_utils import CustomDecompTable
from torch.fx.experimental.symbolic_shapes import guard_or_true

from ..errors import FrontendError, UirError, first_line
from .torch_arithmetic import ARITHMETIC, NARROW
from .torch_dispatch import prepared_once
from .torch_functions import FUNCTIONS
from .torch_graph import describe, empty_operators
from .torch_indexing import INDEXING
from .torch_late_code import late_code, with_code
from .torch_packed_weights import weight_operators
from .torch_pools import POOLS
from .torch_products import PRODUCTS
from .torch_recurrent import kept, of_any_length
from .torch_reductions import REDUCTIONS
from .torch_samples import decomposed_by_samples
from .torch_search import SEARCHES
from .torch_windows import WINDOWS
from .torch_writes import WRITES

aten = torch.ops.aten

# Taken apart by PyTorch itself: the importer's converters compute something else, or fail.
BORROWED = (aten.grid_sampler_2d.default, aten._native_batch_norm_legit_functional.default)
# Left whole, because the importer knows them and their parts would only hide what they are.
KEPT = (
    aten.layer_norm.default,
    aten.linear.default,
    aten.matmul.default,
    aten.max_pool2d.default,
    aten.max_pool3d.default,
    aten.silu.default,
)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key^T * scale + mask) @ value; rows whose keys are all masked give zeros.

    Source: the reference implementation in the documentation of
    ``torch.nn.functional.scaled_dot_product_attention``. The rows are found from the mask, which is small
    and often constant, where PyTorch looks for them in the scores.
    """
    if dropout_p:
        # A dropout that a later check refuses by name; its meaning here is the identity.
        query = aten.native_dropout.default(query, dropout_p, True)[0]
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        group = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(group, -3), value.repeat_interleave(group, -3)
    if is_causal:
        attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    score = torch.matmul(query * factor, key.transpose(-2, -1))
    if attn_mask is None:
        return _laid_out_as(query, torch.matmul(score.softmax(-1), value))
    seen = attn_mask
    if attn_mask.dtype == torch.bool:
        attn_mask = torch.where(seen, score.new_zeros(()), score.new_full((), -math.inf))
    else:
        seen = attn_mask != -math.inf
    weights = (score + attn_mask).softmax(-1)
    # Found by numbers that are finite: TVM's maximum of a row of -inf is the least finite number.
    weights = torch.where(any_dims(seen, -1, keepdim=True), weights, weights.new_zeros(()))
    return _laid_out_as(query, torch.matmul(weights, value))


def _laid_out_as(query: Tensor, result: Tensor) -> Tensor:
    """An attention's result in the memory order of its query, as PyTorch's kernels leave it.

    Where heads stand side by side, what follows may be a view of them. Imported, the copy is none.
    """
    if result.dim() != 4 or query.stride(1) >= query.stride(2):
        return result
    return result.transpose(1, 2).contiguous().transpose(1, 2)


def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """What AOTAutograd has of an attention on the CPU: the result, and log(sum(exp(scores))) in fp32."""
    result = attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    score = torch.matmul(query.float() * factor, key.float().transpose(-2, -1))
    if is_causal:
        seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        score = torch.where(seen, score, -math.inf)
    if attn_mask is not None:
        kept = attn_mask.dtype == torch.bool
        score = torch.where(attn_mask, score, -math.inf) if kept else score + attn_mask
    return result, torch.logsumexp(score, -1)


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Inference batch normalisation as x * scale + shift, whose factors are constants."""
    scale = torch.rsqrt(variance + eps)
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale
    if bias is not None:
        shift = shift + bias
    shape = [1, -1] + [1] * (x.dim() - 2)
    empty = x.new_empty((0,))
    return x * scale.reshape(shape) + shift.reshape(shape), empty, empty


def native_layer_norm(
    x: Tensor, shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Layer normalisation, with the mean and the reciprocal deviation that its gradient reads."""
    axes = list(range(x.dim() - len(shape), x.dim()))
    wide = x.float() if x.dtype in NARROW else x
    mean = wide.mean(axes, keepdim=True)
    variance = (wide - mean).square().mean(axes, keepdim=True)
    return aten.layer_norm.default(x, shape, weight, bias, eps), mean, torch.rsqrt(variance + eps)


def any_dims(x: Tensor, dim: int | list[int] | None = None, keepdim: bool = False) -> Tensor:
    """Logical or over axes, as the maximum of 0 and 1."""
    return _asked(torch.amax, x, dim, keepdim)


def all_dims(x: Tensor, dim: int | list[int] | None = None, keepdim: bool = False) -> Tensor:
    """Logical and over axes, as the minimum of 0 and 1."""
    return _asked(torch.amin, x, dim, keepdim)


def _asked(reduction: Callable[..., Tensor], x: Tensor, dim: int | list[int] | None, keepdim: bool) -> Tensor:
    axes = list(range(x.dim())) if dim is None or dim == [] else dim
    holds, largest = x if x.dtype == torch.bool else x != 0, reduction is torch.amax
    if guard_or_true(x.numel() == 0):
        # nothing, as what data decide may be, has no extreme, but a sum, which is 0: no element is true, and
        # none is false
        total = torch.sum(torch.where(holds, float(largest), float(not largest)), axes, keepdim)
        return _flag(total != 0 if largest else total == 0, x)
    flags = torch.where(holds, 1.0, 0.0)
    return _flag(reduction(flags, axes, keepdim) > 0, x)


def _flag(found: Tensor, x: Tensor) -> Tensor:
    """bool, but of uint8 its own dtype, as PyTorch has it."""
    return found.to(torch.uint8) if x.dtype == torch.uint8 else found


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.scaled_dot_product_attention.default: attention,
    aten._scaled_dot_product_flash_attention_for_cpu.default: flash_attention,
    aten._native_batch_norm_legit_no_training.default: batch_norm,
    aten.native_layer_norm.default: native_layer_norm,
    aten.any.default: any_dims,
    aten.any.dim: any_dims,
    aten.any.dims: any_dims,
    aten.all.default: all_dims,
    aten.all.dim: all_dims,
    aten.all.dims: all_dims,
    **ARITHMETIC,
    **FUNCTIONS,
    **INDEXING,
    **POOLS,
    **PRODUCTS,
    **REDUCTIONS,
    **SEARCHES,
    **WRITES,
}


def _resizes() -> list[Any]:
    """Interpolations and pools, which have converters: decompositions gather each neighbour by itself."""
    return [
        getattr(getattr(aten, name), overload)
        for name, _, overload in (key.partition(".") for key in WINDOWS)
        if overload in getattr(aten, name).overloads()
    ]


def decomposition_table(
    extra: Mapping[Any, Callable[..., Any]] | None = None, kept: Sequence[Any] = ()
) -> CustomDecompTable:
    """PyTorch's decompositions to core operators, without `KEPT` and ``kept``, with ours and a user's."""
    table = torch.export.default_decompositions()
    for operator in (*KEPT, *kept, *_resizes()):
        table.pop(operator, None)
    for operator in BORROWED:
        table[operator] = core[operator]
    for operator, decomposition in (DECOMPOSITIONS | dict(extra or {})).items():
        table[operator] = decomposition
    return table


def decomposed(program: ExportedProgram, in_torch: Mapping[Any, Callable[..., Any]]) -> ExportedProgram:
    """A program in terms of operators that have converters.

    Raises
    ------
    FrontendError
        PyTorch, or a user's function, fails on an operator.
    """
    try:
        layers = kept(program)
        whole = [*layers, *weight_operators(program), *empty_operators(program)]
        with warnings.catch_warnings(), of_any_length(layers):
            warnings.simplefilter("ignore", FutureWarning)  # raised inside PyTorch, about PyTorch

            def by_torch(given: ExportedProgram) -> ExportedProgram:
                with prepared_once():
                    return given.run_decompositions(decomposition_table(in_torch, whole))

            with late_code():
                made = decomposed_by_samples(program, by_torch)
            if made is not None:
                with_code(made.graph_module)
            return made or by_torch(program)  # which names inputs as its code does
    except UirError:
        raise
    except Exception as error:  # whatever PyTorch, or the function of an InTorch, raises
        raise FrontendError(
            f"PyTorch cannot take the program's operators apart: {first_line(error)}",
            where=_where(error, program),
            remedy="call run_decompositions() on the exported program and follow its message",
        ) from error


def _where(error: Exception, program: ExportedProgram) -> str:
    """The node at which PyTorch failed, of which it says a line; empty where it does not."""
    said = re.search(r"^While executing %(\w+)", str(error), re.MULTILINE)
    nodes = [node for node in program.graph.nodes if said is not None and node.name == said.group(1)]
    return describe(nodes[0]) if nodes else ""
