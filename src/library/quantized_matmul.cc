// SPDX-License-Identifier: Apache-2.0
// Products with a weight of few bits: blocks of 16 outputs by rows of x, on the threads of the pool.

#include "library/quantized_matmul.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/rounding.h"
#include "library/dtype.h"
#include "library/parallel.h"
#include "library/quantized_kernels.h"
#include "library/quantized_layout.h"
#include "library/tile_product.h"
#include "library/unpacked_panels.h"

namespace uir::library {
namespace {

//! What one more thread must save to pay, in bytes of weight and in multiply-adds.
constexpr double kWorthBytes = 96e3, kWorthProducts = 300e3;
//! Rows that are written as digits at most.
constexpr int kDigitRows = 4;

/*! Which of `QuantizedKernels::All` computes. */
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
bool RunDigits(const QuantizedKernels& kernels, const Panels& panels, const Batch& batch, int64_t rows, int threads) {
  const int64_t k = panels.attrs.k, groups = panels.groups;
  const size_t row_bytes = RoundUp(3 * k + 64, 64) + 2 * groups * sizeof(float);
  char* scratch = ThreadScratch(0, rows * row_bytes);
  std::array<Digits, kDigitRows> digits;
  for (int64_t row = 0; row < rows; ++row) {
    char* here = scratch + row * row_bytes;
    for (int place = 0; place < 3; ++place) digits[row].places[place] = reinterpret_cast<int8_t*>(here + place * k);
    digits[row].powers = reinterpret_cast<float*>(here + RoundUp(3 * k + 64, 64));
    digits[row].totals = digits[row].powers + groups;
    if (!kernels.make_digits(batch.x + row * batch.row, groups, panels.attrs.weight.group, digits[row])) return false;
  }
  const int tasks = Tasks(panels, rows, threads);
  ParallelRun(tasks, [&](int task) {
    kernels.digits[rows - 1](panels, batch.to, digits.data(), 0, Part(panels.blocks(), 1, tasks, task));
  });
  return true;
}

/*! Whether `RunDigits` is for such a product. */
bool FewRows(const QuantizedKernels& kernels, const Panels& panels, const Batch& batch, int64_t rows) {
  const Quantization& weight = panels.attrs.weight;
  const auto most = static_cast<int64_t>(std::min<size_t>(kernels.digits.size(), kDigitRows));
  return weight.bits == 4 && rows <= most && batch.column == 1 && weight.group % 16 == 0 && weight.group <= 1024;
}

//! Many rows by a weight that is unpacked for all of them; false where these are not.
bool RunUnpacked(const QuantizedKernels& kernels, const Panels& panels, const Batch& batch, int64_t rows, int threads) {
  if (!kernels.unpack || rows <= kernels.tiles[panels.kind()].back().first) return false;
  const PlainRows x{batch.x, batch.row, batch.column};
  return RunUnpackedPanels(kernels, panels, x, batch.to, rows, Tasks(panels, rows, threads));
}

//! x in bytes, where the attributes ask for it; false where a group has no such bytes.
bool RunBytes(const QuantizedKernels& kernels, const Panels& panels, const Batch& batch, int64_t rows, int threads) {
  const int64_t k = panels.attrs.k, groups = panels.groups;
  if (panels.attrs.weight.digits != 1 || batch.column != 1) return false;
  const size_t digit_bytes = RoundUp(k, 64);
  const size_t row_bytes = 2 * digit_bytes + RoundUp(groups * (2 * sizeof(float) + 1), 64);
  char* scratch = ThreadScratch(0, rows * (row_bytes + sizeof(ByteRow)));
  auto* x = reinterpret_cast<ByteRow*>(scratch + rows * row_bytes);
  const int tasks = Tasks(panels, rows, threads);
  const int making = static_cast<int>(rows * k > 1 << 16 ? std::min<int64_t>(tasks, rows) : 1);
  std::atomic<bool> all{true};
  ParallelRun(making, [&](int task) {
    const Range part = Part(rows, 1, making, task);
    for (int64_t row = part.begin; row < part.begin + part.size; ++row) {
      char* here = scratch + row * row_bytes;
      auto* digits = reinterpret_cast<int8_t*>(here);
      auto* factors = reinterpret_cast<float*>(here + 2 * digit_bytes);
      auto* fine = reinterpret_cast<uint8_t*>(factors + 2 * groups);
      x[row] = {digits, digits + digit_bytes, factors, factors + groups, fine};
      if (!kernels.make_bytes(batch.x + row * batch.row, groups, panels.attrs.weight.group, x[row])) all = false;
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

void RunRows(const QuantizedKernels& kernels, const Panels& panels, Batch batch, int64_t rows, int threads) {
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
  for (const QuantizedKernels& kernels : QuantizedKernels::All()) names.push_back(kernels.name);
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
  const QuantizedKernels& kernels = QuantizedKernels::All()[chosen];
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
    if (kernels.on_tiles && panels.kind() != Panels::kBFloats && attrs.m >= kTiledRows && batch.column == 1 &&
        RunTiles(panels, batch.to, batch.x, batch.row, attrs.m, Pieces(attrs.weight),
                 Tasks(panels, attrs.m, threads))) {
      continue;
    }
    if (RunBytes(kernels, panels, batch, attrs.m, threads)) continue;
    if (FewRows(kernels, panels, batch, attrs.m) && RunDigits(kernels, panels, batch, attrs.m, threads)) continue;
    if (RunUnpacked(kernels, panels, batch, attrs.m, threads)) continue;
    RunRows(kernels, panels, batch, attrs.m, threads);
  }
}

}  // namespace uir::library
