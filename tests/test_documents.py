# SPDX-License-Identifier: Apache-2.0
"""Documents and comments name files and modules that exist."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
#: What documents call by its place below one of these folders.
WITHIN = (ROOT, ROOT / "python", ROOT / "python" / "uir_tvm", ROOT / "src", ROOT / "docs")
#: A file's path or name in code spans: `optimize/passes.py`, `src/codegen/ascend/kernel.cc`.
NAMED = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|cc|h))`")


#: In comments: what begins with one of our folders, and modules of the package or names in them.
OURS = re.compile(r"(?<![\w./-])(?:src|python|uir_tvm|tests|schedules|scripts)/[\w./-]*\w")
MODULE = re.compile(r"\buir_tvm(?:\.[a-zA-Z_]\w*)+")
#: Lines of C++ that are comments, as the formatter leaves them.
COMMENT = re.compile(r"^\s*(?://|/\*|\*)(.*)$", re.M)


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


def is_there(path: str) -> bool:
    return any((top / path).exists() or list(top.glob(path + ".*")) for top in (ROOT, ROOT / "python"))


def is_named(dotted: str) -> bool:
    """Whether it is a module, or a word of the module before it."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        place = (ROOT / "python").joinpath(*parts[:count])
        if count == len(parts) and (place.is_dir() or place.with_suffix(".py").is_file()):
            return True
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return re.search(rf"\b{parts[count]}\b", file.read_text()) is not None
    return False


def test_comments_of_cpp_name_what_exists() -> None:
    missing = set()
    for file in (ROOT / "src").rglob("*.*"):
        if file.suffix not in (".cc", ".h"):
            continue
        comments = "\n".join(COMMENT.findall(file.read_text()))
        words = {word for word in OURS.findall(comments) if not is_there(word)}
        words |= {word for word in MODULE.findall(comments) if not is_named(word)}
        missing |= {(str(file.relative_to(ROOT)), word) for word in words}
    assert not missing


@pytest.mark.parametrize(
    "name", ["uir_tvm.target.cuda.lower.lower", "uir_tvm.target.ascend", "uir_tvm.compile"]
)
def test_a_module_is_found(name: str) -> None:
    assert is_named(name)


@pytest.mark.parametrize("name", ["uir_tvm.device.ascend.compile", "uir_tvm.target.cuda.lower.nothing"])
def test_a_module_that_moved_is_found_out(name: str) -> None:
    assert not is_named(name)
