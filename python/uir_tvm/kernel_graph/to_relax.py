# SPDX-License-Identifier: Apache-2.0
"""KernelGraph -> Relax that runs: calls of kernels and of the library, then TVM's lowering for its VM."""

from __future__ import annotations

import tvm
from tvm import relax

from ..function_scope import function_scope
from ..library.open_attrs import OpenAttrs
from ..library.sized import FUNCTION as SIZED
from ..library.sized import sized_texts
from ..one_at_a_time import one_at_a_time
from ..sizes.open_arithmetic import same
from ..sizes.open_size import expressions
from ..sizes.size_space import SizeSpace
from .build import build
from .cuda_graph import capture, check
from .empty_calls import empty_tensor, without_empty_calls
from .found_sizes import FoundChecks, found_first
from .legalize import legalize
from .nodes import CustomOp, FoundOp, KernelGraph, LibraryOp, Node, OpaqueOp, SpecializedOp, Tensor

#: The function that returns the constants of a graph, as `graph_constants` orders them.
WEIGHTS = "weights"


@one_at_a_time
def to_relax(graph: KernelGraph, weights: bool = False, space: SizeSpace | None = None) -> tvm.IRModule:
    """A module whose ``main`` calls the graph's kernels and the library.

    Custom operators are ``call_tir`` (the kernels are functions of the module, not scheduled), library
    operators ``call_dps_packed``; where a kernel sees a buffer in another shape, a ``reshape`` says so, which
    costs nothing at run time.

    Parameters
    ----------
    weights : bool
        Also a function ``weights`` that returns the constants, which the executable holds once each: so they
        are there for whoever writes the model in another form.
    space : SizeSpace, optional
        Of the sizes that the graph leaves open: ``main`` takes them as one more argument, a shape of a number
        for each symbol.
    """
    return _Writer(graph, space).write(weights)


def graph_constants(graph: KernelGraph) -> tuple[Tensor, ...]:
    """The constants that nodes read or the model returns, in the order of their first use."""
    read = (tensor for node in graph.nodes for tensor in node.inputs)
    returned = (tensor for tensor, _ in graph.outputs)
    return tuple(
        dict.fromkeys(tensor for tensor in (*read, *returned) if tensor.constant is not None and tensor.bytes)
    )


