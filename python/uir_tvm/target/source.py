# SPDX-License-Identifier: Apache-2.0
"""iGraph to source text, as far as it is the same for all targets that print."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import CodegenError
from ..igraph.nodes import IGraph
from ..optimize import dead
from .device_kernel import DeviceKernel
from .printer import print_source

#: Words that name no kernel: those of C++17 (the standard's table of keywords), and `main`.
RESERVED = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class "
    "compl const const_cast constexpr continue decltype default delete do double dynamic_cast else enum "
    "explicit export extern false float for friend goto if inline int long main mutable namespace new "
    "noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast "
    "return short signed sizeof static static_assert static_cast struct switch template this thread_local "
    "throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor "
    "xor_eq".split()
)
#: Names of the C library that an operator may have, too: its headers declare them for everybody.
C_LIBRARY = frozenset(
    "abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh div erf erfc exp exp2 expm1 fabs "
    "floor fma fmax fmin fmod gamma hypot index isfinite isinf isnan labs ldexp lgamma log log10 log1p log2 "
    "logb lround modf nan nearbyint pow random remainder remove rename rint round select signal signbit sin "
    "sinh sqrt tan tanh tgamma time trunc y0 y1 yn j0 j1 jn".split()
)


def check_kind(graph: IGraph, kind: str, example: str) -> None:
    """Refuse a graph for hardware of another kind.

    Parameters
    ----------
    kind : str
        What the target prints for.
    example : str
        A hardware model of that kind, for the message.

    Raises
    ------
    CodegenError
        It is for another.
    """
    hardware = graph.hardware
    if hardware.kind != kind:
        raise CodegenError(
            f"The graph `{graph.name}` is for {hardware.name}, a {hardware.kind}.",
            need=f"a hardware model of kind {kind}",
            remedy=f'schedule it for one: uir_tvm.hardware.get("{example}", "{kind}")',
        )


def print_kernels(graph: IGraph, parts: Sequence[IGraph], printer: str) -> DeviceKernel:
    """A kernel for each part of a graph, in one source text; what only other parts need is left out.

    Parameters
    ----------
    parts : sequence of IGraph
        Run one after the other (`uir_tvm.optimize.split.phases`).
    printer : str
        The printer's global function.

    Raises
    ------
    CodegenError
        What the printer refuses.
    """
    alive = [dead.run(part) for part in parts]
    return DeviceKernel.of(graph, print_source(printer, alive, identifier(str(graph.name))))


def identifier(name: str) -> str:
    """A name as one of C++."""
    legal = re.sub(r"\W", "_", name, flags=re.ASCII)
    free = legal and not legal[0].isdigit() and legal not in RESERVED | C_LIBRARY
    return legal if free else f"kernel_{legal}"
