# SPDX-License-Identifier: Apache-2.0
"""Everything of ACL and aclnn that a project may name (`ascend_api.json`), and the check of texts."""

from __future__ import annotations

import functools
import importlib.resources
import json
import re
from collections.abc import Mapping
from typing import Any

#: What the vendor's names look like.
_VENDOR = re.compile(r"\b(?:acl[A-Z]\w*|aclrt\w+|aclnn[A-Z]\w*|ACL_\w+|ACLRT_\w+)\b")
_INCLUDE = re.compile(r'#include "((?:acl|aclnn|aclnnop|aclrt)[\w/]*\.h)"')
#: The header of a kernel, which the toolkit generates.
_GENERATED = re.compile(r"aclrtlaunch_\w+(\.h)?")


@functools.cache
def table() -> Mapping[str, Mapping[str, Any]]:
    """Rows by name: ``kind`` (function, constant, type, macro, header), ``source``, ``signature``."""
    text = (importlib.resources.files(__package__) / "ascend_api.json").read_text()
    return {row["name"]: row for row in json.loads(text)["apis"]}


def named(text: str) -> set[str]:
    """The vendor's names and headers that a C++ text uses; comments count, as they teach."""
    names = set(_VENDOR.findall(text)) | set(_INCLUDE.findall(text))
    return {name for name in names if not _GENERATED.fullmatch(name)}


def check(text: str, where: str) -> str:
    """The text itself, of which every vendor's name has a row."""
    missing = sorted(named(text) - set(table()))
    assert not missing, f"{where} names {', '.join(missing)}, which ascend_api.json does not have"
    return text
