// SPDX-License-Identifier: Apache-2.0
// Times of launches that computed nothing, kept: layers of a model launch the same kernels in the same way.
//
// Such a launch reads no values, so that its time follows from the kernel, the device, numbers, and how its pointers
// lie: which of them share an allocation, and where in it they begin, up to a page of it, which is a multiple of all
// that accesses of memory and caches are counted in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device/engine/engine_api.h"

namespace uir::engine {

/*! \brief What such a launch answers. */
struct KeptTimes {
  std::string modelled;  // JSON
  std::map<std::string, int64_t> counters;
};

//! \brief The key of a launch.
//! \param facts all that it is told beside its arguments: library, kernel, device, how many cores of which kind.
std::string TimesKey(const std::vector<std::string>& facts, const UirSimtArg* args, int32_t num_args);

/*! \brief What a launch of that key answered; null where none was kept. The caller holds `LaunchLock`. */
const KeptTimes* FindTimes(const std::string& key);
void KeepTimes(const std::string& key, KeptTimes times);
/*! \brief Of all launches: before the file of a library goes. */
void ForgetTimes();

}  // namespace uir::engine
