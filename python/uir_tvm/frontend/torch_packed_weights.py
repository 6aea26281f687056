# SPDX-License-Identifier: Apache-2.0
"""Constant weights of few bits in programs of PyTorch stay packed: each becomes ``uir::dequantize``.

- ``torchao::dequantize_affine``, ``quantized_decomposed::dequantize_per_*`` of a matrix, or of a
  convolution's weight with a scale for each output or one for all: torchao, PT2E;
- ``aten._weight_int8pack_mm``, ``aten._weight_int4pack_mm(_for_cpu)``: PyTorch's products with such weights;
- ``mm(x, codes.to(float)) * scales`` with constant codes of int8: torchao's Int8Tensor, products by hand.

Folding would make float matrices of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import torch
from torch import Tensor, fx
from torch.export import ExportedProgram

from ..quantized_weight import MOST_GROUP, QuantizedWeight, affine_weight, weight_of_parts
from .torch_affine import DEQUANTIZE, read
from .torch_graph import add_constant, constant_values
from .torch_int4_layouts import codes_for_cpu, codes_of_tiles
from .torch_quantized import OPERATOR

aten = torch.ops.aten
#: What holds codes with a sign, and what makes a code of 0 to 255 of one.
SHIFTS = {torch.int8: 128, torch.uint8: 0}

Values = dict[Any, Any]


@attrs.frozen(eq=False)
class _Found:
    """A weight, what reads it, and whether that reads it turned, or as images."""

    weight: QuantizedWeight
    replaced: fx.Node
    product: bool = False
    turned: bool = False
    images: bool = False


def weight_operators(program: ExportedProgram) -> list[Any]:
    """The operators of a program that PyTorch must not take apart, since they say what a weight is."""
    return list({node.target for node in program.graph.nodes if str(node.target) in DEQUANTIZE})


def pack_weights(program: ExportedProgram) -> None:
    """Let constant weights of few bits be calls of ``uir::dequantize``.

    Before: ``linear(x, dequantize_affine(codes, [1, 32], scales, zero_points, int8, -8, 7))``.
    After: ``linear(x, uir.dequantize(packed, scales, None, 4, 32, 8, float32))``.

    Raises
    ------
    QuantizationError
        For parts of a weight that do not fit one another.
    """
    graph = program.graph
    asked = [node for node in graph.nodes if str(node.target) in RULES and _is_weight(node)]
    if not asked:
        return
    values = constant_values(program, frozenset(asked))
    program._constants = dict(program.constants)  # shared with the program that was given
    for node in asked:
        found = RULES[str(node.target)](node, values)
        if found is not None:
            _put(program, found, node)
    graph.eliminate_dead_code()
    graph.lint()


def _is_weight(node: fx.Node) -> bool:
    """Whether a call may be that of a weight, without regard to what is constant."""
    if node.target is not aten._to_copy.default:
        return True
    source, made = node.args[0], node.meta["val"]
    assert isinstance(source, fx.Node)
    return source.meta["val"].dtype in SHIFTS and made.dim() == 2 and made.dtype.is_floating_point


def _dequantized(node: fx.Node, values: Values) -> _Found | None:
    """What is dequantised as it is."""
    call = read(DEQUANTIZE, str(node.target), node)
    sides = [values.get(side, side) for side in (call.data, call.scales, call.points)]
    data, scales, points = sides
    if not isinstance(data, Tensor) or any(isinstance(side, fx.Node) for side in sides):
        return None
    images = data.dim() == 4
    if data.dim() not in (2, 4) or not call.bits or node.meta["val"].dtype not in RESULTS:
        return None
    blocks = call.blocks
    if images:
        if blocks[1:] != data.shape[1:] or not data.numel() or data[0].numel() % (8 // call.bits):
            return None
        data, blocks = data.reshape(len(data), -1), (blocks[0], data[0].numel())
    turned = blocks[0] != 1 and blocks[1] == 1  # scales along the columns
    blocks = blocks[::-1] if turned else blocks
    codes = (data.T if turned else data).numpy().astype(np.int32) - call.low
    counts = [size // block for size, block in zip(codes.shape, blocks, strict=True)]
    points = torch.zeros(1) if points is None else torch.as_tensor(points)
    spread = [
        _spread(torch.as_tensor(side).float(), counts, blocks, turned)
        for side in (scales, points.float() - call.low)
    ]
    kept = str(getattr(scales, "dtype", torch.float32)).removeprefix("torch.")
    exact = spread[0].astype(np.float16) if kept == "float16" else spread[0]
    weight = affine_weight(codes, exact, _one(spread[1]), call.bits, MOST_GROUP)
    return _Found(weight, node, turned=turned, images=images)


def _spread(side: Tensor, counts: list[int], blocks: tuple[int, ...], turned: bool) -> np.ndarray:
    """A value of each row and group, of one for each block, or one for all."""
    if side.numel() == 1:
        return np.full((counts[0] * blocks[0], counts[1]), float(side), np.float32)
    grid = side.reshape(counts[::-1]).T if turned else side.reshape(counts)
    return np.repeat(grid.numpy(), blocks[0], 0)


def _one(points: np.ndarray) -> np.ndarray:
    """Points that are all the same as one."""
    return points[:1, :1] if points.size and (points == points.flat[0]).all() else points


def _int8_product(node: fx.Node, values: Values) -> _Found | None:
    """_weight_int8pack_mm(x, codes, scales)."""
    codes, scales = (values.get(arg) for arg in node.args[1:3])
    if codes is None or scales is None:
        return None
    columns = scales.float().reshape(-1, 1).numpy()
    return _Found(_bytes(codes, columns), node, product=True)


def _int4_product(codes_of: Callable[[Tensor, int], np.ndarray]) -> Callable[..., _Found | None]:
    """_weight_int4pack_mm(x, codes, group, scales and offsets), of one of the layouts."""

    def found(node: fx.Node, values: Values) -> _Found | None:
        packed, sides = values.get(node.args[1]), values.get(node.args[3])
        if packed is None or sides is None:
            return None
        scales, offsets = (sides[..., at].float().T.numpy() for at in (0, 1))
        codes = codes_of(packed, sides.shape[1])
        return _Found(weight_of_parts(codes, scales, offsets, 4, 8, MOST_GROUP), node, product=True)

    return found


def _cast(node: fx.Node, values: Values) -> _Found | None:
    """Codes of int8 as floats, which products alone read; scales behind a product are the weight's."""
    codes = values.get(node.args[0])
    users = list(node.users)
    if codes is None or node.meta["val"].dtype not in RESULTS or not users:
        return None
    products = [user for user in users if _reads(user, node)]
    if products != users:
        return None
    turned = products[0].target is not aten.linear.default
    if any((user.target is not aten.linear.default) != turned for user in users):
        return None
    codes = codes.T if turned else codes
    scaled, scales = _scaled(products, values, codes.shape[0])
    if scaled is not None:
        scaled.replace_all_uses_with(products[0])
        products[0].graph.erase_node(scaled)
    return _Found(_bytes(codes, scales), node, turned=turned)


