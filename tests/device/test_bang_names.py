# SPDX-License-Identifier: Apache-2.0
"""The header of the model has all that the printer may print, with the same parameters."""

from __future__ import annotations

import tvm_ffi
import uir_tvm  # noqa: F401  (loads the printer)
from uir_tvm.target.bang import host_model as bang

from tests.device import bang_texts as texts


def _calls(row: dict[str, object]) -> list[str]:
    """A call of the function for each of its types, on variables of the parameters' types."""
    name, types = str(row["name"]), [t.strip() for t in str(row["types"]).split(";")]
    lines = []
    for element in types:
        declared = []
        for i, parameter in enumerate(str(row["params"]).split()):
            of = parameter.split(":", 1)[1].split("[")[0]
            of = element + of[1:] if of == "T" or of == "T*" else of
            declared.append((of, f"p{i}"))
        # A function of its own, so that calls are checked and not made.
        arguments = ", ".join(f"{of} {variable}" for of, variable in declared)
        used = ", ".join(variable for _, variable in declared)
        lines.append(f"__mlu_func__ void f{{}}({arguments}) {{{{ {name}({used}); }}}}")
    return lines


def test_every_row_of_the_printers_table_can_be_called() -> None:
    rows = tvm_ffi.get_global_func("uir.codegen.bang.apis")()
    functions, names = [], []
    for row in rows:
        name, form = str(row["name"]), str(row["form"])
        if form == "enum":
            names += [f"  (void){value};" for value in str(row["params"]).split()]
        elif form == "type":
            names.append(f"  (void)sizeof({name});")
        elif form == "statement":
            names.append(f"  {row['params']}")
        elif form not in ("macro", "header"):
            functions += _calls(row)
            for spelling in str(row["spellings"]).split():
                functions += _calls({**row, "name": spelling.split(":")[1]})
    assert len(functions) > 60
    numbered = [line.format(i) for i, line in enumerate(functions)]
    source = texts.text("\n".join(names))
    bang.compile(source.replace("#include <bang.h>", "#include <bang.h>\n" + "\n".join(numbered)))
