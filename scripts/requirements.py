#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print what pyproject.toml asks for, one requirement a line, as ``pip install -r`` reads them.

    python scripts/requirements.py         # for a build
    python scripts/requirements.py dev     # for the package with an extra

pip itself looks for a package's requirements after it has built the package: with their list they are fetched
while the native libraries are compiled.
"""

from __future__ import annotations

import pathlib
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

PROJECT = pathlib.Path(__file__).parents[1] / "pyproject.toml"


def of_build(project: Mapping[str, Any]) -> list[str]:
    """What a build needs."""
    return list(project["build-system"]["requires"])


def of_extra(project: Mapping[str, Any], extra: str) -> list[str]:
    """What the package needs with an extra, those that it names included, each once.

    Raises
    ------
    KeyError
        There is no such extra.
    """
    metadata = project["project"]
    return list(dict.fromkeys([*metadata["dependencies"], *_of(metadata, extra)]))


def _of(metadata: Mapping[str, Any], extra: str) -> Iterator[str]:
    own = re.compile(rf"{re.escape(metadata['name'])}\[([^\]]*)\]")
    for requirement in metadata["optional-dependencies"][extra]:
        if (named := own.fullmatch(requirement)) is None:
            yield requirement
        else:
            for each in named.group(1).split(","):
                yield from _of(metadata, each.strip())


def main(extras: list[str]) -> int:
    """Print them."""
    project = tomllib.loads(PROJECT.read_text())
    rows = [row for extra in extras for row in of_extra(project, extra)] if extras else of_build(project)
    print(*rows, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
