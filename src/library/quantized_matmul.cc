// SPDX-License-Identifier: Apache-2.0
// Products with a weight of few bits: blocks of 16 outputs by rows of x, on the threads of the pool.

#include "library/quantized_matmul.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_WIDTHS 1
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/rounding.h"
#include "library/dtype.h"
#include "library/parallel.h"
#include "library/quantized_layout.h"
#include "library/tile_product.h"

namespace uir::library {
namespace {

//! What one more thread must save to pay, in bytes of weight and in multiply-adds.
constexpr double kWorthBytes = 96e3, kWorthProducts = 300e3;

using Function = void (*)(const Panels&, const Operands&, int64_t row, int64_t rows, Range blocks);
using ByteFunction = void (*)(const Panels&, const Operands&, const ByteRow*, int64_t row, Range blocks);
using MakeFunction = bool (*)(const float* x, int64_t groups, int64_t length, int8_t*, float* factors, float* totals);

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
constexpr Tile kTiles[] = {{1, {OneRow<4>, OneRow<8>, HalfRow}},
                           TileOf<1>(),
                           TileOf<2>(),
                           TileOf<3>(),
                           TileOf<4>(),
                           TileOf<6>(),
                           TileOf<8>(),
                           TileOf<12>(),
                           TileOf<16>(),
                           TileOf<20>(),
                           TileOf<24>()};
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
constexpr ByteTile kBytes[] = {ByteTileOf<1>(), ByteTileOf<2>(), ByteTileOf<4>()};
constexpr Tile kTiles[] = {
    {1, {OneRow<4>, OneRow<8>, HalfRow}}, TileOf<1>(), TileOf<2>(), TileOf<3>(), TileOf<4>(), TileOf<5>()};
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
constexpr Tile kTiles[] = {{1, {OneRow<4>, OneRow<8>, HalfRow}}, TileOf<1>(), TileOf<2>()};
}  // namespace any

#ifdef UIR_WIDTHS
/*! AVX-VNNI, which is not AVX512's; GCC 12 has no word for it. */
bool HasAvxVnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
#endif

/*! What this CPU computes with. */
struct Kernels {
  const char* name;
  std::vector<std::pair<int, Function>> tiles[3];  // by `Panels::kind`: rows, function
  std::vector<std::pair<int, ByteFunction>> bytes[2];
  MakeFunction make_bytes;
  bool digits = false, on_tiles = false;

  template <typename Tile, size_t kCount, typename ByteTile, size_t kByteCount>
  Kernels(const char* given, const Tile (&table)[kCount], const ByteTile (&byte_table)[kByteCount], MakeFunction make,
          bool has_digits = false)
      : name(given), make_bytes(make), digits(has_digits) {
    for (int kind = 0; kind < 3; ++kind) {
      for (const Tile& tile : table) tiles[kind].push_back({tile.rows, tile.run[kind]});
    }
    for (int wide = 0; wide < 2; ++wide) {
      for (const ByteTile& tile : byte_table) bytes[wide].push_back({tile.rows, tile.run[wide]});
    }
  }

  /*! From the best on, those of this CPU. */
  static const std::vector<Kernels>& All() {
    static const std::vector<Kernels>* all = [] {
      auto* found = new std::vector<Kernels>();
#ifdef UIR_WIDTHS
      if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
        if (__builtin_cpu_supports("avx512vnni")) {
          if (HasTiles()) {
            found->emplace_back("amx_bf16", avx512::kTiles, vnni::kBytes, vnni::MakeBytes, true);
            found->back().on_tiles = true;
          }
          found->emplace_back("avx512_vnni", avx512::kTiles, vnni::kBytes, vnni::MakeBytes, true);
        }
        found->emplace_back("avx512", avx512::kTiles, avx2::kBytes, avx2::MakeBytes);
      }
      if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
        if (HasAvxVnni()) found->emplace_back("avx_vnni", avx2::kTiles, avxvnni::kBytes, avx2::MakeBytes);
        found->emplace_back("avx2", avx2::kTiles, avx2::kBytes, avx2::MakeBytes);
      }
#endif
      found->emplace_back("any", any::kTiles, any::kBytes, any::MakeBytes);
      return found;
    }();
    return *all;
  }
};

