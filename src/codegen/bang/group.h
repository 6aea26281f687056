// SPDX-License-Identifier: Apache-2.0
// reduce and broadcast over the units of a set: cores of one cluster, by way of its SRAM.
#pragma once

#include "codegen/bang/emitter.h"

namespace uir::codegen::bang {

/*! \brief Whether an iOp joins several units. */
bool IsGroupForm(const IOp& iop);

//! \brief Each core reduces its own source and writes the result to its place in the buffer; the cluster meets; the
//! first core of the set combines what the buffer holds, in the order of the cores, into its target.
void EmitGroupReduce(Emitter& e, const IOp& iop);

/*! \brief The first core of the set writes its source to the buffer; the cluster meets; each core reads it. */
void EmitGroupBroadcast(Emitter& e, const IOp& iop);

}  // namespace uir::codegen::bang
