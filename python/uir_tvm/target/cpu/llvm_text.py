# SPDX-License-Identifier: Apache-2.0
"""Functions in LLVM's own language that a kernel calls: what TIR cannot say, inlined where it is called."""

from __future__ import annotations

from tvm import tirx
from tvm.ir import StringImm

from .address import index

#: The mark of a loop that LLVM is to leave as it is.
LOOP_AS_IT_IS = "!1"
#: Metadata that the functions refer to: the mark of a non-temporal store, and that of such a loop.
_METADATA = f"""!0 = !{{i32 1}}
{LOOP_AS_IT_IS} = distinct !{{{LOOP_AS_IT_IS}, !2}}
!2 = !{{!"llvm.loop.unroll.disable"}}
"""


#: Nothing, which may stand in a function once: a loop around it is not unrolled by LLVM.
ONCE = "uir_once"
_ONCE_TEXT = f"""
define linkonce_odr void @{ONCE}() alwaysinline {{
  call void asm sideeffect "", ""() noduplicate memory(inaccessiblemem: readwrite)
  ret void
}}
"""


class LlvmText:
    """The definitions that one kernel needs, by name of the function."""

    def __init__(self) -> None:
        self.definitions: dict[str, str] = {}

    def need(self, name: str, definition: str) -> None:
        """Add a definition (of linkage ``linkonce_odr``, since several kernels of a module may have it)."""
        self.definitions[name] = definition

    def once(self) -> tirx.Stmt:
        """A statement that does nothing, in the body of a loop that LLVM is to leave as it is."""
        self.need(ONCE, _ONCE_TEXT)
        return tirx.Evaluate(tirx.call_extern("void", ONCE))

    def attach(self, body: tirx.Stmt) -> tirx.Stmt:
        """A kernel's body with the definitions attached."""
        if not self.definitions:
            return body
        text = "\n".join([*self.definitions.values(), _METADATA])
        return tirx.AttrStmt(index(0), "pragma_import_llvm", StringImm(text), body)
