# SPDX-License-Identifier: Apache-2.0
"""iGraph to source text, as far as it is the same for all targets that print."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import re
from collections.abc import Sequence

from ..device.device_kernel import DeviceKernel
from ..errors import CodegenError
from ..igraph.nodes import IGraph
from ..igraph.rounds import MOST_ROUNDS, ended_where_many, needless_rounds
from ..optimize import dead
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
#: Types of toolkits that are one word, and namespaces.
TOOLKITS = frozenset(
    f"{kind}{count}"
    for kind in "char uchar short ushort int uint long ulong longlong ulonglong float double half".split()
    for count in ("", 1, 2, 3, 4)
) | frozenset("std tvm uir dim3 bang cce nram wram sram gm".split())
#: First words of the names of functions that toolkits and C libraries declare for everybody.
FAMILIES = frozenset("acl aclrt cn cnrt cu cuda kernel make pipe posix pthread set tvm uir wait".split())
#: The special functions of C++17 (29.9.5), for the widest type and, by their last letter, others.
MATHS = frozenset(
    name + suffix
    for suffix in ("", "f", "l")
    for name in "assoc_laguerre assoc_legendre beta comp_ellint_1 comp_ellint_2 comp_ellint_3 cyl_bessel_i "
    "cyl_bessel_j cyl_bessel_k cyl_neumann ellint_1 ellint_2 ellint_3 expint hermite laguerre legendre "
    "riemann_zeta sph_bessel sph_legendre sph_neumann".split()
)
#: Macros of C that no library has (C11 7.2, 7.3, 7.5, 7.12, 7.13, 7.16, 7.19), which C++ overloads.
MACROS = frozenset(
    "alloca assert complex errno fpclassify imaginary isfinite isgreater isgreaterequal isinf isless "
    "islessequal islessgreater isnan isnormal isunordered lerp offsetof setjmp signbit va_arg va_copy va_end "
    "va_start".split()
)
#: Of the name of a kernel that could not keep its own.
PREFIX = "kernel_"
#: Characters of a name: compilers and linkers take many more, tables of kernels do not show them.
LONGEST = 200


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


#: Tensors that a kernel may take: what the host models pass. (CUDA passes 4 KiB, 512 pointers.)
MOST_TENSORS = 64


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
        What the printer refuses, kernels of more than `MOST_TENSORS` tensors, and units that would walk more
        than `MOST_ROUNDS` rounds whatever the sizes of a call are.
    """
    if len(graph.params) > MOST_TENSORS:
        raise CodegenError(
            f"`{graph.name}` takes {len(graph.params)} tensors.",
            where=str(graph.name),
            limit=f"{MOST_TENSORS} for a kernel on a device",
            remedy="make several kernels of it",
        )
    alive = [ended_where_many(dead.run(part)) for part in parts]
    rounds = max(map(needless_rounds, alive), default=1)
    if rounds > MOST_ROUNDS:
        raise CodegenError(
            f"A unit of `{graph.name}` walks {rounds} rounds, of which the sizes of a call need fewer.",
            where=str(graph.name),
            limit=f"{MOST_ROUNDS} rounds: a loop of a unit has as many for all sizes",
            remedy="give its sizes smaller upper bounds (tir_var_upper_bound), or map the loops to units",
        )
    return DeviceKernel.of(graph, print_source(printer, alive, identifier(str(graph.name))))


def identifier(name: str) -> str:
    """A name as one of C++ that no header declares.

    Which names the headers of a toolkit declare is not known here, but of which kind they are: what the C
    library has (``malloc``, ``exp``), what is spelled with capitals (``Add``, ``atomicAdd``, macros), types
    (``float4``, ``size_t``), families (``pthread_create``), and what begins or ends with an underscore.
    Those get a prefix.
    """
    legal = re.sub(r"\W", "_", name, flags=re.ASCII)
    if len(legal) > LONGEST:
        legal = f"{legal[:LONGEST]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return legal if _is_free(legal) else PREFIX + legal


def _is_free(name: str) -> bool:
    if not re.match(r"[a-z]", name) or name != name.lower() or name in RESERVED | TOOLKITS | MATHS | MACROS:
        return False
    if name.endswith(("_t", "_")) or ("_" in name and name.partition("_")[0] in FAMILIES):
        return False
    return not _in_c_library(name)


@functools.cache
def _in_c_library(name: str) -> bool:
    """Whether the C library of this process has a function of this name: its headers declare it."""
    return hasattr(ctypes.CDLL(None), name)
