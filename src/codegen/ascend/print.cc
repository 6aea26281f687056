// SPDX-License-Identifier: Apache-2.0
// iGraph -> Ascend C: `uir.codegen.ascend`.
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>

#include "codegen/ascend/api.h"
#include "codegen/ascend/far_turns.h"
#include "codegen/ascend/kernel.h"
#include "codegen/ascend/scalar.h"
#include "codegen/printed.h"
#include "codegen/printer.h"

namespace uir::codegen::ascend {

namespace {

//! \brief The whole source of an operator.
//! \param graphs Its phases, in order; each becomes a kernel.
//! \param name The kernels' name; from the second on they are numbered.
Record Print(const ffi::Array<IGraph>& graphs, const ffi::String& name) {
  Names names(Reserved());
  const Platform platform = Table().PlatformOf(graphs[0]);
  std::string source = "// for dav-2201, CANN " + platform.toolkit +
                       "\n#include \"kernel_operator.h\"\n\nusing namespace AscendC;\n" + RestOfTurns(graphs);
  Printed printed;
  for (const IGraph& graph : graphs) {
    source += "\n";
    int64_t first = std::count(source.begin(), source.end(), '\n') + 1;
    Kernel kernel = PrintKernel(graph, names.Fresh(std::string(name)), first);
    source += kernel.text;
    Record launch{{"grid", kernel.blocks},
                  {"block", 1},
                  {"shared_bytes", 0},
                  {"cooperative", false},
                  {"core", ffi::String(kernel.core)}};
    printed.Add(graph, kernel.name, kernel.params, launch, kernel.notes,
                [](const std::string& dtype) { return BytesOf(dtype); });
  }
  return printed.Take(source);
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() { tvm::ffi::reflection::GlobalDef().def("uir.codegen.ascend", &Print); }

}  // namespace uir::codegen::ascend
