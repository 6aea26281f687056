# SPDX-License-Identifier: Apache-2.0
"""Whether a launch hands over to a variant of a kernel for such sizes alone as the variant is proved for."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from ..errors import VerifyError
from ..igraph.nodes import IGraph
from ..igraph.sizes import elements_at
from ..igraph.space import Size
from ..igraph.tir_sizes import range_of, sizes_at


def handed_fault(
    known: Mapping[str, Size], ranges: Sequence[Size], whole: IGraph, variant: IGraph
) -> VerifyError | None:
    """What is wrong with the condition under which a launch takes a variant; None where nothing is.

    Parameters
    ----------
    known : mapping of str to Size
        The sizes of the function, by name.
    ranges : sequence of Size
        The condition: ranges of sizes, or of what follows from them.
    whole, variant : IGraph
        Of the kernel for all sizes, and of the variant: numbers stand for sizes of one value.

    Returns
    -------
    VerifyError or None
        With sizes that a launch hands over, and for which the variant is not made.
    """
    launched = {str(size.name): size for size in ranges}
    corners: dict[str, tuple[int, ...]] = {}
    for size in variant.sizes:
        name = str(size.name)
        given = launched[name] if name in launched else range_of(name, known)
        outside = next((v for v in (_least(given), _most(given)) if not size.low <= v <= size.high), None)
        if outside is None and given.multiple_of % size.multiple_of:
            values = range(_least(given), _most(given) + 1, int(given.multiple_of))
            outside = next((v for v in values if v % size.multiple_of), None)
        if outside is not None:
            return _fault(variant, {name: outside}, f"{name} from {size.low} to {size.high}")
        corners[name] = (_least(given), _most(given))
    for name, given in launched.items():
        if name not in corners:
            corners[name] = (_least(given), _most(given))
    for chosen in itertools.product(*corners.values()):
        numbers = dict(zip(corners, chosen, strict=True))
        try:
            of_whole = sizes_at((size.name for size in whole.sizes), numbers)
        except KeyError as missing:
            name = str(missing.args[0])
            return _fault(variant, numbers, f"a condition on {name}, of which it knows a number alone")
        own = {str(size.name): numbers[str(size.name)] for size in variant.sizes}
        for ours, theirs in zip(variant.params, whole.params, strict=True):
            wanted, found = elements_at(theirs, of_whole), elements_at(ours, own)
            if wanted != found:
                return _fault(variant, numbers, f"{wanted} elements of {theirs.name}, and it has {found}")
    return None


def _least(size: Size) -> int:
    return -(-int(size.low) // int(size.multiple_of)) * int(size.multiple_of)


def _most(size: Size) -> int:
    return int(size.high) // int(size.multiple_of) * int(size.multiple_of)


def _fault(variant: IGraph, witness: dict[str, int], need: str) -> VerifyError:
    return VerifyError(
        f"A launch takes the variant `{variant.name}` for sizes for which it is not proved.",
        rule="form",
        where="the condition of the variant",
        witness=witness,
        need=need,
        remedy="launch it under the ranges that it was made for",
    )
