// SPDX-License-Identifier: Apache-2.0
// Whether an operand in global memory lies in a parameter, and accesses of its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/engine/kernel_call.h"
#include "device/engine/memory.h"
#include "device/engine/pipe_race.h"
#include "device/engine/ranges.h"

namespace uir::engine {

//! \brief What is wrong with an operand that covers [begin, end) from `address` on; empty: nothing.
//! \param parameters what the kernel's pointers may reach; empty: any live allocation.
//! \param role what findings call the operand.
//! \param allocation receives the allocation that holds it.
std::string WhyOutside(const std::vector<ParameterRange>& parameters, uint64_t address, int64_t begin, int64_t end,
                       const char* role, Allocation** allocation);

/*! \brief Note that an instruction accesses ranges from `base` on; an epoch that it races with, or 0. */
uint64_t NoteAccess(PipeShadow* shadow, const Pipes& pipes, uint64_t epoch, uint64_t base, const Ranges& ranges,
                    bool write);

}  // namespace uir::engine
