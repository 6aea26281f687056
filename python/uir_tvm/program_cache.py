# SPDX-License-Identifier: Apache-2.0
"""Whole programs that this process compiled before: the same model again takes no import and no pass.

exe = compile(program)    imported, mapped to kernels, compiled
exe = compile(program)    the same code and weights, with state of its own

A program is found again by the contents of its model, every weight included, and by all else that decides
what is compiled (`key_of`): weights that were changed in place, and models of the same structure with others,
are other programs. So nothing has to be known of what was folded or packed of which weight. The code and the
weights are shared, as `Executable.clone` shares them.

Programs stay while an executable of them lives, and beyond that those used last, as far as their weights take
no more than ``UIR_PROGRAM_CACHE_MB``.
"""

from __future__ import annotations

import collections
import contextlib
import json
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import tvm

from . import environment, kernel_cache
from .content_digest import ContentDigest
from .one_at_a_time import one_at_a_time
from .options import VARIABLES, CompileOptions
from .runtime.executable import Executable
from .runtime.model_info import ModelInfo
from .runtime.stored_programs import StoredPrograms
from .runtime.symbolic_programs import SizedProgram, SymbolicProgram, SymbolicPrograms
from .schedule.hardware_of import model_of_target
from .target.registry import Resolved

#: Programs that are kept whether or not an executable of them lives.
MOST = 32


@attrs.frozen(eq=False)
class KeptProgram:
    """What executables of one program share.

    Attributes
    ----------
    library : tvm.runtime.Module
    info : ModelInfo
    kernel_graph : KernelGraph or None
    initial : sequence of tvm.runtime.Tensor
        What its state begins as.
    """

    library: Any
    info: ModelInfo
    kernel_graph: Any
    initial: Sequence[tvm.runtime.Tensor]

    @property
    def nbytes(self) -> int:
        """Of its weights, and of what its state begins as."""
        return _weights(self.info) + sum(each.numpy().nbytes for each in self.initial)

    def executable(self, seconds: float) -> Executable:
        """An executable with state of its own."""
        kernels = tuple(attrs.evolve(each, kept="memory", seconds={}) for each in self.info.kernels)
        info = attrs.evolve(self.info, kernels=kernels, seconds={"kept": seconds})
        made = Executable(self.library, info, self.kernel_graph, initial=self.initial)
        made.made_of = self
        return made


@attrs.frozen(eq=False)
class KeptSizes:
    """The programs of a model that leaves sizes open, each compiled for all sizes that it admits.

    Attributes
    ----------
    signature : str
        The names and sizes of the inputs that they are for.
    programs : SymbolicPrograms
    """

    signature: str
    programs: SymbolicPrograms

    @property
    def nbytes(self) -> int:
        """Of weights: as the kernels read them, and as the model has them."""
        made = [each.executable for each in self.programs.programs if each.executable is not None]
        return 2 * sum(_weights(each.info) for each in made)


Kept = KeptProgram | KeptSizes

#: Those used last, the latest at the end.
_LAST: collections.OrderedDict[bytes, Kept] = collections.OrderedDict()
#: All that are alive.
_ALIVE: weakref.WeakValueDictionary[bytes, Kept] = weakref.WeakValueDictionary()


def key_of(
    digest: Callable[[], bytes | None], label: str, target: Resolved, device: str, options: CompileOptions
) -> bytes | None:
    """All that an executable depends on; None where it is not kept.

    Parameters
    ----------
    digest : callable
        Of the model (`model_digest.digest_of`), asked where the rest may be kept.
    label : str
        The model's name.
    target : Resolved
    device : str
        The name of the place where it runs.
    options : CompileOptions
    """
    if options.database is not None or not kernel_cache.may_keep(options):
        return None
    model = digest()
    if model is None:
        return None
    made = ContentDigest()
    made.data(model)
    made.text(label)
    made.text(device)
    made.text(target.name)
    made.text(json.dumps(dict(target.target.export()), sort_keys=True, default=str))
    made.text(model_of_target(target.target).to_json())
    made.text(repr(options))
    made.text(f"{environment.num_threads()} {[environment.text(name) for name in VARIABLES]}")
    return made.digest()


def find(key: bytes) -> KeptProgram | None:
    """The program that was kept for a key."""
    found = _found(key)
    return found if isinstance(found, KeptProgram) else None


def keep(key: bytes, made: Executable) -> None:
    """Find an executable's program from now on; not one with refused kernels, which are told each time."""
    if not any(each.fallback for each in made.info.kernels):
        made.made_of = KeptProgram(made.library, made.info, made.kernel_graph, made.initial)
        _remember(key, made.made_of)


class SizesKeeper:
    """Keeps the programs of a model that leaves sizes open as calls compile them.

    The model is imported at the call: its weights may be others by then, or by the next program. So each
    program counts only where the model is still what its key says when it is compiled.

    Parameters
    ----------
    key : bytes or None
        None: nothing is kept.
    key_now : callable
        The key of the model as it is now.
    signature : str
        The names and sizes of its inputs.
    """

    def __init__(self, key: bytes | None, key_now: Callable[[], bytes | None], signature: str) -> None:
        self._key, self._key_now, self._signature = key, key_now, signature
        found = None if key is None else _found(key)
        #: What is found again lives as long as this.
        self._kept = found if isinstance(found, KeptSizes) and found.signature == signature else None

    @property
    def found(self) -> SymbolicPrograms | None:
        """The programs that were kept, for one more executable."""
        return None if self._kept is None else self._kept.programs.again(self._kept.programs.programs)

    @contextlib.contextmanager
    def watching(self, module: Any, programs: SymbolicPrograms | StoredPrograms) -> Iterator[None]:
        """Keep what is compiled inside, where it is a program for all sizes; none with state or refusals."""
        program = module.program if isinstance(module, SizedProgram) else None
        new = isinstance(program, SymbolicProgram) and program.executable is None
        yield
        if not new or self._key is None or self._key != self._key_now():
            return
        assert isinstance(program, SymbolicProgram) and isinstance(programs, SymbolicPrograms)
        if program.executable is None:
            return
        info = program.executable.info
        if info.state or any(each.fallback for each in info.kernels):
            return
        known = [] if self._kept is None else self._kept.programs.programs
        self._kept = KeptSizes(self._signature, programs.again([*known, program]))
        _remember(self._key, self._kept)


def forget() -> None:
    """Keep nothing any more."""
    _LAST.clear()
    _ALIVE.clear()


@one_at_a_time
def _found(key: bytes) -> Kept | None:
    found = _LAST.get(key) or _ALIVE.get(key)
    if found is not None:
        _remember(key, found)
    return found


@one_at_a_time
def _remember(key: bytes, kept: Kept) -> None:
    _ALIVE[key] = kept
    _LAST.pop(key, None)
    room = environment.program_cache_bytes()
    if kept.nbytes > room:
        return
    _LAST[key] = kept
    while len(_LAST) > MOST or sum(each.nbytes for each in _LAST.values()) > room:
        _LAST.popitem(last=False)


def _weights(info: ModelInfo) -> int:
    return int(info.graph.get("constant_bytes", 0))
