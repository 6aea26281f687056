# SPDX-License-Identifier: Apache-2.0
"""One straight-line, simplified form for every imported model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import tvm
from tvm import relax
from tvm_ffi import structural_equal

from ..errors import FrontendError
from ..function_scope import function_scope
from ..one_at_a_time import one_at_a_time
from .relax_view import address_of, op_name
from .rules import PASSES, Rewriter, Rule
from .rules.empty import empty_value


def count_uses(function: relax.Function) -> dict[int, int]:
    """How often each variable is read, by address."""
    counts: dict[int, int] = {}

    def visit(expr: tvm.ir.Expr) -> None:
        if isinstance(expr, tvm.ir.Var):
            counts[address_of(expr)] = counts.get(address_of(expr), 0) + 1
        elif isinstance(expr, tvm.ir.Call):
            for arg in expr.args:
                visit(arg)
        elif isinstance(expr, tvm.ir.Tuple):
            for field in expr.fields:
                visit(field)
        elif isinstance(expr, tvm.ir.TupleGetItem):
            visit(expr.tuple_value)

    for block in function.body.blocks:
        for binding in block.bindings:
            visit(binding.value)
    visit(function.body.body)
    return counts


@one_at_a_time
def normalize(mod: tvm.IRModule) -> tvm.IRModule:
    """Bring an imported module into the form that the kernel graph reads.

    The result's ``main`` is one dataflow block of operator calls on variables and constants. In it

    - what depends on constants alone is a constant (masks, positions, prepared weights);
    - expand_dims, squeeze and flatten are reshape; reshapes and permutations in a row are one;
    - split is strided_slice, take by constant consecutive indices is strided_slice;
    - a tensor without elements is a constant, and operators do without such operands;
    - elementwise operators broadcast by themselves, without broadcast_to before them;
    - an inference batch normalisation is folded into the convolution before it;
    - assertions, dead code, equal calls and operators that change nothing are gone.

    Parameters
    ----------
    mod : tvm.IRModule
        A module with a Relax function ``main`` without control flow.

    Returns
    -------
    tvm.IRModule
        A new module; the argument is not changed.

    Raises
    ------
    FrontendError
        When ``main`` is missing or has control flow.
    """
    if "main" not in [var.name_hint for var in mod.get_global_vars()]:
        raise FrontendError("the module has no function 'main'", remedy="name the model's function 'main'")
    made = _through(mod, PASSES)
    if made.settled:
        return made.mod
    # the last pass has all rules: what it leaves as it is no pass changes
    again = _through(made.mod, PASSES[-1:])
    return again.mod if again.settled else _through(made.mod, PASSES).mod


@attrs.frozen
class _Rewritten:
    """A module behind some passes, and whether the last of them left it as it was."""

    mod: tvm.IRModule
    settled: bool


def _through(mod: tvm.IRModule, passes: Sequence[Mapping[str, Sequence[Rule]]]) -> _Rewritten:
    before = mod
    for rules in passes:
        before, mod = mod, rewritten(mod, rules)
    # constants are the same objects, which are not looked into
    return _Rewritten(mod, structural_equal(before["main"], mod["main"], map_free_vars=True))


def rewritten(mod: tvm.IRModule, rules: Mapping[str, Sequence[Rule]]) -> tvm.IRModule:
    """A normalised module after one pass of other rules, by operator."""
    return relax.transform.DeadCodeElimination()(replace_main(mod, _rewrite(mod["main"], rules)))


def replace_main(mod: tvm.IRModule, main: relax.Function) -> tvm.IRModule:
    """A module with another ``main`` and the same other functions (kernels that `main` calls)."""
    others = {var: function for var, function in mod.functions_items() if var.name_hint != "main"}
    return tvm.IRModule({**others, mod.get_global_var("main"): main}, attrs=mod.attrs)


def _rewrite(function: relax.Function, rules: Mapping[str, Sequence[Rule]]) -> relax.Function:
    """One pass over the function, in the order of its bindings."""
    uses = count_uses(function)
    builder = relax.BlockBuilder()
    params = [relax.Var(param.name, param.ty) for param in function.params]
    with function_scope(builder, "main", params, function.attrs):
        with builder.dataflow():
            rewriter = Rewriter(builder, rules)
            for old, new in zip(function.params, params, strict=True):
                empty = empty_value(new.ty)  # one constant with every other of its kind
                rewriter.bind(old, new if empty is None else empty, uses.get(address_of(old), 0))
            for block in function.body.blocks:
                for binding in block.bindings:
                    _rebuild(binding, rewriter, uses.get(address_of(binding.var), 0))
            output = builder.emit_output(rewriter.value(function.body.body))
        builder.emit_func_output(output)
    return builder.get()["main"]


def _rebuild(binding: relax.Binding, rewriter: Rewriter, uses: int) -> None:
    """Add one binding of the old function to the new one."""
    value = binding.value
    if isinstance(value, relax.If | relax.Function | relax.SeqExpr):
        raise FrontendError(
            "the model has control flow that depends on its data",
            where=f"binding {binding.var.name}",
            remedy="replace the branch by torch.where (ONNX: Where), or export each branch by itself",
        )
    if op_name(value) == "assert_op":
        return
    if isinstance(value, tvm.ir.Call):
        args = [rewriter.value(arg) for arg in value.args]
        value = relax.Call(value.op, args, value.attrs, value.ty_args)
    elif isinstance(value, tvm.ir.TupleGetItem):
        value = relax.TupleGetItem(rewriter.value(value.tuple_value), value.index)
    result = rewriter.emit(value)
    if isinstance(binding, relax.MatchCast):
        result = rewriter.cast(result, binding.ty)
    rewriter.bind(binding.var, result, uses)
