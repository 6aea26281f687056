# SPDX-License-Identifier: Apache-2.0
"""The kinds of fault in Ascend C."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .text_faults import Edit, Everywhere, FaultTable, argument, arguments, call, drop, number, replace, text

_Found = Iterator[tuple[int, str, str]]


def _flags(report: Mapping[str, Any]) -> Iterator[tuple[str, list[int]]]:
    """Each flag of the plan: its name, and the lines of all its sets and waits."""
    for notes in report.values():
        for note in notes:
            found = re.match(r"(?:cube core, )?sync \d+, (\w+_\w+), line ([\d ]+):", note)
            if found:
                yield found[1], [int(line) for line in found[2].split()]


def _changed(source: str, lines: list[int], pattern: str, by: str) -> str:
    """The text with the pattern replaced in some of its lines."""
    out = source.split("\n")
    for line in lines:
        out[line - 1] = re.sub(pattern, by, out[line - 1])
    return "\n".join(out)


def _drop_flag(source: str, report: Mapping[str, Any]) -> _Found:
    """A flag that nobody sets or waits for."""
    for name, lines in _flags(report):
        yield lines[0], f"no flag {name}", _changed(source, lines, r"(?:Set|Wait)Flag<.*", "")


def _disarm_flag(source: str, report: Mapping[str, Any]) -> _Found:
    """A flag whose waits take it down, and order nothing."""
    for name, lines in _flags(report):
        changed = _changed(source, lines, r"WaitFlag<", "uir_ascendc::take_flag<")
        yield lines[0], f"flag {name} orders nothing", changed


def _drop_cross_flag(source: str, _report: Mapping[str, Any]) -> _Found:
    """A flag between cores that neither of them knows: sets and waits pair up in their order."""
    lines = list(enumerate(source.split("\n"), 1))
    for flag in range(11):
        sets = [at for at, line in lines if re.search(rf"CrossCoreSetFlag<.*?>\({flag}\)", line)]
        waits = [at for at, line in lines if re.search(rf"CrossCoreWaitFlag(?:<.*?>)?\({flag}\)", line)]
        assert len(sets) == len(waits), f"flag {flag} between cores is set in {sets}, waited for in {waits}"
        for pair in zip(sets, waits, strict=True):
            changed = _changed(source, list(pair), r"CrossCore\w+Flag.*?;", "")
            yield pair[0], f"no flag {flag} between the cores", changed


_SYNCS: dict[str, Everywhere] = {
    "drop a flag": _drop_flag,
    "flag without order": _disarm_flag,
    "drop a flag between cores": _drop_cross_flag,
}

#: What may be dropped only where it was needless.
_BARRIERS: dict[str, tuple[str, Edit]] = {
    "drop PipeBarrier": (r"^ *PipeBarrier<\w+>\(\);", drop),
    "drop SetFlag": (r"^ *SetFlag<[^;]*;", drop),
    "drop WaitFlag": (r"^ *WaitFlag<[^;]*;", drop),
    "drop CrossCoreSetFlag": (r"^ *CrossCoreSetFlag[^;]*;", drop),
    "drop CrossCoreWaitFlag": (r"^ *CrossCoreWaitFlag[^;]*;", drop),
    # Queues: in texts written by hand alone, the printer has none.
    "drop EnQue": (r"^ *\w+\.EnQue\([^;]*;", drop),
    "drop DeQue": (r"\w+\.DeQue(<\w+>)\(\)", replace(r"LocalTensor\1()")),
    "drop FreeTensor": (r"^ *\w+\.FreeTensor\([^;]*;", drop),
}

_SYNC = r"(?:SetFlag|WaitFlag|PipeBarrier|CrossCore\w+Flag)<?"
#: An instruction that stands in a line of its own.
_STATEMENT = rf" *(?!{_SYNC})[A-Z]\w*[<(][^\n]*;\n"
#: Calls that are no vector function: transfers, the cube, syncs, structs.
_NO_VECTOR = (
    r"(?!Data|Load|Mmad|Fixpipe|SetFlag|WaitFlag|PipeBarrier|CrossCore|KERNEL|GetBlockIdx|Global|Local|T[BP])"
)
_VECTOR = call(rf"(?<=  ){_NO_VECTOR}[A-Z]\w*(?<!Params)")
_COPY = call(r"DataCopy(?:Pad)?")


def _element_on(given: str) -> str | None:
    """One element further in a tensor of the core's own memory; None for one in global memory."""
    found = re.fullmatch(r"(\w+)(?:\[(.*)\])?(\..*)?", given)
    if not found or found[1].endswith("_gm"):
        return None
    return f"{found[1]}[{found[2] + ' + ' if found[2] else ''}1]{found[3] or ''}"


