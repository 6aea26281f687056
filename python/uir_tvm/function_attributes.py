# SPDX-License-Identifier: Apache-2.0
"""A PrimFunc apart from its attributes: what it computes, by which it is known whatever it is called."""

from __future__ import annotations

from tvm import tirx
from tvm_ffi.structural import structural_hash

#: Annotation of a block that stores where data says: its iterations may run in any order, as two of them that
#: store to one place may leave either's value there.
SCATTERS = "uir.scatters"
#: Attribute of a function for the host: as far as LLVM need optimise it (the levels of its ``-O``).
LLVM_LEVEL = "uir.llvm_level"


def bare(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """A function without its attributes."""
    for name in func.attrs.keys() if func.attrs else ():
        func = func.without_attr(name)
    return func


def origin_of(func: tirx.PrimFunc) -> str:
    """By what a kernel is found again: the hash of what it computes, whatever its name and attributes."""
    return hash_text(structural_hash(bare(func)))


def hash_text(value: int) -> str:
    """A structural hash as 16 digits."""
    return f"{value & (1 << 64) - 1:016x}"


def with_attributes_of(func: tirx.PrimFunc, other: tirx.PrimFunc) -> tirx.PrimFunc:
    """A function, such as a scheduled one, with the attributes of the one that it was made of."""
    for name in other.attrs.keys() if other.attrs else ():
        func = func.with_attr(name, other.attrs[name])
    return func