class _Writer:
    """Emits the nodes of one graph."""

    def __init__(self, graph: KernelGraph, space: SizeSpace | None) -> None:
        self.graph = graph
        #: What stands for each size that is open.
        self.sizes = {} if space is None else space.variables
        #: The sizes that are known where the next node stands.
        self.known = set() if space is None else set(space.symbols)
        self.checks = None if space is None else FoundChecks(space)
        self.nodes = found_first(graph.nodes, space)
        self.builder = relax.BlockBuilder()
        self.vars: dict[Tensor, tvm.ir.Expr] = {}
        self.views: dict[tuple[Tensor, tuple[int, ...]], tvm.ir.Expr] = {}
        self.functions: dict[str, tvm.ir.GlobalVar] = {}
        self.constants: dict[Tensor, tvm.ir.Expr] = {}

    def write(self, weights: bool) -> tvm.IRModule:
        """The whole module."""
        params = [relax.Var(tensor.name, _type(tensor)) for tensor in self.graph.inputs]
        self.vars.update(zip(self.graph.inputs, params, strict=True))
        if self.known:
            given = [variable for name, variable in self.sizes.items() if name in self.known]
            params.append(relax.Var("sizes", relax.ShapeType(values=given)))
        for name, function in self.graph.kernels.items():
            self.functions[name] = self.builder.add_func(function, name)
        with function_scope(self.builder, "main", params):
            with self.builder.dataflow():
                for node in self.nodes:
                    if isinstance(node, FoundOp):
                        self._found(node)
                    elif isinstance(node, CustomOp):
                        self._custom(node)
                    else:
                        self._library(node)
                results = [
                    self.builder.emit_output(self._read(tensor, shape))
                    for tensor, shape in self.graph.outputs
                ]
            self.builder.emit_func_output(relax.Tuple(results) if self.graph.returns_tuple else results[0])
        constants = graph_constants(self.graph)
        if weights and constants:
            with function_scope(self.builder, WEIGHTS, []):
                self.builder.emit_func_output(relax.Tuple([self.constants[tensor] for tensor in constants]))
        return self.builder.get()

    def _read(self, tensor: Tensor, shape: tuple[int, ...]) -> tvm.ir.Expr:
        """A tensor's bytes in a shape."""
        if tensor.constant is not None:
            return self._constant(tensor, shape)
        if tensor.memory is not None:
            return self._read(tensor.memory, shape)
        var = self.vars[tensor]
        if same(shape, tensor.shape):
            return var
        if (tensor, shape) not in self.views:
            self.views[tensor, shape] = self.builder.emit(relax.op.reshape(var, expressions(shape)))
        return self.views[tensor, shape]

    def _constant(self, tensor: Tensor, shape: tuple[int, ...]) -> tvm.ir.Expr:
        """A constant in a shape; the first one that is asked for stands for its contents.

        One without elements is no constant of the module.
        """
        assert tensor.constant is not None
        if not tensor.bytes:
            made = self.builder.emit(empty_tensor(shape, tensor.dtype))
            return self.views.setdefault((tensor, shape), made)
        read: tvm.ir.Expr = tensor.constant
        if shape != tensor.shape:
            array = tensor.constant.value.numpy().reshape(shape)
            read = self.views.setdefault((tensor, shape), relax.const(array, tensor.dtype))
        self.constants.setdefault(tensor, read)
        return read

    def _custom(self, node: CustomOp) -> None:
        args = [
            self._read(tensor, shape) for tensor, shape in zip(node.inputs, node.input_shapes, strict=True)
        ]
        types = [_type(tensor) for tensor in node.outputs]
        takes = len(node.prim_func.params) > len(args) + len(types)
        args += self._sizes_now() if takes else ()
        out = types if len(types) > 1 else types[0]
        kept = {at: tensor.memory for at, tensor in enumerate(node.outputs) if tensor.memory is not None}
        if not kept:
            self._bind(node, relax.call_tir(self.functions[node.name], relax.Tuple(args), out))
            return
        # the first of the kernel's outputs: their memory is passed behind its inputs
        memory = [self._read(tensor, node.outputs[at].shape) for at, tensor in kept.items()]
        places = [len(args) + at if at in kept else -1 for at in range(len(types))]
        call = relax.op.call_tir_inplace(
            self.functions[node.name], relax.Tuple([*args, *memory]), places, out
        )
        self._bind(node, call)

    def _bind(self, node: Node, call: tvm.ir.Call) -> None:
        """The results of a node's call."""
        result = self.builder.emit(call)
        if len(node.outputs) == 1:
            self.vars[node.outputs[0]] = result
            return
        for index, tensor in enumerate(node.outputs):
            self.vars[tensor] = self.builder.emit(relax.TupleGetItem(result, index))

    def _sizes_now(self) -> list[tvm.ir.Expr]:
        """Every size; 0 for what is not found yet, which no node before it depends on."""
        nothing = tvm.tirx.IntImm("int64", 0)
        return [variable if name in self.known else nothing for name, variable in self.sizes.items()]

    def _found(self, node: FoundOp) -> None:
        """A call that returns its results, whose sizes are known from then on."""
        args = [
            self._read(tensor, shape) for tensor, shape in zip(node.inputs, node.input_shapes, strict=True)
        ]
        ranks = [relax.TensorType(dtype=tensor.dtype, ndim=len(tensor.shape)) for tensor in node.outputs]
        call = relax.op.call_pure_packed(
            node.function,
            *args,
            tvm.ir.StringImm(node.attrs.to_json()),
            ty_args=ranks[0] if len(ranks) == 1 else relax.TupleType(ranks),
        )
        made = self.builder.emit(call)
        for index, tensor in enumerate(node.outputs):
            part = made if len(ranks) == 1 else self.builder.emit(relax.TupleGetItem(made, index))
            self.vars[tensor] = self.builder.match_cast(part, _type(tensor))
        self.known.update(node.found)
        assert self.checks is not None
        for held in self.checks.calls(self.known):
            self.builder.emit(held)

    def _library(self, node: LibraryOp) -> None:
        whole = tuple(tensor.shape for tensor in node.inputs)
        shapes = node.input_shapes if isinstance(node, OpaqueOp | SpecializedOp) else whole
        args = [self._read(tensor, shape) for tensor, shape in zip(node.inputs, shapes, strict=True)]
        types = [_type(tensor) for tensor in node.outputs]
        function, sizes = node.function, None
        texts: tuple[str, ...] = (node.attrs.to_json(),)
        if isinstance(node, SpecializedOp):
            sizes = self._sizes_now()
        elif isinstance(node.attrs, OpenAttrs) and node.attrs.is_open:
            function, texts = SIZED, sized_texts(node.function, node.attrs)
            sizes = [self.sizes[name] for name in node.attrs.symbols]
        described: list[tvm.ir.Expr] = [tvm.ir.StringImm(text) for text in texts]
        if sizes is not None:
            described.append(relax.ShapeExpr(sizes))
        if any(tensor.memory is not None for tensor in node.outputs):
            self._into_memory(node, function, [*args, *described])
            return
        call = relax.op.call_dps_packed(
            function,
            relax.Tuple([*args, *described]),
            types if len(types) > 1 else types[0],
        )
        self._bind(node, call)

    def _into_memory(self, node: LibraryOp, function: str, given: list[tvm.ir.Expr]) -> None:
        """A call that gets the memory of its results, some of it that of a state."""
        results = []
        for tensor in node.outputs:
            if tensor.memory is not None:
                results.append(self._read(tensor, tensor.shape))
                continue
            shape = relax.ShapeExpr(expressions(tensor.shape))
            made = relax.op.builtin.alloc_tensor(shape, tensor.dtype, 0)
            self.vars[tensor] = self.builder.emit(made)
            results.append(self.vars[tensor])
        places = [len(given) + at for at in range(len(results))]
        types = [_type(tensor) for tensor in node.outputs]
        ty = relax.TupleType(types) if len(types) > 1 else types[0]
        self.builder.emit(
            relax.op.call_inplace_packed(function, *given, *results, inplace_indices=places, ty_args=[ty])
        )


