# SPDX-License-Identifier: Apache-2.0
"""Faults in emitted CUDA text: each kind finds its places in the kernels and changes one of them.

A fault is (line, what, text).  Only the kernels are changed, not the helpers before them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import attrs


@attrs.frozen
class TextFault:
    """One changed place: its line in the text (from 1), what was done, and the whole changed text."""

    kind: str
    line: int
    what: str
    source: str


#: Kind -> (pattern of the place, replacements by number of the match); "" drops the match.
Edit = Callable[[re.Match[str]], Iterator[str]]


def _drop(match: re.Match[str]) -> Iterator[str]:
    yield ""


def _replace(*texts: str) -> Edit:
    return lambda match: (match.expand(text) for text in texts)


def _number(group: int, *changes: Callable[[int], int]) -> Edit:
    """Change the number in a group of the match."""

    def edit(match: re.Match[str]) -> Iterator[str]:
        begin, end = match.start(group) - match.start(), match.end(group) - match.start()
        value = int(match[group])
        for change in changes:
            if change(value) != value:
                yield match[0][:begin] + str(change(value)) + match[0][end:]

    return edit


#: Barriers and waits: what may be dropped only where it was needless.
BARRIERS = {
    "drop __syncwarp": (r"__syncwarp\(\);", _drop),
    "drop __syncthreads": (r"__syncthreads\(\);", _drop),
    "drop named_barrier": (r"named_barrier\([^;]*\);", _drop),
    "drop grid sync": (r"cooperative_groups::this_grid\(\)\.sync\(\);", _drop),
    "drop cp_async_wait": (r"cp_async_wait<\d+>\(\);", _drop),
    "wait for one group fewer": (r"cp_async_wait<(\d+)>\(\);", _number(1, lambda n: n + 1)),
    "drop cp_async_commit": (r"cp_async_commit\(\);", _drop),
    "drop mbarrier_wait": (r"mbarrier_wait\([^;]*\);", _drop),
    "drop mbarrier_expect_tx": (r"mbarrier_expect_tx\([^;]*\);", _drop),
    "weaken __syncthreads": (r"__syncthreads\(\);", _replace("__syncwarp();")),
}

#: Wrong numbers: addresses, masks, distances, bounds.
VALUES = {
    "lane mask": (
        r"(__shfl(?:_xor|_up|_down)?_sync)\(0xffffffffu",
        _replace(r"\1(0x7fffffffu", r"\1(0x0000ffffu"),
    ),
    "shuffle distance": (
        r"__shfl_xor_sync\(0xffffffffu, [^,;]*, (\d+)\)",
        _number(1, lambda n: n * 2 % 32 or 2, lambda n: n // 2 or 3),
    ),
    "misaligned vector": (
        r"((?:load|store)_vec(?:_stream)?<\w+, \d+>\()([^,;()]*(?:\([^;]*?\)[^,;()]*)*)(?=[,)])",
        _replace(r"\1\2 + 1"),
    ),
    "copy of a neighbour": (r"(cp_async_\d+(?:_zfill)?\()([^,;]*),", _replace(r"\1\2 + 4,")),
    # The last argument of the call: fewer bytes than it says become zero.
    "bytes of a copy": (
        r"(cp_async_\d+_zfill\([^;]*?[^,(]), ([^,;]*(?:\([^;]*\))?[^,;]*)\);",
        _replace(r"\1, (\2) / 2);"),
    ),
    "shrunk shared range": (r"shared_at<\w+, (\d+)>", _number(1, lambda n: n - 1, lambda n: n // 2)),
    "moved shared range": (
        r"shared_at<\w+, \d+>\(smem, (\d+)\)",
        _number(1, lambda n: n - 16 if n >= 16 else n + 16),
    ),
    "row pitch": (r"(?<=[\w)] \* )(\d{2,})\b", _number(1, lambda n: n + 1)),
    "off by one store": (r"^(\s*(?:if \([^;]*\) )?\w+)\[([^;\]]+)\](?= = )", _replace(r"\1[(\2) + 1]")),
    "guard one further": (r"if \(([^;<>]*) < ([^;<>]*)\) ", _replace(r"if (\1 <= \2) ")),
    "guard dropped": (r"if \([^;{]* < [^;{]*\) (?=\w)", _drop),
    "loop ends early": (r"(; \w+ < )(\d+)(; \+\+)", _number(2, lambda n: n - 1)),
    "loop ends late": (r"(; \w+ < )(\d+)(; \+\+)", _number(2, lambda n: n + 1)),
    "lane number": (r"lane_div(\d+) = lane / (\d+)", _number(2, lambda n: n * 2)),
    "result of a lane": (r"= lane % (\d+);", _number(1, lambda n: n * 2)),
}

KINDS: dict[str, tuple[str, Edit]] = {**BARRIERS, **VALUES}


def kernels_begin(source: str) -> int:
    """Where the first kernel stands; before it are helpers."""
    return source.index('extern "C" __global__')


def faults(source: str, kind: str) -> Iterator[TextFault]:
    """All texts with one fault of a kind."""
    pattern, edit = KINDS[kind]
    begin = kernels_begin(source)
    for match in re.finditer(pattern, source[begin:], re.MULTILINE):
        start, end = begin + match.start(), begin + match.end()
        line_begin = source.rfind("\n", 0, start) + 1
        if source[line_begin:start].lstrip().startswith("//"):
            continue
        line = source.count("\n", 0, start) + 1
        for text in edit(match):
            if text == match[0]:
                continue
            shown = f"{match[0].strip()} -> {text.strip() or 'nothing'}"
            yield TextFault(kind, line, shown, source[:start] + text + source[end:])
