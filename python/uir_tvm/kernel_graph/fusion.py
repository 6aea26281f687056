# SPDX-License-Identifier: Apache-2.0
"""Grouping by hero: which operators become one kernel, and why the others did not."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from math import prod

import numpy as np

from ..sizes.open_arithmetic import is_found, may_exceed, same
from .fit import Fit, Obstacle, priced
from .fusion_cost import SIBLINGS, FusionCost
from .kept_state import overwrites
from .nodes import FusionDecision
from .operator_groups import OperatorGroup, Role, singleton
from .patterns import reading_counts
from .program import Op, Program, Value, View, compose
from .recompute import recompute
from .siblings import join_siblings
from .strided_views import Layout

# Heroes in the order in which they take their neighbours; what a hero of each kind may take.
HERO_ORDER = ("contraction", "normalization", "reduction", "opaque", "gather", "concat", "elementwise")
PROLOGUE = frozenset({"normalization", "reduction", "concat", "elementwise"})
# What may run inside a kernel over rows; a concat is a choice in every element and stays outside.
INTO_ROWS = frozenset({"elementwise", "gather"})
INTO_OTHERS = frozenset({"elementwise"})
# More buffers than this exhaust registers for addresses on every target.
MAX_BUFFERS = 24
# Scheduling and lowering one kernel take time by the square of its operators: with a bound, a model's time
# grows as the model does. The largest kernel of the models in tests/models has 8.
MAX_OPERATORS = 96
#: Places of the program for an operator, and for copies that come to stand before it.
ROOM = 16


class Fusion:
    """The grouping of one program.

    Parameters
    ----------
    program : Program
        Its operators are changed to run in the space of their group.
    cost : FusionCost
        What decides where one kernel is a trade against two.
    enabled : bool
        Without, every operator keeps a group of its own.

    Attributes
    ----------
    groups : dict
        The group of every operator.
    decisions : dict
        Those that prices took: candidate, value and, of siblings, the kernels -> decision.
    """

    def __init__(self, program: Program, cost: FusionCost, *, enabled: bool = True) -> None:
        self.program = program
        self.cost = cost
        self.enabled = enabled
        self.decisions: dict[tuple[str, str, tuple[str, ...]], FusionDecision] = {}
        self.counts = reading_counts(program)
        self.outputs = program.output_bases()
        self.users = program.users()
        self.groups: dict[Op, OperatorGroup] = {op: singleton(op) for op in program.ops}
        #: The place of every operator: `ROOM` of them for each, the last its own.
        self.order = {op: ROOM * index for index, op in enumerate(program.ops, 1)}
        #: For each place in the program the first operator of a group that lies around it, else the place.
        self.around = np.arange(ROOM * (len(program.ops) + 1))
        #: Of operators that came later: before which one they are; and how many are before one.
        self._anchors: dict[Op, Op] = {}
        self.taken_before: dict[Op, int] = {}
        #: What groups wait for, while `run` forms them; who changes operands then calls `reread`.
        self._waited: dict[OperatorGroup, list[Op]] | None = None

    def run(self) -> list[OperatorGroup]:
        """Group all operators.

        Returns
        -------
        list of OperatorGroup
            In an order in which they can run.
        """
        self._waited = {}
        for hero in HERO_ORDER if self.enabled else ():
            heroes = [op for op in self.program.ops if op.kind.kind == hero]
            if hero in PROLOGUE:
                for op in reversed(heroes):  # the last of a chain takes all of it
                    self._grow(self.groups[op], self._producers)
            for op in heroes:
                if op.kind.epilogue:
                    self._grow(self.groups[op], self._consumers)
        if self.enabled:
            recompute(self)
            join_siblings(self)
        self._waited = None
        self.counts = reading_counts(self.program)
        return self.sorted_groups()

    def sorted_groups(self) -> list[OperatorGroup]:
        """The groups in an order in which they can run."""
        order: list[OperatorGroup] = []
        seen: set[OperatorGroup] = set()

        for op in self.program.ops:
            # a group waits below what it reads; no recursion, which a long model would exhaust
            waiting = [(self.groups[op], False)]
            while waiting:
                group, ready = waiting.pop()
                if ready:
                    order.append(group)
                elif group not in seen:
                    seen.add(group)
                    waiting.append((group, True))
                    waiting += [(source, False) for source in reversed(self._sources(group))]
        return order

    def _sources(self, group: OperatorGroup) -> list[OperatorGroup]:
        """Groups that this one reads."""
        return list(dict.fromkeys(self.groups[op] for op in self._earlier(group)))

    def _earlier(self, group: OperatorGroup) -> list[Op]:
        """Operators of other groups that this one waits for."""
        if self._waited is not None and group in self._waited:
            return self._waited[group]
        found = [view.base.producer for view in group.external() if view.base.producer is not None]
        for op in group.ops if self.program.waits else ():
            found += [each for each in self.program.waits.get(op, ()) if each not in group.roles]
        found = list(dict.fromkeys(found))
        if self._waited is not None:
            self._waited[group] = found
        return found

    def _producers(self, group: OperatorGroup) -> Iterator[Op]:
        for view in group.external():
            if view.base.producer is not None:
                yield view.base.producer

    def _consumers(self, group: OperatorGroup) -> Iterator[Op]:
        for op in list(group.ops):
            for value in op.results:
                for reader, _ in self.users.get(value, []):
                    if reader not in group.roles:
                        yield reader

    def _grow(self, group: OperatorGroup, neighbours: Callable[[OperatorGroup], Iterable[Op]]) -> None:
        """Take neighbours as long as one fits."""
        taken = True
        while taken:
            taken = any(self.take(group, op) for op in neighbours(group))

    def take(self, group: OperatorGroup, op: Op) -> bool:
        """Put an operator (or the group of a neighbour with the same rows) into a group, if it fits."""
        other = self.groups[op]
        if other is group:
            return False
        fit = self.fit(group, op)
        if fit is not None and fit.decision is not None:
            self.note(fit.decision)
        if isinstance(fit, Obstacle):
            return False
        if fit is not None:
            op.operands = fit.operands
            if op.kind.reshapable:
                op.result.shape = fit.shape
            other.roles[op] = fit.role
            if fit.reader is not None:
                reader, index = fit.reader
                reader.operands[index] = View(op.result, Layout.contiguous(fit.shape))
        self.absorb(group, other)
        return True

    def absorb(self, group: OperatorGroup, other: OperatorGroup) -> None:
        """Make one group of two, whose operators all have their roles in the first one's space."""
        group.roles.update(other.roles)
        if other.hero == "normalization":
            group.hero = "normalization"
        group.ops = sorted((*group.ops, *other.ops), key=lambda member: self.order[member])
        for member in other.ops:
            self.groups[member] = group
        self._lies_around(group)
        if self._waited is not None:
            self._waited.pop(group, None)
            self._waited.pop(other, None)

    def _lies_around(self, group: OperatorGroup) -> None:
        first, last = (self.order[group.ops[at]] for at in (0, -1))
        inside = self.around[first + 1 : last]
        np.minimum(inside, first, out=inside)

    def reread(self, op: Op, operands: list[View]) -> None:
        """Let an operator read other views; with none it is no reader any more."""
        for base in {view.base for view in op.operands}:
            self.users[base] = [user for user in self.users.get(base, ()) if user[0] is not op]
        op.operands = operands
        for index, view in enumerate(operands):
            self.users.setdefault(view.base, []).append((op, index))
        self._waited = None if self._waited is None else {}

    def insert(self, new: list[Op], reader: Op) -> bool:
        """Put operators before one of the program, each a group of its own; not where there is no room."""
        anchor = self._anchors.get(reader, reader)
        taken = self.taken_before.get(anchor, 0)
        if taken + len(new) >= ROOM:
            return False
        self.taken_before[anchor] = taken + len(new)
        at = self.program.ops.index(reader)
        self.program.ops[at:at] = new
        for back, op in enumerate(reversed(new), 1):
            self._anchors[op] = anchor
            self.order[op] = self.order[anchor] - taken - back
            self.groups[op] = singleton(op)
            operands, op.operands = op.operands, []
            self.reread(op, operands)
        return True

    def reads(self, group: OperatorGroup, other: OperatorGroup) -> bool:
        """Whether a group waits for what another one computes."""
        return other in self._sources(group)

    def fit(self, group: OperatorGroup, op: Op) -> Fit | Obstacle | None:
        """Whether an operator can join a group.

        Returns
        -------
        Fit, None or Obstacle
            Its place; None where its whole group joins as it is; otherwise the reason against it.
        """
        other = self.groups[op]
        if "library" in (group.hero, other.hero):
            return Obstacle("a library operator reads and writes memory")
        rows = bool(group.space.axes)
        same_rows = rows and other.space == group.space and other.hero in ("normalization", "reduction")
        if not same_rows and op.kind.kind not in (INTO_ROWS if rows else INTO_OTHERS):
            spaces = f"over {other.space.shape} and over {group.space.shape}"
            return Obstacle(f"{op.name} is a hero of its own beside {group.hero}, {spaces}", of_groups=True)
        if not same_rows and len(other.ops) > 1:
            return Obstacle(f"{op.name} already belongs to another kernel", of_groups=True)
        fit = self._aligned(group, other) if same_rows else self._place(group, op)
        if isinstance(fit, Obstacle):
            return fit
        obstacle = self.joins(group, other)
        if obstacle is not None or fit is None:
            return obstacle
        return priced(self, group, op, fit)

    def joins(self, group: OperatorGroup, other: OperatorGroup) -> Obstacle | None:
        """What stands against one kernel of two groups, whatever is between their elements."""
        if self.program.state and overwrites((*group.ops, *other.ops)):
            return Obstacle("it would overwrite the state that it reads")
        if len(group.ops) + len(other.ops) > MAX_OPERATORS:
            return Obstacle(f"more than {MAX_OPERATORS} operators")
        if self._reaches(group, other) or self._reaches(other, group):
            return Obstacle("one kernel would wait for its own result")
        buffers = {view.base for view in (*group.external(), *other.external())}
        return Obstacle(f"more than {MAX_BUFFERS} buffers") if len(buffers) > MAX_BUFFERS else None

    def note(self, decision: FusionDecision) -> None:
        """Keep a decision; a later one about the same value knows more of its kernels."""
        about = decision.kernels if decision.candidate == SIBLINGS else ()
        self.decisions[decision.candidate, decision.value, about] = decision

    def needed(self, ops: Iterable[Op], inside: Container[Op]) -> list[Value]:
        """Results of some operators that others than those inside read."""
        return [
            value
            for op in ops
            for value in op.results
            if value in self.outputs or any(each not in inside for each, _ in self.users.get(value, ()))
        ]

    def obstacle(self, group: OperatorGroup, op: Op) -> Obstacle | None:
        """Why an operator stayed out of a group; None where nothing stands against it.

        Where its own kernel has more operators: why it would not have joined by itself, if it would not.
        """
        answer = self.fit(group, op)
        if not isinstance(answer, Obstacle):
            return None
        if len(self.groups[op].ops) > 1 and op.kind.kind in INTO_OTHERS:
            alone = self._place(group, op)
            return alone if isinstance(alone, Obstacle) else self._taken(group, op)
        return answer

    def _taken(self, group: OperatorGroup, op: Op) -> Obstacle:
        """What stands between a group and an operator that another group took before."""
        other = self.groups[op]
        answer = f"{op.name} already belongs to another kernel, {other.name}"
        if other.space.axes and group.space.axes:
            answer += f", whose rows run along axes {other.space.axes}, not along {group.space.axes}"
        return Obstacle(answer, of_groups=True)

    def _place(self, group: OperatorGroup, op: Op) -> Fit | Obstacle:
        """An operator's place in a group's space, or what stands against it."""
        readings = [(reader, index) for reader, index in self._readings(op) if reader in group.roles]
        if any(r.kind.kind == "concat" or isinstance(group.roles[r], int) for r, _ in readings):
            return self._place_part(group, op, readings)
        roles: tuple[Role, ...] = ("full", "row") if group.space.axes else ("full",)
        obstacle = Obstacle(f"{op.name} runs over {op.shape}, the kernel over {group.space.shape}")
        for role in roles:
            fit = self._reshaped(op, group.space.shape_of(role), role)
            if fit is None:
                continue
            problem = self._edges(group, op, fit, readings)
            if problem is None:
                return fit
            obstacle = problem
        if readings and self._sole_reading(op):
            return self._sunk(group, op, readings[0])
        return obstacle

    def _readings(self, op: Op) -> list[tuple[Op, int]]:
        """Readers of an operator's results as they are now."""
        return [
            (reader, index)
            for value in op.results
            for reader in {r: r for r, _ in self.users.get(value, [])}.values()
            for index, view in enumerate(reader.operands)
            if view.base is value
        ]

    def _sole_reading(self, op: Op) -> bool:
        return op.kind.reshapable and op.result not in self.outputs and len(self._readings(op)) == 1

    def _reshaped(self, op: Op, shape: tuple[int, ...], role: Role) -> Fit | None:
        """The operator in another shape of as many elements."""
        if same(op.shape, shape):
            return Fit(op.operands, shape, role)
        if not op.kind.reshapable or len(op.results) != 1 or not same(prod(op.shape), prod(shape)):
            return None
        operands = [view.reshape(shape) for view in op.operands]
        kept = [view for view in operands if view is not None]
        return Fit(kept, shape, role) if len(kept) == len(operands) else None

    def _edges(
        self, group: OperatorGroup, op: Op, fit: Fit, readings: list[tuple[Op, int]]
    ) -> Obstacle | None:
        """Whether the operator and the group see each other's results element by element."""
        for view in fit.operands:
            writer = group.writer(view)
            if writer is not None and view.layout != group.space.reading(group.roles[writer], fit.role):
                return Obstacle(f"{op.name} reads {writer.name} in another order or repeated")
        for reader, index in readings:
            wanted = group.space.reading(fit.role, group.roles[reader])
            if reader.operands[index].layout != wanted:
                return Obstacle(f"{reader.name} reads {op.name} in another order or repeated")
        return None

    def _sunk(self, group: OperatorGroup, op: Op, reading: tuple[Op, int]) -> Fit | Obstacle:
        """The operator moved behind the view through which its one reader reads it."""
        reader, index = reading
        view, role = reader.operands[index], group.roles[reader]
        found = is_found(view.layout.size, op.result.size)  # of which there is no price
        if found and op.kind.dear and may_exceed(view.layout.size, op.result.size):
            return Obstacle(f"{op.name} would be computed {view.layout.size // op.result.size} times")
        if view.shape != group.space.shape_of(role):
            return Obstacle(
                f"{reader.name} reads {op.name} as {view.shape}, the kernel runs over {group.space.shape}"
            )
        return self._behind_view(group, op, reading, "row" if role == "row" else "full")

    def _place_part(self, group: OperatorGroup, op: Op, readings: list[tuple[Op, int]]) -> Fit | Obstacle:
        """A producer of one operand of a concat, or of such a producer."""
        reader, index = readings[0]
        if not self._sole_reading(op):
            return Obstacle(f"{op.name} has further readers beside {reader.name}")
        if reader.operands[index].layout.size != op.result.size:
            return Obstacle(f"{reader.name} reads {op.name} in part or repeated")
        role = group.roles[reader]
        return self._behind_view(group, op, readings[0], role if isinstance(role, int) else index)

    def _behind_view(
        self, group: OperatorGroup, op: Op, reading: tuple[Op, int], role: Role
    ) -> Fit | Obstacle:
        reader, index = reading
        view = reader.operands[index]
        operands = [compose(view, operand) for operand in op.operands]
        if any(operand is view for operand in operands):
            return Obstacle(f"the view of {op.name} that {reader.name} reads cannot be moved before it")
        if any(group.writes(operand) for operand in operands):
            return Obstacle(f"{op.name} also reads the kernel's own results")
        return Fit(operands, view.shape, role, reading)

    def _aligned(self, group: OperatorGroup, other: OperatorGroup) -> Obstacle | None:
        """Whether two groups over the same rows see each other's results element by element."""
        for reader, writer in ((group, other), (other, group)):
            for op in reader.ops:
                for view in op.operands:
                    source = writer.writer(view)
                    if source is None:
                        continue
                    if view.layout != group.space.reading(writer.roles[source], reader.roles[op]):
                        return Obstacle(f"{op.name} reads {source.name} in another order or repeated")
        return None

    def _reaches(self, start: OperatorGroup, goal: OperatorGroup) -> bool:
        """Whether goal reads start's results through at least one other group."""
        stack = [source for source in self._sources(goal) if source is not start]
        seen, bound = {goal}, self._bound(start)
        while stack:
            group = stack.pop()
            if group is start:
                return True
            if group not in seen and self.order[group.ops[-1]] >= bound:
                stack.extend(self._sources(group))
            seen.add(group)
        return False

    def _bound(self, start: OperatorGroup) -> int:
        """A place in the program such that no group before it can read what start computes.

        Operators read earlier ones alone, but a group's operators lie apart: a group around the place could
        be read before it and read start behind it. So the place is one that no group lies around.
        """
        bound = self.order[start.ops[0]]
        while self.around[bound] < bound:
            bound = int(self.around[bound])
        return bound
