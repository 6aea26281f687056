# SPDX-License-Identifier: Apache-2.0
"""The sizes that the buffers of a PrimFunc leave open."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import tvm
from tvm import tirx

from ..bound_kernel import bound_kernel, symbols_in
from ..errors import IGraphError
from .size_names import TIMES, follows, value_of
from .space import Size, Space

#: A function's attribute: what is known of its sizes, by the variable's name: (least, greatest, divisor).  It
#: may speak of products of sizes (`product_of`) too.
SIZES = "uir.sizes"
#: Relax's attributes for the greatest and the least value of a variable, by its name.
UPPER, LOWER = "tir_var_upper_bound", "tir_var_lower_bound"
#: Factors to try.
_SMALL = (2, 3, 5, 7)
#: The greatest value where nothing is said: products of some sizes and constants stay within 64 bits.
MOST = (1 << 31) - 1


def sizes_of(func: tirx.PrimFunc) -> dict[Any, Size]:
    """The variables in the shapes of a function's parameters, in the order in which they occur.

    The attribute `SIZES` says what is known of them, else Relax's `UPPER` and `LOWER`; else a size lies
    between 0 and `MOST`.

    Returns
    -------
    dict of tvm.tirx.Var to Size
        Empty for a function of static shapes.

    Raises
    ------
    IGraphError
        Two variables of one name, a variable that no shape has as a dimension of its own, or a range
        without a value.
    """
    variables = symbols_in(func)
    if not variables:
        return {}
    alone = {dim for param in _buffers(func) for dim in param.ty.shape if isinstance(dim, tvm.ir.Var)}
    known: Mapping[str, Any] = dict(func.attrs.get(SIZES) or {}) if func.attrs else {}
    upper, lower = (dict(func.attrs.get(name) or {}) if func.attrs else {} for name in (UPPER, LOWER))
    out: dict[Any, Size] = {}
    for variable in variables:
        name = str(variable.name)
        if any(size.name == name for size in out.values()):
            raise IGraphError(
                f"Two variables of the function's shapes are named {name}.", remedy="rename one of them"
            )
        if variable not in alone:
            raise IGraphError(
                f"The variable {name} is no dimension of its own in any parameter's shape.",
                need="a dimension that is just this variable, from which a call learns its value",
                remedy=f"pass a tensor with a dimension {name}, or write the dimension as one variable",
            )
        given = known.get(name) or (lower.get(name, 0), upper.get(name, MOST), 1)
        try:
            low, high, multiple = map(int, given)
        except (TypeError, ValueError) as error:
            raise IGraphError(
                f"What is known of the size {name} is {given}.",
                need="three numbers: the least and the greatest value, and what divides all values",
            ) from error
        if multiple < 1 or low < 0 or low > high or high // multiple * multiple < low:
            raise IGraphError(
                f"No value of the size {name} lies in its range.",
                where=f"from {low} to {high}, a multiple of {multiple}",
                need="0 <= least <= greatest, and a multiple between them",
            )
        out[variable] = Size(name, low, high, multiple)
    return out


def product_of(one: Size, other: Size) -> Size:
    """The product of two sizes as a size of its own, whose name says of what."""
    high = min(int(one.high) * int(other.high), MOST)
    return Size(
        f"{one.name}{TIMES}{other.name}",
        int(one.low) * int(other.low),
        high,
        int(one.multiple_of) * int(other.multiple_of),
    )


def known_product(func: tirx.PrimFunc, one: Size, other: Size) -> Size:
    """The product of two sizes of a function, within what its attribute says of it."""
    product = product_of(one, other)
    given = dict((func.attrs or {}).get(SIZES) or {}).get(str(product.name))
    if given is None:
        return product
    low, high, multiple = map(int, given)
    low, high = max(low, int(product.low)), min(high, int(product.high))
    return Size(str(product.name), low, high, math.lcm(multiple, int(product.multiple_of)))


def narrowed(func: tirx.PrimFunc, sizes: Iterable[Size]) -> tirx.PrimFunc:
    """The function for a part of its sizes: ranges of variables, or of products of them (`product_of`).

    A variable of one value is a number from then on.
    """
    given = {str(size.name): size for size in sizes}
    variables = {str(size.name): variable for variable, size in sizes_of(func).items()}
    alone = {name for name, size in given.items() if size.low == size.high and name in variables}
    numbers = {variables[n]: tirx.IntImm(variables[n].ty.dtype, int(given[n].low)) for n in alone}
    known = {str(size.name): size for size in sizes_of(func).values()} | given
    rows = {n: [s.low, s.high, s.multiple_of] for n, s in known.items() if n not in alone}
    kept = {n: row for n, row in dict((func.attrs or {}).get(SIZES) or {}).items() if n not in alone}
    bound = bound_kernel(func, numbers) if numbers else func
    return bound.with_attr(SIZES, {**kept, **rows}) if symbols_in(bound) else bound


def condition_of(func: tirx.PrimFunc, sizes: Iterable[Size]) -> Any:
    """Whether sizes of a call lie within ranges, as an expression of the variables of a function's shapes."""
    sizes = list(sizes)
    values = launch_sizes(func, [str(size.name) for size in sizes])
    parts: list[Any] = []
    for size in sizes:
        value, (low, high, step) = values[str(size.name)], (int(size.low), int(size.high), size.multiple_of)
        if low == high:
            parts.append(tirx.EQ(value, tirx.const(low, "int64")))
            continue
        parts.append(value <= tirx.const(high, "int64"))
        if low > 0:
            parts.append(value >= tirx.const(low, "int64"))
        if step > 1:
            parts.append(
                tirx.EQ(tirx.floormod(value, tirx.const(int(step), "int64")), tirx.const(0, "int64"))
            )
    return functools.reduce(tirx.And, parts)


