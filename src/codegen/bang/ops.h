// SPDX-License-Identifier: Apache-2.0
/*!
 * \file ops.h
 * \brief The emitters of all classes of iOps; the table over them is in ops.cc.
 */
#ifndef UIR_CODEGEN_BANG_OPS_H_
#define UIR_CODEGEN_BANG_OPS_H_

#include "emitter.h"

namespace uir {
namespace codegen {
namespace bang {

using EmitFn = void (*)(Emitter& e, const IOp& iop);

/*! \brief What prints a class of iOps. */
struct OpRow {
  const char* op;
  EmitFn emit;
};

/*! \brief The row of an op; refuses one without. */
const OpRow& OpRowOf(const IOp& iop, const std::string& where);

// moves.cc
void EmitMove(Emitter& e, const IOp& iop);
// simple.cc
void EmitIdentity(Emitter& e, const IOp& iop);
void EmitSync(Emitter& e, const IOp& iop);

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_OPS_H_
