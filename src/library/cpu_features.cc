// SPDX-License-Identifier: Apache-2.0
#include "library/cpu_features.h"

namespace uir::library {

#if defined(__x86_64__) && defined(__GNUC__)
bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool HasAmdAvx512() { return HasAvx512() && __builtin_cpu_is("amd"); }
#else
bool HasAvx512() { return false; }
bool HasAvx2() { return false; }
bool HasAmdAvx512() { return false; }
#endif

}  // namespace uir::library
