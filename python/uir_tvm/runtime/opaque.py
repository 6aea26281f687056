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

import tvm
import tvm_ffi

from ..errors import ArtifactError
from ..opaque_call import FUNCTION, decoded, loads


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
    if rows and importlib.util.find_spec("torch") is None:
        raise ArtifactError(
            f"`{name}` has operators that PyTorch computes, and torch is not installed.",
            need="torch, for " + ", ".join(row["operator"] for row in rows),
            remedy="pip install 'uir_tvm[torch]', or compile the model with converters for them",
        )


@functools.cache
def _overload(operator: str) -> Callable[..., Any]:
    """An operator of PyTorch by its full name, ``aten::digamma.default``."""
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
    import torch

    place = next(index for index, value in enumerate(arguments) if isinstance(value, str))
    call = loads(arguments[place])
    operands = [_to_torch(value) for value in arguments[:place]]
    for index in call["complex"]:
        operands[index] = torch.view_as_complex(operands[index].contiguous())
    args = decoded(call["args"], operands, torch)
    kwargs = {name: decoded(value, operands, torch) for name, value in call["kwargs"].items()}
    with torch.no_grad():
        found = _overload(call["operator"])(*args, **kwargs)
    results = [found] if isinstance(found, torch.Tensor) else [each for each in found if each is not None]
    for target, value in zip(arguments[place + 1 :], results, strict=True):
        _store(target, torch.view_as_real(value.resolve_conj()) if value.is_complex() else value)


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


tvm_ffi.register_global_func(FUNCTION, _call, override=True)
