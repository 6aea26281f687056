// SPDX-License-Identifier: Apache-2.0
/*!
 * \file ascend.cc
 * \brief iGraph -> Ascend C: `uir.codegen.ascend`.
 */
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>

#include "ascend/kernel.h"
#include "ascend/scalar.h"
#include "printer.h"

namespace uir {
namespace codegen {
namespace ascend {

namespace {

using Record = ffi::Map<ffi::String, ffi::Any>;

ffi::Array<ffi::String> Strings(const std::vector<std::string>& texts) {
  ffi::Array<ffi::String> out;
  for (const std::string& text : texts) out.push_back(text);
  return out;
}

Record LaunchOf(const Kernel& kernel) {
  return {{"name", ffi::String(kernel.name)},
          {"grid", kernel.blocks},
          {"block", 1},
          {"shared_bytes", 0},
          {"cooperative", false},
          {"params", Strings(kernel.params)},
          {"core", ffi::String(kernel.core)}};
}

/*!
 * \brief The whole source of an operator.
 * \param graphs Its phases, in order; each becomes a kernel.
 * \param name The kernels' name; from the second on they are numbered.
 */
Record Print(const ffi::Array<IGraph>& graphs, const ffi::String& name) {
  Names names(Reserved());
  std::string source = "#include \"kernel_operator.h\"\n\nusing namespace AscendC;\n";
  ffi::Array<ffi::Any> kernels, workspace;
  Record report, workspaces;
  for (const IGraph& graph : graphs) {
    Kernel kernel = PrintKernel(graph, names.Fresh(std::string(name)));
    source += "\n" + kernel.text;
    kernels.push_back(LaunchOf(kernel));
    report.Set(kernel.name, Strings(kernel.notes));
    for (const IPointer& pointer : graph->pointers) {
      bool owned = pointer->level == "dram" && pointer->role == "tmp";
      bool used =
          std::find(kernel.params.begin(), kernel.params.end(), std::string(pointer->name)) != kernel.params.end();
      if (!owned || !used || workspaces.count(pointer->name)) continue;
      int64_t bytes = pointer->size * BytesOf(std::string(pointer->dtype));
      workspaces.Set(pointer->name, bytes);
      workspace.push_back(Record{{"name", pointer->name}, {"bytes", bytes}});
    }
  }
  return {{"source", ffi::String(source)}, {"kernels", kernels}, {"workspace", workspace}, {"report", report}};
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() { tvm::ffi::reflection::GlobalDef().def("uir.codegen.ascend", &Print); }

}  // namespace ascend
}  // namespace codegen
}  // namespace uir
