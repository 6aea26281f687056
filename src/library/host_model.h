// SPDX-License-Identifier: Apache-2.0
// Library operators on the host model of a device: the CPU's library computes them.
#pragma once

#include <tvm/ffi/function.h>

namespace uir::library {

//! The CPU's operator `function` on memory of the host model, which the host can address. The result goes there through
//! the model's own copy, so that it knows which bytes were written.
void OnHostModel(const char* function, const tvm::ffi::PackedArgs& args);

}  // namespace uir::library
