# SPDX-License-Identifier: Apache-2.0
"""The attributes of Relay's operators: names, kinds and defaults.

``attributes.json`` is TVM 0.16's own answer (`scripts/make_relay_fixtures.py`); the text leaves defaults out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from types import SimpleNamespace
from typing import Any

import attrs

from ...errors import FrontendError

#: Attributes that say how a tensor was to be laid out by the compiler that is gone; they change no value.
IGNORED = frozenset("auto_scheduler_rewritten_layout meta_schedule_original_shape schedule_rule span".split())


@attrs.frozen
class Attribute:
    """An attribute's kind (as TVM names its type), and its default where it may be left out."""

    kind: str
    required: bool
    default: Any = None


Schema = Mapping[str, Attribute]


def _load() -> tuple[dict[str, str], dict[str, Schema]]:
    table = json.loads(resources.files(__package__).joinpath("attributes.json").read_text())
    classes: dict[str, Schema] = {
        kind: {name: Attribute(row[0], len(row) == 1, *row[1:]) for name, row in fields.items()}
        for kind, fields in table["classes"].items()
    }
    return table["operators"], classes


#: Operator -> its class of attributes ("" where the operator does not say); class -> its attributes.
OPERATORS, CLASSES = _load()


def resolved(operator: str, kind: str, given: Mapping[str, Any], where: str) -> SimpleNamespace:
    """All attributes of a call: what is written, and the defaults of the others.

    Raises
    ------
    FrontendError
        An attribute that the operator does not have, or one that it needs and is not there.
    """
    kind = kind or OPERATORS.get(operator, "")
    schema = CLASSES.get(kind)
    if schema is None:
        return SimpleNamespace(**given)
    known = {name: value for name, value in given.items() if name not in IGNORED}
    for name in known:
        if name not in schema:
            raise FrontendError(
                f"operator {operator!r} has no attribute {name!r}",
                where=where,
                need=", ".join(schema) or "no attribute",
                remedy="check the spelling, or print the module again with TVM 0.16",
            )
    for name, attribute in schema.items():
        if attribute.required and name not in known and not operator.startswith("dyn."):
            raise FrontendError(
                f"operator {operator!r} misses its attribute {name!r}",
                where=where,
                need=attribute.kind,
                remedy="print the module again, whole",
            )
    defaults = {name: attribute.default for name, attribute in schema.items()}
    return SimpleNamespace(**{**defaults, **known})
