# SPDX-License-Identifier: Apache-2.0
"""A model that is compiled at the call, for shapes and values of inputs, or values that it computes."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import tvm
from tvm_ffi import structural_equal
from tvm_ffi.structural import structural_hash

from .. import hardware
from ..errors import ArtifactError, FrontendError, ShapeError, SizeError, UirError, ValueNeededError
from ..garbage import searched_at_the_end
from ..igraph.nodes import HardwareModel
from ..opaque_call import ONNX
from ..shared_constants import SharedConstants, sharing
from ..sizes.symbolic_shapes import OpenSignature, symbols_of
from ..structure import Structure
from ..target import registry
from .ahead_of_calls import AheadOfCalls
from .calls_by_shapes import CallsByShapes
from .executable import Executable
from .model_info import ModelInfo
from .model_stages import (
    Look,
    ModelStage,
    OutsideOperator,
    Paths,
    StagedCall,
    numbers,
    start_of,
)
from .not_compiled import no_code
from .open_inputs import Key, are_flat, checked_shapes, key_of_inputs, key_of_shapes, spec_of
from .specialization import Specialization
from .specialized_state import HoldsState
from .stored_programs import StoredPrograms
from .symbolic_programs import SizedProgram, SymbolicPrograms
from .tensors import Likeness, from_tvm, is_torch, to_tvm

if TYPE_CHECKING:
    from ..frontend.open_model import OpenModel

#: Specializations that are kept: those used last.
KEPT = 16


class SpecializedExecutable(HoldsState, AheadOfCalls):
    """A model that is compiled at the call, in stages where what it computes decides what follows.

    It is called like an `Executable`, with all inputs. Sizes that the model leaves open, and values of inputs
    that decide shapes or attributes, are constants of a compilation. A computed value that decides (a
    condition, a length, the shape of what NonZero finds) ends a stage: what follows is compiled when it is
    known. What was needed lately is not compiled again.

    Parameters
    ----------
    model : OpenModel or None
        Imports the model for shapes and values of inputs; None: what was made before is all that there is.
    compile_module : callable
        Executable for a stage, whose weights are shared with all others.
    signature : OpenSignature
        The model's inputs.
    structure : str or None
        How arguments are nested, as of `OpenModel`.
    name, target, device : str
        As of `Executable`'s description.
    needed : UirError, optional
        Why one compilation does not do.
    programs : SymbolicPrograms or StoredPrograms, optional
        How the model is read for all sizes at once; default: for each shape by itself.
    """

    def __init__(
        self,
        model: OpenModel | None,
        compile_module: Callable[[tvm.IRModule | SizedProgram, SharedConstants], Executable],
        signature: OpenSignature,
        structure: str | None,
        name: str,
        target: str | tvm.target.Target,
        device: str,
        needed: UirError | None = None,
        programs: SymbolicPrograms | StoredPrograms | None = None,
    ) -> None:
        self._model, self._compile_module = model, compile_module
        self.signature, self.needed = signature, needed
        spec = registry.resolve(target, device)
        place = registry.place_of(spec.target)
        nesting = None if structure is None else Structure.parsed(structure)
        self.info = ModelInfo(
            name,
            spec.name,
            tuple(spec_of(each) for each in signature.inputs),
            (),
            (),
            {},
            device=place.name,
            structure=None if nesting is None else nesting.to_json(),
        )
        #: How arguments are nested; results are as each specialization says.
        self.structure = nesting
        #: The inputs that decide by their values, in the order in which they were found.
        self.deciding: list[str] = list(needed.inputs) if isinstance(needed, ValueNeededError) else []
        #: The inputs of any size.
        self.dynamic = [each.name for each in signature.inputs if any(map(symbols_of, each.sizes))]
        self._paths = Paths(KEPT)
        #: What one executable computes from its inputs alone, by the shapes of the inputs.
        self._whole: dict[Key, Specialization] = {}
        #: By structural hash: rounds of a loop are often one and the same module.
        self._compiled: weakref.WeakValueDictionary[int, Executable] = weakref.WeakValueDictionary()
        self._modules: weakref.WeakKeyDictionary[Executable, tvm.IRModule] = weakref.WeakKeyDictionary()
        self._constants = SharedConstants()
        self._programs = programs or SymbolicPrograms(None, "it is imported for each shape")
        self._uses: weakref.WeakKeyDictionary[Executable, set[bytes]] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        self._short = CallsByShapes(signature)
        #: Until when `_paths` knows which of `_whole` were used (`Specialization.last_used`).
        self._told = 0
        self.compiled, self._kept = 0, KEPT

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Run the model, compiling first what was not needed before.

        Parameters
        ----------
        *inputs, **named
            As of `Executable`; a number or a shape that the model takes is Python's own.

        Raises
        ------
        ShapeError
            A wrong number of inputs, or one of a wrong shape or dtype.
        SizeError
            Inputs that disagree on a symbol, or a size outside of its range.
        NotCompiledError
            It was loaded from a file that holds no code for these shapes.
        FrontendError
            The model cannot be compiled for these values.
        """
        if not named:
            if (short := self._short.found) is not None:
                direct, nested = short
                made = direct(inputs)
                if made is not None:
                    return nested(made)
            if (known := self._ready(inputs)) is not None:
                made = known.executable(*known.taken(inputs))
                self._offer_short(known)
                return made
        structure, count = self.structure, len(self.info.inputs)
        if structure is not None and (named or len(inputs) != count or not are_flat(inputs, self.signature)):
            inputs = tuple(structure.flatten(inputs, named, count))
        elif named:
            raise ShapeError(
                f"The executable takes no argument by name, given {', '.join(named)}.",
                need="; ".join(map(str, self.info.inputs)),
                remedy="pass one tensor for each input, in this order",
            )
        whole = self._ready(inputs)
        if whole is not None:
            return whole.executable(*whole.taken(inputs))
        results = self.flat(*inputs)
        whole = None
        if structure is not None:
            shapes = checked_shapes(inputs, self.signature)
            whole = self._whole.get(key_of_shapes(shapes, self.signature))
        nesting = structure if whole is None else whole.executable.structure
        if nesting is not None:
            return nesting.unflatten(results)
        return results[0] if len(results) == 1 else results

    def flat(self, *inputs: Any) -> tuple[Any, ...]:
        """The call with one tensor (or number) for each of ``info.inputs``, and all results as a tuple."""
        if (short := self._short.found) is not None:
            made = short[0](inputs)
            if made is not None:
                return made if isinstance(made, tuple) else (made,)
        whole = self._ready(inputs)
        if whole is not None:
            results = whole.executable.flat(*whole.taken(inputs))
            self._offer_short(whole)
            return results
        names, run = self._run(inputs)
        like = Likeness.of(inputs)
        return tuple(_like(run.values[name], like) for name in names)

    def on_device(self, *inputs: Any) -> tuple[Any, ...]:
        """As of `Executable.on_device`, where one executable computes all; else as `flat`."""
        whole = self._ready(inputs)
        return self.flat(*inputs) if whole is None else whole.executable.on_device(*whole.taken(inputs))

    def _ready(self, inputs: Sequence[Any]) -> Specialization | None:
        """What is compiled for inputs of these shapes, whose dtypes it checks itself."""
        if self.deciding:
            return None
        try:
            found = self._whole.get(key_of_inputs(inputs))
        except TypeError:  # containers, whose tensors are not known yet
            return None
        if found is not None:
            found.used()
        return found

    def _in_order(self) -> None:
        """Tell the paths which were gone since it last did, and in what order: calls do not."""
        used = [each for each in self._whole.values() if each.last_used > self._told]
        for each in sorted(used, key=lambda each: each.last_used):
            self._paths.again(each.end)
            self._told = each.last_used

    def _run(self, inputs: Sequence[Any]) -> tuple[Sequence[str], StagedCall]:
        shapes = checked_shapes(inputs, self.signature)
        by_name = dict(zip(shapes, inputs, strict=True))
        with self._lock:
            self._in_order()
            while True:
                values = {name: numbers(by_name[name]) for name in self.deciding}
                run = StagedCall(self._paths, self._compile, dict(by_name), start_of(shapes, values))
                names: Sequence[str] | None = run.known()
                if names is not None:
                    # known by now: another thread compiled it while this one waited
                    self._note(inputs, shapes, run)
                    return names, run
                try:
                    with searched_at_the_end():
                        names = self._import(shapes, values, run)
                except ValueNeededError as error:
                    # known values show others that decide
                    more = [name for name in error.inputs if name not in self.deciding]
                    if not more:
                        raise
                    self.deciding += more
                    self._keep_short()
                    continue
                run.end(names)
                self._note(inputs, shapes, run)
                return names, run

    def _opened(self, shapes: Mapping[str, tuple[int, ...]]) -> OpenModel:
        """The model; NotCompiledError where it is not there."""
        if self._model is not None:
            return self._model
        self.signature.bind(shapes)  # what does not fit at all is said first
        raise no_code(self.info.name, {name: shapes[name] for name in self.dynamic}, self._there())

    def _import(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        values: Mapping[str, np.ndarray],
        run: StagedCall,
        alone: bool = False,
    ) -> Sequence[str]:
        """Drive a run by the model: as the program that all sizes share, or imported for these shapes."""
        with sharing(self._constants):
            numbers_only = self.deciding or (alone and isinstance(self._programs, StoredPrograms))
            program = None if numbers_only else self._programs.of(self._model, shapes)
        if program is None:
            try:
                return self._opened(shapes).run(self._decided(shapes), values, run)
            except ShapeError as error:  # what numbers cannot have: why it is not compiled for all sizes?
                why = self._programs.why_not
                if why and not error.limit and not isinstance(error, SizeError):
                    error.limit = f"not compiled for all sizes: {why}"
                    error.args = (error.render(),)
                raise
            except FrontendError as error:
                disagreement = self.signature.disagreement(shapes)
                if disagreement is None or type(error) is not FrontendError:
                    raise
                # names that disagree may be meant so: where the import ends is told too
                disagreement.limit = f"the import for these shapes ends at {error.where}"
                disagreement.args = (disagreement.render(),)
                raise disagreement from error
        program = attrs.evolve(program, alone=alone)
        run.run(program, program.program.inputs, program.program.outputs)
        return list(program.program.outputs)

    def _decided(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """The shapes that are bound: an import that checks what it is told is not told what it knows."""
        return dict(shapes) if self.signature.related else {name: shapes[name] for name in self.dynamic}

    def _note(self, inputs: Sequence[Any], shapes: Mapping[str, tuple[int, ...]], run: StagedCall) -> None:
        """Find a path of one stage by the shapes alone from now on, and forget what was forgotten."""
        key = key_of_shapes(shapes, self.signature)
        self._remember(key, shapes, run, "at the call")
        found = self._whole.get(key)
        if found is not None:
            found.used()

    def _remember(self, key: Key, shapes: Mapping[str, tuple[int, ...]], run: StagedCall, made: str) -> None:
        alive = self._paths.actions
        kept = {old: each for old, each in self._whole.items() if each.end in alive or not each.end}
        forgotten, self._whole = len(self._whole) - len(kept), kept
        if forgotten:
            self._keep_short()
        actions = [alive[place] for place in run.places[:-1]]
        if key in self._whole or self.deciding or len(actions) != 1 or not isinstance(actions[0], ModelStage):
            return
        names = list(shapes)
        places = tuple(names.index(name) for name in actions[0].inputs)
        sizes = self.signature.bind(shapes) if self.signature.related else self.signature.sizes_said(shapes)
        executable = actions[0].executable
        self._modules.pop(executable, None)  # other shapes are other modules
        self._whole[key] = Specialization(shapes, sizes, executable, places, made, run.places[-1])

    def _compile(self, module: tvm.IRModule | SizedProgram) -> Executable:
        if isinstance(module, SizedProgram):
            return self._made(module)
        key = structural_hash(module, map_free_vars=True)
        found = self._compiled.get(key)
        same = None if found is None else self._modules.get(found)
        if found is not None and same is not None and structural_equal(same, module, map_free_vars=True):
            return found
        made = self._made(module)
        self._compiled[key], self._modules[made] = made, module
        return made

    def _made(self, module: tvm.IRModule | SizedProgram) -> Executable:
        made = self._compile_module(module, self._constants)
        self._with_state(made)
        self._uses[made] = self._constants.asked()
        self._constants.keep(set().union(*self._uses.values()))
        self.compiled += bool(made.info.seconds)  # none: another shape of what is there
        return made

    def specialized(self, *inputs: Any) -> Executable:
        """The executable for these inputs; it takes those that do not decide.

        Raises
        ------
        ArtifactError
            The model runs in several stages.
        """
        whole = self._ready(inputs)
        if whole is not None:
            return whole.executable
        _, run = self._run(inputs)
        actions = [self._paths.actions[place] for place in run.places[:-1]]
        if len(actions) == 1 and isinstance(actions[0], ModelStage):
            return actions[0].executable
        raise ArtifactError(
            f"`{self.info.name}` runs in {len(actions)} stages, each of which decides the next.",
            need="a model that is one graph for these inputs",
            remedy="call it as it is; report() lists what decides",
        )

    @functools.cached_property
    def hardware(self) -> HardwareModel:
        """What it is compiled for."""
        kind, _, name = self.info.target.partition(":")
        return hardware.get(name or None, registry.get(kind).kind)

    def report(self, explain: bool = False) -> dict[str, Any]:
        """What decides, how often it compiled, what runs outside kernels, and the reports of what is kept."""
        actions = self._paths.actions.values()
        outside = {a.operator: a.reason for a in actions if isinstance(a, OutsideOperator)}
        for program in self._programs.programs:
            rows = () if program.executable is None else program.executable.info.graph.get("opaque", ())
            outside |= {row["operator"].removeprefix(ONNX): row["reason"] for row in rows}
        stages = dict.fromkeys(
            [action.executable for action in actions if isinstance(action, ModelStage)]
            + [each.executable for each in self._whole.values()]
        )
        return {
            "model": self.info.name,
            "target": self.info.target,
            "device": self.info.device,
            "symbols": self.signature.described(),
            "inputs": [str(spec) for spec in self.info.inputs],
            "specialized_on": list(self.deciding),
            "dynamic_shapes": list(self.dynamic),
            "decided_at_run_time": sorted({n for a in actions if isinstance(a, Look) for n in a.names}),
            "outside_kernels": outside,
            "compiled": self.compiled,
            "programs": [each.to_json() for each in self._programs.programs],
            "imported_by_shape": self._programs.why_not,
            "state": self._state_rows(),
            "kept": [each.to_json() for each in self._whole.values()],
            "specializations": [executable.report(explain) for executable in stages],
        }


def _like(value: Any, like: Likeness) -> Any:
    """A result as the caller's inputs are."""
    return value if is_torch(value) == like.torch else from_tvm(to_tvm(value), like)
