# SPDX-License-Identifier: Apache-2.0
"""Prints an iGraph as text; `uir_tvm.igraph.parser` reads it back to an equal graph."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import IGraphError
from .affine import Affine, affine
from .dealt import is_dealt
from .iops import IOPS
from .nodes import HardwareModel, IGraph, IOp, IPointer, ISlice, Loop
from .space import Size

#: What may be written without quotes.
NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*"

#: Fields of a hardware model in the order of the text; its further figures follow.
HARDWARE_FIELDS = ("kind", "num_groups", "num_units", "reg_bytes", "sram_bytes", "vector_bytes")


def print_igraph(graph: IGraph) -> str:
    """The text of a graph: its hardware model, then its pointers and loop tree.

    Raises
    ------
    uir_tvm.errors.IGraphError
        An attribute that is no plain data (number, bool, string, None, list, mapping), or a
        variable whose name is no identifier.
    """
    head = f"igraph {_name(graph.name)} on {_name(graph.hardware.name)}"
    lines = [print_hardware(graph.hardware), ""]
    groups = str(graph.num_groups) if graph.groups is None else print_affine(graph.groups)
    if graph.groups is not None and is_dealt(graph):
        groups += f" up_to {graph.num_groups}"
    lines.append(f"{head} parallel ({groups}, {graph.num_units}) {{")
    lines += [print_size(size) for size in graph.sizes]
    lines += [f"  attr {_name(key)} = {print_value(value)}" for key, value in _sorted(graph.attrs)]
    lines += [f"  {_name(p.name)} = {print_pointer(p)}" for p in graph.pointers]
    lines += _body(graph.body, "  ")
    lines.append("}")
    return "\n".join(lines) + "\n"


def print_hardware(model: HardwareModel) -> str:
    """A hardware model as a block of ``key = value`` lines."""
    lines = [f"hardware {_name(model.name)} {{", f"  kind = {_name(model.kind)}"]
    lines += [f"  {field} = {getattr(model, field)}" for field in HARDWARE_FIELDS[1:]]
    lines += [f"  figure {_name(key)} = {print_value(value)}" for key, value in _sorted(model.figures)]
    return "\n".join([*lines, "}"])


def print_size(size: Size) -> str:
    """``size n = [1, 4096, 8]``: least and greatest value, and what divides all values (if not 1)."""
    by = f", {size.multiple_of}" if size.multiple_of != 1 else ""
    return f"  size {_name(size.name)} = [{size.low}, {size.high}{by}]"


def print_pointer(pointer: IPointer) -> str:
    """``iPointer(dram, fp32, 8192, in)`` or ``iPointer(dram, fp32, (n, 64), in)``; ``tmp`` is left out."""
    role = "" if pointer.role == "tmp" else f", {pointer.role}"
    size = f"({', '.join(map(print_affine, pointer.dims))})" if pointer.dims else str(pointer.size)
    return f"iPointer({pointer.level}, {pointer.dtype}, {size}{role})"


def print_slice(piece: ISlice) -> str:
    """``a[4*pid; (2,32); (32,1); rows :n - pid]``: offset, shape, stride, then the valid ranges there are."""
    parts = [
        print_affine(piece.offset),
        f"({piece.rows},{piece.cols})",
        f"({','.join(print_affine(affine(step)) for step in piece.stride)})",
    ]
    for axis, begin, end in (("rows", *piece.valid[:2]), ("cols", *piece.valid[2:])):
        if begin is not None or end is not None:
            parts.append(f"{axis} {_bound(begin)}:{_bound(end)}")
    return f"{_name(piece.pointer.name)}[{'; '.join(parts)}]"


def print_affine(expression: Affine) -> str:
    """``4096*lid + ((pid + 1) / 3)``; ``/`` rounds down, ``%`` is not negative."""
    for name in expression.variables():
        if not re.fullmatch(NAME, name):
            raise IGraphError(f"The variable {name!r} cannot be written as text.", need="an identifier")
    return str(expression)


def print_iop(iop: IOp) -> str:
    """One line: mnemonic, targets, sources, then the other attributes in brackets.

    It also prints iOps that break rules, so that messages can show them.
    """
    targets, sources = [print_slice(s) for s in iop.targets], [print_slice(s) for s in iop.sources]
    if iop.op in IOPS and IOPS[iop.op].variadic:
        operands = f"[{', '.join(targets)}], [{', '.join(sources)}]"
    else:
        operands = ", ".join([*targets, *sources])
    return " ".join(part for part in (_mnemonic(iop), operands, _attrs(iop)) if part)


def print_value(value: Any) -> str:
    """A plain value: number, bool, None, string, list or mapping; floats to the last bit."""
    if isinstance(value, ISlice):
        return print_slice(value)
    if isinstance(value, Affine):
        return print_affine(value)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(str(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_name(k)}: {print_value(v)}" for k, v in _sorted(value)) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(print_value, value)) + "]"
    raise IGraphError(
        f"An attribute of the type {type(value).__name__} cannot be written as text.",
        need="a number, bool, string, None, list or mapping",
    )


def _name(name: str) -> str:
    return str(name) if re.fullmatch(NAME, name) else json.dumps(str(name))


def _sorted(mapping: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(((str(k), v) for k, v in mapping.items()), key=lambda item: item[0])


def _bound(bound: Affine | None) -> str:
    return "" if bound is None else print_affine(bound)


def _mnemonic(iop: IOp) -> str:
    if iop.op not in IOPS:
        return ".".join(part for part in (iop.op, iop.name, iop.dtype) if part)
    ends = {"from": iop.sources, "to": iop.targets}
    parts = [str(iop.op)]
    for part in IOPS[iop.op].mnemonic:
        if part in ends:
            parts.append(str(ends[part][0].pointer.level) if len(ends[part]) else "?")
        elif part in ("name", "dtype"):
            parts.append(str(getattr(iop, part)))
        else:
            parts.append(str(iop.attrs[part]) if part in iop.attrs else "?")
    return ".".join(parts)


def _attrs(iop: IOp) -> str:
    spec = IOPS.get(iop.op)
    rules = spec.attrs if spec is not None else {}
    shown = [(k, v) for k, v in _sorted(iop.attrs) if spec is None or k not in spec.mnemonic]
    parts = []
    for key, value in shown:
        rule = rules.get(key)
        if rule is not None and rule.bare:
            text = print_value(value)
            parts.append(text.removeprefix("[").removesuffix("]"))
        elif rule is not None and rule.kind == "word":
            parts.append(f"{key}={value}")
        else:
            parts.append(f"{key}={print_value(value)}")
    return f"[{', '.join(parts)}]" if shown else ""


def _body(body: Sequence[Any], indent: str) -> Iterator[str]:
    for node in body:
        if not isinstance(node, Loop):
            yield indent + print_iop(node)
            continue
        attrs = ", ".join(f"{_name(k)}={print_value(v)}" for k, v in _sorted(node.attrs))
        if not re.fullmatch(NAME, node.var):
            raise IGraphError(f"The variable {node.var!r} cannot be written as text.", need="an identifier")
        yield f"{indent}for {node.var} in {node.extent} {f'[{attrs}] ' if attrs else ''}{{"
        yield from _body(node.body, indent + "  ")
        yield indent + "}"
