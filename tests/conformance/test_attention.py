# SPDX-License-Identifier: Apache-2.0
"""Attention as one kernel: every form on every target, in every element type, equals the reference.

Asked for by `CompileOptions.attention`, so that no price leaves it to the library.  Kernels of devices run on
their host models, which check every access.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import ml_dtypes
import numpy as np
import pytest
import uir_tvm
from tvm import relax
from tvm.relax import op
from uir_tvm import CompileOptions

from tests.asked import ALL
from tests.kernel_graph.programs import module

#: Targets by models that do not depend on the machine, and one that has bfloat16 where the first has not.
MODELS = {"uir-cpu": "", "uir-cuda": ":a100", "uir-ascend": ":910b2", "uir-bang": ":mlu370-x8"}
WITH_BFLOAT16 = {"uir-bang": ":mlu590"}
#: Of the largest value: the rounding of weights and of the result.
TOLERANCES = {"float32": 4e-6, "float16": 2.0**-9, "bfloat16": 2.0**-6}
HEADS = (32, 80, 256)


@attrs.frozen
class Form:
    """A form of attention.

    Parameters
    ----------
    rows, keys, groups : int
        Queries, keys, and heads on one head of keys.
    open : callable, optional
        ``open(i, j)``: which keys a rule opens.
    mask : bool
        Whether a mask is added.
    cap : float
        ``cap * tanh(x / cap)`` of scores; 0: none.
    """

    rows: int
    keys: int
    groups: int = 1
    open: Callable[[Any, Any], Any] | None = None
    mask: bool = False
    cap: float = 0.0


FORMS = {
    "plain": Form(16, 32),
    "causal prefill": Form(20, 20, open=lambda i, j: j <= i),
    "grouped queries": Form(12, 24, groups=2),
    "sliding window": Form(24, 24, open=lambda i, j: (j <= i) & (j >= i - 12)),
    "mask": Form(9, 33, mask=True),
    "soft cap": Form(16, 16, cap=5.0),
    "decode of 1 row": Form(1, 40, groups=4),
    "decode of 16 rows": Form(16, 48, groups=2),
    "causal rows of a cache": Form(4, 40, groups=2, open=lambda i, j: j <= i + 36),
}


def cases() -> list[tuple[str, str, str, int]]:
    """All of them; in the suite each form on each target, element types and heads in turn."""
    every = [
        (target, form, dtype, head)
        for target in MODELS
        for form in FORMS
        for dtype in TOLERANCES
        for head in HEADS
    ]
    if ALL:
        return every
    found = []
    for number, (target, form) in enumerate((target, form) for target in MODELS for form in FORMS):
        dtype = list(TOLERANCES)[number % len(TOLERANCES)]
        found.append((target, form, dtype, HEADS[number // 4 % len(HEADS)]))
    return found


def program(form: Form, dtype: str, head: int) -> tuple[Any, list[np.ndarray], np.ndarray]:
    """The model, inputs, and what it computes of them."""
    heads = form.groups if form.groups > 1 else 2
    kv_heads = heads // form.groups
    inputs = {
        "q": ((1, heads, form.rows, head), dtype),
        "k": ((1, kv_heads, form.keys, head), dtype),
        "v": ((1, kv_heads, form.keys, head), dtype),
    }
    if form.mask:
        inputs["mask"] = ((form.rows, form.keys), dtype)

    def body(emit: Any, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        if form.groups > 1:
            wide = [emit(op.reshape(x, (1, kv_heads, 1, form.keys, head))) for x in (k, v)]
            wide = [emit(op.broadcast_to(x, (1, kv_heads, form.groups, form.keys, head))) for x in wide]
            k, v = (emit(op.reshape(x, (1, heads, form.keys, head))) for x in wide)
        x = emit(op.matmul(q, emit(op.permute_dims(k, [0, 1, 3, 2]))))
        x = emit(op.multiply(x, relax.const(head**-0.5, dtype)))
        if form.cap:
            cap = relax.const(form.cap, dtype)
            x = emit(op.multiply(emit(op.tanh(emit(op.divide(x, cap)))), cap))
        if form.open is not None:
            x = emit(op.where(relax.const(opened(form)), x, relax.const(-math.inf, dtype)))
        if mask is not None:
            x = emit(op.add(x, mask))
        return emit(op.matmul(emit(op.nn.softmax(x, -1)), v))

    numpy = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    rng = np.random.default_rng(head + form.rows)
    given = [rng.standard_normal(shape).astype(numpy) for shape, _ in inputs.values()]
    return module(inputs, body), given, reference(form, *(array.astype("float64") for array in given))


def opened(form: Form) -> np.ndarray:
    """The keys that a rule opens, by rows."""
    assert form.open is not None
    return np.asarray(form.open(np.arange(form.rows)[:, None], np.arange(form.keys)[None, :]))


def reference(form: Form, q: Any, k: Any, v: Any, mask: Any = None) -> np.ndarray:
    k, v = (np.repeat(array, form.groups, 1) for array in (k, v))
    x = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    if form.cap:
        x = form.cap * np.tanh(x / form.cap)
    if form.open is not None:
        x = np.where(opened(form), x, -np.inf)
    if mask is not None:
        x = x + mask
    weights = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True) @ v)


@pytest.mark.compares_itself
@pytest.mark.parametrize(("target", "form", "dtype", "head"), cases())
def test_one_kernel_computes_every_form(target: str, form: str, dtype: str, head: int) -> None:
    """One kernel of ours, through all stages, of whose operands none is a mask that a rule says."""
    mod, given, want = program(FORMS[form], dtype, head)
    model = WITH_BFLOAT16.get(target, MODELS[target]) if dtype == "bfloat16" else MODELS[target]
    device = "cpu" if target == "uir-cpu" else "model"
    options = CompileOptions(attention="kernel", device=device, faults="raise")
    exe = uir_tvm.compile(mod, target + model, options=options)
    graph = exe.kernel_graph
    assert [node.hero for node in graph.custom_ops] == ["attention"] and len(graph.nodes) == 1
    assert len(graph.nodes[0].inputs) == len(given) and not graph.fallbacks
    assert exe.report()["kernels_without_igraph"] == []
    (kernel,) = exe.info.kernels
    assert kernel.recipe == "attention"
    got = np.asarray(exe(*given)).astype("float64")
    np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCES[dtype] * np.abs(want).max())
