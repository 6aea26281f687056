# SPDX-License-Identifier: Apache-2.0
"""Named integers with what is known of them, and what follows for quasi-affine expressions.

pid and loop variables run over ``[0, extent)``; a `Size` is known when the kernel runs, and lies between two
numbers.  What a `Space` says of an expression holds for all values that it admits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tvm_ffi
from tvm_ffi.dataclasses import c_class

from ..errors import IGraphError
from .affine import Affine, AffineLike, affine, var
from .held_fields import Immutable, held

#: Largest number of an address, a bound or a count of points: rules compute with 64 bits, differences too.
NUMBER_LIMIT = 1 << 61
#: What is taken for a size of which nothing is said, where its range has it.
USUAL = 2048

_make = tvm_ffi.get_global_func("uir.space.make")
_bind = tvm_ffi.get_global_func("uir.space.bind")
_range = tvm_ffi.get_global_func("uir.space.range")
_range_of_difference = tvm_ffi.get_global_func("uir.space.range_of_difference")
_congruence = tvm_ffi.get_global_func("uir.space.congruence")
_magnitude = tvm_ffi.get_global_func("uir.space.magnitude")
_floordiv = tvm_ffi.get_global_func("uir.space.floordiv")
_mod = tvm_ffi.get_global_func("uir.space.mod")
_fold = tvm_ffi.get_global_func("uir.space.fold")


@held
@c_class("uir.Size", repr=False)
class Size(Immutable):
    """A run-time integer: ``low <= value <= high``, and ``multiple_of`` divides it."""

    # tvm-ffi-stubgen(begin): object/uir.Size
    # fmt: off
    name: str
    low: int
    high: int
    multiple_of: int
    # fmt: on
    # tvm-ffi-stubgen(end)

    if TYPE_CHECKING:

        def __init__(self, name: str, low: int, high: int, multiple_of: int = 1) -> None: ...

    @property
    def expr(self) -> Affine:
        """The expression that is this size."""
        return var(str(self.name))

    def check(self, value: int) -> None:
        """Refuse a value that the size does not admit.

        Raises
        ------
        IGraphError
        """
        if self.low <= value <= self.high and value % self.multiple_of == 0:
            return
        multiple = f" and a multiple of {self.multiple_of}" if self.multiple_of > 1 else ""
        raise IGraphError(
            f"The size {self.name} is {value}.",
            need=f"a value from {self.low} to {self.high}{multiple}",
            remedy="compile for a wider range of sizes",
        )

    @property
    def usual(self) -> int:
        """The greatest value that it admits up to `USUAL`, or else the least."""
        step = int(self.multiple_of)
        least = -(-int(self.low) // step) * step
        return max(min(int(self.high), USUAL) // step * step, least)

    def __repr__(self) -> str:
        return f"Size({self.name}, {self.low}..{self.high}, multiple of {self.multiple_of})"


@c_class("uir.Pair", init=False, repr=False)
class _Pair(tvm_ffi.Object):
    """Two numbers of an answer."""

    # tvm-ffi-stubgen(begin): object/uir.Pair
    # fmt: off
    first: int
    second: int
    # fmt: on
    # tvm-ffi-stubgen(end)


class Space:
    """Variables and what is known of them.

    Parameters
    ----------
    variables : mapping of str to int or Size
        An int is an extent: the variable runs over ``[0, extent)``.
    """

    __slots__ = ("_native", "variables")

    def __init__(self, variables: Mapping[str, int | Size]) -> None:
        self.variables = dict(variables)
        self._native: Any = _make(self.variables)

    def bind(self, name: str, known: int | Size) -> None:
        """Make a variable known; it replaces one of the same name."""
        _bind(self._native, name, known)
        self.variables[name] = known

    @property
    def sizes(self) -> list[Size]:
        """The variables that are sizes."""
        return [known for known in self.variables.values() if isinstance(known, Size)]

    def range(self, value: Affine) -> tuple[int, int]:
        """Least and greatest value, reached where each variable occurs once; else it may be wider.

        Raises
        ------
        IGraphError
            A bound leaves 64 bits.
        ValueError
            A variable is not known here.
        """
        found = _range(self._native, value)
        return found.first, found.second

    def congruence(self, value: Affine) -> tuple[int, int]:
        """(m, r) with every value ``r`` modulo ``m > 0``; (0, r) where ``r`` is the only value."""
        found = _congruence(self._native, value)
        return found.first, found.second

    def is_multiple(self, value: Affine, divisor: int) -> bool:
        """Whether it is proved that ``divisor > 0`` divides every value."""
        modulus, remainder = self.congruence(value)
        return modulus % divisor == 0 and remainder % divisor == 0

    def magnitude(self, value: Affine) -> int:
        """A bound of every number met on the way to a value, parts of sums too; at most 2^63 - 1."""
        return int(_magnitude(self._native, value))

    # -- decisions --------------------------------------------------------------------------------

    def _difference(self, a: AffineLike, b: AffineLike) -> tuple[int, int]:
        """Least and greatest value of ``a - b``."""
        found = _range_of_difference(self._native, affine(a), affine(b))
        return found.first, found.second

    def sign(self, value: Affine) -> int | None:
        """1 when the expression is always positive, -1 when never, None when it varies."""
        low, high = self.range(value)
        return 1 if low > 0 else -1 if high <= 0 else None

    def at_most(self, a: AffineLike, b: AffineLike) -> bool | None:
        """Whether ``a <= b``: always, never, or (None) not known to be either."""
        low, high = self._difference(a, b)
        return True if high <= 0 else False if low > 0 else None

    def least(self, a: AffineLike, b: AffineLike) -> Affine | None:
        """``min(a, b)`` where one of them always is; else None."""
        low, high = self._difference(a, b)
        return affine(a) if high <= 0 else affine(b) if low >= 0 else None

    def greatest(self, a: AffineLike, b: AffineLike) -> Affine | None:
        """``max(a, b)`` where one of them always is; else None."""
        low, high = self._difference(a, b)
        return affine(a) if low >= 0 else affine(b) if high <= 0 else None

    # -- simpler expressions ----------------------------------------------------------------------

    def floordiv(self, value: Affine, k: int) -> Affine:
        """``floor(value / k)``, simplified: ``(8p + i) / 16 -> p / 2`` for ``0 <= i < 8``."""
        return _floordiv(self._native, value, k)

    def mod(self, value: Affine, k: int) -> Affine:
        """``value - k * floor(value / k)``, simplified."""
        return _mod(self._native, value, k)

    def fold(self, value: Affine) -> Affine:
        """Join ``c*k*floor(e/k) + c*(e mod k)`` into ``c*e``, also where the quotient was simplified."""
        return _fold(self._native, value)

    # -- values -----------------------------------------------------------------------------------

    def evaluate(self, value: Affine, env: Mapping[str, int]) -> int:
        """The value for values of the variables, those of sizes checked.

        Raises
        ------
        IGraphError
            A size does not admit its value, or a number on the way leaves 64 bits.
        """
        for size in self.sizes:
            if str(size.name) in env:
                size.check(env[str(size.name)])
        return value.evaluate(env)