def factored(sizes: Mapping[str, int], known: Collection[str]) -> dict[str, int]:
    """Sizes with factors in the place of products (`product_of`): small ones, but for the first.

    Parameters
    ----------
    known : collection of str
        Names that are no products, whatever they look like: those of a function's own variables.
    """
    out: dict[str, int] = {}
    for name, value in sizes.items():
        if name not in known and TIMES not in name and follows(name):
            continue
        first, *others = [name] if name in known else name.split(TIMES)
        rest = int(value)
        for other in others:
            out[other] = next((d for d in _SMALL if rest % d == 0), 1)
            rest //= out[other]
        out[first] = rest
    return out


def sizes_at(names: Iterable[str], numbers: Mapping[str, int]) -> dict[str, int]:
    """What sizes of a graph are, those that follow too, for a number for each variable of its function."""
    return {name: value_of(name, numbers) for name in map(str, names)}


def launch_sizes(func: tirx.PrimFunc, names: Iterable[str]) -> dict[str, Any]:
    """What sizes of a graph are when its function is called, as expressions of its shapes' variables (int64).

    Parameters
    ----------
    func : PrimFunc
        As the caller sees it.
    names : iterable of str
        Of sizes: variables of its shapes, parameters that are numbers, or what follows from them
        (`size_names`).

    Raises
    ------
    IGraphError
        It follows from what is no variable of the function's shapes.
    """
    names = list(names)
    if not names:
        return {}
    variables = {str(p.name): p for p in func.params if not tirx.is_buffer_var(p)}
    variables |= {str(size.name): variable for variable, size in sizes_of(func).items()}
    known = {name: variable.astype("int64") for name, variable in variables.items()}
    out: dict[str, Any] = {}
    for name in names:
        try:
            out[name] = value_of(name, known)
        except KeyError as missing:
            raise IGraphError(
                f"No parameter has the size {missing.args[0]} as a dimension.",
                need="a tensor with a dimension that is just this variable, or a number of that name",
                remedy="pass a tensor with that dimension",
            ) from missing
    return out


def size_that_follows(func: tirx.PrimFunc, name: str, known: Mapping[str, Size]) -> Size | None:
    """A size that follows from others (`size_names`), within what the function's attribute says of it.

    None where it is never more than nothing.
    """
    own = range_of(name, known)
    given = dict((func.attrs or {}).get(SIZES) or {}).get(name, (own.low, own.high, 1))
    low, high = max(int(own.low), int(given[0])), min(int(own.high), int(given[1]))
    return (
        Size(name, low, high, math.lcm(int(own.multiple_of), int(given[2]))) if high >= max(low, 1) else None
    )


def range_of(name: str, known: Mapping[str, Size]) -> Size:
    """A size with what is known of it where others are known, of which it may follow (`size_names`).

    Raises
    ------
    KeyError
        Of a size that is not known, with its name.
    """
    if name in known:
        return known[name]
    factors = name.split(TIMES)
    return functools.reduce(product_of, (known[f] if f in known else _stepped(f, known) for f in factors))


def _stepped(name: str, known: Mapping[str, Size]) -> Size:
    space = Space(dict(known))
    expr = space.fold(value_of(name, {other: size.expr for other, size in known.items()}))
    low, high = space.range(expr)
    modulus, rest = space.congruence(expr)
    step = modulus if modulus > 0 and rest == 0 else 1
    return Size(name, max(low, 0), max(min(high, MOST), 0), step)


def with_sizes(func: tirx.PrimFunc, sizes: Mapping[str, Size]) -> tirx.PrimFunc:
    """The function with what is known of its sizes, by the names of its variables."""
    return func.with_attr(
        SIZES, {name: [size.low, size.high, size.multiple_of] for name, size in sizes.items()}
    )


def _buffers(func: tirx.PrimFunc) -> list[Any]:
    return [param for param in func.params if tirx.is_buffer_var(param)]
