# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans, searches and sorts."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from .calls import Call, Function

SHAPES = (
    "f32[3,5,4]",
    "f32[3,5,4]:nan",
    "f32[3,5,4]:ninf",
    "f16[3,5,4]",
    "bf16[3,5,4]",
    "f64[3,5,4]",
    "f32[4,5,3].t",
    "i32[3,5,4]",
    "i64[3,5,4]",
    "u8[3,5,4]",
    "bool[3,5,4]",
)
EMPTY = ("f32[3,0,4]", "i32[0,3,2]")
#: Long rows in half precision, whose sums must not be rounded at each step.
LONG = ("f16[2,2000,1]:pos", "bf16[2,2000,1]:pos", "f32[2,2000,1]:pos")
#: Which numbers tie and which are NaN.
TIES = ("f32[3,12,4]:mixed", "f16[3,12,4]:mixed")

SUMS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "sum": (torch.sum, SHAPES + EMPTY + LONG + ("f32[]",)),
    "sum 1": (lambda x: x.sum(1), SHAPES + EMPTY + LONG),
    "sum -1 0 keep": (lambda x: x.sum((-1, 0), keepdim=True), SHAPES + EMPTY),
    "sum of int32 in int32": (lambda x: x.sum(1, dtype=torch.int32), ("i32[3,5,4]", "bool[3,5,4]")),
    "sum in double": (lambda x: x.sum(1, dtype=torch.float64), ("f32[3,5,4]", "i32[3,5,4]")),
    "nansum": (torch.nansum, SHAPES[:6]),
    "nansum 1": (lambda x: x.nansum(1), SHAPES[:6]),
    "mean": (torch.mean, SHAPES + LONG + EMPTY),
    "mean 1": (lambda x: x.mean(1), SHAPES + LONG + EMPTY),
    "mean -1 0 keep": (lambda x: x.mean((-1, 0), keepdim=True), SHAPES[:7]),
    "mean of int in float": (
        lambda x: x.mean(1, dtype=torch.float32),
        ("i32[3,5,4]", "bool[3,5,4]", "f16[3,5,4]"),
    ),
    "nanmean": (lambda x: x.nanmean(1), SHAPES[:6]),
    "prod": (torch.prod, SHAPES[:1] + SHAPES[3:] + EMPTY),
    "prod 1": (lambda x: x.prod(1), SHAPES[:1] + SHAPES[3:] + EMPTY),
    "prod keep": (lambda x: x.prod(-1, keepdim=True), SHAPES[:1]),
    "var": (torch.var, SHAPES[:2] + SHAPES[3:7] + LONG),
    "var 1": (lambda x: x.var(1), SHAPES[:2] + SHAPES[3:7] + LONG),
    "var correction 0": (lambda x: x.var((0, 2), correction=0, keepdim=True), SHAPES[:7]),
    "var correction 2": (lambda x: x.var(1, correction=2), SHAPES[:1]),
    "var of one": (lambda x: x.var(1), ("f32[3,1]",)),
    "var far from zero": (lambda x: (x + 1000).var(1), ("f32[3,50]",)),
    "std 1": (lambda x: x.std(1), SHAPES[:2] + SHAPES[3:7] + LONG),
    "std biased": (lambda x: x.std(unbiased=False), SHAPES[:1]),
    "var_mean": (lambda x: torch.var_mean(x, 1), SHAPES[:2] + SHAPES[3:7] + LONG),
    "std_mean": (lambda x: torch.std_mean(x, 1, keepdim=True), SHAPES[:2] + SHAPES[3:7]),
    "norm": (torch.norm, SHAPES[:7] + LONG),
    "norm 1": (lambda x: torch.norm(x, dim=1), SHAPES[:7]),
    **{
        f"vector_norm {order}": (
            lambda x, o=order: torch.linalg.vector_norm(x, o, dim=1),
            SHAPES[:7] + ("f32[2,2000]", "f16[2,2000]"),
        )
        for order in (0, 1, 2, 3, 0.5, float("inf"), float("-inf"))
    },
    "matrix_norm": (lambda x: torch.linalg.matrix_norm(x), SHAPES[:1]),
    "frobenius": (lambda x: torch.norm(x, "fro", dim=(0, 2)), SHAPES[:1]),
    "dist": (lambda x: torch.dist(x, x.flip(0), 2), SHAPES[:1]),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), SHAPES[:7] + LONG),
    "logsumexp of inf": (lambda x: torch.logsumexp(x.masked_fill(x > 1, torch.inf), 1), SHAPES[:1]),
    "softmax": (lambda x: x.softmax(1), SHAPES[:7] + LONG + EMPTY[:1]),
    "softmax of int": (lambda x: x.softmax(1, dtype=torch.float32), ("i32[3,5]", "f16[3,5]")),
    "softmax far from zero": (lambda x: (x + 1e4).softmax(1), ("f32[3,50]", "f64[3,50]")),
    "softmin": (lambda x: F.softmin(x, 1), SHAPES[:1]),
    "log_softmax": (lambda x: x.log_softmax(-1), SHAPES[:7] + LONG),
    "log_softmax in float": (lambda x: F.log_softmax(x, 1, dtype=torch.float32), ("f16[3,50]",)),
    "normalize": (lambda x: F.normalize(x, dim=1), SHAPES[:7]),
    "cosine_similarity": (lambda x: F.cosine_similarity(x, x.flip(0), dim=1), SHAPES[:1] + SHAPES[3:5]),
    "pairwise_distance": (lambda x: F.pairwise_distance(x, x.flip(0)), ("f32[3,5]",)),
    "cumsum": (lambda x: x.cumsum(1), SHAPES + EMPTY + LONG),
    "cumsum 0": (lambda x: x.cumsum(0), SHAPES),
    "cumsum -1": (lambda x: x.cumsum(-1), SHAPES[:1] + ("f32[]", "f32[7]")),
    "cumsum in float": (lambda x: x.cumsum(1, dtype=torch.float32), ("f16[2,2000]:pos", "i32[3,5]")),
    "cumprod": (lambda x: x.cumprod(1), SHAPES[:1] + SHAPES[3:] + EMPTY),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), SHAPES[:1]),
    "trapezoid": (lambda x: torch.trapezoid(x, dim=1), SHAPES[:1]),
    "cumulative_trapezoid": (lambda x: torch.cumulative_trapezoid(x, dim=1), SHAPES[:1]),
    "dot": (lambda x: torch.dot(x, x.flip(0)), ("f32[9]", "f16[9]", "i32[9]")),
    "trace": (torch.trace, ("f32[4,4]", "i32[3,5]")),
    "cdist": (lambda x: torch.cdist(x, x.flip(0)), ("f32[5,4]",)),
    "cdist 1": (lambda x: torch.cdist(x, x.flip(0), p=1.0), ("f32[5,4]",)),
    "pdist": (F.pdist, ("f32[5,4]",)),
    "corrcoef": (torch.corrcoef, ("f32[3,9]",)),
    "cov": (torch.cov, ("f32[3,9]",)),
    "count of trues": (lambda x: (x > 0).sum(), SHAPES[:1]),
    "renorm": (lambda x: torch.renorm(x, 2, 0, 1.5), ("f32[3,5]",)),
}

