# SPDX-License-Identifier: Apache-2.0
"""C text of a function that a device does not take: what a project runs on its host.

TVM prints it. What it names of TVM is little, and `templates/*/tvm_c.h` declares that: TVM is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import tvm
from tvm import tirx
from tvm_ffi.structural import structural_map

from ..errors import last_line

#: TVM's headers, which the text names.
_INCLUDE = re.compile(r'^#include "tvm/.*"\n', re.MULTILINE)
#: What follows the function: an entry of a fixed name, which files of one program would share.
_ENTRY = "// CodegenC: NOTE: Auto-generated entry function"
_CONTEXT = "void* __tvm_ffi__library_ctx = NULL;\n"


#: Functions that TVM does not print in C of its own accord -> C's, for float and double.
_CALLS = {"tirx.fabs": ("fabsf", "fabs"), "tirx.nearbyint": ("nearbyintf", "nearbyint")}


def host_code(func: tirx.PrimFunc, name: str) -> Mapping[str, Any]:
    """A function as C.

    Parameters
    ----------
    func : PrimFunc
        Not scheduled.
    name : str
        Of the function: the text defines ``__tvm_ffi_NAME``.

    Returns
    -------
    mapping
        ``source``, and ``params``: dtype and shape of each, None for what a call decides; or ``refused``, why
        there is no text.
    """
    target = tvm.target.Target("c", host="c")
    plain = func.without_attr("target") if "target" in (func.attrs or {}) else func
    try:
        plain = structural_map(plain, (tvm.ir.Call, _call)).with_attr("global_symbol", name)
        built = tvm.compile(tvm.IRModule({name: plain}), target=target)
        source = built.mod.inspect_source()
    except (RuntimeError, ValueError, TypeError, AttributeError, KeyError) as error:
        return {"refused": last_line(error)}
    narrow = re.search(r"\b(half|bfloat16|__bf16)\b", source)
    if narrow:
        return {"refused": f"C that TVM prints does not have {narrow[0]}"}
    params = [
        {"dtype": str(param.dtype), "shape": [_extent(dim) for dim in param.shape]} for param in func.params
    ]
    return {"source": _alone(source), "params": params}


def _extent(dim: Any) -> int | None:
    return int(dim) if isinstance(dim, int | tirx.IntImm) else None


def _call(call: tvm.ir.Call) -> Any:
    """A call of C's function in the place of one that TVM does not print."""
    names = _CALLS.get(str(getattr(call.op, "name", "")))
    dtype = str(getattr(call, "dtype", "") or call.ty)
    if names is None or dtype not in ("float32", "float64"):
        return call
    return tirx.call_extern(dtype, names[dtype == "float64"], *call.args)


def _alone(source: str) -> str:
    """The text for one file of several, with the declarations of a project."""
    head, _, _ = source.partition(_ENTRY)
    body = _INCLUDE.sub("", head)
    if body.count("__tvm_ffi__library_ctx") == 1:
        body = body.replace(_CONTEXT, "")
    body = re.sub(r"^(#define TVM_EXPORTS|// tvm target.*)\n", "", body, flags=re.MULTILINE)
    return '// SPDX-License-Identifier: Apache-2.0\n#include "tvm_c.h"\n\n' + body.strip() + "\n"
