# SPDX-License-Identifier: Apache-2.0
"""Everything of ACL and aclnn that a project may name (`project_names.json`), and the check of texts."""

from __future__ import annotations

from ...export.vendor_api import VendorApi

API = VendorApi(
    __package__,
    "project_names.json",
    r"\b(?:acl[A-Z]\w*|aclrt\w+|aclnn[A-Z]\w*|ACL_\w+|ACLRT_\w+)\b",
    r'#include "((?:acl|aclnn|aclnnop|aclrt)[\w/]*\.h)"',
    # the header of a kernel, which the toolkit generates
    r"aclrtlaunch_\w+(\.h)?",
)
table, named, check = API.table, API.named, API.check