EXACT: dict[str, tuple[Function, tuple[str, ...]]] = {
    "amax": (torch.amax, SHAPES),
    "amax 1": (lambda x: x.amax(1), SHAPES),
    "amax 0 2 keep": (lambda x: x.amax((0, 2), keepdim=True), SHAPES),
    "amin": (torch.amin, SHAPES),
    "amin -1": (lambda x: x.amin(-1), SHAPES),
    "aminmax": (lambda x: torch.aminmax(x, dim=1), SHAPES[:4]),
    "max": (torch.max, SHAPES),
    "min": (torch.min, SHAPES),
    "max 1": (lambda x: x.max(1), SHAPES + TIES),
    "max -1 keep": (lambda x: x.max(-1, keepdim=True), SHAPES[:8]),
    "min 1": (lambda x: x.min(1), SHAPES + TIES),
    "min 0": (lambda x: x.min(0), SHAPES[:8]),
    "max of scalar": (lambda x: x.max(0), ("f32[]",)),
    "argmax": (torch.argmax, SHAPES),
    "argmax 1": (lambda x: x.argmax(1), SHAPES + TIES),
    "argmax -1 keep": (lambda x: x.argmax(-1, keepdim=True), SHAPES[:8]),
    "argmin": (torch.argmin, SHAPES),
    "argmin 1": (lambda x: x.argmin(1), SHAPES + TIES),
    "argmin 0": (lambda x: x.argmin(0), SHAPES),
    "argmax of scalar": (lambda x: x.argmax(), ("f32[]", "f32[1]")),
    "any": (torch.any, SHAPES + EMPTY),
    "any 1": (lambda x: x.any(1), SHAPES + EMPTY),
    "any 0 1": (lambda x: torch.any(x, (0, 1)), SHAPES[:2]),
    "all": (torch.all, SHAPES + EMPTY),
    "all 1": (lambda x: x.all(1), SHAPES + EMPTY),
    "count_nonzero": (lambda x: torch.count_nonzero(x, 1), SHAPES),
    "count_nonzero all": (torch.count_nonzero, SHAPES[:1]),
    "median": (torch.median, ("f32[9]", "f32[4,5]", "i32[4,5]")),
    "median 1": (lambda x: x.median(1).values, SHAPES[:4]),
    "nanmedian": (torch.nanmedian, ("f32[9]", "f32[3,12]:mixed", "f32[3,5]:nan")),
    "nanmedian 1": (lambda x: x.nanmedian(1).values, ("f32[3,12]:mixed", "f32[3,5]:nan", "f32[]")),
    "mode": (lambda x: torch.mode(x, 1).values, ("i32[3,5]", "f32[3,12]:mixed", "f16[3,12]:mixed")),
    "kthvalue": (lambda x: torch.kthvalue(x, 2, 1).values, ("f32[3,5]",)),
    "quantile": (lambda x: torch.quantile(x, 0.3), ("f32[9]",)),
    "sort": (lambda x: x.sort(1), SHAPES[:1] + SHAPES[3:8]),
    "sort stable": (lambda x: x.sort(dim=1, stable=True), TIES + SHAPES + EMPTY),
    "sort stable descending": (lambda x: x.sort(dim=1, stable=True, descending=True), TIES + SHAPES),
    "sort 0 values": (lambda x: x.sort(0).values, TIES + SHAPES[:1]),
    "sort -1 of scalar": (lambda x: x.sort(), ("f32[]", "f32[7]", "f32[7]:mixed")),
    "argsort": (lambda x: x.argsort(1, stable=True), TIES + SHAPES[:3]),
    "argsort descending": (lambda x: x.argsort(1, descending=True, stable=True), TIES),
    "msort": (torch.msort, ("f32[5,3]",)),
    "topk": (lambda x: x.topk(3, 1), SHAPES[:1] + SHAPES[3:7]),
    "topk values": (lambda x: x.topk(3, 1).values, SHAPES + TIES),
    "topk smallest": (lambda x: x.topk(3, 1, largest=False).values, SHAPES + TIES),
    "topk 0": (lambda x: x.topk(2, 0), SHAPES[:1]),
    "topk of small": (lambda x: x.topk(2, 1).values, ("i8[3,5]", "i16[3,5]:edges", "bf16[3,12]:mixed")),
    "sort of small": (
        lambda x: x.sort(dim=1, stable=True),
        ("i8[3,5]", "i16[3,5]:edges", "bf16[3,12,4]:mixed"),
    ),
    "topk none": (lambda x: x.topk(0, 1), SHAPES[:1]),
    "cummax": (lambda x: x.cummax(1), SHAPES),
    "cummin": (lambda x: x.cummin(1), SHAPES[:4]),
    "bucketize": (lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5])), SHAPES[:3]),
    "bucketize right": (
        lambda x: torch.bucketize(x, torch.tensor([-1, 0, 2]), right=True, out_int32=True),
        ("i32[9]", "f32[9]"),
    ),
    "searchsorted": (lambda x: torch.searchsorted(x.sort(1).values, x), ("f32[3,5]",)),
    "isin": (lambda x: torch.isin(x, torch.tensor([1, 3, -2])), ("i64[9]", "i32[9]")),
    "isin invert": (lambda x: torch.isin(x, torch.tensor([1, 3, -2]), invert=True), ("i64[9]",)),
    "allclose of parts": (lambda x: torch.all(torch.isclose(x, x + 1e-9)), SHAPES[:1]),
    "histc": (lambda x: torch.histc(x, 4, -2, 2), ("f32[9]",)),
    "bincount": (lambda x: torch.bincount(x, minlength=7), ("i64[9]:idx7",)),
    "unique": (lambda x: torch.unique(x), ("i64[9]:idx7",)),
    "nonzero": (torch.nonzero, ("f32[3,5]",)),
}


def table() -> Iterator[Call]:
    """Every function with each of its inputs."""
    for family, sums in ((SUMS, True), (EXACT, False)):
        for name, (function, inputs) in family.items():
            for text in dict.fromkeys(inputs):
                yield Call(f"{name} ({text})", function, text, sums=sums)