def _global_on(elements: int) -> Any:
    """Some elements further in global memory."""

    def change(given: str) -> str | None:
        found = re.fullmatch(r"(\w+_gm)(?:\[(.*)\])?", given)
        return f"{found[1]}[{found[2] + ' + ' if found[2] else ''}{elements}]" if found else None

    return change


def _global(given: list[str]) -> int | None:
    """Which operand of a copy is in global memory, if one is."""
    return next((at for at in (0, 1) if re.match(r"\w+_gm\b", given[at])), None)


def _local(given: list[str]) -> int | None:
    """Which operand of a copy is in the core's own memory: the target, unless that is in global memory."""
    return 1 if _global(given) == 0 else 0


def _repeats(offset: int) -> Any:
    """Where a vector function in its form with repeats takes them (offset 0) or the mask (-1)."""

    def which(given: list[str]) -> int | None:
        strides = next((at for at, one in enumerate(given) if re.match(r"\w+RepeatParams\(", one)), None)
        # Brcb has no mask: it takes eight elements with each repeat.
        return None if strides is None or strides + offset < 3 else strides - 1 + offset

    return which


def _count(given: list[str]) -> int | None:
    """Where a vector function in its count form takes the count."""
    last = given[-1]
    plain = not re.search(r"Params\(|::|\d\.|[\"{]", last)
    return len(given) - 1 if plain and not any("Params(" in one for one in given) else None


_OPPOSITE = {"true": "false", "false": "true"}
_OTHER = _OPPOSITE.get


def _each(*changes: Any) -> Edit:
    """Every argument of a call changed in turn, numbers by numbers and truths by truths."""

    def edit(match: re.Match[str]) -> Iterator[str]:
        for at, given in enumerate(arguments(match["inside"])):
            fitting = [change for change in changes if (change is _OTHER) == (given in _OPPOSITE)]
            yield from argument(at, *fitting)(match)

    return edit


_LESS, _MORE = text("{} - 1"), text("{} + 1")
_COPY_PARAMS = call("DataCopy(?:Ext)?Params")
_REDUCE = call(r"(?:Whole|Block|Pair)Reduce\w+")
_LOOP = r"(; \w+ < )(\d+)(; \+\+)"

