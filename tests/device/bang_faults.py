# SPDX-License-Identifier: Apache-2.0
"""The kinds of fault in BANG C."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .text_faults import Edit, FaultTable, argument, arguments, call, drop, number, replace, text

_WAIT = r"__sync(?:_io|_move|_compute)?\(\);"

#: What may be dropped only where it was needless: waits for queues, meetings of a cluster.
_BARRIERS: dict[str, tuple[str, Edit]] = {
    "drop a wait": (rf"^ *{_WAIT}", drop),
    "wait without order": (r"^( *)__sync(|_io|_move|_compute)\(\);", replace(r"\1uir_bang::take_sync\2();")),
    "wait for one queue of several": (
        r"__sync\(\);",
        replace("__sync_io();", "__sync_move();", "__sync_compute();"),
    ),
    "drop a meeting": (r"^ *__sync_cluster\(\);", drop),
    "meeting without order": (r"__sync_cluster\(\);", replace("uir_bang::take_sync_cluster();")),
}

_COPY = call("__memcpy(?:_async)?")
_VECTOR = call(r"__bang_(?!matmul|transpose|reshape)\w+")
_UNIT = call(r"__bang_(?:matmul|transpose|reshape)\w*")
#: An instruction that stands in a line of its own.
_STATEMENT = r" *__(?:bang|memcpy)\w*\([^\n]*;\n"
_DIRECTION = r"\b(GDRAM|NRAM|SRAM|WRAM)2(GDRAM|NRAM|SRAM|WRAM)\b"


def _in_global(given: list[str]) -> int | None:
    """Which operand of a copy lies in global memory, if one does."""
    source, target = given[3].split("2")
    return 0 if target == "GDRAM" else 1 if source == "GDRAM" else None


def _on_chip(given: list[str]) -> int | None:
    """Which operand of a copy lies in a memory of the chip: the target, unless that is in global memory."""
    return 1 if given[3].endswith("2GDRAM") else 0


def _in_wram(given: list[str]) -> int | None:
    """The target of a copy, where it lies in WRAM."""
    return 0 if given[3].endswith("2WRAM") else None


def _form(length: int, at: int) -> Callable[[list[str]], int | None]:
    """An argument of copies that have so many: 7 with segments, 12 with segments of segments."""
    return lambda given: at if len(given) == length else None


def _of_segments(given: list[str]) -> Iterator[int]:
    """Where the form with segments of segments takes its numbers of both."""
    return iter((5, 7, 9, 11) if len(given) == 12 else ())


def _each_number(match: re.Match[str]) -> Iterator[str]:
    """Each number of segments of such a copy, one more and one less."""
    for at in _of_segments(arguments(match["inside"])):
        yield from argument(at, _LESS, _MORE)(match)


def _sizes(match: re.Match[str]) -> Iterator[str]:
    """Each whole number behind the operands of a transpose, a product or a filter, one more and half."""
    for at, given in enumerate(arguments(match["inside"])):
        if at >= 2 and given.isdigit():
            yield from argument(at, _MORE, text("{} / 2"))(match)


def _turn(match: re.Match[str]) -> Iterator[str]:
    """A direction the other way round, and from or to another memory."""
    source, target = match[1], match[2]
    yield from (f"{target}2{source}", f"SRAM2{target}", f"{source}2WRAM")


def _other_slot(match: re.Match[str]) -> Iterator[str]:
    """The slot of a pipelined buffer that another stage has just then."""
    yield f"(({match[1]}) + 1 & 1)"


_LESS, _MORE = text("{} - 1"), text("{} + 1")
#: A paragraph, that of one iOp: its comment, and its lines.
_COMMENT, _LINE = r"// [^\n]*\n", r"(?P=margin)[^\n/ ][^\n]*;\n"
_STAGE = rf"((?P<margin> +){_COMMENT}(?P=margin){_WAIT}\n(?:{_LINE})+)"
_NEXT_STAGE = rf"((?P=margin){_COMMENT}(?!(?P=margin){_WAIT})(?:{_LINE})+)"
_LOOP = r"(; \w+ < )(\d+)(; \+\+)"
_PLACE = r"\((nram|sram|wram) \+ (\d+)\)"

#: Wrong numbers: queues, directions, sizes, slots, addresses, bounds, launches.
_VALUES: dict[str, tuple[str, Edit]] = {
    "wait for another queue": (
        r"__sync_(?:io|move|compute)\(\);",
        replace("__sync_io();", "__sync_move();", "__sync_compute();"),
    ),
    "wait behind its instruction": (rf"^( *{_WAIT}\n)({_STATEMENT})", replace(r"\2\1")),
    "wait before the last instruction": (rf"^({_STATEMENT})( *{_WAIT}\n)", replace(r"\2\1")),
    "copy that does not wait": (r"__memcpy\(", replace("__memcpy_async(")),
    "work of the other core": (
        r"__is_([mi])pu\(\)\) \{",
        lambda match: iter([f"__is_{'i' if match[1] == 'm' else 'm'}pu()) {{"]),
    ),
    "memory core that stays": (r"^ *if \(__is_mpu\(\)\) return;", drop),
    "number of the core": (r"(?<== )taskId\b|(?<=: )taskId\b", replace("coreId", "taskId + 1")),
    "first core of a cluster": (r"taskIdY \* 4", replace("taskIdY", "taskIdY * 4 + 1")),
    "direction": (_DIRECTION, _turn),
    "size of a copy": (_COPY, argument(2, text("{} / 2"), text("{} + 128"))),
    "unaligned size of a copy": (_COPY, argument(2, _LESS, _MORE)),
    "size that nothing holds": (_COPY, argument(2, text("{} + 16777216"))),
    "segments of a copy": (_COPY, argument(_form(7, 6), _LESS, _MORE)),
    "more segments than there may be": (_COPY, argument(_form(7, 6), text("65536"))),
    "target stride": (_COPY, argument(_form(7, 4), text("{} + 4"), text("{} / 2"), _MORE)),
    "source stride": (_COPY, argument(_form(7, 5), text("{} + 4"), text("{} + 64"))),
    "segments of segments": (_COPY, _each_number),
    "global offset": (_COPY, argument(_in_global, _MORE, text("{} + 64"))),
    "shifted operand of a copy": (_COPY, argument(_on_chip, _MORE, text("{} + 32"))),
    "misaligned address in WRAM": (_COPY, argument(_in_wram, _MORE)),
    "shifted target of a function": (_VECTOR, argument(0, _MORE)),
    "shifted source of a function": (_VECTOR, argument(1, text("{} + 2"))),
    "count of a function": (_VECTOR, argument(-1, _LESS, text("{} + 64"), text("0"))),
    "size of a product or a transpose": (_UNIT, _sizes),
    "dropped instruction": (rf"^{_STATEMENT}", drop),
    "slot of a pipeline": (r"\((?!pid)(\w+|\(\w+ \+ \d+\)) & 1\)", _other_slot),
    # the first of them waits and the second does not, so that that comes before the wait
    "stages swapped": (rf"^{_STAGE}\n{_NEXT_STAGE}", replace(r"\3\n\1")),
    "shrunk NRAM": (r"__nram__ .*char nram\[(\d+)\]", number(1, lambda n: n // 2, lambda n: n - 128)),
    "shrunk SRAM": (r"__mlu_shared__ .*char sram\[(\d+)\]", number(1, lambda n: n // 2, lambda n: n - 128)),
    "shrunk WRAM": (r"__wram__ .*char wram\[(\d+)\]", number(1, lambda n: n // 2, lambda n: n - 128)),
    "array beyond the memory": (r"char [nsw]ram\[(\d+)\]", number(1, lambda n: n + (1 << 24))),
    "moved tile": (
        _PLACE,
        number(2, lambda n: n + 128, lambda n: n - 128, lambda n: n + 4),
    ),
    "tile of another memory": (_PLACE, replace(r"(wram + \2)")),
    "bound of a box": (r"(const int32_t \w+ = )[^;]* \? (\w+) : ", replace(r"\1\2; //", r"\g<0>1 + ")),
    "loop ends early": (_LOOP, number(2, lambda n: n - 1)),
    "loop ends late": (_LOOP, number(2, lambda n: n + 1)),
    "rounding": (r"(__bang_\w+)_(?:tz|rn|rd)\b", replace(r"\1_up", r"\1_dn")),
    "clusters launched as cores": (r"cnrtFuncTypeUnion1", replace("cnrtFuncTypeBlock")),
    "cores launched as clusters": (r"cnrtFuncTypeBlock", replace("cnrtFuncTypeUnion1")),
    "cores of a launch": (r"dim = \{(\d+), ", number(1, lambda n: n - 1, lambda n: n + 1)),
    "clusters of a launch": (r"dim = \{4, (\d+), 1\}", number(1, lambda n: n - 1, lambda n: n + 1)),
}

TABLE = FaultTable("#include <bang.h>", _BARRIERS, _VALUES)