/*! Which of `Kernels::All` computes. */
std::atomic<int> chosen{0};

/*! Threads that pay for so many rows. */
int Tasks(const Panels& panels, int64_t rows, int threads) {
  const double bytes = static_cast<double>(panels.blocks()) * static_cast<double>(panels.block_bytes);
  const double products =
      static_cast<double>(rows) * static_cast<double>(panels.attrs.n) * static_cast<double>(panels.attrs.k);
  const double most = std::max(bytes / kWorthBytes, products / kWorthProducts);
  return static_cast<int>(std::max<double>(1, std::min({most, double(threads), double(panels.blocks())})));
}

/*! Of 8 bits, in which both sides are read on tiles: two of float16 are exact. */
int Pieces(const Quantization& weight) { return weight.bits == 16 ? 2 : static_cast<int>(weight.digits); }

/*! The rows of one batch index of x, and where they go. */
struct Batch {
  const float* x;
  int64_t row, column;
  Operands to;
};

//! Few rows by dot products of bytes; false where these rows have no digits.
bool RunDigits(const Panels& panels, const Batch& batch, int64_t rows, int threads) {
#ifdef UIR_WIDTHS
  const int64_t k = panels.attrs.k, groups = panels.groups;
  constexpr int kMost = 4;
  const size_t row_bytes = RoundUp(3 * k + 64, 64) + 2 * groups * sizeof(float);
  char* scratch = ThreadScratch(0, rows * row_bytes);
  vnni::Digits digits[kMost];
  for (int64_t row = 0; row < rows; ++row) {
    char* here = scratch + row * row_bytes;
    for (int place = 0; place < 3; ++place) digits[row].places[place] = reinterpret_cast<int8_t*>(here + place * k);
    digits[row].powers = reinterpret_cast<float*>(here + RoundUp(3 * k + 64, 64));
    digits[row].totals = digits[row].powers + groups;
    if (!vnni::MakeDigits(batch.x + row * batch.row, groups, panels.attrs.weight.group, digits[row])) return false;
  }
  const int tasks = Tasks(panels, rows, threads);
  ParallelRun(tasks, [&](int task) {
    vnni::kDigitRows[rows - 1](panels, batch.to, digits, 0, Part(panels.blocks(), 1, tasks, task));
  });
  return true;
#else
  return false;
#endif
}

/*! Whether `RunDigits` is for such a product. */
bool FewRows(const Kernels& kernels, const Panels& panels, const Batch& batch, int64_t rows) {
  const Quantization& weight = panels.attrs.weight;
  return kernels.digits && weight.bits == 4 && rows <= 4 && batch.column == 1 && weight.group % 16 == 0 &&
         weight.group <= 1024;
}

//! x in bytes, where the attributes ask for it; false where a group has no such bytes.
bool RunBytes(const Kernels& kernels, const Panels& panels, const Batch& batch, int64_t rows, int threads) {
  const int64_t k = panels.attrs.k, groups = panels.groups;
  if (panels.attrs.weight.digits != 1 || batch.column != 1) return false;
  const size_t row_bytes = RoundUp(k, 64) + RoundUp(2 * groups * sizeof(float), 64);
  char* scratch = ThreadScratch(0, rows * (row_bytes + sizeof(ByteRow)));
  auto* x = reinterpret_cast<ByteRow*>(scratch + rows * row_bytes);
  const int tasks = Tasks(panels, rows, threads);
  const int making = static_cast<int>(rows * k > 1 << 16 ? std::min<int64_t>(tasks, rows) : 1);
  std::atomic<bool> all{true};
  ParallelRun(making, [&](int task) {
    const Range part = Part(rows, 1, making, task);
    for (int64_t row = part.begin; row < part.begin + part.size; ++row) {
      auto* bytes = reinterpret_cast<int8_t*>(scratch + row * row_bytes);
      auto* factors = reinterpret_cast<float*>(scratch + row * row_bytes + RoundUp(k, 64));
      x[row] = {bytes, factors, factors + groups};
      if (!kernels.make_bytes(batch.x + row * batch.row, groups, panels.attrs.weight.group, bytes, factors,
                              factors + groups)) {
        all = false;
      }
    }
  });
  if (!all) return false;
  const auto& tiles = kernels.bytes[panels.attrs.weight.bits == 8];
  ParallelRun(tasks, [&](int task) {
    const Range blocks = Part(panels.blocks(), 1, tasks, task);
    for (int64_t row = 0; row < rows;) {
      auto tile = tiles.rbegin();
      while (tile->first > rows - row) ++tile;
      tile->second(panels, batch.to, x + row, row, blocks);
      row += tile->first;
    }
  });
  return true;
}

