# SPDX-License-Identifier: Apache-2.0
"""What each target refuses of the conformance cases, with a part of its message: data, a row for each reason.

Every target has a row in `REFUSALS`; what is listed must be refused with that message, nothing else may be.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

#: Floats of a byte, which not every target computes with.
FP8_NAMES = ("fp8e4m3", "fp8e5m2")


@attrs.frozen
class Subject:
    """What a target may refuse: an operation of a case, a graph of groups, or the example of a recipe.

    Parameters
    ----------
    kind : str
        The class of the case, ``"group"`` or ``"recipe"``.
    name : str
        Of the operation, of the group form's function, or the hero of the recipe.
    result : str
        The dtype of the result.
    dtypes : tuple of str
        All dtypes that it touches.
    units : int
        Units in a group.
    opened : tuple of str
        The axes that are open (`open_shapes.AXES`).
    """

    kind: str
    name: str
    result: str = ""
    dtypes: tuple[str, ...] = ()
    units: int = 1
    opened: tuple[str, ...] = ()


@attrs.frozen
class Refusal:
    """One reason.  It covers what agrees with every field that is given.

    Parameters
    ----------
    says : str
        A pattern of the message.
    kinds, names, results : tuple of str
        Of the subject.
    dtypes : tuple of str
        Some dtype of the subject is one of these.
    groups : bool
        Only groups of several units.
    opened : tuple of str
        One of these axes is open.
    """

    says: str
    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    groups: bool = False
    opened: tuple[str, ...] = ()

    def covers(self, subject: Subject) -> bool:
        """Whether the target refuses this for this reason."""
        return (
            (not self.kinds or subject.kind in self.kinds)
            and (not self.names or subject.name in self.names)
            and (not self.results or subject.result in self.results)
            and (not self.dtypes or bool(set(self.dtypes) & set(subject.dtypes)))
            and (not self.groups or subject.units > 1)
            and (not self.opened or bool(set(self.opened) & set(subject.opened)))
        )


#: By target; the first reason that covers a subject is the one that the target gives.
REFUSALS: Mapping[str, tuple[Refusal, ...]] = {
    "uir-cpu": (
        Refusal("units in a group", groups=True),
        Refusal("no arithmetic on fp8", dtypes=FP8_NAMES),
        Refusal("raises integers to constant powers", names=("pow",), results=("int32",)),
        Refusal("to the nearest only", names=("cast_floor",)),
    ),
    "uir-cuda": (),
    "uir-ascend": (
        Refusal("groups of one unit", groups=True),
        Refusal("cannot compute this product", kinds=("contract",), dtypes=("fp64", *FP8_NAMES)),
        Refusal("no fp64", dtypes=("fp64",)),
        Refusal("no fp8", dtypes=FP8_NAMES),
        Refusal("raises integers to constant powers", names=("pow",), results=("int32",)),
        Refusal("cannot compute this product", kinds=("contract",), results=("int8", "uint8", "int64")),
        Refusal("cannot compute this product", kinds=("contract",), names=("contract_int32",)),
    ),
    "uir-bang": (
        Refusal("no fp64", dtypes=("fp64",)),
        Refusal("no fp8", dtypes=FP8_NAMES),
        Refusal("raises integers to constant powers", names=("pow",), results=("int32",)),
    ),
}


def refusal_of(target: str, subject: Subject) -> Refusal | None:
    """Why a target refuses something, or None where it must not."""
    return next((row for row in REFUSALS[target] if row.covers(subject)), None)
