# SPDX-License-Identifier: Apache-2.0
"""CUDA-graph capture of an executable: its launches as one, replayed from the second run on."""

from __future__ import annotations

import contextlib

import tvm
from tvm import relax

from ..errors import TargetError
from ..target import registry

#: The option of TVM's pass context that asks for it.
OPTION = "relax.backend.use_cuda_graph"


def asked() -> bool:
    """Whether the pass context asks for capture."""
    return bool(tvm.transform.PassContext.current().config.get(OPTION, False))


def asking(wanted: bool) -> contextlib.AbstractContextManager[object]:
    """A pass context as the current one that also asks for capture, if it is wanted."""
    if not wanted:
        return contextlib.nullcontext()
    current = tvm.transform.PassContext.current()
    return tvm.transform.PassContext(
        opt_level=current.opt_level,
        required_pass=list(current.required_pass),
        disabled_pass=list(current.disabled_pass),
        instruments=list(current.instruments or []),
        config={**dict(current.config), OPTION: True},
    )


def capture(target: tvm.target.Target | None) -> tvm.transform.Pass:
    """The pass that lifts what can be captured out of ``main``, where it is asked for.

    Before: main(x, w) calls kernels f, g, h, k in order.  After: main calls f, then
    ``vm.builtin.cuda_graph.run_or_capture`` of a function that calls g and h, then k.  TVM's runtime captures
    that function's launches when it first runs and replays them afterwards, in memory that it keeps.

    What reads an input or writes the result stays outside, since their memory differs from call to call:
    of a model that is the first and the last kernel.  Library operators are captured as kernels are.

    Parameters
    ----------
    target : Target, optional
        What ``main`` is compiled for; None: not known, nothing may be asked.

    Raises
    ------
    TargetError
        It is asked for, and the target is no GPU.
    """

    check(target)
    return relax.transform.RewriteCUDAGraph() if asked() else tvm.transform.Sequential([])


def check(target: tvm.target.Target | None) -> None:
    """Raise TargetError where capture is asked for and the target is no GPU."""
    places = registry.of_target(target).places if target is not None and registry.is_ours(target) else ()
    if asked() and not any(place.captures and place.stands_for(target) for place in places):
        kind = "an unknown target" if target is None else f"a target of kind {target.kind.name}"
        raise TargetError(
            f"CUDA graphs cannot be captured for {kind}.",
            where=f"CompileOptions.cuda_graph, or {OPTION}",
            need="a GPU: the host model and the CPU run kernels at once, there is no stream to capture",
            remedy='leave the option out, or compile with device="gpu"',
        )
