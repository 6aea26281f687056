// SPDX-License-Identifier: Apache-2.0
// iGraph -> BANG C: `uir.codegen.bang`.
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>

#include "codegen/bang/api.h"
#include "codegen/bang/kernel.h"
#include "codegen/bang/scalar.h"
#include "codegen/printed.h"
#include "codegen/printer.h"

namespace uir::codegen::bang {

namespace {

/*! \brief An array over a memory, as large as the kernel that needs the most of it. */
std::string Memory(const std::vector<Kernel>& kernels, int64_t Kernel::* bytes, const std::string& text) {
  int64_t most = 0;
  for (const Kernel& kernel : kernels) most = std::max(most, kernel.*bytes);
  return most == 0 ? "" : text + "[" + std::to_string(most) + "];\n";
}

//! \brief The whole source of an operator.
//! \param graphs Its phases, in order; each becomes a kernel.
//! \param name The kernels' name; from the second on they are numbered.
Record Print(const ffi::Array<IGraph>& graphs, const ffi::String& name) {
  Names names(Reserved());
  Printed printed;
  std::vector<Kernel> kernels;
  for (const IGraph& graph : graphs) {
    kernels.push_back(PrintKernel(graph, names.Fresh(std::string(name))));
    const Kernel& kernel = kernels.back();
    Record launch{{"grid", kernel.groups},
                  {"block", kernel.units},
                  {"shared_bytes", 0},
                  {"cooperative", false},
                  {"core", ffi::String(kernel.launch)},
                  {"launch", ffi::String(kernel.launch)}};
    printed.Add(graph, kernel.name, kernel.params, launch, kernel.notes,
                [](const std::string& dtype) { return BytesOf(dtype); });
  }
  std::string memories = Memory(kernels, &Kernel::nram, "__nram__ __attribute__((aligned(128))) char nram") +
                         Memory(kernels, &Kernel::wram, "__wram__ __attribute__((aligned(128))) char wram") +
                         Memory(kernels, &Kernel::sram, "__mlu_shared__ __attribute__((aligned(128))) char sram");
  const Platform platform = bang::Table().PlatformOf(graphs[0]);
  std::string source = "// for mtp_" + platform.arch + ", cncc " + platform.toolkit + "\n#include <bang.h>\n" +
                       (memories.empty() ? "" : "\n" + memories);
  for (const Kernel& kernel : kernels) source += "\n" + kernel.text + "\n" + PrintLauncher(kernel);
  return printed.Take(source);
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() { tvm::ffi::reflection::GlobalDef().def("uir.codegen.bang", &Print); }

}  // namespace uir::codegen::bang
