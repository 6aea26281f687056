# SPDX-License-Identifier: Apache-2.0
"""Operators that PyTorch computes at run time: the nodes of a model that nobody has a converter for.

A call has the operands as tensors, one string that says how the operator is called (`uir_tvm.opaque_call`),
and the results as tensors. A complex tensor is one of floats with a last axis of two, real and imaginary
part.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
import tvm_ffi

from ..errors import ArtifactError, ShapeError, SizeError
from ..opaque_call import CHECK, FOUND, FUNCTION, NUMBER, ONNX, decoded, loads
from ..sizes.saved_sizes import holds
from ..sizes.symbolic_shapes import sizes_text
from .kernel_errors import note


def check(rows: Sequence[Mapping[str, Any]], name: str) -> None:
    """Refuse to run a model here whose operators PyTorch does not know, before anything runs.

    Raises
    ------
    ArtifactError
        torch is not installed, or the library of an operator is not imported.
    """
    check_torch(rows, name)
    for row in rows:
        _overload(row["operator"])


def check_torch(rows: Sequence[Mapping[str, Any]], name: str) -> None:
    """Refuse to load a model whose operators PyTorch computes where there is none.

    Raises
    ------
    ArtifactError
        torch is not installed.
    """
    rows = [row for row in rows if not row["operator"].startswith(ONNX)]
    if rows and importlib.util.find_spec("torch") is None:
        raise ArtifactError(
            f"`{name}` has operators that PyTorch computes, and torch is not installed.",
            need="torch, for " + ", ".join(row["operator"] for row in rows),
            remedy="pip install 'uir_tvm[torch]', or compile the model with converters for them",
        )


@functools.cache
def _overload(operator: str) -> Callable[..., Any]:
    """An operator of PyTorch by its full name, ``aten::digamma.default``."""
    if operator == NUMBER:
        return _elements
    if operator.startswith(ONNX):
        return _onnx_function()
    import torch

    namespace, _, rest = operator.partition("::")
    name, _, overload = rest.rpartition(".")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), name), overload)
    except (AttributeError, RuntimeError) as error:
        raise ArtifactError(
            f"PyTorch does not know the operator {operator} here.",
            need=f"the library that registers {namespace}::{name}",
            remedy="import it before the model runs",
        ) from error


def _call(*arguments: Any) -> None:
    """Run one operator: operands, its call as text, results."""
    place = next(index for index, value in enumerate(arguments) if isinstance(value, str))
    results = _computed(arguments[:place], loads(arguments[place]))
    for target, value in zip(arguments[place + 1 :], results, strict=True):
        _store(target, value)


def _found(*arguments: Any) -> Any:
    """Run one operator whose data decide the shapes of its results, and return them."""
    *operands, text = arguments
    call = loads(str(text))
    device = operands[0].device
    if "node" in call:
        made = [tvm.runtime.tensor(each, device) for each in _of_onnx(operands, call)]
    else:
        made = []
        for value, (_, dtype) in zip(_computed(operands, call), call["results"], strict=True):
            made.append(tvm.runtime.empty(tuple(value.shape), dtype, device))
            if value.numel():
                _store(made[-1], value)
    return made[0] if len(made) == 1 else made


def _computed(operands: Sequence[Any], call: Mapping[str, Any]) -> list[Any]:
    """The results of one operator, as PyTorch makes them; complex ones as pairs."""
    import torch

    given = [_to_torch(value) for value in operands]
    for index in call["complex"]:
        given[index] = torch.view_as_complex(given[index].contiguous())
    args = decoded(call["args"], given, torch)
    kwargs = {name: decoded(value, given, torch) for name, value in call["kwargs"].items()}
    with torch.no_grad():
        found = _overload(call["operator"])(*args, **kwargs)
    results = [found] if isinstance(found, torch.Tensor) else [each for each in found if each is not None]
    return [torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in results]


def _of_onnx(operands: Sequence[Any], call: Mapping[str, Any]) -> list[np.ndarray]:
    """The results of a node of ONNX."""
    arrays = [value.numpy() for value in operands]
    given = [None if place is None else arrays[place["tensor"]] for place in call["args"]]
    try:
        made = _onnx_function()(call["node"], call["version"])(given)
    except (IndexError, ValueError) as error:  # NumPy's, of operands that do not fit each other
        raise _noted(
            ShapeError(
                f"{call['operator']} cannot be computed: {error}",
                where=", ".join(f"{each.dtype} {list(each.shape)}" for each in arrays),
                need="operands as the ONNX standard asks",
                remedy="check the model's inputs, or the node before it",
            )
        ) from error
    return [np.asarray(each, order="C") for each in made]


@functools.cache
def _onnx_function() -> Callable[..., Any]:
    """What makes a function of a node's text.

    Raises
    ------
    ArtifactError
        onnx is not installed.
    """
    if importlib.util.find_spec("onnx") is None:
        raise ArtifactError(
            "The model has operators of ONNX that run outside kernels, and onnx is not installed.",
            need="onnx",
            remedy="pip install 'uir_tvm[onnx]'",
        )
    from ..frontend.onnx.found import function_of

    return function_of


def _elements(number: Any) -> Any:
    """As many elements as a tensor's number says, so that it is a size."""
    import torch

    count = int(number.reshape(()).item())
    if count < 0:
        raise _noted(
            SizeError(
                f"A size that the model finds is {count}.",
                need="a whole number that is not negative",
                remedy="check the inputs that it is computed from",
            )
        )
    return torch.empty((count,), dtype=torch.int8)


def _to_torch(value: tvm.runtime.Tensor) -> Any:
    """A tensor of PyTorch in the host's memory, which the operator may keep but must not change."""
    import torch

    host = value if value.device.type == "cpu" else value.copyto(tvm.cpu())
    found = torch.from_dlpack(host)
    return found.to(torch.bool) if str(value.dtype) == "bool" else found


def _store(target: tvm.runtime.Tensor, value: Any) -> None:
    import torch

    host = target if target.device.type == "cpu" else tvm.runtime.empty(target.shape, target.dtype, tvm.cpu())
    torch.from_dlpack(host).copy_(value.resolve_neg().reshape(tuple(target.shape)))
    if host is not target:
        host.copyto(target)


def _noted(error: Exception) -> Exception:
    """An error that is about to cross the virtual machine."""
    note(error)
    return error


def _check(sizes: Any, text: str) -> None:
    """Hold sizes that are found to what the program takes them for."""
    told = loads(str(text))
    numbers = dict(zip(told["names"], map(int, sizes), strict=True))
    checks = told["checks"]
    for check, where in zip(checks, told.get("where", [""] * len(checks)), strict=True):
        if not holds(check, numbers):
            raise _noted(
                SizeError(
                    f"The model finds {sizes_text(numbers)} while it runs.",
                    where=where,
                    need=check,
                    remedy="check the inputs that they are computed from, or compile the model for them",
                )
            )


tvm_ffi.register_global_func(FUNCTION, _call, override=True)
tvm_ffi.register_global_func(FOUND, _found, override=True)
tvm_ffi.register_global_func(CHECK, _check, override=True)
