# SPDX-License-Identifier: Apache-2.0
"""What MetaSchedule's parts are given: a context of one thread for a search strategy."""

from __future__ import annotations

import logging
from typing import Any

import tvm
from tvm.s_tir import meta_schedule

log = logging.getLogger(__name__)


def _log(level: int, file: str, line: int, said: str) -> None:
    """What MetaSchedule tells of its work."""
    log.debug("%s:%d: %s", file.rpartition("/")[2], line, said)


class Context(meta_schedule.TuneContext):
    """A context without the intrinsics of other targets that TVM's own constructor imports.

    They are TVMScript, which takes a minute to parse in a process with as many modules as torch has.
    """

    def __init__(
        self, mod: tvm.IRModule, target: tvm.target.Target, generator: Any, strategy: Any, rand_state: int
    ) -> None:
        api = meta_schedule.tune_context._ffi_api
        given = (mod, target, generator, strategy, "main", 1, rand_state, _log)
        self.__init_handle_by_constructor__(api.TuneContext, *given)
        api.TuneContextInitialize(self)
