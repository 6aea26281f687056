# SPDX-License-Identifier: Apache-2.0
"""The header of the model has all that the printer may print."""

from __future__ import annotations

import tvm_ffi
import uir_tvm  # noqa: F401  (loads the printer)
from uir_tvm.target.ascend import host_model as ascend

from tests.device import ascend_texts as texts


def test_every_name_of_the_printers_table_is_declared() -> None:
    rows = tvm_ffi.get_global_func("uir.codegen.ascend.apis")()
    lines = []
    for row in rows:
        name, form = str(row["name"]), str(row["form"])
        if form == "enum":
            lines += [f"  (void)AscendC::{name}::{value};" for value in str(row["params"]).split()]
        elif form != "macro" and "." not in name:
            lines.append(f"  using AscendC::{name};")
    assert len(lines) > 60
    ascend.compile(texts.text("\n".join(dict.fromkeys(lines)), frame=False))
