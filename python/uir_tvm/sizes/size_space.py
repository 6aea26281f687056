# SPDX-License-Identifier: Apache-2.0
"""The sizes that a model leaves open, and what holds of them.

What is asked of an `OpenSize` is answered for all values of the sizes where their ranges decide it. Where
they do not, the answer is that of one representative value of each, and the `SizeSpace` keeps it as a
condition: what is made with these answers is right for all sizes that meet them.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from ..errors import OpenSizeError, SizeError
from .open_arithmetic import OPEN_FUNCTIONS
from .open_bounds import lower_bound
from .open_size import AnySize, OpenSize, at
from .open_symbols import OpenSymbol, representative_in
from .open_terms import Terms
from .size_condition import Condition, is_equation
from .symbolic_shapes import Range, sizes_text, value_of

#: What is no polynomial, by its name in conditions.
PARTS: dict[str, Callable[[int, int], int]] = {"div": operator.floordiv, "mod": operator.mod, "min": min}


class SizeSpace:
    """The symbols of a model, and the conditions under which answers hold.

    Parameters
    ----------
    symbols : iterable of OpenSymbol
    met : mapping of str to int, optional
        Sizes that have to meet what comparisons answer. Where representatives answer otherwise,
        `SizeSpace.unlike` is the condition that representatives like these sizes hold, and the comparison
        raises OpenSizeError.
    may_agree : bool
        Whether sizes that must agree do, though ``met`` has other numbers for them.
    """

    def __init__(
        self,
        symbols: Iterable[OpenSymbol],
        met: Mapping[str, int] | None = None,
        may_agree: bool = False,
    ) -> None:
        self.symbols = {symbol.name: symbol for symbol in symbols}
        #: The value of each symbol that stands for all.
        self.representatives = {name: symbol.representative for name, symbol in self.symbols.items()}
        #: Sizes that the model finds while it runs (how many elements are not zero), by name.
        self.found: dict[str, OpenSymbol] = {}
        #: What has to hold of these beside, each with what asks for it.
        self.needs: dict[str, str] = {}
        self._met, self._may_agree = met, may_agree
        self.unlike: Condition | None = None
        #: Why the model does not take the sizes that are met: two ought to be equal.
        self.refused: SizeError | None = None
        self._names = {symbol.variable or symbol.name: symbol.name for symbol in self.symbols.values()}
        #: What stands for a symbol where a size is handed to TVM.
        self._variables: dict[str, Any] = {}
        self._keeps = True
        #: Whether quotients have a meaning whose divisors may be 0.
        self._means = False
        self._conditions: dict[tuple[Terms, str], Condition] = {}
        #: Quotients, remainders and minima by the name that they have in monomials.
        self._parts: dict[str, tuple[str, Any, Any]] = {}
        self._ranges: dict[str, Range] = {
            name: (symbol.low, symbol.high) for name, symbol in self.symbols.items()
        }
        self._bounds: dict[Terms, tuple[int | None, int | None]] = {}
        for symbol in self.symbols.values():
            self._divide(symbol)
            if isinstance(symbol.equals, int):
                self._keep(self.symbol(symbol.name) - symbol.equals, "==")
            elif symbol.equals:
                self._keep(OpenSize((((symbol.equals,), 1), ((symbol.name,), -1)), self), "==")

    def _divide(self, symbol: OpenSymbol) -> None:
        """Where all values are multiples of a number: that they are is a condition."""
        if symbol.multiple == 1:
            return
        size, divisor = OpenSize((((symbol.name,), 1),), self), symbol.multiple
        self._keep(self.part("mod", size, divisor), "==")
        (((quotient,), _),) = self.part("div", size, divisor).terms
        high = None if symbol.high is None else symbol.high // divisor
        self._ranges[quotient] = -(-symbol.low // divisor), high

    def symbol(self, name: str) -> OpenSize:
        """The size of this name; of multiples of a number that number times a whole quotient.

        Of a symbol that equals another it is the other's.
        """
        known = self.symbols.get(name)
        if known is not None and isinstance(known.equals, str) and known.equals:
            return self.symbol(known.equals)
        size = OpenSize((((name,), 1),), self)
        if known is None or known.multiple == 1:
            return size
        return self.part("div", size, known.multiple) * known.multiple

    def known(self, name: str) -> AnySize:
        """The same; a number, where a symbol always has that value."""
        found = self.symbols.get(name)
        equals = "" if found is None else found.equals
        if isinstance(equals, str):
            return self.known(equals) if equals else self.symbol(name)
        return equals

    def find(self, name: str, ends: Range, variable: Any) -> OpenSize:
        """A size that is known once the model runs.

        It equals no other size; what else is decided of it has to be checked when it is known.

        Parameters
        ----------
        name : str
        ends : (int, int or None)
            Least and greatest value.
        variable : tvm.tirx.Var
            What stands for it where a size is handed to TVM.
        """
        if name not in self.found:
            value = representative_in(ends, self.representatives.values())
            self.found[name] = OpenSymbol(name, *ends, value, str(variable.name))
            self.representatives[name] = value
            self._names[str(variable.name)] = name
            # what has no elements has no layout that could be wrong
            self._ranges[name] = max(ends[0], 1), ends[1]
            self._bounds.clear()
        self._variables[name] = variable
        return self.symbol(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The symbols of the inputs, then the sizes that are found."""
        return (*self.symbols, *self.found)

    def is_found(self, size: OpenSize) -> bool:
        """Whether a size is known only once the model runs."""
        return bool(self.found) and not self.found.keys().isdisjoint(self.names_in(size))

    def meet(self, variable: str, expression: Any) -> AnySize | None:
        """The size that a variable of TVM is; None for one that is no symbol.

        The first of a name is what stands for the symbol from then on.
        """
        name = self._names.get(variable)
        if name is None:
            return None
        self._variables.setdefault(name, expression)
        return self.known(name)

    @property
    def has_variables(self) -> bool:
        """Whether a variable of every symbol was met."""
        return len(self._variables) == len(self.symbols) + len(self.found)

    @property
    def variables(self) -> dict[str, Any]:
        """What stands for each symbol where a size is handed to TVM; a variable of every one was met."""
        return {name: self._variables[name] for name in self.names}

    @property
    def range_texts(self) -> list[str]:
        """The range of every symbol, as it was given."""
        return [
            f"{each.low} <= {name}" + (f" <= {each.high}" if each.high is not None else "")
            for name, each in self.symbols.items()
        ]

    def range_of(self, name: str) -> Range:
        """The least and the greatest value of a symbol by its range and by the conditions on it alone."""
        found = self.found.get(name)
        low, high = self._ranges[name] if found is None else (found.low, found.high)
        for condition in self.conditions:
            factors = dict(condition.size.terms)
            factor, rest = factors.pop(((name,)), 0), factors.pop((), 0)
            if condition.relation != ">=" or factors or not factor:
                continue
            if factor > 0:
                low = max(low, -(rest // factor))
            else:
                most = rest // -factor
                high = most if high is None else min(high, most)
        return low, high

    def may_limit(self, name: str, high: int) -> bool:
        """Whether a symbol may be held to a number below its own: the sizes at hand must not exceed it."""
        own = self._ranges[name][1]
        known = self.representatives[name], (self._met or self.representatives)[name]
        return name not in self.found and (own is None or own > high) and max(known) <= high

    def limit(self, name: str, high: int) -> None:
        """Hold a symbol to a greatest value from now on: a condition, which larger sizes do not meet."""
        assert self.may_limit(name, high), (name, high)
        self._keep(high - self.symbol(name), ">=")

    def said(self, text: str) -> AnySize:
        """An expression in variables' names, as `sizes.symbolic_shapes` reads it.

        Its quotients have a meaning: that divisors are not 0 is a condition where it is not known.
        """
        symbols: Mapping[str, Any] = {variable: self.known(name) for variable, name in self._names.items()}
        before, self._means = self._means, True
        try:
            return value_of(text, symbols, OPEN_FUNCTIONS)
        finally:
            self._means = before

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What was decided by representatives, in the order in which it was asked."""
        return tuple(self._conditions.values())

    def admits(self) -> Callable[..., bool]:
        """A function of a size for each symbol, by name: whether ranges and conditions hold.

        Conditions that are asked later hold from then on. Sizes that are found are no symbols.
        """
        known: list[Any] = [-1, None]

        def holds(**sizes: int) -> bool:
            if known[0] != len(self._conditions):
                known[:] = len(self._conditions), self._test()
            return bool(known[1](**sizes))

        return holds

    def _test(self) -> Callable[..., bool]:
        """The same for the conditions that there are now."""
        tests = [f"{symbol.low} <= {name}" for name, symbol in self.symbols.items()]
        tests += [
            f"{name} <= {symbol.high}" for name, symbol in self.symbols.items() if symbol.high is not None
        ]
        tests += [str(each) for each in self.conditions if not self.is_found(each.size)]
        text = f"lambda {', '.join(self.symbols)}: {' and '.join(tests) or 'True'}"
        return cast("Callable[..., bool]", eval(text, dict(PARTS)))

    def value(self, size: OpenSize, sizes: Mapping[str, int]) -> int:
        """The number that a size is, for a number for each symbol."""
        return sum(
            factor * math.prod(self._number(name, sizes) for name in monomial)
            for monomial, factor in size.terms
        )

    def _number(self, name: str, sizes: Mapping[str, int]) -> int:
        if name in self._parts:
            operation, left, right = self._parts[name]
            return PARTS[operation](at(left, sizes), at(right, sizes))
        return sizes[name]

    def names_in(self, size: OpenSize) -> set[str]:
        """The symbols of a size, those of its quotients, remainders and minima too."""
        found: set[str] = set()
        for name in (name for monomial, _ in size.terms for name in monomial):
            if name in self._parts:
                sides = self._parts[name][1:]
                found.update(*(self.names_in(side) for side in sides if isinstance(side, OpenSize)))
            else:
                found.add(name)
        return found

    def expression(self, size: OpenSize) -> Any:
        """A size in terms of what stands for the symbols."""
        from tvm import tirx

        of_parts = {"div": tirx.floordiv, "mod": tirx.floormod, "min": tirx.min}
        total: Any = 0
        for monomial, factor in size.terms:
            term: Any = factor
            for name in monomial:
                if name in self._parts:
                    operation, left, right = self._parts[name]
                    a, b = (self.expression(p) if isinstance(p, OpenSize) else p for p in (left, right))
                    term = term * of_parts[operation](a, b)
                else:
                    term = term * self._variables[name]
            total = total + term
        return total

    def settle(self) -> None:
        """Answer by representatives alone from now on."""
        self._met = None

    @contextlib.contextmanager
    def only_telling(self) -> Iterator[None]:
        """Keep no conditions inside: answers are for reports, and nothing is made with them."""
        self._keeps = False
        try:
            yield
        finally:
            self._keeps = True

    # What is asked of sizes.

    def is_zero(self, size: OpenSize) -> bool:
        """Whether it is 0."""
        low, high = self.bounds(size)
        if (low is not None and low > 0) or (high is not None and high < 0):
            return False
        if low == high == 0:
            return True
        whole = math.gcd(*(factor for monomial, factor in size.terms if monomial))
        if size.constant % whole or self.is_found(size):
            return False
        holds = self.value(size, self.representatives) == 0
        self._keep(size if size.terms[-1][1] > 0 else -size, "==" if holds else "!=")
        return holds

    def agree(self, a: AnySize, b: AnySize) -> bool:
        """Whether sizes are equal, where the model means nothing else.

        Raises
        ------
        OpenSizeError
            What stands for a symbol is unlike another one, or unlike a number, where the sizes that are met
            are equal: `unlike` says so.
        """
        size = a - b
        if not isinstance(size, OpenSize):
            return bool(size == 0)
        met = self._met
        if met is not None and is_equation(size, self.symbols) and self.value(size, self.representatives):
            if self._may_agree or self.value(size, met) == 0:
                self.unlike = Condition(size, "==")
                raise OpenSizeError(
                    f"{a} and {b} are read as unlike.",
                    where=sizes_text(met),
                    need="one size for both",
                    remedy="read the model with one",
                )
            numbers = [side if isinstance(side, int) else self.value(side, met) for side in (a, b)]
            if 1 not in numbers:
                equal = Condition(size if size.terms[-1][1] > 0 else -size, "==")
                self.refused = SizeError(
                    f"The model does not take {sizes_text(met)}.",
                    need=f"{equal}, as it computes with both",
                    limit=f"{numbers[0]} and {numbers[1]}",
                    remedy="pass inputs of sizes that agree",
                )
        return bool(a == b)

    def is_negative(self, size: OpenSize) -> bool:
        """Whether it is less than 0."""
        low, high = self.bounds(size)
        if low is not None and low >= 0:
            return False
        if high is not None and high < 0:
            return True
        holds = self.value(size, self.representatives) < 0
        found = self.is_found(size)
        if found and (_has_elements(size.terms) or _has_elements((-1 - size).terms)):
            return self.value(size, self.representatives) < 0
        met = None if found else self._met
        if met is not None and (self.value(size, met) < 0) != holds:
            self.unlike = Condition(size if holds else -size - 1, ">=")
            raise OpenSizeError(
                f"What stands for all sizes is unlike {sizes_text(met)}.",
                where=str(self.unlike),
                need="representatives that answer as these sizes do",
                remedy="read the model with others",
            )
        self._keep(-size - 1 if holds else size, ">=")
        return holds

    def _keep(self, size: Any, relation: str) -> None:
        if not self._keeps:
            return
        self._conditions.setdefault((size.terms, relation), Condition(size, relation))
        if relation == ">=":
            self._narrow(size)

    def _narrow(self, size: OpenSize) -> None:
        """A name that is not less than a number, or no more than one, is in a smaller range from now on."""
        terms = [(monomial, factor) for monomial, factor in size.terms if monomial]
        if len(terms) != 1 or len(terms[0][0]) != 1 or abs(terms[0][1]) != 1:
            return
        ((name,), factor), bound = terms[0], -size.constant * terms[0][1]
        low, high = self._ranges[name]
        if factor > 0:
            self._ranges[name] = max(low, bound), high
        else:
            self._ranges[name] = low, bound if high is None else min(high, bound)
        self._bounds.clear()

    def bounds(self, size: OpenSize) -> tuple[int | None, int | None]:
        """A number that it is never less than, and one that it never exceeds; None where none is known."""
        if size.terms not in self._bounds:
            low, high = self._least(size), self._least(-size)
            self._bounds[size.terms] = low, None if high is None else -high
        return self._bounds[size.terms]

    def _least(self, size: AnySize) -> int | None:
        """A number that it is never less than; a minimum that is taken off is at most either of its sides."""
        if not isinstance(size, OpenSize):
            return int(size)
        found = [lower_bound(size.terms, self._ranges)]
        for monomial, factor in size.terms:
            operation, *sides = self._parts.get(monomial[0], ("",)) if len(monomial) == 1 else ("",)
            if factor < 0 and operation == "min":
                rest = size - factor * self.symbol(monomial[0])
                found += [self._least(rest + factor * side) for side in sides]
        return max((low for low in found if low is not None), default=None)

    def ends(self, size: AnySize, limits: Mapping[str, int]) -> tuple[int | None, int | None]:
        """The same, where some symbols are no more than a number, and what the model finds may be nothing."""
        if not isinstance(size, OpenSize):
            return size, size
        before, known = self._ranges, self._bounds
        ranges = {
            name: (self.found[name].low if name in self.found else low, limits.get(name, high))
            for name, (low, high) in before.items()
        }
        try:
            self._ranges, self._bounds = ranges, {}
            for name, (operation, left, right) in self._parts.items():
                with contextlib.suppress(ArithmeticError):  # of nothing, which no quotient is asked of
                    own = self._range_of_part(operation, left, right)
                    low, high = _narrower(ranges[name], own)
                    ranges[name] = (own[0] if self.is_found(self.symbol(name)) else low), high
            return self.bounds(size)
        finally:
            self._ranges, self._bounds = before, known

    def part(self, operation: str, left: OpenSize | int, right: OpenSize | int) -> OpenSize:
        """A quotient, remainder or minimum that no polynomial is."""
        name = f"{operation}({left}, {right})"
        if name not in self._parts:
            if self._means and operation != "min":
                # each is asked, and is a condition from then on where ranges do not say it
                bool(right < 1), bool(left < 0)
            self._ranges[name] = self._range_of_part(operation, left, right)
            self._parts[name] = (operation, left, right)
        return OpenSize((((name,), 1),), self)

    def _range_of_part(
        self, operation: str, left: OpenSize | int, right: OpenSize | int
    ) -> tuple[int, int | None]:
        (low, high), (least, most) = (
            self.bounds(side) if isinstance(side, OpenSize) else (side, side) for side in (left, right)
        )
        if operation == "min":
            lows = [end for end in (low, least) if end is not None]
            return min(lows) if len(lows) == 2 else 0, None
        if low is None or low < 0 or least is None or least <= 0:
            raise ArithmeticError(f"{operation}({left}, {right}) may be of numbers below 0, or by 0")
        if operation == "mod":
            return 0, None if most is None else most - 1
        return 0 if most is None else low // most, None if high is None else high // least


def _narrower(one: Range, other: Range) -> Range:
    """What lies in both."""
    highs = [high for high in (one[1], other[1]) if high is not None]
    return max(one[0], other[0]), min(highs) if highs else None


def _has_elements(terms: Terms) -> bool:
    """Whether a polynomial is not negative where something has one or two elements at least.

    What asks so treats 0 and 1 as special, and is right of them without.
    """
    rest = dict(terms)
    constant = rest.pop((), 0)
    return len(rest) == 1 and -2 * min(rest.values()) <= constant < 0


_SPACE: contextvars.ContextVar[SizeSpace | None] = contextvars.ContextVar("open_sizes", default=None)


@contextlib.contextmanager
def reading_open_sizes(space: SizeSpace) -> Iterator[None]:
    """Read symbols in shapes of Relax as sizes of this space inside, not as shapes that are not known."""
    token = _SPACE.set(space)
    try:
        yield
    finally:
        _SPACE.reset(token)


def open_sizes() -> SizeSpace | None:
    """The space of `reading_open_sizes`; None outside."""
    return _SPACE.get()
