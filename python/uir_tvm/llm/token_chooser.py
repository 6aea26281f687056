# SPDX-License-Identifier: Apache-2.0
"""Tokens chosen where logits lie: the programs of `token_programs`, and what their state has."""

from __future__ import annotations

import copy
import functools
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import attrs
import numpy as np
import torch
import tvm

from ..api import compile as compile_model
from ..errors import ArtifactError
from ..options import ACTIVATIONS, CompileOptions
from ..runtime import load as load_executable
from .next_token import Sampling
from .token_programs import SETTINGS, DrawnToken, MostLikelyToken

#: Marks that one call changes.
MARKS = 64
#: Files of the programs in the folder of a saved model.
FILES = {MostLikelyToken: "most_likely.uir", DrawnToken: "drawn.uir"}
#: The greatest number below 1, and the least above 0, that float32 has.
BELOW_ONE, ABOVE_ZERO = np.nextafter(np.float32(1), np.float32(0)), np.finfo(np.float32).tiny


@attrs.define(slots=False)
class TokenPrograms:
    """Both programs, each compiled or read from its file when it is first needed.

    Attributes
    ----------
    rows, vocabulary : int
        Of the logits.
    made : callable
        The executable of a kind of program.
    """

    rows: int
    vocabulary: int
    made: Callable[[type[MostLikelyToken]], Any]

    @functools.cached_property
    def most_likely(self) -> Any:
        """The executable of `MostLikelyToken`."""
        return self.made(MostLikelyToken)

    @functools.cached_property
    def drawn(self) -> Any:
        """The executable of `DrawnToken`."""
        return self.made(DrawnToken)

    @staticmethod
    def compiled(
        rows: int, vocabulary: int, target: str | tvm.target.Target, options: CompileOptions | None
    ) -> TokenPrograms:
        """For a target, with the model's options but for those of its weights and its sizes."""
        options = attrs.evolve(options or CompileOptions(), activation=ACTIVATIONS[0], specialize=())

        def made(kind: type[MostLikelyToken]) -> Any:
            inputs = (
                torch.zeros(rows, vocabulary),
                torch.ones(rows, len(SETTINGS)),
                torch.zeros(MARKS, dtype=torch.int64),
                torch.zeros(MARKS),
            )
            program = torch.export.export(kind(rows, vocabulary), inputs)
            return compile_model(program, target, name=kind.__name__, options=options)

        return TokenPrograms(rows, vocabulary, made)

    @staticmethod
    def saved(rows: int, vocabulary: int, folder: pathlib.Path) -> TokenPrograms:
        """What `save` wrote.

        Raises
        ------
        ArtifactError
            A file is missing; what is in them is read when it is needed.
        """
        missing = [name for name in FILES.values() if not (folder / name).is_file()]
        if missing:
            raise ArtifactError(
                f"{folder} is without {', '.join(missing)}.",
                need="a folder that LanguageModel.save wrote",
                remedy='save the model again, or load it with sampling="host"',
            )
        return TokenPrograms(rows, vocabulary, lambda kind: load_executable(folder / FILES[kind]))

    def save(self, folder: pathlib.Path) -> None:
        """Write both to a folder."""
        self.most_likely.save(folder / FILES[MostLikelyToken])
        self.drawn.save(folder / FILES[DrawnToken])


