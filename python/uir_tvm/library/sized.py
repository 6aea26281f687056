# SPDX-License-Identifier: Apache-2.0
"""Library operators with sizes that are known at the call: one call for all of them.

``uir.library.sized`` puts numbers in the place of the expressions in a text of attributes, and calls the
operator with that text (docs/library-operators.md)::

    uir.library.sized(inputs..., function, text, names, sizes, outputs...)

``names`` are those of the sizes, between commas, and ``sizes`` a shape of as many numbers.
"""

from __future__ import annotations

import tvm_ffi

from ..sizes.symbolic_shapes import Sizes
from .open_attrs import OpenAttrs

#: The registered function.
FUNCTION = "uir.library.sized"


def sized_texts(function: str, attributes: OpenAttrs) -> tuple[str, str, str]:
    """The three texts of a call: of the operator's function, its attributes, the names of its sizes.

    Parameters
    ----------
    function : str
        The registered name of the operator.
    attributes : OpenAttrs
        The sizes of the call are those of ``attributes.symbols``, in their order.
    """
    return function, attributes.to_json(), ",".join(attributes.symbols)


def in_numbers(operator: str, text: str, sizes: Sizes) -> str:
    """A text of attributes with numbers for its expressions, as ``uir.library.sized`` makes it.

    Parameters
    ----------
    operator : str
        Whose attributes they are, for errors.
    text : str
    sizes : mapping of str to int

    Raises
    ------
    ValueError
        What stands for a size is no expression, or has other names than those of ``sizes``.
    SizeError
        A size below 0 or above 2^31 - 1, a number beyond 63 bits, a divisor that is not above 0.
    """
    numbers = tvm_ffi.Shape(tuple(sizes.values()))
    return str(tvm_ffi.get_global_func("uir.library.in_numbers")(operator, text, ",".join(sizes), numbers))
