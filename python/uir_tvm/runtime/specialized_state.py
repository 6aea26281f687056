# SPDX-License-Identifier: Apache-2.0
"""The state of a model that is compiled at the call: one for all that is compiled of it."""

from __future__ import annotations

import copy
import functools
import weakref
from typing import Any

from ..errors import StateError
from ..sizes.symbolic_shapes import OpenSignature
from ..state_spec import rows_of
from .calls_by_shapes import CallsByShapes
from .executable import Executable
from .executable_state import ModelState, check_same_state
from .model_stages import Paths
from .open_inputs import Key
from .specialization import Specialization
from .stored_programs import StoredPrograms
from .symbolic_programs import SymbolicPrograms


class HoldsState:
    """The part of a `SpecializedExecutable` that keeps state."""

    signature: OpenSignature
    _paths: Paths
    _short: CallsByShapes
    deciding: list[str]
    _whole: dict[Key, Specialization]
    _programs: SymbolicPrograms | StoredPrograms
    _state: ModelState | None = None
    #: Paths that a clone keeps.
    _kept: int

    @property
    def state(self) -> ModelState:
        """What calls leave changed for the next one, by name; empty where the model has no state.

        Raises
        ------
        StateError
            Nothing is compiled yet: nobody knows what it has.
        """
        if self._state is None:
            made = self._made_so_far()
            if not made:
                raise StateError(
                    "The model is compiled at the call: what state it has is not known yet.",
                    need="code for some sizes",
                    remedy="call it first, or compile with CompileOptions(specialize=[{symbol: size}])",
                )
            self._state = made[0].own_state()
        return self._state

    def _made_so_far(self) -> list[Executable]:
        """What is compiled; all have the same state."""
        programs = [each.executable for each in self._programs.programs if each.executable is not None]
        return [*(each.executable for each in self._whole.values()), *programs]

    def reset(self) -> None:
        """Give the state its initial values."""
        if self._state is not None:
            self._state.reset()

    def share_state(self, other: Any) -> None:
        """Go on with the state of another executable, as `Executable.share_state`."""
        check_same_state(self.state, other.state)
        self._state = other.state
        for each in self._whole.values():
            self._with_state(each.executable)
        self._keep_short()

    def clone(self) -> Any:
        """An executable with a copy of the state; code and weights are shared."""
        made = copy.copy(self)
        made._paths, made._whole, made._state = Paths(self._kept), {}, None
        made._short = CallsByShapes(self.signature)
        # the lock stays one: clones compile into the same programs
        vars(made).update(_compiled=weakref.WeakValueDictionary(), _modules=weakref.WeakKeyDictionary())
        if self._whole or self._state is not None:
            made._state = self.state.copied()
        for key, each in self._whole.items():
            executable = made._with_state(copy.copy(each.executable))
            made._whole[key] = each.copied(executable)
        return made

    def _with_state(self, executable: Executable) -> Executable:
        """An executable that works on this one's state, which is made when it is first needed."""
        if executable.info.state:
            vars(executable).pop("state", None)
            executable._shared_state = functools.partial(self._state_like, executable)
            executable.on_other_state = self._keep_short
        return executable

    def _state_like(self, executable: Executable) -> ModelState:
        if self._state is None:
            self._state = executable.own_state()
        return self._state.ordered([each.name for each in executable.info.state])

    def _keep_short(self) -> None:
        """What calls find in C++ is what they find by their shapes alone, with the state of now."""
        self._short.keep(lambda: () if self.deciding else tuple(self._whole.values()))

    def _offer_short(self, called: Specialization) -> None:
        """Let C++ find what was called with tensors alone."""
        if not called.is_offered:
            called.is_offered = True
            self._keep_short()

    def _state_rows(self) -> list[Any]:
        """Of a report."""
        made = self._made_so_far()
        return rows_of(made[0].info.state) if made else []