#: Wrong numbers: ids, addresses, masks, repeats, lengths, bounds.
_VALUES: dict[str, tuple[str, Edit]] = {
    "event id": (call("(?:Set|Wait)Flag"), argument(0, _MORE, text("{} + 8"))),
    "flag the other way": (r"((?:Set|Wait)Flag<HardEvent::)([A-Z0-9]+)_([A-Z0-9]+)>", replace(r"\1\3_\2>")),
    "barrier of another pipe": (
        r"PipeBarrier<PIPE_(?:V|MTE\d|M|FIX)>",
        replace("PipeBarrier<PIPE_MTE2>", "PipeBarrier<PIPE_MTE3>"),
    ),
    "wait behind its instruction": (rf"^( *WaitFlag<[^\n]*\n)({_STATEMENT})", replace(r"\2\1")),
    "set before its instruction": (rf"^({_STATEMENT})( *SetFlag<[^\n]*\n)", replace(r"\2\1")),
    "flag between cores of another pipe": (r"(CrossCoreSetFlag<2, PIPE_)FIX>", replace(r"\1MTE2>")),
    "number of a flag between cores": (call("CrossCore(?:Set|Wait)Flag"), argument(0, _MORE)),
    "misaligned copy": (_COPY, argument(_local, _element_on)),
    "misaligned operand": (_VECTOR, argument(0, _element_on)),
    "misaligned source": (_VECTOR, argument(1, _element_on)),
    "misaligned tile of the cube": (call(r"(?:LoadData\w*|Mmad)"), argument(0, _element_on)),
    "global offset": (_COPY, argument(_global, _global_on(1), _global_on(8))),
    "blocks of a copy": (_COPY_PARAMS, argument(0, _LESS, _MORE, text("4096"))),
    "length of a block": (_COPY_PARAMS, argument(1, text("{} / 2"), text("{} + 32"))),
    "source stride of a copy": (_COPY_PARAMS, argument(2, _LESS, _MORE)),
    "target stride of a copy": (_COPY_PARAMS, argument(3, _LESS, _MORE)),
    "elements of a copy": (_COPY, argument(_count, text("{} - 8"), _MORE)),
    "dropped pad": (r"(DataCopyPadExtParams<\w+>\()true, [^,]*, [^,]*, ", replace(r"\1false, 0, 0, ")),
    "more than 255 repeats": (_VECTOR, argument(_repeats(0), text("256"))),
    "repeats": (_VECTOR, argument(_repeats(0), _LESS, _MORE)),
    "mask": (_VECTOR, argument(_repeats(-1), text("0"), text("129"), _LESS)),
    "more than 255 repeats of a reduction": (_REDUCE, argument(3, text("256"))),
    "repeats of a reduction": (_REDUCE, argument(3, _LESS, _MORE)),
    "mask of a reduction": (_REDUCE, argument(2, text("129"), _LESS, _MORE)),
    "strides of repeats": (call(r"(?:Unary|Binary|Copy|Brcb)RepeatParams"), argument(-1, _LESS, _MORE)),
    "count": (_VECTOR, argument(_count, _LESS, text("{} + 64"))),
    "shrunk tensor": (r"GetWithOffset<\w+>\((\d+)", number(1, lambda n: n // 2, lambda n: max(n - 16, 1))),
    "misaligned tensor": (r"GetWithOffset<\w+>\(\d+, (\d+)\)", number(1, lambda n: n + 4)),
    "moved tensor": (
        r"GetWithOffset<\w+>\(\d+, (\d+)\)",
        number(1, lambda n: n + 32, lambda n: max(n - 32, 0)),
    ),
    "shrunk buffer": (r"InitBuffer\(\w+, (\d+)\)", number(1, lambda n: n - 32, lambda n: n // 2)),
    "shrunk buffer of a queue": (r"InitBuffer\(\w+, \d, (\d+)\)", number(1, lambda n: n // 2)),
    "buffer beyond the memory": (r"InitBuffer\(\w+, (\d+)\)", number(1, lambda n: n + (1 << 20))),
    "copy to L1": (call("Nd2NzParams"), _each(_LESS, _MORE)),
    "load to L0": (call(r"LoadData2[dD]\w*Params"), _each(_LESS, _MORE, _OTHER)),
    "shape of a product": (call("MmadParams"), _each(_LESS, _MORE, _OTHER)),
    "result of a product": (call("FixpipeParamsV220"), _each(_LESS, _MORE)),
    "bound of a box": (r"(const int32_t \w+ = )[^;]* \? (\w+) : ", replace(r"\1\2; //", r"\g<0>1 + ")),
    "loop ends early": (_LOOP, number(2, lambda n: n - 1)),
    "loop ends late": (_LOOP, number(2, lambda n: n + 1)),
    "comparison": (r"CMPMODE::(?:LT|GT|LE|GE)", replace("CMPMODE::EQ", "CMPMODE::NE")),
    "rounding": (r"RoundMode::CAST_RINT", replace("RoundMode::CAST_TRUNC")),
}

TABLE = FaultTable('extern "C" __global__', _BARRIERS, _VALUES, _SYNCS)
