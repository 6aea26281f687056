# SPDX-License-Identifier: Apache-2.0
"""A kernel for all sizes that hands over to another where a size has one value, as one query of attention."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import attrs
import tvm
from tvm import tirx
from tvm_ffi.structural import structural_map

from .. import pipeline
from ..bound_kernel import bound_kernel, symbols_in
from ..igraph.space import Size
from ..igraph.tir_sizes import with_sizes
from ..schedules import RECIPES

log = logging.getLogger(__name__)


def with_one_value(
    record: pipeline.KernelRecord,
    function: tirx.PrimFunc,
    sizes: Mapping[str, Size],
    target: tvm.target.Target,
) -> pipeline.KernelRecord:
    """The record of a kernel for all sizes, whose code has the faster kernels that its recipe names.

    Each is compiled and verified like any other; the code asks for the value when it is launched.

    Parameters
    ----------
    record : KernelRecord
        Of the kernel for all sizes.
    function : PrimFunc
        What it computes.
    sizes : mapping of str to Size
        What is known of its variables.
    target : Target

    Returns
    -------
    KernelRecord
        The same where the target prints texts, where no kernel is faster by itself, or where none is made.
    """
    whole = record.products.get("source")
    if not isinstance(whole, tirx.PrimFunc) or record.recipe not in RECIPES.heroes:
        return record
    for variable, value in RECIPES[record.recipe].apart(function).items():
        size = sizes.get(str(variable.name))
        if size is None or not (size.low <= value < size.high) or value % size.multiple_of:
            continue
        bound = bound_kernel(function, {variable: tirx.IntImm(variable.ty.dtype, value)})
        given = bound.with_attr("target", target)
        left = {name: each for name, each in sizes.items() if name != str(variable.name)}
        if symbols_in(bound):
            given = with_sizes(given, left)
        alone = pipeline.try_kernel(given, target, f"{record.name}_{variable.name}_{value}")
        if alone.refusal is not None:
            log.info("%s has no kernel for %s = %d: %s", record.name, variable.name, value, alone.fallback)
            continue
        whole = handing_over(whole, alone.lowered, str(variable.name), value)
    return attrs.evolve(record, products={**record.products, "source": whole})


def handing_over(whole: tirx.PrimFunc, alone: tirx.PrimFunc, name: str, value: int) -> tirx.PrimFunc:
    """Code that runs ``alone`` where a variable has a value, and what it ran before otherwise.

    Before: whole(x[n, 64], y[n, 64]) and alone(x[1, 64], y[1, 64]).  After: whole, whose body is
    ``if n == 1: alone's body; else: its own``. What it asserts of sizes comes first.
    """
    variables = {str(each.name): each for each in symbols_in(whole, outermost=True)}
    renamed = dict(zip(alone.params, whole.params, strict=True))
    renamed |= {each: variables[str(each.name)] for each in symbols_in(alone)}
    body = structural_map(alone.body, (tvm.ir.Var, lambda var: renamed.get(var, var)))
    steps = list(whole.body.seq) if isinstance(whole.body, tirx.SeqStmt) else [whole.body]
    asserted = [step for step in steps if isinstance(step, tirx.AssertStmt)]
    rest = [step for step in steps if not isinstance(step, tirx.AssertStmt)]
    variable = variables[name]
    chosen = tirx.IfThenElse(
        variable == tirx.IntImm(variable.ty.dtype, value),
        body,
        tirx.SeqStmt(rest) if len(rest) > 1 else rest[0],
    )
    return whole.with_body(tirx.SeqStmt([*asserted, chosen]) if asserted else chosen)
