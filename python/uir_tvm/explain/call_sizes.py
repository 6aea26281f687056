# SPDX-License-Identifier: Apache-2.0
"""What the sizes of a kernel are at a call, in terms of the sizes of its tensors' shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..igraph.size_names import text_of
from ..sizes.saved_sizes import size_text
from ..sizes.symbolic_shapes import Size, in_terms_of, symbols_of, value_of

#: A function's own names of dimensions; None of one that is no name.
Dimensions = Sequence[Sequence[str | int | None]]


def sizes_at_call(
    names: Iterable[str], dimensions: Dimensions, shapes: Sequence[Sequence[Size]]
) -> dict[str, Size | None]:
    """What sizes are at a call; None of one that no dimension says.

    Parameters
    ----------
    names : iterable of str
        A size is a dimension, or follows from some (`uir_tvm.igraph.size_names`).
    dimensions : sequence of sequence
        What the function calls the dimensions of its tensors.
    shapes : sequence of sequence of int or str
        Of the tensors that it is called with.
    """
    known: dict[str, Size] = {}
    for row, shape in zip(dimensions, shapes, strict=False):
        for name, size in zip(row, shape, strict=False):
            if isinstance(name, str):
                known.setdefault(name, size if isinstance(size, int) else size_text(size))
    found: dict[str, Size | None] = {}
    for name in names:
        text = name if name in known else text_of(name)
        if any(factor not in known for factor in symbols_of(text)):
            found[name] = None
            continue
        made = in_terms_of(text, {factor: known[factor] for factor in symbols_of(text)})
        found[name] = made if symbols_of(made) else value_of(made, {})
    return found
