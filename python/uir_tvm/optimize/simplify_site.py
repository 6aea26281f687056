# SPDX-License-Identifier: Apache-2.0
"""What a rule of algebraic tidying sees, and the numbers it reasons with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import numpy as np

from ..igraph import make
from ..igraph.dtypes import dtype_of
from ..igraph.iops import head, spec_of
from ..igraph.nodes import IOp, ISlice
from .made_values import Definitions, seen_through
from .slices import place, valid


@attrs.frozen(eq=False)
class Site:
    """One iOp, and what holds before it."""

    iop: IOp
    definitions: Definitions

    @property
    def head(self) -> str:
        """Of which iOp it is, as rules name it."""
        return head(self.iop)

    @property
    def kind(self) -> str:
        """``float``, ``int``, ``uint`` or ``bool``: that of the iOp's dtype."""
        return dtype_of(self.iop.dtype).kind

    def param(self) -> Any:
        """The one parameter of a unary iOp, as its dtype holds it; None where it has none."""
        params = self.iop.attrs.get("params", ())
        return rounded(params[0], self.iop.dtype) if len(params) == 1 else None

    def constant(self, k: int) -> Any:
        """The value that every element of source ``k`` holds, as its dtype holds it; None where it varies."""
        made = self.definitions.maker(self.iop, k)
        if made is None or not spec_of(made).constant:
            return None
        return rounded(made.attrs["value"], str(made.dtype))

    def before(self, k: int = 0, *heads: str) -> IOp | None:
        """The elementwise iOp, one of ``heads``, that made source ``k``, if what it read is still there."""
        made = self.definitions.readable(self.iop, k)
        if made is None or "pad" in made.attrs or (heads and head(made) not in heads):
            return None
        return made

    def through(self, k: int, maker: IOp, j: int = 0) -> ISlice:
        """What ``maker`` read as its source ``j``, to be read instead of source ``k``."""
        return seen_through(self.iop, k, maker, j)

    def copy(self, source: ISlice) -> IOp:
        """The target as a copy of a slice."""
        return make.move(self.iop.target, source)

    def filled(self, value: Any) -> IOp:
        """The target as a constant."""
        return make.fill(self.iop.target, plain(value))

    def unary(self, name: str, source: ISlice, *params: Any) -> IOp:
        """The target as a function of a slice."""
        return make.unary(name, self.iop.target, source, [plain(p) for p in params])


@attrs.frozen(eq=False)
class Rule:
    """One rule of tidying.

    Parameters
    ----------
    name, after : str
        What it rewrites, and into what.
    reason : str
        Why the bits stay; of a rule for ``fast_math``, how they may change.
    apply : Callable
        The new iOp, or None where the rule has nothing to say.
    heads : tuple[str, ...]
        Of which iOps it speaks, as `igraph.iops.head` writes them; none: of all.
    """

    name: str
    after: str
    reason: str
    apply: Callable[[Site], IOp | None]
    heads: tuple[str, ...] = ()

    def at(self, site: Site) -> IOp | None:
        """What it makes of an iOp; None where it has nothing to say."""
        return self.apply(site) if not self.heads or site.head in self.heads else None


def named(op: str, names: Iterable[str]) -> tuple[str, ...]:
    """The heads of named functions of one iOp."""
    return tuple(f"{op}.{name}" for name in names)


def rounded(value: Any, dtype: str) -> Any:
    """A number as an iOp of that dtype holds it: a NumPy scalar of the storage type."""
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype_of(dtype).numpy)[()]


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python number that stands for it in an attribute."""
    if isinstance(value, bool | int | float):
        return value
    kind = np.asarray(value).dtype.kind
    return bool(value) if kind == "b" else int(value) if kind in "iu" else float(value)


def same_number(a: Any, b: Any, dtype: str) -> bool:
    """Whether two numbers are the same in a dtype, zeros of different sign being different."""
    x, y = rounded(a, dtype), rounded(b, dtype)
    if dtype_of(dtype).kind != "float":
        return bool(x == y)
    return bool(x == y) and bool(np.signbit(float(x)) == np.signbit(float(y)))


def is_nan(value: Any) -> bool:
    """Whether a number is none."""
    return bool(np.isnan(float(value)))


def same_slice(a: ISlice, b: ISlice) -> bool:
    """Whether two slices are the same elements with the same bounds."""
    return place(a) == place(b) and valid(a) == valid(b)
