// SPDX-License-Identifier: Apache-2.0
#include "library/cpu_features.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define UIR_X86 1
#include <cpuid.h>
#endif

namespace uir::library {

#ifdef UIR_X86
namespace {

/*! What a CPU of AMD's says of its units: whether they have 256 bits, and not 512. */
bool HasUnitsOf256() {
  constexpr unsigned kUnits = 0x8000001a, k256 = 1u << 2, k512 = 1u << 3;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(kUnits, &a, &b, &c, &d) != 0 && (a & (k256 | k512)) == k256;
}

}  // namespace

bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool HalvesVectors512() {
  static const bool halves = HasAvx512() && HasUnitsOf256();
  return halves;
}
#else
bool HasAvx512() { return false; }
bool HasAvx2() { return false; }
bool HalvesVectors512() { return false; }
#endif

}  // namespace uir::library
