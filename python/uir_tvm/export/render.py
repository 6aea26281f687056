# SPDX-License-Identifier: Apache-2.0
"""Templates of a project's files: texts with @name@ where something is filled in."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Mapping

_FIELD = re.compile(r"@([a-z_]+)@")


def template(package: str, folder: str, name: str) -> str:
    """The text of a file in a folder of a package's ``templates``."""
    return (importlib.resources.files(package) / "templates" / folder / name).read_text()


def render(text: str, fields: Mapping[str, str]) -> str:
    """The text with its fields filled in: all that it has, and no others."""
    named = set(_FIELD.findall(text))
    assert named == set(fields), (named ^ set(fields), text[:80])
    return _FIELD.sub(lambda match: fields[match[1]], text)
