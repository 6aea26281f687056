# SPDX-License-Identifier: Apache-2.0
"""Everything of CNRT and CNNL that a project may name (`bang_api.json`), and the check of texts."""

from __future__ import annotations

from .vendor_api import VendorApi

API = VendorApi(
    "bang_api.json",
    r"\b(?:cnrt[A-Z]\w*|cnnl[A-Z]\w*|CNRT_[A-Z]\w*|CNNL_[A-Z]\w*)\b",
    r'#include "((?:cnrt|cnnl)\.h)"',
)
table, named, check = API.table, API.named, API.check
