// SPDX-License-Identifier: Apache-2.0
// Blocks of a packed weight as numbers, which many rows of x then read. See quantized_panels.h.

/*! Codes of some groups as numbers [k][kBlock]. */
template <int kBits>
UIR_INLINE void UnpackGroups(const Panels& panels, const char* group, int64_t groups, float* to) {
  for (int64_t number = 0; number < groups; ++number, group += panels.group_bytes) {
    Vector scale[kVectors], shift[kVectors];
    GroupOf(panels, group, panels.zero, scale, shift);
    for (int64_t word = 0; word < panels.words; ++word, to += 32 / kBits * kBlock) {
      __builtin_prefetch(group + word * kBlock * 4 + kAheadBytes);
      Bits words[kVectors];
      Words(group + word * kBlock * 4, words);
      for (int v = 0; v < kVectors; ++v) {
        Vector codes[32 / kBits];
        AllCodes<kBits>(words[v], codes);
#pragma GCC unroll 8
        for (int at = 0; at < 32 / kBits; ++at) {
          *reinterpret_cast<Unaligned*>(to + at * kBlock + v * kLanes) = codes[at] * scale[v] + shift[v];
        }
      }
    }
  }
}

template <DType kType>
UIR_INLINE void UnpackNumbers(const char* from, int64_t length, float* to) {
  for (int64_t at = 0; at < length * kBlock; at += kLanes) {
    if (at % 32 == 0) __builtin_prefetch(from + at * 2 + kAheadBytes);  // one for each 64 bytes
    Vector some = {};
    Numbers<kType>(from + at * 2, some);
    *reinterpret_cast<Unaligned*>(to + at) = some;
  }
}

/*! A block's numbers: [k][kBlock]. */
inline void UnpackBlock(const Panels& panels, int64_t block, float* to) {
  const char* packed = panels.packed + block * panels.block_bytes;
  switch (panels.kind()) {
    case 0:
      return UnpackGroups<4>(panels, packed, panels.groups, to);
    case 1:
      return UnpackGroups<8>(panels, packed, panels.groups, to);
    case Panels::kBFloats:
      return UnpackNumbers<DType::kBF16>(packed, panels.attrs.k, to);
    default:
      return UnpackNumbers<DType::kF16>(packed, panels.attrs.k, to);
  }
}
