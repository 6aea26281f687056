# SPDX-License-Identifier: Apache-2.0
"""Documents name files that exist."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
#: What documents call by its place below one of these folders.
WITHIN = (ROOT, ROOT / "python", ROOT / "python" / "uir_tvm", ROOT / "src", ROOT / "docs")
#: A file's path or name in code spans: `optimize/passes.py`, `src/codegen/ascend/kernel.cc`.
NAMED = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|cc|h))`")


DOCUMENTS = (
    "CONTRIBUTING.md",
    "README.md",
    *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md")),
)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_that_a_document_names_exist(document: str) -> None:
    text = (ROOT / document).read_text()
    below = {path.name for top in WITHIN[1:] for path in top.rglob("*.*")}
    named = set(NAMED.findall(text))
    missing = {
        name
        for name in named
        if "NAME" not in name
        and not any((top / name).is_file() for top in WITHIN)
        and ("/" in name or name not in below)
    }
    assert not missing


def test_the_way_of_a_softmax_names_its_files() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    assert len(set(NAMED.findall(text))) > 40
