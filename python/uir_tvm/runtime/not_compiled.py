# SPDX-License-Identifier: Apache-2.0
"""What is said where a model with open sizes has no code for what is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..errors import ArtifactError, NotCompiledError
from ..sizes.symbolic_shapes import OpenSignature, Sizes, sizes_text


def _options(option: str, names: Iterable[str]) -> str:
    return " ".join(f"{option} {name}=..." for name in names)


def no_code(name: str, shapes: Mapping[str, Sequence[int]], there: Sequence[str]) -> NotCompiledError:
    """A loaded model that has no code for shapes of its open inputs; what there is."""
    return NotCompiledError(
        f"`{name}` was saved without code for these shapes.",
        where=", ".join(f"{each}: {list(shape)}" for each, shape in shapes.items()),
        need="one of " + "; ".join(there),
        remedy="pad the inputs to one of these, or compile the model with "
        "CompileOptions(specialize=[...]) (--specialize) for this one too",
    )


def not_one(
    name: str, signature: OpenSignature, sizes: Sizes, there: Sequence[str], found: int
) -> NotCompiledError:
    """Sizes that choose no code, or several."""
    what = sizes_text(sizes)
    return NotCompiledError(
        f"`{name}` has code for {len(there)} {'shape or range' if len(there) == 1 else 'shapes or ranges'}"
        + (f", {found or 'none'} of them with {what}." if what else "."),
        need="one of " + "; ".join(there),
        remedy="say which: " + _options("--size", signature.symbols),
    )


def lacking(name: str, missing: Sequence[str], sizes: Sizes, there: Sequence[str]) -> NotCompiledError:
    """A model that serves all sizes, where some are not said."""
    return NotCompiledError(
        f"No number is given for {' and '.join(missing)}, which `{name}` leaves open.",
        need="one of " + "; ".join(there),
        limit=f"given {sizes_text(sizes)}" if sizes else "",
        remedy="say " + _options("--size", missing),
    )


def by_shape(name: str, signature: OpenSignature, why: Iterable[str]) -> NotCompiledError:
    """A model of which no code serves all sizes."""
    return NotCompiledError(
        f"`{name}` is compiled for each shape by itself.",
        where="; ".join(map(str, signature.inputs)),
        limit="; ".join(filter(None, dict.fromkeys(why))),
        need="sizes for " + ", ".join(signature.symbols),
        remedy=f"say for which: {_options('--specialize', signature.symbols)} (code for several), "
        f"{_options('--size', signature.symbols)} (for one)",
    )


def nothing_to_save(name: str, path: object, needed: Sequence[str]) -> ArtifactError:
    """A model of which nothing is compiled yet."""
    return ArtifactError(
        f"`{name}` is compiled at the call, and cannot be saved to {path}.",
        need="; ".join(needed) or "what it computes",
        remedy="compile with CompileOptions(specialize=[{symbol: size}]) (--specialize), or with "
        "shapes={name: (...)} and values={name: array}, or save what specialized(*inputs) gives",
    )
