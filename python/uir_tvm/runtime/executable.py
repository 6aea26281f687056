# SPDX-License-Identifier: Apache-2.0
"""A compiled model."""

from __future__ import annotations

import copy
import functools
import pathlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm.runtime.vm import VirtualMachine

from .. import hardware, threads
from ..device.kind import counts_time
from ..errors import DeviceError, ShapeError, TargetError
from ..igraph.nodes import HardwareModel
from ..state_spec import rows_of
from ..structure import Structure
from ..target import registry
from . import opaque
from .artifact_member import Source
from .bound_outputs import BoundOutputs, result_of
from .direct_call import DirectCall, direct_of, programs_of
from .executable_state import ModelState, check_same_state
from .model_info import ModelInfo, changed_by_pass
from .modelled import Times, recording
from .position_checks import PositionChecks
from .tensors import Likeness, check_devices, check_inputs, from_tvm, to_tvm


class Executable:
    """A compiled model: call it with NumPy or torch tensors, ask it for a report, save it.

    Parameters
    ----------
    library : tvm.runtime.Module, tvm.runtime.Executable or None
        The Relax VM executable; None: ``load`` gives it when it is first needed.
    info : ModelInfo
        Its description.
    kernel_graph : KernelGraph or SavedGraph, optional
        The graph that it was compiled from; what was saved of it after loading; None where a single kernel
        was compiled.
    source : Path or Member, optional
        The file that it was loaded from: saving it again copies that.
    load : callable, optional
        Gives the library of an executable that was made without.
    initial : sequence of tvm.runtime.Tensor
        What ``info.state`` begins as.
    """

    def __init__(
        self,
        library: Any,
        info: ModelInfo,
        kernel_graph: Any = None,
        *,
        source: Source | None = None,
        load: Callable[[], Any] | None = None,
        initial: Sequence[tvm.runtime.Tensor] = (),
    ) -> None:
        if library is not None:
            self.library = library
        self._load = load
        self.info = info
        self.kernel_graph = kernel_graph
        self.source = source
        self.initial = tuple(initial)
        #: What this process keeps of its program lives at least as long (`uir_tvm.program_cache`).
        self.made_of: Any = None
        #: Gives the state where it is that of several executables.
        self._shared_state: Callable[[], ModelState] | None = None
        #: Called when it goes on with another state: who calls it in C++ has bound the one before.
        self.on_other_state: Callable[[], None] | None = None
        spec = registry.get(info.target.partition(":")[0])
        self._place = spec.place(info.device)
        self._returns_tuple = True
        # The virtual machine has one stack of frames.
        self._lock = threading.Lock()

    @functools.cached_property
    def library(self) -> Any:
        """The Relax VM executable; loaded now, where the file was only looked at so far."""
        assert self._load is not None, "an executable without a library has what loads it"
        return self._load()

    @functools.cached_property
    def device(self) -> tvm.runtime.Device:
        """Where its tensors lie.

        Raises
        ------
        DeviceError
            This machine has no such device, or ``ext_dev`` is another one in this process.
        """
        why = self._place.absent()
        if why:
            raise DeviceError(
                f"`{self.info.name}` cannot run here.",
                need=f"a {self._place.name}, for which {self.info.target} compiled it",
                limit=why,
                remedy='run it where there is one, or compile it with CompileOptions(device="model")',
            )
        if lacking := self._lacking():
            raise DeviceError(
                f"`{self.info.name}` cannot run here.",
                need=f"a machine such as {self.info.target}, for which it was compiled",
                limit=f"this machine lacks {lacking}",
                remedy="save it and run it there, or compile it for this machine",
            )
        if self._place.device == "ext_dev":
            # whose memory that device is, this process settles once
            tvm_ffi.get_global_func("uir.runtime.ext_dev.choose")(self._place.name)
        return tvm.device(self._place.device, 0)

    def _lacking(self) -> str:
        """What this machine lacks to run its code; empty where that is nothing or cannot be asked."""
        try:
            return self._place.unable(self.hardware)
        except TargetError:  # TVM without its compiler knows no processors; `load` has checked instructions
            return ""

    @functools.cached_property
    def _vm(self) -> VirtualMachine:
        # The first call makes it: a model can be compiled, looked at and saved where it cannot run.
        opaque.check(self.info.graph.get("opaque", ()), self.info.name)
        return VirtualMachine(self.library, [self.device])

    @functools.cached_property
    def _main(self) -> Any:
        return self._vm["main"]

    @functools.cached_property
    def programs(self) -> Callable[..., Any] | None:
        """What prepares calls that need no virtual machine (`runtime.direct_call`)."""
        return programs_of(self.library)

    @functools.cached_property
    def _program(self) -> DirectCall | None:
        return direct_of(self)

    @property
    def direct(self) -> DirectCall | None:
        """The call without the virtual machine; None where the model needs that."""
        program = self._program
        if program is None or not self.info.state:
            return program
        state = self.state
        if program.state is not state:
            program = vars(self)["_program"] = program.bound(state)
        return program

    @functools.cached_property
    def _positions(self) -> PositionChecks:
        return PositionChecks(self.info.positions, self.info.name)

    @functools.cached_property
    def state(self) -> ModelState:
        """What calls leave changed for the next one, by name; empty where the model has no state."""
        return self.own_state() if self._shared_state is None else self._shared_state()

    def own_state(self) -> ModelState:
        """State of its own, as it begins."""
        return ModelState(self.info.state, self.initial, self.device, self.info.name)

    def reset(self) -> None:
        """Give the state its initial values."""
        self.state.reset()

    def clone(self) -> Executable:
        """An executable with a copy of the state; code and weights are shared, calls take turns."""
        _ = self._main  # the weights on the device are one
        made = copy.copy(self)
        vars(made)["state"] = self.state.copied()
        return made

    def share_state(self, other: Any) -> None:
        """Go on with the state of another executable, as a decoder with that of its prefill.

        Raises
        ------
        StateError
            The two differ in names, shapes, dtypes or device.
        """
        check_same_state(self.state, other.state)
        vars(self)["state"] = other.state.ordered(list(self.state))
        if self.on_other_state is not None:
            self.on_other_state()

    @functools.cached_property
    def structure(self) -> Structure | None:
        """How arguments and results are nested; None: flat tensors in, a tensor or a tuple of them out."""
        return None if self.info.structure is None else Structure.from_json(self.info.structure)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Run the model.

        Parameters
        ----------
        *inputs, **named : numpy.ndarray, torch.Tensor or tvm.runtime.Tensor, or containers of these
            As ``info.inputs`` names them; or, where the model has a `structure`, its own arguments.
        out : tensor or sequence of tensors, optional
            What results are written to and returned as, see `bind`; an argument of this name is the model's
            own where it has one.

        Returns
        -------
        tensor or tuple of tensors, or what the `structure` says
            torch tensors when any input is one, else NumPy arrays; on a GPU where an input lies there.

        Raises
        ------
        ShapeError
            A wrong number of inputs, one of a wrong shape or dtype, or arguments nested in another way.
        DeviceError
            This machine has not the device that it was compiled for, or an input lies on another device of
            its kind.
        """
        if not named:
            direct = self.direct
            made = None if direct is None else direct(inputs)
            if made is not None:
                return self.nested(made)
        if "out" in named and not self._takes_out:
            return self._into(named.pop("out"), inputs, named)
        return self.nested(self.flattened(inputs, named))

    def flattened(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """The call with arguments that may be nested; its result is a tensor, or a tuple of all."""
        structure, count = self.structure, len(self.info.inputs)
        if structure is not None:
            if named or len(inputs) != count or any(not hasattr(value, "shape") for value in inputs):
                inputs = tuple(structure.flatten(inputs, named, count))
        elif named:
            raise ShapeError(
                f"The executable takes no argument by name, given {', '.join(named)}.",
                need="; ".join(map(str, self.info.inputs)),
                remedy="pass one tensor for each input, in this order",
            )
        results = self.flat(*inputs)
        return results if self._returns_tuple else results[0]

    def nested(self, made: Any) -> Any:
        """A tensor, or a tuple of them, as the `structure` says."""
        structure = self.structure
        if structure is None or (
            structure.is_flat and ("tuple" in structure.result) == isinstance(made, tuple)
        ):
            return made
        return structure.unflatten(made if isinstance(made, tuple) else (made,))

    @functools.cached_property
    def _takes_out(self) -> bool:
        """Whether the model itself has an argument ``out``."""
        return self.structure is not None and any(each.name == "out" for each in self.structure.parameters)

    def bind(self, outputs: Any) -> BoundOutputs:
        """The call that writes its results into these tensors, and returns them.

        Parameters
        ----------
        outputs : tensor or sequence of tensors
            NumPy arrays, or torch or TVM tensors in the host's memory, one for each of ``info.outputs``.
            Those that lie at multiples of 64 bytes without gaps, and share no memory with an input, are
            written by the kernels themselves; others are copied to.

        Raises
        ------
        ShapeError
            A wrong number of tensors, or one of a wrong shape or dtype, or one that cannot be written.
        """
        return BoundOutputs(self, outputs)

    def _into(self, outputs: Any, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """The call with ``out=``."""
        return result_of(self, outputs, inputs, named)

    def flat(self, *inputs: Any) -> tuple[Any, ...]:
        """The call with one tensor for each of ``info.inputs``, and the results as ``info.outputs`` has them.

        Raises
        ------
        ShapeError, DeviceError
            As of a call.
        PositionError
            A position lies beyond the state; nothing was written.
        StateError
            An earlier call failed while it wrote the state.
        """
        made = self._by_host(inputs)
        if made is not None:
            return made
        like = Likeness.of(inputs)
        return self._called(inputs, like, lambda value: from_tvm(value, like))

    def on_device(self, *inputs: Any) -> tuple[Any, ...]:
        """The call of `flat` whose results stay on the model's device, for another executable's inputs.

        Returns
        -------
        tuple of tvm.runtime.Tensor
            Where the device is the host, NumPy arrays.
        """
        if self.device.type == "cpu":
            return self.flat(*inputs)
        return self._called(inputs, Likeness.of(inputs), lambda value: value)

    def _by_host(self, inputs: Sequence[Any]) -> tuple[Any, ...] | None:
        """The call by C++ alone; None: it takes another way."""
        direct = self.direct
        made = None if direct is None else direct(inputs)
        if made is None:
            return None
        self._returns_tuple = isinstance(made, tuple)
        return made if self._returns_tuple else (made,)

    def _called(
        self, inputs: Sequence[Any], like: Likeness, result: Callable[[tvm.runtime.Tensor], Any]
    ) -> tuple[Any, ...]:
        """The call by the virtual machine."""
        check_inputs(inputs, self.info.inputs)
        check_devices(inputs, self.info.inputs, self.device)
        threads.before_running()
        given = [to_tvm(value, self.device) for value in inputs]
        with self._lock, like.stream():
            made = self._main(*given) if not self.info.state else self._with_state(inputs, given)
            self._returns_tuple = not isinstance(made, tvm.runtime.Tensor)
            return tuple(map(result, flatten(made)))

    def _with_state(self, inputs: Sequence[Any], given: Sequence[tvm.runtime.Tensor]) -> Any:
        """The call of a model with state."""
        state, main = self.state, self._main
        with state.lock:
            state.check()
            self._positions.check(inputs, state)
            try:
                return main(*given, *state.tensors)
            except BaseException as error:
                state.failed(error)
                raise

    @property
    def hardware(self) -> HardwareModel:
        """What it was compiled for."""
        kind, _, name = self.info.target.partition(":")
        return hardware.get(name or None, registry.get(kind).kind)

    def modelled(
        self, *inputs: Any, timeline: bool = False, library_computes: bool = True, values: bool = True
    ) -> Times:
        """Run the model on the device's host model, and say what it would have taken on the device.

        Parameters
        ----------
        *inputs : numpy.ndarray, torch.Tensor or tvm.runtime.Tensor
            As of a call.
        timeline : bool
            Also when every instruction starts and ends.
        library_computes : bool
            Whether operators of the library compute; without, results are wrong and times the same.
        values : bool
            Whether kernels compute where their time cannot depend on values, too (`recording`).

        Raises
        ------
        DeviceError
            It was compiled for another place; host models of its target count no time.
        """
        with recording(timeline, self.hardware, library_computes, values) as found:
            self.flat(*inputs)
        if not found.times.launches:
            counting = [name for name, record in registry.TARGETS.items() if counts_time(record.kind)]
            raise DeviceError(
                f"Nothing modelled the time of `{self.info.name}`.",
                need="one of " + ", ".join(counting),
                limit=f"{self.info.target} on {self.info.device}",
                remedy=f'compile it with target="{counting[0]}" and CompileOptions(device="model")',
            )
        return found.times

    def run_tvm(self, *inputs: tvm.runtime.Tensor) -> Any:
        """The call without checks, conversions and lock: TVM tensors on `device`, one thread at a time."""
        return self._main(*inputs, *self.state.tensors) if self.info.state else self._main(*inputs)

    def report(self, explain: bool = False) -> dict[str, Any]:
        """Counts of operators and kernels, bytes moved, kernels without an iGraph, seconds of compilation.

        Parameters
        ----------
        explain : bool
            Also, under ``explain``: what every kernel moves, computes and keeps on chip, modelled times,
            syncs, and why neighbours were not fused (see `uir_tvm.explain`).

        Raises
        ------
        ArtifactError
            With ``explain``: the file that it was loaded from holds too little for that.
        """
        kernels = self.info.kernels
        report = {
            "model": self.info.name,
            "target": self.info.target,
            "device": self.info.device,
            "hardware": self.hardware.name,
            "assumed_figures": hardware.assumed_figures(self.hardware),
            **dict(self.info.graph),
            "kernels_through_igraph": sum(1 for k in kernels if not k.fallback),
            "kernels_without_igraph": [
                {"kernel": k.name, "reason": k.fallback} for k in kernels if k.fallback
            ],
            "kernels_split": [
                {"kernel": k.name, "note": f"split into {k.phases} phases at sync.dram"}
                for k in kernels
                if k.phases > 1
            ],
            "kernels_changed_by_pass": changed_by_pass(kernels),
            "passes_refused": [
                {"kernel": k.name, "pass": step["pass"], "reason": step["fault"]}
                for k in kernels
                for step in k.passes
                if step["fault"]
            ],
            "candidates_refused": [
                {"kernel": k.name, **attempt} for k in kernels for attempt in k.attempts if attempt["refused"]
            ],
            "kernel_cache": {
                place or "made": sum(k.kept == place for k in kernels) for place in ("memory", "disk", "")
            },
            "state": rows_of(self.info.state),
            "seconds": dict(self.info.seconds),
        }
        if explain:
            from ..explain import explain as explained

            report["explain"] = explained(self).to_json()
        return report

    @property
    def standalone(self) -> Executable:
        """What a file holds: the executable itself, where its code is of its shapes alone."""
        return self

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Write one file that `uir_tvm.load` reads on any machine whose CPU has this one's instructions.

        Weights of library operators are stored in the layout that this CPU's library reads fastest; another
        CPU's library converts them at the first call.

        Raises
        ------
        ArtifactError
            The folder cannot be written, or there is no C++ compiler to link with.
        """
        from .artifact import save

        return save(self, pathlib.Path(path))


def flatten(value: Any) -> Sequence[tvm.runtime.Tensor]:
    """The tensors of a nested result, in order."""
    if isinstance(value, tvm.runtime.Tensor):
        return [value]
    return [leaf for item in value for leaf in flatten(item)]
