# SPDX-License-Identifier: Apache-2.0
"""The cases of Relax operators: `CASES` by name, `QUICK` of them, and the operators that have none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import tvm

from . import elementwise, movement, neural, reductions
from .case import ALL, OF_RARE, RARE, Case

#: operator, dtype -> cases.
Groups = dict[tuple[str, str], list[Case]]


def representative(cases: Sequence[Case]) -> Case:
    """One case that has elements, of a middle rank."""
    full = [case for case in cases if not case.empty and "edges" not in case.variant] or cases
    return full[len(full) // 3]


def thinned(cases: Sequence[Case], every: int, offset: int) -> list[Case]:
    """One case of so many, beginning with another one in every group, so that ranks and dtypes mix."""
    kept = [case for number, case in enumerate(cases) if (number + offset) % every == 0]
    return kept or [representative(cases)]


def _grouped(cases: Iterable[Case]) -> Groups:
    found: Groups = {}
    for case in cases:
        found.setdefault((case.operator, case.dtype), []).append(case)
    return found


def _made() -> Iterator[Case]:
    """All cases; of rare dtypes one in so many."""
    every = _grouped(case for part in (elementwise, reductions, movement, neural) for case in part.cases())
    for number, ((_, dtype), cases) in enumerate(every.items()):
        yield from thinned(cases, OF_RARE, number) if dtype in RARE else cases


CASES: dict[str, Case] = {}
for _case in _made():
    assert _case.name not in CASES and _case.dtype in ALL, _case.name
    CASES[_case.name] = _case

_DATA = "the shape of its result depends on data"
_WORLD = "for several devices, of which a model here has one"
_VM = "of the virtual machine, below models"
_OWN = "what a model is lowered to, not what it is written in"
_META = "asks for a tensor's form, which is known when the model is compiled"
#: Operators without a case, and why; by their beginning.
UNCOVERED: dict[str, str] = {
    **dict.fromkeys(("nonzero", "unique"), _DATA),
    **dict.fromkeys(("ccl.", "dist.", "hint_on_device", "to_vdevice"), _WORLD),
    **dict.fromkeys(("builtin.", "memory.", "vm.", "null_value"), _VM),
    **dict.fromkeys(("call_", "make_closure", "invoke_"), _OWN),
    **dict.fromkeys(("inspect.", "shape_of", "tensor_to_shape"), _META),
    **dict.fromkeys(("assert_op", "print"), "for its effect; it is left out"),
    "wrap_param": "marks a parameter for a transformation of weights",
    "nn.attention_var_len": "stock TVM lowers it for no target",
}


def operators() -> list[str]:
    """All operators that Relax has, without their prefix."""
    names = (str(name) for name in tvm.ir.Op.list_op_names())
    return sorted(name.removeprefix("relax.") for name in names if name.startswith("relax."))


def groups() -> Groups:
    """The cases by operator and dtype."""
    return _grouped(CASES.values())


#: One case of every operator, in turn of every dtype but the narrowest, in which TVM computes little.
QUICK: list[Case] = []
_GROUPS = groups()
for _number, _operator in enumerate(dict.fromkeys(case.operator for case in CASES.values())):
    _dtypes = [
        cases
        for (name, dtype), cases in _GROUPS.items()
        if name == _operator and not dtype.startswith("float8")
    ]
    QUICK.append(representative(_dtypes[0 if _number % 2 else _number % len(_dtypes)]))