def _reads(user: fx.Node, weight: fx.Node) -> bool:
    """Whether a call multiplies something by a weight."""
    return user.target in (aten.mm.default, aten.linear.default, aten.matmul.default) and (
        user.args[1] is weight and user.args[0] is not weight
    )


def _scaled(products: list[fx.Node], values: Values, rows: int) -> tuple[fx.Node | None, np.ndarray]:
    """The product with scales of the columns that alone reads a product, and these scales; or ones."""
    ones = np.ones((rows, 1), np.float32)
    if len(products) > 1 or len(products[0].users) != 1 or len(products[0].args) > 2:
        return None, ones
    (user,) = products[0].users
    if user.target is not aten.mul.Tensor or user.meta["val"].dtype != products[0].meta["val"].dtype:
        return None, ones
    other = next(arg for arg in user.args if arg is not products[0])
    scales = values.get(other) if isinstance(other, fx.Node) else None
    if not isinstance(scales, Tensor) or scales.numel() != rows or scales.shape[-1] != rows:
        return None, ones
    return user, scales.float().reshape(rows, 1).numpy()


def _bytes(codes: Tensor, scales: np.ndarray) -> QuantizedWeight:
    """A weight of bytes with a scale for each row."""
    shift = SHIFTS[codes.dtype]
    shifted = codes.numpy().astype(np.int32) + shift
    return affine_weight(shifted, scales, np.full((1, 1), shift), 8, MOST_GROUP)


def _put(program: ExportedProgram, found: _Found, at: fx.Node) -> None:
    """Let a weight be constants of the program, and what reads it read a call that unpacks it."""
    graph, weight, packing = program.graph, found.weight, found.weight.packing
    parts = [
        None if part is None else add_constant(program, torch.from_numpy(part), f"{at.name}_{name}")
        for name, part in (("codes", weight.packed), ("scales", weight.scales), ("offsets", weight.offsets))
    ]
    made = found.replaced.meta["val"]
    with graph.inserting_before(found.replaced):
        told = (*parts, packing.bits, packing.group, packing.zero, made.dtype)
        call = graph.call_function(OPERATOR, told)
        call.meta["val"] = torch.empty(weight.shape, dtype=made.dtype, device="meta")
        if found.turned:
            call = graph.call_function(aten.permute.default, (call, [1, 0]))
        if found.product:
            call = graph.call_function(aten.linear.default, (found.replaced.args[0], call))
        if found.images:
            call = graph.call_function(aten.view.default, (call, list(made.shape)))
        if found.turned or found.product or found.images:
            call.meta["val"] = made
    found.replaced.replace_all_uses_with(call)


#: Element types of weights, as of `uir_tvm.quantized.RESULTS`.
RESULTS = frozenset({torch.float32, torch.float16, torch.bfloat16})
#: Operators by their whole name -> what weight there is.
RULES: dict[str, Callable[[fx.Node, Values], _Found | None]] = {
    **dict.fromkeys(DEQUANTIZE, _dequantized),
    "aten._weight_int8pack_mm.default": _int8_product,
    "aten._weight_int4pack_mm.default": _int4_product(codes_of_tiles),
    "aten._weight_int4pack_mm_for_cpu.default": _int4_product(codes_for_cpu),
    "aten._to_copy.default": _cast,
}
