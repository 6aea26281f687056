# SPDX-License-Identifier: Apache-2.0
"""Library operators with sizes that are known at the call: one call for all of them.

``uir.library.sized`` puts numbers in the place of the expressions in a text of attributes, and calls the
operator with that text (docs/library-operators.md)::

    uir.library.sized(inputs..., function, text, names, sizes, outputs...)

``names`` are those of the sizes, between commas, and ``sizes`` a shape of as many numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..symbolic_shapes import Sizes, value_of
from .open_attrs import NAMES, OpenAttrs

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


def in_numbers(text: str, sizes: Sizes) -> str:
    """A text of attributes with numbers for its expressions, as ``uir.library.sized`` makes it.

    Raises
    ------
    FrontendError
        What stands for a size is no expression, or has other names than those of ``sizes``.
    """
    fields: Mapping[str, Any] = json.loads(text)
    numbers = {name: value if name in NAMES else _number(value, sizes) for name, value in fields.items()}
    return json.dumps(numbers, separators=(",", ":"))


def _number(value: Any, sizes: Sizes) -> Any:
    if isinstance(value, list):
        return [_number(each, sizes) for each in value]
    return value_of(value, sizes) if isinstance(value, str) else value
