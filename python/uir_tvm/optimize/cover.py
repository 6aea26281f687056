# SPDX-License-Identifier: Apache-2.0
"""The cheapest choice that serves every demand: weighted set cover, exact up to a size."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

#: Nodes of the search after which the best choice so far is taken.
MAX_NODES = 100_000


@attrs.frozen
class WeightedSet:
    """Something that costs ``weight`` and serves the demands whose bits are set in ``serves``."""

    weight: int
    serves: int


def cheapest(choices: Sequence[WeightedSet], demands: int) -> list[int]:
    """Indices of choices that together serve ``demands`` demands at the least weight.

    The search is exact unless it meets `MAX_NODES`; then the
    result serves every demand all the same, and none of it is redundant.

    Raises
    ------
    ValueError
        Some demand is served by no choice.
    """
    wanted = (1 << demands) - 1
    useful = _undominated(choices)
    reach = 0
    for k in useful:
        reach |= choices[k].serves
    if reach & wanted != wanted:
        raise ValueError(f"no choice serves demand {_lowest(wanted & ~reach)}")
    return _Search(choices, useful, _hardest(choices, useful, wanted)).run()


def _undominated(choices: Sequence[WeightedSet]) -> list[int]:
    """The choices that no other serves as much as at no greater weight, cheapest first."""
    kept: list[int] = []
    for k in sorted(
        range(len(choices)), key=lambda k: (choices[k].weight, -choices[k].serves.bit_count(), k)
    ):
        mine = choices[k].serves
        if mine and not any(mine & ~choices[other].serves == 0 for other in kept):
            kept.append(k)
    return kept


def _hardest(choices: Sequence[WeightedSet], useful: Sequence[int], wanted: int) -> dict[int, list[int]]:
    """The demands that are not served along with another: bit -> the choices that serve it."""
    by_demand: dict[int, list[int]] = {}
    for d in range(wanted.bit_length()):
        by_demand[1 << d] = [k for k in useful if choices[k].serves >> d & 1]
    kept: dict[int, list[int]] = {}
    for bit, servers in sorted(by_demand.items(), key=lambda item: len(item[1])):
        if not any(set(other) <= set(servers) for other in kept.values()):
            kept[bit] = servers
    return kept


class _Search:
    def __init__(
        self, choices: Sequence[WeightedSet], useful: Sequence[int], demands: dict[int, list[int]]
    ) -> None:
        self.choices, self.demands = choices, demands
        self.wanted = sum(demands)
        self.best = self._greedy(useful)
        self.best_weight = self._weight(self.best)
        self.nodes = 0

    def run(self) -> list[int]:
        """Branch on the demand with the fewest choices left; bound by disjoint demands."""
        self._branch([], 0, self.wanted)
        return sorted(self.best)

    def _branch(self, chosen: list[int], weight: int, missing: int) -> None:
        self.nodes += 1
        if not missing:
            if weight < self.best_weight:
                self.best, self.best_weight = list(chosen), weight
            return
        if self.nodes > MAX_NODES or weight + self._bound(missing) >= self.best_weight:
            return
        bit = min((b for b in self.demands if b & missing), key=lambda b: len(self.demands[b]))
        for k in self.demands[bit]:
            self._branch([*chosen, k], weight + self.choices[k].weight, missing & ~self.choices[k].serves)

    def _bound(self, missing: int) -> int:
        """What demands cost at least of which no choice serves two."""
        total, taken = 0, 0
        for bit, servers in self.demands.items():
            if bit & missing:
                reach = 0
                for k in servers:
                    reach |= self.choices[k].serves
                if not reach & taken:
                    total += self.choices[servers[0]].weight  # the cheapest: they are in that order
                    taken |= bit
        return total

    def _greedy(self, useful: Sequence[int]) -> list[int]:
        chosen: list[int] = []
        missing = self.wanted
        while missing:
            best = max(
                useful, key=lambda k: (self.choices[k].serves & missing).bit_count() / self.choices[k].weight
            )
            chosen.append(best)
            missing &= ~self.choices[best].serves
        for k in sorted(chosen, key=lambda k: -self.choices[k].weight):
            rest = 0
            for other in chosen:
                rest |= self.choices[other].serves if other != k else 0
            if rest & self.wanted == self.wanted:
                chosen.remove(k)
        return chosen

    def _weight(self, chosen: Sequence[int]) -> int:
        return sum(self.choices[k].weight for k in chosen)


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
