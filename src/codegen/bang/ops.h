// SPDX-License-Identifier: Apache-2.0
// The emitters of all classes of iOps; the table over them is in ops.cc.
#pragma once

#include "codegen/bang/emitter.h"
#include "codegen/op_row.h"

namespace uir::codegen::bang {

using OpRow = OpRowOn<Emitter>;

/*! \brief The row of an op; refuses one without. */
const OpRow& OpRowOf(const IOp& iop, const std::string& where);

// moves.cc
void EmitMove(Emitter& e, const IOp& iop);
// elementwise.cc
void EmitUnary(Emitter& e, const IOp& iop);
void EmitBinary(Emitter& e, const IOp& iop);
void EmitCompare(Emitter& e, const IOp& iop);
void EmitSelect(Emitter& e, const IOp& iop);
// casts.cc
void EmitCast(Emitter& e, const IOp& iop);
// fill.cc
void EmitFill(Emitter& e, const IOp& iop);
// reduce.cc
void EmitReduce(Emitter& e, const IOp& iop);
// broadcast.cc
void EmitBroadcast(Emitter& e, const IOp& iop);
// transpose.cc
void EmitTranspose(Emitter& e, const IOp& iop);
// iota.cc
void EmitIota(Emitter& e, const IOp& iop);
// indexed.cc
void EmitGather(Emitter& e, const IOp& iop);
void EmitScatter(Emitter& e, const IOp& iop);
// contract.cc
void EmitContract(Emitter& e, const IOp& iop);
// simple.cc
void EmitIdentity(Emitter& e, const IOp& iop);
void EmitSync(Emitter& e, const IOp& iop);

}  // namespace uir::codegen::bang
