# SPDX-License-Identifier: Apache-2.0
"""What an exported program of PyTorch consists of, as a digest.

It is of the graph, the nested graphs, the signature, how arguments are nested, the ranges of symbols, and the
contents of every weight and constant. Weights are read each time: PyTorch counts changes of a tensor in
place, but not those by way of ``.data`` or of a NumPy array on the same memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from ..content_digest import ContentDigest

#: Namespaces of operators that are PyTorch's own; what others do may be redefined in a process.
NAMESPACES = frozenset({"aten", "prims"})
#: Modules of functions that graphs call beside operators: of sizes, and PyTorch's checks.
FUNCTIONS = frozenset({"_operator", "math", "torch"})
#: Operators on graphs that say all by their arguments.
OF_GRAPHS = frozenset({"cond", "while_loop", "scan", "map_impl", "wrap_with_set_grad_enabled"})
PLAIN = (bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format)
TENSORS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


class _Untold(Exception):
    """A part of a program that no text stands for."""


def digest_program(program: ExportedProgram, into: ContentDigest) -> bool:
    """Add all that a program consists of to a digest.

    Parameters
    ----------
    program : ExportedProgram
    into : ContentDigest

    Returns
    -------
    bool
        False where it has parts whose contents cannot be told: operators from outside of PyTorch, objects,
        tensors that are no plain ones.
    """
    into.text(f"torch {torch.__version__} {torch.get_default_dtype()} {torch.is_autocast_enabled('cpu')}")
    try:
        _graph(program.graph_module, into)
        _signature(program, into)
        _tensors({**program.constants, **program.state_dict}, into)
    except (_Untold, RuntimeError, TypeError, NotImplementedError):  # tensors that cannot be read as bytes
        return False
    return True


def _signature(program: ExportedProgram, into: ContentDigest) -> None:
    signature = program.graph_signature
    for spec in (*signature.input_specs, *signature.output_specs):
        into.text(repr(spec))
    for symbol, ends in program.range_constraints.items():
        into.text(f"{symbol} {ends}")
    # of the module as a whole; those of modules inside of it are for unflattening
    called = program.module_call_graph[0].signature
    if called is not None:
        into.text(f"{called.in_spec!r} {called.out_spec!r} {called.forward_arg_names}")


def _graph(module: fx.GraphModule, into: ContentDigest) -> None:
    """Nodes in their order, with what is known of their values; nested graphs where they are read."""
    for node in module.graph.nodes:
        into.text(f"{node.op} {node.name} {_target(node)}")
        into.text(f"{_text(node.args)} {_text(node.kwargs)} {_value(node.meta.get('val'))}")
        if node.op == "get_attr":
            _attribute(module, str(node.target), into)


def _attribute(module: fx.GraphModule, path: str, into: ContentDigest) -> None:
    value: Any = module
    for name in path.split("."):
        value = getattr(value, name)
    if isinstance(value, fx.GraphModule):
        _graph(value, into)
    elif isinstance(value, torch.Tensor):
        _tensors({path: value}, into)
    else:
        raise _Untold


def _target(node: fx.Node) -> str:
    target = node.target
    if isinstance(target, str):
        return target
    if isinstance(target, torch._ops.OpOverload):
        if target.namespace in NAMESPACES:
            return str(target)
    elif isinstance(target, torch._ops.HigherOrderOperator):
        if target.name() in OF_GRAPHS:
            return f"higher order {target.name()}"
    elif getattr(target, "__module__", "") in FUNCTIONS:
        return f"{target.__module__}.{target.__name__}"
    raise _Untold


def _text(value: Any) -> str:
    """An argument of a node."""
    if value is None or type(value) in PLAIN:
        return repr(value)
    if isinstance(value, fx.Node):
        return f"%{value.name}"
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return _size(value)
    if isinstance(value, tuple | list):
        return f"{'t' if isinstance(value, tuple) else 'l'}({','.join(map(_text, value))})"
    if isinstance(value, dict):
        return f"d({','.join(f'{key!r}:{_text(each)}' for key, each in value.items())})"
    if isinstance(value, slice):
        return f"s{_text((value.start, value.stop, value.step))}"
    raise _Untold


def _value(value: Any) -> str:
    """What is known of a node's result: sizes that are open with their symbols and the example's numbers."""
    if isinstance(value, torch.Tensor):
        sizes, strides = (",".join(map(_size, each)) for each in (value.shape, value.stride()))
        return f"{value.dtype}[{sizes}][{strides}]{value.device}{value.layout}"
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return _size(value)
    if isinstance(value, tuple | list):
        return f"({';'.join(map(_value, value))})"
    if value is None or type(value) in PLAIN:
        return repr(value)
    raise _Untold


def _size(size: Any) -> str:
    if isinstance(size, int):
        return str(size)
    return f"{size}={size.node._hint}"


def _tensors(tensors: dict[str, Any], into: ContentDigest) -> None:
    """Names and contents; a tensor that has several names is read once."""
    told: dict[tuple[Any, ...], str] = {}
    for name, value in tensors.items():
        if type(value) not in TENSORS or value.layout is not torch.strided or value.is_quantized:
            raise _Untold
        place = (value.data_ptr(), tuple(value.shape), value.stride(), value.dtype, value.device)
        into.text(f"{name} {value.dtype} {tuple(value.shape)} {value.stride()} {value.requires_grad}")
        if value.numel() and place in told:
            into.text(f"is {told[place]}")
            continue
        told[place] = name
        plain = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
        into.array(plain.reshape(-1).view(torch.uint8).numpy())
