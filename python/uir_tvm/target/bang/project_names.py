# SPDX-License-Identifier: Apache-2.0
"""Everything of CNRT and CNNL that a project may name (`project_names.json`), and the check of texts."""

from __future__ import annotations

from ...export.vendor_api import VendorApi

API = VendorApi(
    __package__,
    "project_names.json",
    r"\b(?:cnrt[A-Z]\w*|cnnl[A-Z]\w*|CNRT_[A-Z]\w*|CNNL_[A-Z]\w*)\b",
    r'#include "((?:cnrt|cnnl)\.h)"',
)
table, named, check = API.table, API.named, API.check
