# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements: views, joins, indexing, scattering; and those that make tensors."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from .calls import Call, Function

THREE = ("f32[3,5,4]", "i32[4,5,3].t", "bool[3,5,4]", "f16[3,5,4].s", "f32[3,0,4]")

VIEWS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "transpose": (lambda x: x.transpose(0, 2) + 0, THREE),
    "permute": (lambda x: x.permute(2, 0, 1).contiguous(), THREE),
    "reshape": (lambda x: x.reshape(-1, 2, x.shape[1]) if x.numel() else x.reshape(0, 7), THREE),
    "view of part": (lambda x: x[:, 1:4].reshape(-1), THREE[:2]),
    "flatten": (lambda x: x.flatten(1), THREE),
    "unflatten": (lambda x: x.unflatten(2, (2, 2)), THREE),
    "squeeze": (lambda x: x.squeeze(), ("f32[3,1,4,1]", "f32[1,1]")),
    "squeeze dims": (lambda x: x.squeeze((1, -1)), ("f32[3,1,4,1]",)),
    "unsqueeze": (lambda x: x.unsqueeze(-2), THREE),
    "expand": (lambda x: x.expand(2, 3, -1, 4) * 1, ("f32[5,1]", "f32[3,5,4]")),
    "broadcast_to": (lambda x: torch.broadcast_to(x, (2, 3, 4)) + 0, ("f32[4]", "f32[3,1]", "f32[]")),
    "repeat": (lambda x: x.repeat(2, 1, 3), ("f32[2,3]", "i64[3]", "f32[0,2]")),
    "tile": (lambda x: x.tile(2, 2), ("f32[2,3]",)),
    "repeat_interleave": (lambda x: x.repeat_interleave(3, 1), ("f32[2,3]",)),
    "repeat_interleave flat": (lambda x: x.repeat_interleave(2), ("f32[2,3]",)),
    "flip": (lambda x: x.flip(0, 2), THREE),
    "fliplr": (torch.fliplr, ("f32[2,3]",)),
    "flipud": (torch.flipud, ("f32[2,3]",)),
    "roll": (lambda x: x.roll((1, -2), (0, 1)), THREE),
    "roll flat": (lambda x: x.roll(5), THREE[:1]),
    "rot90": (lambda x: x.rot90(1, (0, 1)), THREE[:1]),
    "rot90 3": (lambda x: x.rot90(3, (1, 2)), THREE[:1]),
    "slice": (lambda x: x[1:, ::2, -3:-1] + 0, THREE[:4]),
    "slice beyond": (lambda x: x[:, 2:100] + 0, THREE[:1]),
    "slice to nothing": (lambda x: x[:, 4:2], THREE[:1]),
    "select": (lambda x: x[:, -2] + 0, THREE[:1]),
    "narrow": (lambda x: x.narrow(1, 1, 3) + 0, THREE[:1]),
    "narrow negative": (lambda x: x.narrow(1, -2, 2) + 0, THREE[:1]),
    "diagonal": (lambda x: x.diagonal(1, 0, 2) + 0, THREE[:4]),
    "diagonal below": (lambda x: torch.diagonal(x, -1) + 0, THREE[:1]),
    "diag of vector": (torch.diag, ("f32[4]",)),
    "diag of matrix": (lambda x: torch.diag(x, 1), ("f32[4,5]",)),
    "diag_embed": (lambda x: torch.diag_embed(x, 1), ("f32[2,3]",)),
    "diagflat": (torch.diagflat, ("f32[2,2]",)),
    "tril": (lambda x: x.tril(1), THREE[:4] + ("f32[4,4]:edges",)),
    "triu": (lambda x: x.triu(-1), THREE[:4] + ("f32[4,4]:edges",)),
    "unfold": (lambda x: x.unfold(1, 3, 2) + 0, THREE[:1]),
    "unfold 0": (lambda x: x.unfold(0, 2, 1).unfold(1, 2, 2) + 0, THREE[:2]),
    "as_strided": (lambda x: torch.as_strided(x, (3, 2), (4, 1), 1) + 0, THREE[:1]),
    "movedim": (lambda x: x.movedim(0, -1) + 0, THREE[:1]),
    "swapaxes": (lambda x: x.swapaxes(0, 1) + 0, THREE[:1]),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), ("f32[2,8,3,3]",)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), ("f32[2,2,4,6]",)),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 2), ("f32[2,4,3,3]",)),
    "chunk": (lambda x: x.chunk(3, 1), THREE[:4]),
    "split": (lambda x: x.split(2, 1), THREE[:1]),
    "split sizes": (lambda x: x.split([1, 4], 1), THREE[:1]),
    "tensor_split": (lambda x: x.tensor_split(3, 1), THREE[:1]),
    "unbind": (lambda x: x.unbind(1), THREE[:1]),
    "unsafe_chunk": (lambda x: torch.unsafe_chunk(x, 2, 1), THREE[:1]),
    "view as int": (lambda x: x.view(torch.int32), ("f32[3]",)),
    "atleast_3d": (torch.atleast_3d, ("f32[]", "f32[3]")),
    "ravel": (torch.ravel, THREE[:2]),
    "complex parts": (lambda x: torch.real(torch.complex(x, x)), ("f32[3]",)),
    "alias": (lambda x: x, ("f32[3]", "f32[0]")),
    "clone": (lambda x: x.clone(), ("f32[3]",)),
    "detach": (lambda x: x.detach(), ("f32[3]",)),
    "in place": (lambda x: x.clone().add_(1).mul_(2).clamp_(-1, 1), ("f32[9]",)),
    "written slice": (lambda x: _written(x), ("f32[4,5]",)),
    "filled row": (lambda x: _filled(x), ("f32[4,5]",)),
}