/*! x of some rows as [k, wide], zeros beyond the rows. */
void Gather(const Batch& batch, int64_t row, int64_t rows, int64_t wide, int64_t k, float* to) {
  const float* from = batch.x + row * batch.row;
  for (int64_t j = 0; j < k; ++j) {
    for (int64_t r = 0; r < rows; ++r) to[j * wide + r] = from[r * batch.row + j * batch.column];
    for (int64_t r = rows; r < wide; ++r) to[j * wide + r] = 0.0f;
  }
}

/*! Sums of the groups of a row; false where one is not finite. */
bool Totals(const Panels& panels, const float* x, float* totals) {
  float largest = 0.0f;
  for (int64_t group = 0; group < panels.groups; ++group) {
    float parts[4] = {};
    for (int64_t j = 0; j < panels.attrs.weight.group; j += 4, x += 4) {
      for (int part = 0; part < 4; ++part) parts[part] += x[part];
    }
    totals[group] = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    largest += std::fabs(totals[group]);
  }
  return std::isfinite(largest);
}

void RunRows(const Kernels& kernels, const Panels& panels, Batch batch, int64_t rows, int threads) {
  const int64_t k = panels.attrs.k, groups = panels.groups;
  const auto& tiles = kernels.tiles[panels.kind()];
  const int64_t count = CeilDiv(rows, tiles.back().first), each = CeilDiv(rows, count);
  auto tile = std::find_if(tiles.begin(), tiles.end(), [&](const auto& one) { return one.first >= each; });
  const int64_t wide = tile->first;
  const bool as_it_lies = wide == 1 && batch.column == 1;
  float* totals = reinterpret_cast<float*>(ThreadScratch(1, groups * sizeof(float)));
  float* x = as_it_lies ? nullptr : reinterpret_cast<float*>(ThreadScratch(0, count * k * wide * sizeof(float)));
  const int tasks = Tasks(panels, rows, threads);
  auto gather = [&](int64_t number) {
    const int64_t row = number * each;
    Gather(batch, row, std::min(each, rows - row), wide, k, x + number * k * wide);
  };
  if (!as_it_lies) {
    const int gathering = static_cast<int>(std::min<int64_t>(rows * k > 1 << 16 ? tasks : 1, count));
    ParallelRun(gathering, [&](int task) {
      const Range part = Part(count, 1, gathering, task);
      for (int64_t number = part.begin; number < part.begin + part.size; ++number) gather(number);
    });
  }
  const float* first = as_it_lies ? batch.x : x;
  // Of two tiles of one row the first sums codes, which is right of finite numbers alone.
  if (wide == 1 && !Totals(panels, first, totals)) ++tile;
  batch.to.totals = totals;
  ParallelRun(tasks, [&](int task) {
    const Range blocks = Part(panels.blocks(), 1, tasks, task);
    Operands to = batch.to;
    for (int64_t number = 0; number < count; ++number) {
      const int64_t row = number * each;
      to.x = first + number * k * wide;
      tile->second(panels, to, row, std::min(each, rows - row), blocks);
    }
  });
}

