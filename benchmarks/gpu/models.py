# SPDX-License-Identifier: Apache-2.0
"""GPT-2 medium and a stack of layers of the shape of Llama-2-7B: prefill, and one token with a cache.

Weights are arguments, drawn from a seed where they are needed, so that artefacts hold none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .case import Case, Input
from .operators import rotary


@dataclass(frozen=True)
class Shape:
    """Sizes of a model."""

    layers: int
    hidden: int
    heads: int
    ffn: int
    vocabulary: int = 0

    @property
    def head(self) -> int:
        return self.hidden // self.heads


#: GPT-2 medium: Radford et al. 2019, table 2; Llama-2-7B: arXiv 2307.09288, with 4 of its 32 layers.
GPT2 = {False: Shape(24, 1024, 16, 4096, 50257), True: Shape(2, 32, 2, 64, 97)}
LLAMA = {False: Shape(4, 4096, 32, 11008), True: Shape(2, 32, 2, 48)}


def _heads(o: Any, x: Any, heads: int) -> Any:
    """(batch, length, hidden) -> (batch, heads, length, size)."""
    batch, length, hidden = x.shape
    return o.permute(x.reshape(batch, length, heads, hidden // heads), (0, 2, 1, 3))


def _joined(o: Any, x: Any) -> Any:
    """(batch, heads, length, size) -> (batch, length, hidden)."""
    batch, heads, length, size = x.shape
    return o.permute(x, (0, 2, 1, 3)).reshape(batch, length, heads * size)


def _attend(o: Any, q: Any, k: Any, v: Any, cache: tuple[Any, Any] | None) -> tuple[Any, Any, Any]:
    """Attention among the tokens, or of one token to the cache and itself; the rows for the cache."""
    if cache is None:
        return _joined(o, o.attention(q, k, v, True)), k, v
    keys, values = (o.cat([old, new], 2) for old, new in zip(cache, (k, v), strict=True))
    return _joined(o, o.attention(q, keys, values)), k, v


def _gpt2_layer(o: Any, x: Any, heads: int, weights: list[Any], cache: Any) -> tuple[Any, Any, Any]:
    g1, b1, w_qkv, b_qkv, w_out, b_out, g2, b2, w_up, b_up, w_down, b_down = weights
    qkv = o.linear(o.layer_norm(x, g1, b1), w_qkv, b_qkv)
    width = qkv.shape[-1] // 3
    q, k, v = (_heads(o, qkv[..., at * width : (at + 1) * width], heads) for at in range(3))
    mixed, k, v = _attend(o, q, k, v, cache)
    x = x + o.linear(mixed, w_out, b_out)
    y = o.gelu(o.linear(o.layer_norm(x, g2, b2), w_up, b_up))
    return x + o.linear(y, w_down, b_down), k, v


def _llama_layer(
    o: Any, x: Any, heads: int, weights: list[Any], angles: tuple[Any, Any], cache: Any
) -> tuple[Any, Any, Any]:
    g1, w_q, w_k, w_v, w_out, g2, w_gate, w_up, w_down = weights
    y = o.rms_norm(x, g1)
    q, k, v = (_heads(o, o.linear(y, w), heads) for w in (w_q, w_k, w_v))
    q, k = (rotary(o, part, *angles) for part in (q, k))
    mixed, k, v = _attend(o, q, k, v, cache)
    x = x + o.linear(mixed, w_out)
    y = o.rms_norm(x, g2)
    return x + o.linear(o.silu(o.linear(y, w_gate)) * o.linear(y, w_up), w_down), k, v


def _matrix(rows: int, columns: int) -> Input:
    """A weight (outputs, inputs) that keeps the size of what it multiplies."""
    return Input((rows, columns), scale=columns**-0.5, weight=True)


def _vector(size: int, kind: str = "normal") -> Input:
    return Input((size,), kind=kind, scale=0.1, weight=True)


def _gpt2_weights(shape: Shape) -> list[Input]:
    h, f = shape.hidden, shape.ffn
    return [
        _vector(h, "ones"),
        _vector(h),
        _matrix(3 * h, h),
        _vector(3 * h),
        _matrix(h, h),
        _vector(h),
        _vector(h, "ones"),
        _vector(h),
        _matrix(f, h),
        _vector(f),
        _matrix(h, f),
        _vector(h),
    ]


def _llama_weights(shape: Shape) -> list[Input]:
    h, f = shape.hidden, shape.ffn
    square = _matrix(h, h)
    norm = _vector(h, "ones")
    return [norm, square, square, square, square, norm, _matrix(f, h), _matrix(f, h), _matrix(h, f)]


def _caches(shape: Shape, batch: int, cached: int) -> list[Input]:
    rows = Input((batch, shape.heads, cached, shape.head))
    return [rows] * (2 * shape.layers if cached else 0)


def _layers(
    shape: Shape, weights: list[Any], per_layer: int, caches: list[Any]
) -> Iterator[tuple[list[Any], Any]]:
    """Weights and cache (or None) of each layer."""
    for layer in range(shape.layers):
        cache = tuple(caches[2 * layer : 2 * layer + 2]) or None
        yield weights[layer * per_layer : (layer + 1) * per_layer], cache


def _flops(shape: Shape, matrices: int, batch: int, length: int, cached: int) -> float:
    """Of products with ``matrices`` elements of weights a layer, attention, and the last row's logits."""
    keys = cached + length if cached else length
    layer = 2.0 * matrices * length + 4.0 * shape.hidden * length * keys
    return batch * (shape.layers * layer + 2.0 * shape.vocabulary * shape.hidden)


