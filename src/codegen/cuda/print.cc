// SPDX-License-Identifier: Apache-2.0
// iGraph -> CUDA C++: `uir.codegen.cuda`.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include "codegen/cuda/kernel.h"
#include "codegen/printed.h"

namespace uir::codegen::cuda {

namespace {

//! \brief The whole source of an operator.
//! \param graphs Its phases, in order; each becomes a kernel.
//! \param name The kernels' name; from the second on they are numbered.
Record Print(const ffi::Array<IGraph>& graphs, const ffi::String& name) {
  Needs needs;
  Names names(Reserved());
  std::string body;
  Printed printed;
  for (const IGraph& graph : graphs) {
    Kernel kernel = PrintKernel(graph, names.Fresh(std::string(name)), &needs);
    body += "\n" + kernel.text;
    Record launch{{"grid", kernel.grid},
                  {"block", kernel.block},
                  {"shared_bytes", kernel.shared_bytes},
                  {"cooperative", kernel.cooperative}};
    printed.Add(graph, kernel.name, kernel.params, launch, kernel.notes,
                [](const std::string& dtype) -> int64_t { return TypeOf(dtype).bytes; });
  }
  return printed.Take(needs.Text() + body);
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def("uir.codegen.cuda", &Print)
      // for tests: a quasi-affine expression over variables from 0 to below their extents, and its C type
      .def("uir.codegen.expression",
           [](const Affine& expr, const ffi::Map<ffi::String, int64_t>& extents) {
             Scope scope;
             for (const auto& [name, extent] : extents)
               scope.Bind(std::string(name), std::string(name), {0, extent - 1});
             Range range = scope.Of(expr);
             return Record{{"text", ffi::String(scope.Text(expr))},
                           {"type", ffi::String(scope.Type(expr))},
                           {"low", range.low},
                           {"high", range.high},
                           {"power_of_two", scope.PowerOfTwo(expr, 16)}};
           })
      // for tests: the range of an expression over the sizes of a graph, pid and open loops
      .def("uir.codegen.range",
           [](const Affine& expr, const IGraph& graph) {
             Range range = ScopeOf(graph).Of(expr);
             return ffi::Array<int64_t>{range.low, range.high};
           })
      // for tests: element (i, j) of an (R, C) slice -> pairs (lane, register)
      .def("uir.codegen.cuda.owners",
           [](int lanes_r, int lanes_c, int vec_r, int vec_c, bool lanes_col_major, int64_t rows, int64_t cols) {
             Fragment fragment({lanes_r, lanes_c, vec_r, vec_c, lanes_col_major}, rows, cols);
             ffi::Array<ffi::Array<int64_t>> out;
             for (int64_t i = 0; i < rows; ++i) {
               for (int64_t j = 0; j < cols; ++j) {
                 ffi::Array<int64_t> owners;
                 for (auto [lane, number] : fragment.Owners(i, j)) {
                   owners.push_back(lane);
                   owners.push_back(number);
                 }
                 out.push_back(owners);
               }
             }
             return out;
           });
}

}  // namespace uir::codegen::cuda
