// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/asked_layouts.h"

#include <tvm/ffi/any.h>

#include <vector>

#include "base/attrs.h"
#include "codegen/error.h"

namespace uir::codegen::cuda {

namespace {

constexpr int64_t kWidestVec = 16;

bool PowerOfTwo(int64_t value, int64_t limit) { return value >= 1 && value <= limit && (value & (value - 1)) == 0; }

}  // namespace

std::map<std::string, Layout> AskedLayouts(const IGraph& graph) {
  std::map<std::string, Layout> out;
  using Figures = ffi::Map<ffi::String, ffi::Array<int64_t>>;
  for (const auto& [pointer, figures] : AttrOr(graph->attrs, "layouts", Figures())) {
    std::vector<int64_t> f(figures.begin(), figures.end());
    bool right = f.size() == 4 || f.size() == 5;
    right = right && f[0] * f[1] == kLanes && PowerOfTwo(f[0], kLanes) && PowerOfTwo(f[2], kWidestVec) &&
            PowerOfTwo(f[3], kWidestVec);
    if (!right) {
      CodegenError("The attribute layouts asks for none.", std::string(graph->name) + ", " + std::string(pointer),
                   "[lanes_r, lanes_c, vec_r, vec_c], powers of two, of 32 lanes and at most 16 neighbours");
    }
    out[std::string(pointer)] = {static_cast<int>(f[0]), static_cast<int>(f[1]), static_cast<int>(f[2]),
                                 static_cast<int>(f[3]), f.size() == 5 && f[4] != 0};
  }
  return out;
}

}  // namespace uir::codegen::cuda