def gpt2(small: bool, batch: int, length: int, cached: int) -> Case:
    """Token ids -> logits of the last token (and with a cache the new keys and values of each layer)."""
    shape = GPT2[small]

    def function(o: Any, ids: Any, position: Any, *rest: Any) -> Any:
        count = len(_caches(shape, batch, cached))
        caches, (table, places, *weights, gain, offset) = list(rest[:count]), rest[count:]
        x = o.take(table, ids) + o.take(places, position)
        new: list[Any] = []
        for layer, cache in _layers(shape, weights, 12, caches):
            x, k, v = _gpt2_layer(o, x, shape.heads, layer, cache)
            new += [k, v] if cache else []
        return (o.linear(o.layer_norm(x[:, -1:, :], gain, offset), table), *new)

    table = Input((shape.vocabulary, shape.hidden), scale=0.1, weight=True)
    places = Input((1024, shape.hidden), scale=0.1, weight=True)
    inputs = [
        Input((batch, length), "int64", "ids", limit=shape.vocabulary),
        Input((1, length), "int64", "ids", limit=1024),
        *_caches(shape, batch, cached),
        table,
        places,
        *_gpt2_weights(shape) * shape.layers,
        _vector(shape.hidden, "ones"),
        _vector(shape.hidden),
    ]
    matrices = shape.hidden * (4 * shape.hidden + 2 * shape.ffn)
    flops = _flops(shape, matrices, batch, length, cached)
    return Case(_name("gpt2_medium", batch, cached), function, tuple(inputs), "model", flops=flops)


def llama(small: bool, batch: int, length: int, cached: int) -> Case:
    """Hidden rows -> hidden rows, normalised (and with a cache the new keys and values of each layer)."""
    shape = LLAMA[small]

    def function(o: Any, x: Any, *rest: Any) -> Any:
        count = len(_caches(shape, batch, cached))
        caches, (cos, sin, *weights, gain) = list(rest[:count]), rest[count:]
        new: list[Any] = []
        for layer, cache in _layers(shape, weights, 9, caches):
            x, k, v = _llama_layer(o, x, shape.heads, layer, (cos, sin), cache)
            new += [k, v] if cache else []
        return (o.rms_norm(x, gain), *new)

    angles = Input((length, shape.head // 2), kind="angles", scale=10.0, weight=True)
    inputs = [
        Input((batch, length, shape.hidden)),
        *_caches(shape, batch, cached),
        angles,
        angles,
        *_llama_weights(shape) * shape.layers,
        _vector(shape.hidden, "ones"),
    ]
    matrices = shape.hidden * (4 * shape.hidden + 3 * shape.ffn)
    flops = _flops(shape, matrices, batch, length, cached)
    return Case(_name("llama2_7b_layers", batch, cached), function, tuple(inputs), "model", flops=flops)


def _name(model: str, batch: int, cached: int) -> str:
    return f"{model}_b{batch}_{'decode' if cached else 'prefill'}"


def cases(small: bool) -> list[Case]:
    """Both models, batch 1 and 4, prefill of 512 tokens and one token after 512."""
    tokens = 8 if small else 512
    steps = [(batch, length, cached) for batch in (1, 4) for length, cached in ((tokens, 0), (1, tokens))]
    return [make(small, *step) for make in (gpt2, llama) for step in (steps[:2] if small else steps)]