/*! The code of value (row, k). */
uint32_t CodeAt(const MatmulAttrs& attrs, const uint8_t* codes, int64_t row, int64_t k) {
  const Quantization& weight = attrs.weight;
  if (weight.bits == 8) return codes[row * attrs.k + k];
  const int64_t group = k / weight.group, at = k % weight.group, half = weight.group / 2;
  const uint8_t byte = codes[(row * attrs.k + group * weight.group) / 2 + at % half];
  return at < half ? byte & 15u : byte >> 4;
}

}  // namespace

int64_t QuantizedBytes(const MatmulAttrs& attrs) {
  const Panels panels(attrs, nullptr);
  return panels.blocks() * panels.block_bytes;
}

void PackQuantized(const MatmulAttrs& attrs, const char* codes, const char* scales, const char* offsets, char* packed) {
  const Panels panels(attrs, packed);
  const int64_t width = panels.half ? 2 : 4;
  const int per_word = static_cast<int>(32 / attrs.weight.bits);
  std::memset(packed, 0, QuantizedBytes(attrs));
  for (int64_t row = 0; row < attrs.n; ++row) {
    char* block = packed + row / kBlock * panels.block_bytes;
    const int64_t lane = row % kBlock;
    for (int64_t group = 0; group < panels.groups; ++group, block += panels.group_bytes) {
      for (int64_t word = 0; word < panels.words; ++word) {
        const int64_t k = group * attrs.weight.group + word * per_word;
        uint32_t bits = 0;
        for (int at = 0; at < per_word; ++at) {
          const int place = attrs.weight.bits == 8 ? at : Place<4>(at);
          bits |= CodeAt(attrs, reinterpret_cast<const uint8_t*>(codes), row, k + place) << (at * attrs.weight.bits);
        }
        std::memcpy(block + (word * kBlock + lane) * 4, &bits, 4);
      }
      char* to = block + panels.code_bytes + lane * width;
      std::memcpy(to, scales + (row * panels.groups + group) * width, width);
      if (offsets) std::memcpy(to + panels.scale_bytes, offsets + (row * panels.groups + group) * width, width);
    }
  }
}

std::vector<std::string> QuantizedVectors() {
  std::vector<std::string> names;
  for (const Kernels& kernels : Kernels::All()) names.push_back(kernels.name);
  return names;
}

bool SetQuantizedVectors(const std::string& name) {
  const std::vector<std::string> names = QuantizedVectors();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return false;
  chosen = static_cast<int>(found - names.begin());
  return true;
}

void RunQuantized(const MatmulAttrs& attrs, const MatmulData& data, int threads) {
  const Panels panels(attrs, data.b);
  const Kernels& kernels = Kernels::All()[chosen];
  const size_t rank = attrs.batch.size();
  for (int64_t index = 0; index < attrs.batch_count(); ++index) {
    int64_t rest = index, a = attrs.a.offset, out = attrs.out.offset;
    for (size_t d = rank; d-- > 0; rest /= attrs.batch[d]) {
      a += rest % attrs.batch[d] * attrs.a.strides[d];
      out += rest % attrs.batch[d] * attrs.out.strides[d];
    }
    Batch batch;
    batch.x = reinterpret_cast<const float*>(data.a) + a;
    batch.row = attrs.a.strides[rank], batch.column = attrs.a.strides[rank + 1];
    batch.to = {nullptr,
                nullptr,
                reinterpret_cast<const float*>(data.bias),
                nullptr,
                reinterpret_cast<float*>(data.out) + out,
                attrs.out.strides[rank],
                attrs.out.strides[rank + 1]};
    if (data.residual) batch.to.residual = reinterpret_cast<const float*>(data.residual) + out;
    if (kernels.on_tiles && attrs.m >= kTiledRows && batch.column == 1 &&
        RunTiles(panels, batch.to, batch.x, batch.row, attrs.m, Pieces(attrs.weight),
                 Tasks(panels, attrs.m, threads))) {
      continue;
    }
    if (RunBytes(kernels, panels, batch, attrs.m, threads)) continue;
    if (FewRows(kernels, panels, batch, attrs.m) && RunDigits(panels, batch, attrs.m, threads)) continue;
    RunRows(kernels, panels, batch, attrs.m, threads);
  }
}

}  // namespace uir::library
