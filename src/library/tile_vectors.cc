// SPDX-License-Identifier: Apache-2.0
// The packed functions that say which code convolutions in tiles run and what is estimated of Winograd's way, for tests
// and explanations.

#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include "library/conv2d_tile_kernels.h"
#include "library/vector_choice.h"

namespace uir::library {
namespace {

namespace ffi = tvm::ffi;

/*! Of a core with such vectors, second cache and bytes in a cycle from beyond it. */
double Gain(const ffi::String& attrs, int lanes, int64_t second_cache, double beyond) {
  if (lanes < 1 || second_cache < 1 || !(beyond > 0)) {
    TVM_FFI_THROW(ValueError) << "winograd_gain: a core has vectors, a second cache and what it reads from beyond it.\n"
                                 "  need:   numbers above 0";
  }
  return WinogradGain(Conv2dAttrs::Parse(attrs), {lanes, second_cache, beyond, 1});
}

TVM_FFI_STATIC_INIT_BLOCK() {
  DefineVectorChoice("tile", TileVectors, SetTileVectors);
  ffi::reflection::GlobalDef().def("uir.library.cpu.winograd_gain", Gain);
}

}  // namespace
}  // namespace uir::library
