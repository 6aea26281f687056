// SPDX-License-Identifier: Apache-2.0
// Elementwise pieces that other emitters print too.
#pragma once

#include <tvm/ffi/any.h>

#include "codegen/ascend/emitter.h"
#include "codegen/ascend/vector.h"

namespace uir::codegen::ascend {

namespace ffi = tvm::ffi;

/*! \brief target = source, both in the UB, over the target's valid box. */
void EmitCopy(Emitter& e, const ISlice& target, const ISlice& source);
//! \brief The same value in another place, of any dtype.
//! \param pairs Whether bytes may be copied as words of two (see `EmitCopy`).
Value CopyOf(Program& p, Value x, bool pairs);
/*! \brief The target's valid box = a number. */
void FillSlice(Emitter& e, const ISlice& target, const ffi::Any& value);

}  // namespace uir::codegen::ascend
