# SPDX-License-Identifier: Apache-2.0
"""Operators without a converter as calls that PyTorch computes at run time."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
import tvm
from torch import fx
from tvm import relax

from ..errors import FrontendError
from ..opaque_call import FOUND, FUNCTION, NUMBER, dumps
from ..sizes.open_size import expression, expressions
from ..sizes.size_space import open_sizes
from .torch_graph import has_no_elements, leaves_open

#: Floats of the parts of a complex number.
PARTS = {torch.complex64: torch.float32, torch.complex128: torch.float64}
#: dtypes of tensors that pass between kernels and PyTorch.
DTYPES = frozenset(
    {
        *PARTS,
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    }
)


def operator_of(node: fx.Node) -> torch._ops.OpOverload | None:
    """The operator of a call, if it is one of PyTorch's libraries."""
    target = getattr(node.target, "operator", node.target)
    return target if isinstance(target, torch._ops.OpOverload) else None


def full_name(operator: torch._ops.OpOverload) -> str:
    """As ``aten::add.Tensor``."""
    return f"{operator.namespace}::{operator.__name__}"


def obstacle(node: fx.Node) -> str:
    """Why PyTorch cannot compute a node for us; empty where it can."""
    operator = operator_of(node)
    if operator is None:
        return "is no operator of a library"
    if operator._schema.is_mutable:
        return "changes its arguments"
    results = _results(node)
    if not results:
        return "has no result"
    for value in results:
        if isinstance(value, torch.SymInt) and open_sizes() is not None:
            continue
        if not isinstance(value, torch.Tensor):
            return "has results that are no tensors"
        if value.dtype not in DTYPES:
            return f"has a result of {value.dtype}"
        if open_sizes() is None and leaves_open(value):
            return "has a result whose shape depends on data"
        if open_sizes() is None and has_no_elements(value):
            return "has a result without elements"
    for source in node.all_input_nodes:
        value = source.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dtype not in DTYPES or has_no_elements(value):
            return "reads what is no tensor, or has no elements"
    return ""


def is_complex(node: fx.Node) -> bool:
    """Whether a node reads or makes complex numbers."""
    values = [*_results(node), *(source.meta.get("val") for source in node.all_input_nodes)]
    return any(isinstance(value, torch.Tensor) and value.is_complex() for value in values)


def _results(node: fx.Node) -> list[Any]:
    value = node.meta.get("val")
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def opaque(reason: str, node: fx.Node, importer: Any) -> Any:
    """A call of PyTorch at run time.

    Where sizes of its results are open, or found by it, it returns them (`uir_tvm.opaque_call.FOUND`).

    Raises
    ------
    FrontendError
        An argument has no form that can be written.
    """
    operator = operator_of(node)
    assert operator is not None, node
    sources: list[fx.Node] = []
    args = [_encoded(value, sources) for value in node.args]
    kwargs = {name: _encoded(value, sources) for name, value in node.kwargs.items()}
    complex_ = [index for index, source in enumerate(sources) if source.meta["val"].is_complex()]
    value, results = node.meta["val"], _results(node)
    number = isinstance(value, torch.SymInt)
    rows = [([str(value.node.expr)], "int8")] if number else [_row(each) for each in results]
    returned = number or any(leaves_open(each) or has_no_elements(each) for each in results)
    text = dumps(
        NUMBER if number else full_name(operator),
        args,
        kwargs,
        complex_,
        reason,
        **({"results": rows} if returned else {}),
    )
    types = [_type(*row) for row in rows]
    single = number or isinstance(value, torch.Tensor)
    made = importer.block_builder.emit(
        relax.op.call_pure_packed(
            FOUND if returned else FUNCTION,
            *[importer.env[source] for source in sources],
            tvm.ir.StringImm(text),
            ty_args=types if single else relax.TupleType(types),
        )
    )
    space = open_sizes()
    if not returned or not single or space is None:
        return made  # of several each is cast where it is taken
    (shape, dtype), sizes = rows[0], [space.said(size) for size in rows[0][0]]
    cast = importer.block_builder.match_cast(made, relax.TensorType(expressions(sizes), dtype))
    return expression(space.said(shape[0])) if number else cast


def opaque_converter(reason: str) -> Any:
    """A converter to a call of PyTorch."""
    return partial(opaque, reason)


def _row(value: torch.Tensor) -> tuple[list[str], str]:
    """Shape and dtype of a result, as text."""
    shape = [str(size.node.expr) if isinstance(size, torch.SymInt) else str(size) for size in value.shape]
    if value.dtype in PARTS:
        return [*shape, "2"], str(PARTS[value.dtype]).removeprefix("torch.")
    return shape, str(value.dtype).removeprefix("torch.")


def _type(shape: list[str], dtype: str) -> relax.TensorType:
    """The type of a result: of its rank alone, where a size is open."""
    if all(size.isdigit() for size in shape):
        return relax.TensorType([int(size) for size in shape], dtype)
    return relax.TensorType(dtype=dtype, ndim=len(shape))


def _encoded(value: Any, sources: list[fx.Node]) -> Any:
    """An argument as plain data; its tensors are numbered as they are met."""
    if isinstance(value, fx.Node):
        if value not in sources:
            sources.append(value)
        return {"tensor": sources.index(value)}
    if isinstance(value, list | tuple):
        return [_encoded(item, sources) for item in value]
    if isinstance(value, complex):
        return {"number": [value.real, value.imag]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.device):
        return {"device": "cpu"}
    for kind, word in (
        (torch.dtype, "dtype"),
        (torch.layout, "layout"),
        (torch.memory_format, "memory_format"),
    ):
        if isinstance(value, kind):
            return {word: str(value).removeprefix("torch.")}
    raise FrontendError(
        f"an argument of PyTorch's operator is a {type(value).__name__}",
        need="tensors, numbers, words, dtypes and lists of these",
        remedy="pass converters={name: ...} for the operator",
    )
