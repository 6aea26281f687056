# SPDX-License-Identifier: Apache-2.0
"""Calls of a model with open sizes that C++ makes alone: by the shapes of the inputs it finds what to run.

It takes shapes that were called before, whose conditions are known to hold. What it does not take, it leaves
untouched: other shapes, and what the executable of these shapes does not take (`runtime.direct_call`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import tvm_ffi

from ..sizes.symbolic_shapes import NUMBER, TENSOR, OpenSignature
from .direct_call import DirectCall
from .specialization import Specialization

#: What a number has in a key of C++ where a tensor has its rank.
_NUMBER = -1


class CallsByShapes:
    """Finds specializations in C++.

    Parameters
    ----------
    signature : OpenSignature
        Of the model, with all inputs.
    """

    def __init__(self, signature: OpenSignature) -> None:
        self._signature = signature
        self._lock = threading.Lock()
        #: The call with all inputs, and what nests its results as the model does; None: it takes none yet.
        self.found: tuple[DirectCall, Callable[[Any], Any]] | None = None

    def keep(self, kept: Callable[[], Iterable[Specialization]]) -> None:
        """Go on with what is kept now, of what was offered, and with its state.

        Parameters
        ----------
        kept : callable
            All specializations that calls may find now.
        """
        with self._lock:  # asked inside: the last one to come sees the last change
            self.found = self._of([each for each in kept() if each.is_offered])

    def _of(self, offered: Iterable[Specialization]) -> tuple[DirectCall, Callable[[Any], Any]] | None:
        rows: list[tuple[Specialization, DirectCall, list[int]]] = []
        for each in offered:
            direct, key = each.executable.direct, self._key_of(each)
            if direct is None or key is None:
                continue
            if not rows or _alike((each, direct), rows[0][:2]):
                rows.append((each, direct, key))
        if not rows:
            return None
        run = tvm_ffi.get_global_func("uir.runtime.calls_by_shapes")(
            [tvm_ffi.Shape(tuple(key)) for _, _, key in rows],
            [direct.run for _, direct, _ in rows],
            [tvm_ffi.Shape(each.inputs) for each, _, _ in rows],
            [tvm_ffi.from_dlpack(each.counted) for each, _, _ in rows],
        )
        first, direct, _ = rows[0]
        return direct.run_by(run), first.executable.nested

    def _key_of(self, each: Specialization) -> list[int] | None:
        """The shapes as C++ reads them; None where an argument is no tensor and no number."""
        key: list[int] = []
        for given in self._signature.inputs:
            shape = each.shapes[given.name]
            if given.kind not in (TENSOR, NUMBER):
                return None
            key += [_NUMBER if given.kind == NUMBER else len(shape), *shape]
        return key


def _alike(one: tuple[Specialization, DirectCall], other: tuple[Specialization, DirectCall]) -> bool:
    """Whether results are made alike of what C++ gives, and the state is one."""
    a, b = (each.executable.info for each, _ in (one, other))
    states = [direct.state and direct.state.lock for _, direct in (one, other)]
    dtypes = [[result.dtype for result in info.outputs] for info in (a, b)]
    return a.structure == b.structure and dtypes[0] == dtypes[1] and states[0] is states[1]
