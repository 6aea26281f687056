#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that folders of src include downwards: each only what stands above it in `ORDER`.

    python scripts/check_includes.py [FOLDER]

A file NAME.cc beside a folder NAME belongs to it.  Headers within ``include`` stand for a vendor's and are no
part of the order.  Prints what breaks it, and ends with 1 where anything does.
"""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Iterator

#: Folders that stand beside each other do not include each other.
ORDER: tuple[tuple[str, ...], ...] = (
    ("base",),
    ("igraph", "device/engine"),
    ("codegen", "device/simt"),
    ("codegen/pipes", "device/host"),
    ("codegen/tiles", "device/ascendc", "device/bang"),
    ("codegen/ascend", "codegen/bang", "codegen/cuda"),
    ("runtime",),
    ("library",),
    ("library/ascend", "library/bang", "library/cuda"),
)
RANKS = {folder: rank for rank, row in enumerate(ORDER) for folder in row}
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def folder_of(file: pathlib.PurePath, root: pathlib.Path) -> str:
    """The folder of `ORDER` that a file (relative to the root) belongs to; its first two names at most."""
    if file.suffix == ".cc" and (root / file.with_suffix("")).is_dir():
        return file.with_suffix("").as_posix()
    return "/".join(file.parent.parts[:2])


def faults(root: pathlib.Path) -> Iterator[str]:
    """What breaks the order, a line each."""
    for file in sorted(root.rglob("*")):
        if file.suffix not in (".cc", ".h") or "include" in file.relative_to(root).parts:
            continue
        mine = folder_of(file.relative_to(root), root)
        if mine not in RANKS:
            yield f"{file}: the folder {mine} stands nowhere in the order of {__file__}"
            continue
        for name in _INCLUDE.findall(file.read_text()):
            if not (root / name).is_file() or "include" in pathlib.PurePath(name).parts:
                continue  # beside the file, or a header that stands for a vendor's
            other = folder_of(pathlib.PurePath(name), root)
            if other != mine and RANKS.get(other, len(ORDER)) >= RANKS[mine]:
                yield f"{file}: {mine} includes {name}, but {other} does not stand above it"


def main() -> int:
    """Check the folder that is named, or src."""
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1] / "src"
    found = list(faults(root))
    print("\n".join(found) or f"folders of {root.name} include downwards")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
