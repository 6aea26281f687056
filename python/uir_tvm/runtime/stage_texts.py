# SPDX-License-Identifier: Apache-2.0
"""Texts that are printed when they are first read: of most kernels nobody reads any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping


class StageTexts(Mapping[str, str]):
    """Texts by the name of their stage.

    Parameters
    ----------
    printers : mapping of str to callable
        What prints each.
    """

    def __init__(self, printers: Mapping[str, Callable[[], str]]) -> None:
        self._printers = dict(printers)
        self._texts: dict[str, str] = {}

    def __getitem__(self, stage: str) -> str:
        if stage not in self._texts:
            self._texts[stage] = self._printers[stage]()
        return self._texts[stage]

    def __iter__(self) -> Iterator[str]:
        return iter(self._printers)

    def __len__(self) -> int:
        return len(self._printers)
