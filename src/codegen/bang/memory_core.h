// SPDX-License-Identifier: Apache-2.0
// Copies between SRAM and GDRAM: work of the cluster's memory core (MPU) for the units of the cluster.
//
// The rule, from the vendor's header (documentation of `__memcpy`: such a copy runs on the MPU by itself) and public
// kernels (mlu-ops, unary_op_5pipeline.h, fft_c2c_stockham_gdram.h): all five cores of a cluster run a Union kernel;
// copies between GDRAM and SRAM are done by the MPU alone, all other work by the four IPU cores alone.
// `__sync_cluster()` waits for all five, so that the MPU must reach every one.  The printer says so in the text:
// the copies stand in `if (__is_mpu())`, paragraphs of units in `if (__is_ipu())`, barriers outside of both.  The MPU
// has no pid: it takes that of the cluster's first unit, and goes over the units where their pieces do not make one.
//
// A copy of the MPU blocks it until it is done.  To its unit nothing but `__sync_cluster()` says when that is; where
// the graph has none between the copy and what depends on it, the printer adds it.
#pragma once

#include <string>
#include <vector>

#include "codegen/bang/emitter.h"
#include "codegen/pipes/tree.h"

namespace uir::codegen::bang {

/*! \brief The pipe of what the memory core does. */
inline constexpr const char* kMemoryCore = "MPU";

/*! \brief Whether a move is the memory core's. */
bool IsMemoryCoreMove(const IOp& iop);

/*! \brief Prints such a move: for every unit of the cluster, or once where all units move the same bytes. */
void EmitMemoryCoreMove(Emitter& e, const IOp& iop);

//! \brief The tree with a meeting of the cluster wherever a unit and its memory core depend on each other and none of
//! those that stand orders them: as few as the planner of syncs finds, so late that one serves as many as it can.
std::vector<pipes::Node> WithMeetings(const std::vector<pipes::Node>& body, const std::string& where);

}  // namespace uir::codegen::bang
