// SPDX-License-Identifier: Apache-2.0
// The loops of products with a weight of few bits, compiled for every width, and which of them this CPU has.

#include "library/quantized_kernels.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_WIDTHS 1
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/rounding.h"
#include "library/cpu_features.h"
#include "library/dtype.h"
#include "library/tile_product.h"

namespace uir::library {
namespace {

using Function = QuantizedKernels::Rows;
using ByteFunction = QuantizedKernels::Bytes;

#ifdef UIR_WIDTHS
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,fma,f16c")
#define UIR_VECTORS 512
#define UIR_BYTES 1
namespace vnni {
constexpr int kLanes = 16;
#include "library/quantized_panels.h"
//
#include "library/quantized_bytes.h"
//
#include "library/quantized_digits.h"
constexpr ByteTile kBytes[] = {ByteTileOf<1>(), ByteTileOf<2>(), ByteTileOf<4>(), ByteTileOf<8>()};
}  // namespace vnni
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma,f16c")
namespace avx512 {
constexpr int kLanes = 16;
#include "library/quantized_panels.h"
//
#include "library/quantized_rows.h"
//
#include "library/quantized_unpacked.h"
constexpr Tile kTiles[] = {OneRowTile(), TileOf<1>(),  TileOf<2>(),  TileOf<3>(),  TileOf<4>(), TileOf<6>(),
                           TileOf<8>(),  TileOf<12>(), TileOf<16>(), TileOf<20>(), TileOf<24>()};
}  // namespace avx512
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,avxvnni,fma,f16c")
#undef UIR_VECTORS
#define UIR_VECTORS 256
namespace avxvnni {
constexpr int kLanes = 8;
#include "library/quantized_panels.h"
//
#include "library/quantized_bytes.h"
constexpr ByteTile kBytes[] = {ByteTileOf<1>(), ByteTileOf<2>(), ByteTileOf<4>()};
}  // namespace avxvnni
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#undef UIR_BYTES
#define UIR_BYTES 0
namespace avx2 {
constexpr int kLanes = 8;
#include "library/quantized_panels.h"
//
#include "library/quantized_bytes.h"
//
#include "library/quantized_rows.h"
//
#include "library/quantized_pairs.h"
//
#include "library/quantized_unpacked.h"
constexpr ByteTile kBytes[] = {ByteTileOf<1>(), ByteTileOf<2>(), ByteTileOf<4>()};
constexpr Tile kTiles[] = {OneRowTile(), TileOf<1>(), TileOf<2>(), TileOf<3>(), TileOf<4>(), TileOf<5>()};
}  // namespace avx2
#pragma GCC pop_options
#endif
#undef UIR_VECTORS
#undef UIR_BYTES
#define UIR_VECTORS 0
#define UIR_BYTES 0
namespace any {
constexpr int kLanes = 4;
#include "library/quantized_panels.h"
//
#include "library/quantized_bytes.h"
//
#include "library/quantized_rows.h"
constexpr ByteTile kBytes[] = {ByteTileOf<1>(), ByteTileOf<2>()};
constexpr Tile kTiles[] = {OneRowTile(), TileOf<1>(), TileOf<2>()};
}  // namespace any

#ifdef UIR_WIDTHS
/*! AVX-VNNI, which is not AVX512's; GCC 12 has no word for it. */
bool HasAvxVnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
#endif

/*! The tables of one set of instructions. */
template <typename Tile, size_t kCount, typename ByteTile, size_t kByteCount>
QuantizedKernels Made(const char* name, const Tile (&table)[kCount], const ByteTile (&byte_table)[kByteCount],
                      decltype(QuantizedKernels::make_bytes) make_bytes) {
  QuantizedKernels made{};
  made.name = name, made.make_bytes = make_bytes;
  for (int kind = 0; kind < Panels::kKinds; ++kind) {
    for (const Tile& tile : table) made.tiles[kind].push_back({tile.rows, tile.run[kind]});
  }
  for (int wide = 0; wide < 2; ++wide) {
    for (const ByteTile& tile : byte_table) made.bytes[wide].push_back({tile.rows, tile.run[wide]});
  }
  return made;
}

}  // namespace

const std::vector<QuantizedKernels>& QuantizedKernels::All() {
  static const std::vector<QuantizedKernels>* all = [] {
    auto* found = new std::vector<QuantizedKernels>();
#ifdef UIR_WIDTHS
    if (HasAvx512()) {
      if (__builtin_cpu_supports("avx512vnni")) {
        QuantizedKernels made = Made("avx512_vnni", avx512::kTiles, vnni::kBytes, vnni::MakeBytes);
        made.digits.assign(std::begin(vnni::kDigitRows), std::end(vnni::kDigitRows));
        made.make_digits = vnni::MakeDigits;
        made.unpack = avx512::UnpackBlock;
        if (HasTiles()) {
          found->push_back(made);
          found->back().name = "amx_bf16", found->back().on_tiles = true;
        }
        found->push_back(made);
      }
      found->push_back(Made("avx512", avx512::kTiles, avx2::kBytes, avx2::MakeBytes));
      found->back().unpack = avx512::UnpackBlock;
    }
    if (HasAvx2() && __builtin_cpu_supports("f16c")) {
      QuantizedKernels made = Made("avx2", avx2::kTiles, avx2::kBytes, avx2::MakeBytes);
      made.digits = {avx2::DigitRow};  // of two rows SomeRows is faster
      made.make_digits = avx2::MakeDigits;
      made.unpack = avx2::UnpackBlock;
      if (HasAvxVnni()) {
        found->push_back(made);
        QuantizedKernels& vnni = found->back();
        vnni.name = "avx_vnni";
        for (int wide = 0; wide < 2; ++wide) {
          vnni.bytes[wide].clear();
          for (const auto& tile : avxvnni::kBytes) vnni.bytes[wide].push_back({tile.rows, tile.run[wide]});
        }
      }
      found->push_back(made);
    }
#endif
    found->push_back(Made("any", any::kTiles, any::kBytes, any::MakeBytes));
    return found;
  }();
  return *all;
}

}  // namespace uir::library
