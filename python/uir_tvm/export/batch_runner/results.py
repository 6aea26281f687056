# SPDX-License-Identifier: Apache-2.0
"""The lines of results.jsonl: JSON with a checksum, each on the disk before the next candidate begins."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

#: The files of a batch that everybody knows by name.
MANIFEST, RESULTS = "manifest.json", "results.jsonl"
#: What a manifest says of itself.
FORMAT, VERSION = "uir-tune-batch", 1
CHECK = "check"


class Damaged(Exception):
    """A file that is not as it was written."""


def digest(data: Any) -> str:
    """Of JSON data, whatever the order of its fields."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def file_digest(path: str) -> str:
    """Of a file's bytes."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            found.update(chunk)
    return found.hexdigest()


def append(path: str, row: dict[str, Any]) -> None:
    """Add a line, which is on the disk afterwards.

    What a crash left of a line is cut off before.
    """
    line = json.dumps({**row, CHECK: digest(row)[:16]}) + "\n"
    with open(path, "ab+") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(0)
            whole = file.read().rfind(b"\n") + 1
            if whole != size:
                file.truncate(whole)
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())


def read(path: str) -> list[dict[str, Any]]:
    """All whole lines of a file; none where there is no file.

    Raises
    ------
    Damaged
        A line was changed, or is no line of such a file.
    """
    try:
        with open(path, "rb") as file:
            text = file.read()
    except FileNotFoundError:
        return []
    rows = []
    # what follows the last line break is what a crash left of a line
    for number, line in enumerate(text.split(b"\n")[:-1], 1):
        try:
            row = json.loads(line)
            check = row.pop(CHECK)
        except (ValueError, KeyError, AttributeError, TypeError):
            raise Damaged(f"{path}, line {number}: it is no line of results") from None
        if digest(row)[:16] != check:
            raise Damaged(f"{path}, line {number}: it was changed")
        rows.append(row)
    return rows


def read_manifest(folder: str) -> dict[str, Any]:
    """The manifest of a batch.

    Raises
    ------
    Damaged
        It is missing, was changed, or is of another version.
    """
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
    except (OSError, ValueError) as error:
        raise Damaged(f"{path} cannot be read: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise Damaged(f"{path} is no batch of candidates")
    if manifest.get("version") != VERSION:
        raise Damaged(f"{path} has version {manifest.get('version')}, not {VERSION}")
    stated = manifest.pop("id", None)
    if digest(manifest) != stated:
        raise Damaged(f"{path} was changed")
    return {**manifest, "id": stated}


def check_files(folder: str, files: Mapping[str, str]) -> None:
    """Compare files with the digests that a manifest has of them.

    Raises
    ------
    Damaged
        One is missing or was changed.
    """
    for name, stated in files.items():
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            raise Damaged(f"{path} is missing")
        if file_digest(path) != stated:
            raise Damaged(f"{path} was changed, or is not whole")


def settled(manifest: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Results that were known when the batch was made, such as of what the compiler refused."""
    rows = enumerate(manifest["candidates"])
    return {number: row["settled"] for number, row in rows if row["settled"] is not None}


def check_rows(rows: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any], path: str) -> None:
    """Refuse results of another batch.

    Raises
    ------
    Damaged
        They are.
    """
    if any(row.get("batch") != manifest["id"] for row in rows):
        raise Damaged(f"{path} has results of another batch")
