# SPDX-License-Identifier: Apache-2.0
"""Operators of users' libraries: their names, and what users say of how they are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import torch
from torch.export import ExportedProgram

from ..errors import FrontendError
from .torch_converters import Converter

#: Namespaces whose operators TVM's importer and ours call by their name alone.
OURS = frozenset({"aten", "prims", "prim", "torchvision", "quantized_decomposed"})


@attrs.frozen
class InTorch:
    """A converter that is written in PyTorch: what an operator computes, in terms of others.

    Parameters
    ----------
    function : callable
        Takes the operator's arguments and returns its results.
    """

    function: Callable[..., Any]


class Named:
    """A user's operator as a function whose name has its namespace, ``my::op.default``."""

    def __init__(self, operator: torch._ops.OpOverload) -> None:
        self.operator = operator
        self.__name__ = f"{operator.namespace}::{operator.__name__}"
        self.__module__ = __name__
        self.tags = operator.tags

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.operator(*args, **kwargs)

    def __repr__(self) -> str:
        return self.__name__


def name_operators(program: ExportedProgram) -> None:
    """Tell apart operators of equal names of several libraries: TVM's importer reads names alone."""
    found: dict[Any, Named] = {}
    for node in program.graph.nodes:
        target = node.target
        if isinstance(target, torch._ops.OpOverload) and target.namespace not in OURS:
            node.target = found.setdefault(target, Named(target))


def split_converters(
    given: Mapping[str, Converter | InTorch],
) -> tuple[dict[Any, Callable[..., Any]], dict[str, Converter]]:
    """A user's converters: what PyTorch takes apart, by operator; and converters by the name of a node.

    Raises
    ------
    FrontendError
        An `InTorch` for an operator that PyTorch does not know, or a converter that cannot be called.
    """
    in_torch: dict[Any, Callable[..., Any]] = {}
    by_node: dict[str, Converter] = {}
    for name, converter in given.items():
        if isinstance(converter, InTorch):
            in_torch.update(dict.fromkeys(_overloads(name), converter.function))
        elif callable(converter):
            whole = "::" in name and "." not in name.rpartition("::")[2]
            names = [_name_of(each) for each in _overloads(name)] if whole else [name]
            by_node.update(dict.fromkeys(names, converter))
        else:
            raise FrontendError(
                f"the converter of {name!r} is a {type(converter).__name__}",
                need="function(node, importer) -> relax.Var, or InTorch(function of tensors)",
                remedy="pass a function",
            )
    return in_torch, by_node


def _name_of(overload: torch._ops.OpOverload) -> str:
    return overload.__name__ if overload.namespace in OURS else f"{overload.namespace}::{overload.__name__}"


def _overloads(name: str) -> list[torch._ops.OpOverload]:
    """The overloads that a name means: ``my::op`` all, ``my::op.out`` one, ``mul.Tensor`` one of ATen's."""
    namespace, _, rest = name.rpartition("::")
    operator, _, overload = rest.partition(".")
    try:
        packet = getattr(getattr(torch.ops, namespace or "aten"), operator)
        return [getattr(packet, each) for each in ([overload] if overload else packet.overloads())]
    except (AttributeError, RuntimeError) as error:
        raise FrontendError(
            f"PyTorch knows no operator {name!r}",
            need="namespace::operator, or namespace::operator.overload",
            remedy="import the library that registers it before the model is compiled",
        ) from error