def _written(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[1:3, ::2] = x[:2, 1:4]
    return y


def _filled(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[2].fill_(7.0)
    y[:, 0] = 1
    return y


def _put_columns(x: torch.Tensor, mask: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, mask] = values
    return y


JOINS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "cat": (
        lambda *x: torch.cat(x, 1),
        (
            "f32[2,3] f32[2,1] f32[2,4]",
            "f32[2,3] f16[2,1]",
            "i32[2,3] f32[2,2]",
            "f32[2,0] f32[2,3]",
            "bool[2,1] i64[2,1]",
        ),
    ),
    "cat with legacy empty": (lambda x, y: torch.cat((x, y)), ("f32[0] f32[2,3]",)),
    "stack": (lambda *x: torch.stack(x, 1), ("f32[2,3] f32[2,3]", "f32[] f32[]")),
    "hstack": (lambda *x: torch.hstack(x), ("f32[2,3] f32[2,3]", "f32[2] f32[3]")),
    "vstack": (lambda *x: torch.vstack(x), ("f32[2,3] f32[3]",)),
    "dstack": (lambda *x: torch.dstack(x), ("f32[2,3] f32[2,3]",)),
    "column_stack": (lambda *x: torch.column_stack(x), ("f32[2] f32[2,3]",)),
    "block_diag": (lambda *x: torch.block_diag(*x), ("f32[2,3] f32[1,2]",)),
    "cartesian_prod": (lambda *x: torch.cartesian_prod(*x), ("f32[2] f32[3]",)),
    "meshgrid": (lambda *x: torch.meshgrid(*x, indexing="ij"), ("f32[2] f32[3]",)),
    "meshgrid xy": (lambda *x: torch.meshgrid(*x, indexing="xy"), ("f32[2] f32[3]",)),
    "combinations": (lambda x: torch.combinations(x), ("f32[4]",)),
    "slice_scatter": (lambda x, y: torch.slice_scatter(x, y, 1, 1, 5, 2), ("f32[3,6] f32[3,2]",)),
    "select_scatter": (lambda x, y: torch.select_scatter(x, y, 1, -2), ("f32[3,6] f32[3]",)),
    "diagonal_scatter below": (
        lambda x, y: torch.diagonal_scatter(x, y, -1, 2, 0),
        ("f32[3,5,4] f32[5,3]",),
    ),
    "diagonal_scatter": (lambda x, y: torch.diagonal_scatter(x, y), ("f32[3,4] f32[3]",)),
}

INDEXING: dict[str, tuple[Function, tuple[str, ...]]] = {
    "gather": (
        lambda x, i: x.gather(1, i),
        (
            "f32[3,5] i64[3,7]:idx5",
            "i32[3,5] i64[2,2]:idx5",
            "bool[3,5] i64[3,5]:idx5",
            "f16[3,5] i64[3,5]:idx5",
            "f32[] i64[]:idx1",
            "f32[3,5] i64[0,5]:idx5",
        ),
    ),
    "gather 0": (lambda x, i: x.gather(0, i), ("f32[3,5,2] i64[4,5,2]:idx3",)),
    "take_along_dim": (lambda x, i: torch.take_along_dim(x, i, 1), ("f32[3,5] i64[3,2]:idx5",)),
    "index_select": (
        lambda x, i: x.index_select(1, i),
        ("f32[3,5] i64[7]:idx5", "f32[3,5] i32[4]:idx5", "f32[3,5] i64[0]:idx5"),
    ),
    "take": (lambda x, i: x.take(i), ("f32[3,5] i64[2,3]:idx15", "f32[3,5] i64[4]:wrap15")),
    "index": (
        lambda x, i: x[i],
        ("f32[5,3] i64[4]:wrap5", "f32[5,3] i64[2,2]:idx5", "i32[5] i32[3]:idx5", "f32[5,3] i64[0]:idx5"),
    ),
    "index columns": (lambda x, i: x[:, i], ("f32[3,5] i64[4]:wrap5",)),
    "index both": (
        lambda x, i, j: x[i, j],
        ("f32[3,5] i64[4]:idx3 i64[4]:idx5", "f32[3,5,2] i64[4,1]:idx3 i64[3]:wrap5"),
    ),
    "index split": (lambda x, i, j: x[i, :, j], ("f32[3,5,4] i64[4]:idx3 i64[4]:idx4",)),
    "index with none": (lambda x, i: x[None, i, ..., None], ("f32[3,5] i64[4]:idx3",)),
    "index by mask": (lambda x: x[x > 0], ("f32[3,5]",)),
    "masked_select": (lambda x: x.masked_select(x > 0), ("f32[3,5]",)),
    "masked_scatter": (lambda x, m, s: x.masked_scatter(m, s), ("f32[3,5] bool[3,5] f32[15]",)),
    "embedding": (
        lambda w, i: F.embedding(i, w),
        ("f32[7,3] i64[2,4]:idx7", "f16[7,3] i32[4]:idx7", "f32[7,3] i64[0]:idx7"),
    ),
    "embedding padded": (lambda w, i: F.embedding(i, w, padding_idx=2), ("f32[7,3] i64[2,4]:idx7",)),
    **{
        f"embedding_bag {mode}": (
            lambda w, i, m=mode: F.embedding_bag(i, w, torch.tensor([0, 0, 3]), mode=m, padding_idx=2),
            ("f32[7,3] i64[8]:idx7", "f16[7,3] i64[8]:idx7"),
        )
        for mode in ("sum", "mean", "max")
    },
    "embedding_bag": (lambda w, i: F.embedding_bag(i, w, mode="mean"), ("f32[7,3] i64[2,4]:idx7",)),
    "one_hot": (lambda i: F.one_hot(i, 7), ("i64[2,4]:idx7", "i64[0]:idx7")),
    "scatter": (
        lambda x, i, s: x.scatter(1, i, s),
        (
            "f32[3,5] i64[3,5]:perm f32[3,5]",
            "i32[3,5] i64[2,5]:perm i32[3,5]",
            "f32[3,5] i64[0,5]:idx5 f32[3,5]",
        ),
    ),
    "scatter 0": (
        lambda x, i, s: x.scatter(0, i, s),
        ("f32[1,5] i64[1,5]:idx1 f32[1,5]", "f32[5] i64[5]:perm f32[5]"),
    ),
    "scatter value": (lambda x, i: x.scatter(1, i, 1.5), ("f32[3,5] i64[3,2]:idx5",)),
    "scatter add": (lambda x, i, s: x.scatter(1, i, s, reduce="add"), ("f32[3,5] i64[3,4]:idx5 f32[3,4]",)),
    "scatter multiply": (
        lambda x, i, s: x.scatter(1, i, s, reduce="multiply"),
        ("f32[3,5] i64[3,4]:idx5 f32[3,4]",),
    ),
    "scatter_add": (
        lambda x, i, s: x.scatter_add(1, i, s),
        (
            "f32[3,5] i64[3,7]:idx5 f32[3,7]",
            "i32[3,5] i64[2,4]:idx5 i32[3,7]",
            "f64[3,5] i64[3,7]:idx5 f64[3,7]",
            "f32[] i64[]:idx1 f32[]",
            "f32[3,5] i64[3,0]:idx5 f32[3,7]",
        ),
    ),
    "scatter part": (
        lambda x, i, s: x.scatter(1, i, s),
        ("f32[3,4,5,6] i64[2,3,4,5]:idx1 f32[3,4,5,6]", "f32[3,4,5,6] i64[2,1,3,5]:idx4 f32[3,4,5,6]"),
    ),
    "scatter_add part": (
        lambda x, i, s: x.scatter_add(2, i, s),
        ("f32[3,4,5,6] i64[2,3,4,5]:idx5 f32[3,4,5,6]",),
    ),
    "scatter_add of views": (
        lambda x, i, s: x.t().scatter_add(0, i.t(), s.t() * 2).reshape(-1) + 1,
        ("f32[3,5] i64[3,5]:idx3 f32[3,5]", "i32[3,5] i64[3,5]:idx3 i32[3,5]"),
    ),
    "scatter_add of flat views": (
        lambda x, i, s: x.reshape(-1).scatter_add(0, i.reshape(-1), s.reshape(-1)).reshape(3, 5),
        ("f32[3,5] i64[2,4]:idx15 f32[2,4]", "f16[3,5] i64[2,4]:idx15 f16[2,4]"),
    ),
    "scatter_reduce of mixed": (
        lambda x, i, s: x.scatter_reduce(0, i, s, "amax").scatter_reduce(0, i, s, "amin"),
        ("f32[3,5]:nan i64[7,5]:idx3 f32[7,5]:mixed", "i64[3,5] i64[7,5]:idx3 i64[7,5]"),
    ),
    "scatter_add 0": (
        lambda x, i, s: x.scatter_add(0, i, s),
        ("f32[3,5] i64[7,5]:idx3 f32[7,5]", "f32[3] i64[7]:idx3 f32[7]"),
    ),
    **{
        f"scatter_reduce {reduce}{'' if own else ' without self'}": (
            lambda x, i, s, r=reduce, o=own: x.scatter_reduce(1, i, s, r, include_self=o),
            (
                "f32[3,5] i64[3,7]:idx5 f32[3,7]",
                "i32[3,5] i64[3,7]:idx4 i32[3,7]",
                "f16[3,5] i64[3,7]:idx5 f16[3,7]",
                "f32[3,5]:nan i64[3,7]:idx5 f32[3,7]:mixed",
                "f32[3,5].t i64[3,7]:idx5 f32[3,7].s",
                "f32[3,5] i64[3,0]:idx5 f32[3,0]",
            ),
        )
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    },
    "index_add": (
        lambda x, i, s: x.index_add(1, i, s),
        ("f32[3,5] i64[7]:idx5 f32[3,7]", "i32[3,5] i64[7]:idx5 i32[3,7]"),
    ),
    "index_add alpha": (lambda x, i, s: x.index_add(0, i, s, alpha=2), ("f32[3,5] i64[7]:idx3 f32[7,5]",)),
    "index_copy": (lambda x, i, s: x.index_copy(1, i, s), ("f32[3,5] i64[5]:perm f32[3,5]",)),
    "index_fill": (
        lambda x, i: x.index_fill(1, i, -2.0),
        ("f32[3,5] i64[2]:idx5", "i32[3,5,2] i64[2]:idx5", "f16[5,3].t i64[2]:idx5", "f32[3,5] i64[0]:idx5"),
    ),
    **{
        f"index_reduce {reduce}": (
            lambda x, i, s, r=reduce: x.index_reduce(1, i, s, r, include_self=r != "mean"),
            ("f32[3,5] i64[7]:idx5 f32[3,7]", "f32[3,5]:nan i64[7]:idx5 f32[3,7]:mixed"),
        )
        for reduce in ("prod", "mean", "amax", "amin")
    },
    "index_put": (
        lambda x, i, s: x.index_put((i,), s),
        ("f32[5,3] i64[5]:perm f32[5,3]", "f32[5,3] i64[2]:idx5 f32[]"),
    ),
    "index_put pairs": (
        lambda x, i, j, s: x.index_put((i, j), s),
        ("f32[5,5] i64[5]:perm i64[5]:perm f32[5]",),
    ),
    "index_put accumulate": (
        lambda x, i, s: x.index_put((i,), s, accumulate=True),
        ("f32[5,3] i64[7]:idx5 f32[7,3]", "i32[5] i64[9]:wrap5 i32[9]", "f32[5,3] i64[7]:idx5 f32[3]"),
    ),
    "index_put accumulate pairs": (
        lambda x, i, j, s: x.index_put((i, j), s, accumulate=True),
        ("f32[5,3] i64[7]:idx5 i64[7]:idx3 f32[7]",),
    ),
    "index_put constant": (
        lambda x, s: x.index_put((torch.tensor([3, -1, 0]),), s),
        ("f32[5,3] f32[3,3]", "f16[5] f16[3]", "f32[5,3] f32[]"),
    ),
    "index_put constant accumulate": (
        lambda x, s: x.index_put((torch.tensor([3, -1, 3]),), s, accumulate=True),
        ("f32[5,3] f32[3,3]", "i32[5] i32[3]", "f32[5,3] f32[3]"),
    ),
    "index_put split": (
        lambda x, i, j, s: x.index_put((i, None, j), s),
        ("f32[5,3,5] i64[5]:perm i64[5]:perm f32[5,3]",),
    ),
    "index_put of view": (
        lambda x, i, s: x.t().index_put((i,), s.t()).t(),
        ("f32[3,5] i64[5]:perm f32[3,5]",),
    ),
    "mask put row": (
        lambda x, m, s: x.index_put((m,), s),
        ("f32[5,3] bool[5] f32[3]", "f32[5,3] bool[5,3] f32[1]", "f32[5,3] bool[5] f32[1,3]"),
    ),
    "mask put column": (lambda x, m, s: _put_columns(x, m, s), ("f32[3,5,2] bool[5] f32[2]",)),
    "mask put accumulate": (
        lambda x, m, s: x.index_put((m,), s, accumulate=True),
        ("f32[5,3] bool[5] f32[3]",),
    ),
    "put": (lambda x, i, s: x.put(i, s), ("f32[3,5] i64[15]:perm f32[15]",)),
    "assigned by mask": (lambda x, y: torch.where(x > 0, y, x), ("f32[3,5] f32[3,5]",)),
    "mask put": (lambda x: x.index_put((x > 0,), torch.tensor(9.0)), ("f32[3,5]",)),
}

CREATION: dict[str, tuple[Function, tuple[str, ...]]] = {
    "zeros_like": (torch.zeros_like, ("f32[3]", "bool[3]", "i64[0]")),
    "ones_like": (torch.ones_like, ("f32[3]", "bool[3]", "f16[3]")),
    "full_like": (lambda x: torch.full_like(x, 2.5), ("f32[3]", "f16[3]")),
    "full_like inf": (lambda x: torch.full_like(x, -torch.inf), ("f32[3]", "f16[3]")),
    "new_full": (lambda x: x.new_full((2, 2), 3), ("f32[3]", "i32[3]")),
    "new_zeros": (lambda x: x.new_zeros(2, 2), ("f32[3]", "bool[3]")),
    "arange": (lambda x: torch.arange(5) + x, ("f32[5]", "i64[5]")),
    "arange step": (lambda x: torch.arange(1.0, 3.5, 0.5) + x, ("f32[5]",)),
    "linspace": (lambda x: torch.linspace(-1, 2, 5) + x, ("f32[5]",)),
    "logspace": (lambda x: torch.logspace(-1, 2, 5) + x, ("f32[5]",)),
    "eye": (lambda x: torch.eye(3, 4) + x, ("f32[4]",)),
    "tri indices": (lambda x: torch.tril_indices(3, 4) + x, ("i64[1]",)),
    "hann_window": (lambda x: torch.hann_window(5) + x, ("f32[5]",)),
    "hamming_window": (lambda x: torch.hamming_window(5) + x, ("f32[5]",)),
    "vander": (lambda x: torch.vander(x, 3), ("f32[5]",)),
    "tensor": (lambda x: torch.tensor([1.5, 2.5]) * x, ("f32[2]",)),
    "scalar_tensor": (lambda x: x * torch.scalar_tensor(2.0), ("f32[2]", "f16[2]")),
    "polar": (lambda x: torch.view_as_real(torch.polar(x.abs(), x)), ("f32[2]",)),
}


def table() -> Iterator[Call]:
    """Every function with each of its inputs."""
    for family in (VIEWS, JOINS, INDEXING, CREATION):
        for name, (function, inputs) in family.items():
            for text in inputs:
                yield Call(f"{name} ({text})", function, text)
