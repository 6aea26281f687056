// SPDX-License-Identifier: Apache-2.0
// The emitters of all classes of iOps; the table over them is in ops.cc.
#pragma once

#include "codegen/cuda/emitter.h"

namespace uir::codegen::cuda {

// moves.cc
void EmitMove(Emitter& e, const IOp& iop);
// contract.cc
void EmitContract(Emitter& e, const IOp& iop);
// simple.cc
void EmitFill(Emitter& e, const IOp& iop);
void EmitIdentity(Emitter& e, const IOp& iop);
void EmitSync(Emitter& e, const IOp& iop);
// elementwise.cc
void EmitUnary(Emitter& e, const IOp& iop);
void EmitBinary(Emitter& e, const IOp& iop);
void EmitCompare(Emitter& e, const IOp& iop);
void EmitSelect(Emitter& e, const IOp& iop);
void EmitCast(Emitter& e, const IOp& iop);
void EmitIota(Emitter& e, const IOp& iop);
// reduce.cc, broadcast.cc
void EmitReduce(Emitter& e, const IOp& iop);
void EmitBroadcast(Emitter& e, const IOp& iop);
// exchange.cc, indexed.cc
void EmitTranspose(Emitter& e, const IOp& iop);
void EmitGather(Emitter& e, const IOp& iop);
void EmitScatter(Emitter& e, const IOp& iop);

}  // namespace uir::codegen::cuda
