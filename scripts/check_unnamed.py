#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that files which may be compiled together declare no name twice in unnamed namespaces.

    python scripts/check_unnamed.py [SRC [CMAKELISTS]]

The folders are those of ``UIR_UNITY_FOLDERS`` in CMakeLists.txt: in a group of files an unnamed namespace
has one scope.  What is read are lines as the formatter leaves them: declarations of namespaces begin in the
first column.
Prints each name with its files, and ends with 1 where there is one.
"""

from __future__ import annotations

import collections
import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[1]
_FOLDERS = re.compile(r"set\(UIR_UNITY_FOLDERS([^)]*)\)")
_RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
_OPENED = re.compile(r"namespace ?([\w:]*) \{$")
_CLOSED = re.compile(r"\}  // namespace\b")
_TYPE = re.compile(r"(?:struct|class|enum class|enum|union|using) (\w+)")
_CONSTANT = re.compile(r"(\w+)(?:\[[^\]]*\])*(?: = |\{)")
#: A function, or a variable that is not initialised.
_OTHER = re.compile(r"[\w:<>,*& ]*?[ *&>](\w+)(?:\[[^\]]*\])*(?:\(|;)")
_NO_DECLARATION = (" ", "}", "/", "#", "template", "namespace", "public", "private", "using namespace")
_NOT_NAMES = ("operator",)


def folders_of(lists: str) -> list[str]:
    """The folders whose files CMake may compile together, by the text of CMakeLists.txt."""
    found = _FOLDERS.search(lists)
    assert found is not None, "CMakeLists.txt sets no UIR_UNITY_FOLDERS"
    return found.group(1).split()


def names_of(text: str) -> Iterator[tuple[str, str]]:
    """What a file declares in unnamed namespaces: the namespace (`a::(unnamed)::b`) and the name."""
    within: list[str] = []
    for line in _RAW_STRING.sub('""', text).splitlines():
        if opened := _OPENED.match(line):
            within.append(opened.group(1) or "(unnamed)")
        elif _CLOSED.match(line):
            within.pop()
        elif "(unnamed)" in within and line and not line.startswith(_NO_DECLARATION):
            if kind := _TYPE.match(line):
                found = [] if line.startswith("using") and "=" not in line else [kind.group(1)]
            elif "(" not in line.split(" = ", maxsplit=1)[0] and (" = " in line or "{" in line):
                found = _CONSTANT.findall(line)
            else:
                other = _OTHER.match(line)
                # a qualified name is a member's, of a class that is declared elsewhere
                found = [other.group(1)] if other and f"::{other.group(1)}(" not in line else []
            yield from (("::".join(within), name) for name in found if name not in _NOT_NAMES)


def faults(root: pathlib.Path, folders: list[str]) -> Iterator[str]:
    """Names that several files of a folder declare, a line each."""
    for folder in folders:
        files: dict[tuple[str, str], dict[str, None]] = collections.defaultdict(dict)
        for file in sorted((root / folder).glob("*.cc")):
            for key in names_of(file.read_text()):
                files[key][file.name] = None
        for (namespace, name), where in files.items():
            if len(where) > 1:
                yield f"{folder}: {namespace}::{name} is declared in {', '.join(where)}"


def main() -> int:
    """Check the folder and the CMakeLists.txt that are named, or this tree's."""
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "src"
    lists = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "CMakeLists.txt"
    found = list(faults(root, folders_of(lists.read_text())))
    print("\n".join(found) or "files of a folder share no unnamed names")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
