# SPDX-License-Identifier: Apache-2.0
"""Reports as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs


def plain(value: Any) -> Any:
    """Dicts, lists, numbers and text of a report: of attrs objects public fields, then properties."""
    if attrs.has(type(value)):
        names = [field.name for field in attrs.fields(type(value)) if field.name[0] != "_"]
        names += [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