def _type(tensor: Tensor) -> relax.TensorType:
    return relax.TensorType(expressions(tensor.shape), tensor.dtype)


def vm_passes(target: tvm.target.Target | None = None) -> tvm.transform.Pass:
    """Lowering of a module of `to_relax` for the virtual machine, with its memory planned at compile time.

    Parameters
    ----------
    target : Target, optional
        What it is lowered for: a GPU's launches can be captured (`cuda_graph`).
    """
    return tvm.transform.Sequential(
        [
            relax.transform.ToNonDataflow(),
            relax.transform.RemovePurityChecking(),
            relax.transform.CallTIRRewrite(),
            relax.transform.StaticPlanBlockMemory(),
            capture(target),
            relax.transform.LowerAllocTensor(),
            relax.transform.KillAfterLastUse(),
            relax.transform.LowerRuntimeBuiltin(),
            relax.transform.ComputePrimValue(),
            relax.transform.VMShapeLower(),
            relax.transform.AttachGlobalSymbol(),
        ],
        name="uir.vm_passes",
    )


def relax_passes(target: str | tvm.target.Target) -> tvm.transform.Pass:
    """Model -> virtual machine: `build`, `to_relax`, `vm_passes`; what ``tvm.compile`` runs for our targets.

    A module whose ``main`` already calls kernels (call_tir) goes through the lowering alone; its other
    operators become kernels one by one, as TVM legalises them.
    """

    target = tvm.target.Target(target)
    # At once: an error from within a pass would lose its class.
    check(target)

    @tvm.transform.module_pass(opt_level=0, name="uir.relax_passes")
    @one_at_a_time
    def passes(mod: tvm.IRModule, context: tvm.transform.PassContext) -> tvm.IRModule:
        mod = legalize_rest(mod) if calls_kernels(mod) else to_relax(build(mod, target))
        return vm_passes(target)(mod)

    return passes


def calls_kernels(mod: tvm.IRModule) -> bool:
    """Whether ``main`` already consists of lowered calls (call_tir, call_dps_packed)."""
    return any(
        isinstance(binding.value, tvm.ir.Call)
        and isinstance(binding.value.op, tvm.ir.Op)
        and str(binding.value.op.name).startswith(("relax.call_tir", "relax.call_dps_packed"))
        for block in mod["main"].body.blocks
        for binding in block.bindings
    )


def legalize_rest(mod: tvm.IRModule) -> tvm.IRModule:
    """The operators beside the calls of kernels as kernels; a reshape stays one, as it costs nothing.

    A kernel all of whose results have no elements is not called.
    """
    mod = legalize(without_empty_calls(_named(mod)), skip=("relax.reshape",))
    return relax.transform.DeadCodeElimination()(mod)


def _named(mod: tvm.IRModule) -> tvm.IRModule:
    """A module whose kernels have the names that they are called by: theirs may be equal, or ``main``."""
    renamed = {
        gvar: func.with_attr("global_symbol", gvar.name_hint)
        for gvar, func in mod.functions_items()
        if isinstance(func, tvm.tirx.PrimFunc)
    }
    return tvm.IRModule({**dict(mod.functions_items()), **renamed}, attrs=mod.attrs)
