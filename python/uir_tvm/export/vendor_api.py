# SPDX-License-Identifier: Apache-2.0
"""Tables of the names of a vendor's that a project may use, and the check of texts against them."""

from __future__ import annotations

import functools
import importlib.resources
import json
import re
from collections.abc import Mapping
from typing import Any

import attrs


@attrs.frozen
class VendorApi:
    """Everything of a vendor's that projects of a kind may name.

    Parameters
    ----------
    package, file : str
        Where its table is, JSON: {"apis": [{"name", "kind", "source", "signature", ...}]}.
    names, headers : str
        Patterns of the vendor's names, and of its headers in an ``#include``.
    generated : str
        A pattern of names that are no vendor's though they look so.
    """

    package: str
    file: str
    names: str
    headers: str
    generated: str = r"(?!)"

    def table(self) -> Mapping[str, Mapping[str, Any]]:
        """Rows by name: ``kind`` (function, constant, type, macro, header), ``source``, ``signature``."""
        return _table(self.package, self.file)

    def named(self, text: str) -> set[str]:
        """The vendor's names and headers that a C++ text uses; comments count, as they teach."""
        found = set(re.findall(self.names, text)) | set(re.findall(self.headers, text))
        return {name for name in found if not re.fullmatch(self.generated, name)}

    def check(self, text: str, where: str) -> str:
        """The text itself, of which every vendor's name has a row."""
        missing = sorted(self.named(text) - set(self.table()))
        assert not missing, f"{where} names {', '.join(missing)}, which {self.file} does not have"
        return text


@functools.cache
def _table(package: str, file: str) -> Mapping[str, Mapping[str, Any]]:
    text = (importlib.resources.files(package) / file).read_text()
    return {row["name"]: row for row in json.loads(text)["apis"]}
