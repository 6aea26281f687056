# SPDX-License-Identifier: Apache-2.0
"""Constants of an imported program: PyTorch's memory while it is imported, copies of it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
import tvm
import tvm_ffi
from torch.export import ExportedProgram
from tvm import relax
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

from ..tensor_view import tensor_of, view_of
from .normalize import replace_main


def module_on_lent_memory(program: ExportedProgram, converters: Mapping[str, Callable]) -> tvm.IRModule:
    """What TVM's importer makes of a decomposed program; its constants may be PyTorch's memory.

    `own_constants` makes copies of those that are left when the module is simplified.
    """
    return _Importer().from_exported_program(
        program,
        keep_params_as_input=False,
        unwrap_unit_return_tuple=True,
        no_bind_return_tuple=False,
        custom_convert_map=dict(converters),
    )


class _Importer(ExportedProgramImporter):
    """TVM's importer, which would copy what lies at no multiple of 64 bytes, as in files of weights."""

    @staticmethod
    def _convert_pytorch_tensor_to_tvm(tensor_value: torch.Tensor) -> tvm.runtime.Tensor:
        value = tensor_value.detach()
        plain = value.layout == torch.strided and value.device.type == "cpu" and value.is_contiguous()
        if plain and value.dtype != torch.bool:  # which TVM knows as a byte where memory is shared
            try:
                return tvm_ffi.from_dlpack(value, require_alignment=0, require_contiguous=True)
            except (RuntimeError, BufferError):
                pass
        return ExportedProgramImporter._convert_pytorch_tensor_to_tvm(tensor_value)


def own_constants(mod: tvm.IRModule, own: Iterable[tvm.ir.GenericConst] = ()) -> tvm.IRModule:
    """Copy the constants of a module, which the importer shares with PyTorch's tensors.

    Parameters
    ----------
    mod : tvm.IRModule
    own : iterable of GenericConst
        Those whose memory is nobody else's: they stay as they are.
    """
    return replace_main(mod, _CopyConstants(own).visit_expr(mod["main"]))


@relax.expr_functor.mutator
class _CopyConstants(relax.PyExprMutator):
    """Equal objects become one copy, so that shared weights stay shared."""

    def __init__(self, own: Iterable[tvm.ir.GenericConst]) -> None:
        super().__init__()
        self._copies: dict[int, tvm.ir.Expr] = {_tensor(each): each for each in own}

    def visit_generic_const_(self, op: tvm.ir.GenericConst) -> tvm.ir.Expr:
        if not isinstance(op.ty, relax.TensorType):
            return op
        key = _tensor(op)
        if key not in self._copies:
            self._copies[key] = relax.const(tensor_of(view_of(op.value)))
        return self._copies[key]


def _tensor(constant: tvm.ir.GenericConst) -> int:
    """Identity of a constant's tensor, for as long as something holds it."""
    return int(constant.value.__chandle__())
