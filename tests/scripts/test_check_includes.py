# SPDX-License-Identifier: Apache-2.0
"""The check of includes: this tree keeps the order, and a header from below is found."""

from __future__ import annotations

import pathlib

from scripts import check_includes

ROOT = pathlib.Path(__file__).parents[2] / "src"


def test_the_tree_keeps_the_order() -> None:
    assert list(check_includes.faults(ROOT)) == []


def test_what_breaks_it_is_said(tmp_path: pathlib.Path) -> None:
    for name, text in {
        "igraph/nodes.h": '#include "codegen/api.h"\n',
        "codegen/api.h": '#include "igraph/nodes.h"\n#include "bang.h"\n',
        "codegen/bang.cc": '#include "codegen/bang/emitter.h"\n#include "codegen/cuda/kernel.h"\n',
        "codegen/bang/emitter.h": '#include "codegen/api.h"\n',
        "codegen/cuda/kernel.h": "",
        "device/bang/include/bang.h": '#include "codegen/api.h"\n',
        "elsewhere/new.cc": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = "\n".join(check_includes.faults(tmp_path))
    assert found.count("\n") == 2
    assert "nodes.h: igraph includes codegen/api.h" in found
    assert "bang.cc: codegen/bang includes codegen/cuda/kernel.h" in found
    assert "new.cc: the folder elsewhere stands nowhere" in found