class TokenChooser:
    """Chooses a token of each row of logits, as `Sampling.choose` does of one.

    Parameters
    ----------
    programs : TokenPrograms
    """

    def __init__(self, programs: TokenPrograms) -> None:
        self.programs = programs
        self._forget()

    def _forget(self) -> None:
        #: What the state has: of each row the tokens that stood before, and which these are.
        self._tokens: list[list[int]] = [[] for _ in range(self.programs.rows)]
        self._marked: list[set[int]] = [set() for _ in range(self.programs.rows)]

    @functools.cached_property
    def _most_likely(self) -> Any:
        return self.programs.most_likely.clone()

    @functools.cached_property
    def _drawn(self) -> Any:
        made = self.programs.drawn.clone()
        made.share_state(self._most_likely)
        return made

    def reset(self) -> None:
        """Forget all marks; after a call that failed, too, it can be used again."""
        if "_most_likely" in vars(self):
            self._most_likely.reset()
        self._forget()

    def clone(self) -> Self:
        """The same with a state of its own; code is shared."""
        made = copy.copy(self)
        made._tokens = [list(tokens) for tokens in self._tokens]
        made._marked = [set(marked) for marked in self._marked]
        vars(made).pop("_drawn", None)
        if "_most_likely" in vars(self):
            vars(made)["_most_likely"] = self._most_likely.clone()
        return made

    def choose(
        self, logits: Any, before: Sequence[Sequence[int]], sampling: Sampling, uniforms: Sequence[float]
    ) -> np.ndarray:
        """The next token of each row.

        Parameters
        ----------
        logits : numpy.ndarray or tvm.runtime.Tensor of float32, (rows, vocabulary)
            On the programs' device they stay there.
        before : sequence of sequence of int
            The tokens so far, of each row that there is.
        sampling : Sampling
        uniforms : sequence of float
            A number from 0 to below 1 for each of these rows; where nothing is drawn none is read.

        Returns
        -------
        numpy.ndarray of int32, (rows,)
        """
        rows, vocabulary = self.programs.rows, self.programs.vocabulary
        settings = np.zeros((rows, len(SETTINGS)), np.float32)
        settings[:, :4] = (
            sampling.repetition_penalty,
            max(sampling.temperature, float(ABOVE_ZERO)),
            min(sampling.top_k or vocabulary, vocabulary),
            sampling.top_p,
        )
        settings[: len(uniforms), 4] = np.minimum(np.array(uniforms, np.float32), BELOW_ONE)
        program = self._drawn if sampling.temperature else self._most_likely
        # without a penalty nobody reads the marks
        changes = self._changes(before) if sampling.repetition_penalty != 1 else []
        for begin in range(0, len(changes) - MARKS, MARKS):
            self._called(self._most_likely, logits, settings, changes[begin : begin + MARKS])
        rest = changes[(len(changes) - 1) // MARKS * MARKS :] if changes else []
        made: np.ndarray = self._called(program, logits, settings, rest)
        if sampling.repetition_penalty != 1:
            self._tokens[: len(before)] = map(list, before)
        return made

    def _changes(self, before: Sequence[Sequence[int]]) -> list[tuple[int, int, bool]]:
        """Marks that are not as these tokens say: row, token, what it becomes."""
        found: list[tuple[int, int, bool]] = []
        for row, tokens in enumerate(before):
            old, marked = self._tokens[row], self._marked[row]
            if tokens[: len(old)] == old:
                found += ((row, token, True) for token in {*tokens[len(old) :]} - marked)
                continue
            whole = {*tokens}
            found += ((row, token, True) for token in whole - marked)
            found += ((row, token, False) for token in marked - whole)
        return found

    def _called(
        self, program: Any, logits: Any, settings: np.ndarray, changes: Sequence[tuple[int, int, bool]]
    ) -> Any:
        """Change marks, and choose."""
        # what is left of the call's room writes what is there already
        places, marks = np.zeros(MARKS, np.int64), np.zeros(MARKS, np.float32)
        row, token, mark = changes[0] if changes else (0, 0, 0 in self._marked[0])
        places[:], marks[:] = row * self.programs.vocabulary + token, mark
        for at, (row, token, mark) in enumerate(changes):
            places[at], marks[at] = row * self.programs.vocabulary + token, mark
        made = program.flat(logits, settings, places, marks)[0]
        for row, token, mark in changes:
            (self._marked[row].add if mark else self._marked[row].discard)(token)
        return made


def uniforms_of(rngs: Sequence[np.random.Generator | None], sampling: Sampling) -> Iterator[float]:
    """A number for each row that is open, where a token is drawn; else 0."""
    for rng in rngs:
        yield 0.0 if rng is None or not sampling.temperature else rng.random()
