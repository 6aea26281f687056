// SPDX-License-Identifier: Apache-2.0
// Products of four warps (wgmma): they begin when all four ask for them, and end when somebody waits.
//
// The rules are those of the PTX ISA: "Asynchronous Warpgroup Level Matrix Instructions", with the descriptor of a
// tile ("Matrix Descriptor Format"), its canonical layouts, which are also written down in CUTLASS
// (cute/atom/mma_traits_sm90_gmma.hpp), "wgmma.fence" and "Async Proxy". Sums become visible at the wait, as late as
// may be; until then nobody may touch them, change registers that the product reads, or write to its tiles. Bytes of a
// tile that were written as plain stores do need a fence_async of the thread that wrote them.
#include "device/simt/warpgroup.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "device/simt/include/uir_simt/abi.h"
#include "device/simt/include/uir_simt/narrow.h"
#include "device/simt/include/uir_simt/unwritten.h"
#include "device/simt/machine.h"

namespace uir::simt {

namespace {

using engine::Finding;

constexpr uint32_t kGroup = 4 * kWarp;
constexpr int kChunk = 16;
constexpr int kRows = 64;
/*! \brief Accesses to registers that are remembered since a fence: older ones belong to work long past. */
constexpr size_t kRemembered = 1 << 14;

/*! \brief A descriptor, decoded. */
struct Tile {
  size_t start, leading, stride;
  int chunks;  // of 16 bytes in a row of an atom: 1 (no swizzle), 2, 4 or 8
};

Tile Decode(uint64_t bits) {
  static const int kChunksOf[] = {1, 8, 4, 2};
  return {(bits & 0x3fff) << 4, (bits >> 16 & 0x3fff) << 4, (bits >> 32 & 0x3fff) << 4, kChunksOf[bits >> 62]};
}

int BytesOf(int kind) {
  if (kind == kUirMmaM16N8K16F16 || kind == kUirMmaM16N8K16Bf16) return 2;
  return kind == kUirMmaM16N8K8Tf32 ? 4 : 1;
}

/*! \brief Where 16 bytes lie that begin at element (`major`, `depth`) of a factor, `major` counting rows of a. */
size_t ChunkAt(const Tile& tile, bool across, int bytes, int major, int depth) {
  const int each = kChunk / bytes;
  const size_t row = static_cast<size_t>(tile.chunks) * kChunk;
  size_t at = tile.start;
  if (!across) {
    const auto chunk = static_cast<size_t>(depth / each);
    at += major / 8 * tile.stride + major % 8 * row + chunk * (tile.chunks == 1 ? tile.leading : kChunk);
  } else if (tile.chunks == 1) {
    at += major / each * tile.stride + depth % 8 * row + depth / 8 * tile.leading;
  } else {
    const int width = each * tile.chunks;
    at += major / width * tile.leading + major % width / each * kChunk + depth % 8 * row + depth / 8 * tile.stride;
  }
  // the chunks of 128 bytes change places with the number of those 128 bytes
  return at ^ (at >> 7 & (tile.chunks - 1)) << 4;
}

/*! \brief All chunks of `extent` rows of a (columns of b) from `first` on. */
std::vector<size_t> ChunksOf(const Tile& tile, bool across, int kind, int first, int extent) {
  const int bytes = BytesOf(kind), each = kChunk / bytes, depth = 32 / bytes;
  std::vector<size_t> out;
  for (int i = 0; i < extent; i += across ? each : 1) {
    for (int k = 0; k < depth; k += across ? 1 : each) out.push_back(ChunkAt(tile, across, bytes, first + i, k));
  }
  return out;
}

double ValueAt(const Tile& tile, bool across, int kind, int major, int depth) {
  const int bytes = BytesOf(kind), each = kChunk / bytes;
  const int whole_major = across ? major - major % each : major, whole_depth = across ? depth : depth - depth % each;
  const size_t at = ChunkAt(tile, across, bytes, whole_major, whole_depth) +
                    static_cast<size_t>((across ? major % each : depth % each) * bytes);
  if (at + bytes > machine.shared_bytes) return 0;  // reported by who asked
  uint32_t word = 0;
  std::memcpy(&word, uir_simt_pool + at, static_cast<size_t>(bytes));
  return FactorAt(kind, word, 0);
}

double RegisterAt(const Lane* lanes, int kind, int row, int depth) {
  // as mma.m16n8 has its first operand, each warp 16 rows
  const int per = 4 / BytesOf(kind), half = 4 * per;
  const Lane& lane = lanes[row / 16 * 32 + row % 8 * 4 + depth % half / per];
  const uint32_t word = static_cast<const uint32_t*>(lane.arrival.a)[row % 16 / 8 + depth / half * 2];
  return FactorAt(kind, word, depth % per);
}

/*! \brief The product of the 128 lanes, added to what their sums will hold. */
void Compute(Lane* lanes) {
  const Arrival& call = lanes[0].arrival;
  const int kind = call.kind, columns = call.width, across = call.argument, depth = 32 / BytesOf(kind);
  const Tile b = Decode(call.value);
  std::vector<double> left(static_cast<size_t>(kRows * depth)), right(static_cast<size_t>(columns * depth));
  for (int k = 0; k < depth; ++k) {
    for (int i = 0; i < kRows; ++i) {
      left[i * depth + k] =
          call.a ? RegisterAt(lanes, kind, i, k) : ValueAt(Decode(call.value_a), (across & 1) != 0, kind, i, k);
    }
    for (int j = 0; j < columns; ++j) right[j * depth + k] = ValueAt(b, (across & 2) != 0, kind, j, k);
  }
  const bool integer = kind == kUirMmaM16N8K32S8 || kind == kUirMmaM16N8K32U8;
  for (uint32_t n = 0; n < kGroup; ++n) {
    Lane& lane = lanes[n];
    auto* low = static_cast<uint32_t*>(lane.arrival.d);
    auto sums = std::find_if(lane.products.sums.begin(), lane.products.sums.end(),
                             [low](const Sums& one) { return one.low == low; });
    const int row = static_cast<int>(n / kWarp * 16 + n % kWarp / 4);
    for (int i = 0; i < columns / 2; ++i) {
      const int half = i >= columns / 4, at = i % (columns / 4);
      const double* x = &left[(row + half * 8) * depth];
      const double* y = &right[(at / 2 * 8 + static_cast<int>(n % 4) * 2 + at % 2) * depth];
      double sum = 0;
      for (int k = 0; k < depth; ++k) sum += x[k] * y[k];
      uint32_t& value = sums->values[static_cast<size_t>(i)];
      if (integer) {
        value += static_cast<uint32_t>(static_cast<int64_t>(sum));
      } else {
        value = uir_simt::bits_of(static_cast<float>(static_cast<double>(uir_simt::float_of(value)) + sum));
      }
    }
  }
  machine.counters[kWgmmas] += 1;
  machine.counters[kMmaFlops] += int64_t{2} * kRows * columns * depth;
  machine.counters[kWgmmaTileBytes] += (columns + (call.a ? 0 : kRows)) * 32;
}

bool SameProduct(const Arrival& a, const Arrival& b) {
  return a.wait == b.wait && a.kind == b.kind && a.width == b.width && a.argument == b.argument && a.value == b.value &&
         a.value_a == b.value_a && (a.a == nullptr) == (b.a == nullptr);
}

bool Overlap(uintptr_t begin, uintptr_t end, const void* from, size_t bytes) {
  auto other = reinterpret_cast<uintptr_t>(from);
  return begin < other + bytes && other < end;
}

/*! \brief Bytes of a lane's sums of rows 0 to 7, or 8 to 15. */
size_t HalfBytes(const Sums& sums) { return sums.values.size() * 2; }

/*! \brief Whether a register operand was touched since the last wgmma_fence. */
bool TouchedSince(const Products& products, const void* from, size_t bytes) {
  return std::any_of(products.accesses.begin(), products.accesses.end(),
                     [&](const Stretch& one) { return Overlap(one.begin, one.end, from, bytes); });
}

/*! \brief Whether some stretch holds all of a register operand. */
bool Held(const std::vector<Stretch>& operands, const void* from, size_t bytes) {
  auto begin = reinterpret_cast<uintptr_t>(from);
  return std::any_of(operands.begin(), operands.end(),
                     [&](const Stretch& one) { return one.begin <= begin && begin + bytes <= one.end; });
}

Stretch StretchOf(const void* from, size_t bytes) {
  auto begin = reinterpret_cast<uintptr_t>(from);
  return {begin, begin + bytes};
}

void CheckOrder(const Products& products, const void* low, const void* high, const void* a, size_t half,
                uint64_t site) {
  std::string what;
  if (!products.fenced) {
    what = "the first product of four warps follows no wgmma_fence";
  } else if (TouchedSince(products, low, half) || TouchedSince(products, high, half)) {
    what = "the sums of a product were touched after the last wgmma_fence";
  } else if (a != nullptr && TouchedSince(products, a, 16)) {
    what = "registers that a product multiplies were touched after the last wgmma_fence";
  } else if (!Held(products.operands, low, half) || !Held(products.operands, high, half)) {
    what = "the sums of a product are no operands of the wgmma_fence: a compiler may move what sets them past it";
  } else if (a != nullptr && !Held(products.operands, a, 16)) {
    what = "registers that a product multiplies are no operands of the wgmma_fence: a compiler may set them after it";
  }
  if (!what.empty()) Report(FindingAt("wgmma-fence", what, "register", site));
}

/*! \brief The registers that are written: those of a product in flight go on, others begin with what they hold. */
void OpenSums(Products* products, uint32_t* low, uint32_t* high, size_t half, uint64_t site) {
  for (Sums& one : products->sums) {
    const bool same = one.low == low && one.high == high && HalfBytes(one) == half;
    if (same) {
      ++one.products;
      return;
    }
    auto begin = reinterpret_cast<uintptr_t>(low), other = reinterpret_cast<uintptr_t>(high);
    for (const void* at : {one.low, one.high}) {
      if (!Overlap(begin, begin + half, at, HalfBytes(one)) && !Overlap(other, other + half, at, HalfBytes(one))) {
        continue;
      }
      Fail(FindingAt("wgmma-in-flight", "a product writes some of the sums that one of another shape still writes",
                     "register", site));
    }
  }
  Sums fresh{low, high, std::vector<uint32_t>(half / 2), 1};
  std::memcpy(fresh.values.data(), low, half);
  std::memcpy(fresh.values.data() + half / 4, high, half);
  products->sums.push_back(std::move(fresh));
}

/*! \brief What registers show that a product still writes: values that the model knows again. */
void Hide(Sums* sums, bool integer) {
  for (uint32_t* from : {sums->low, sums->high}) {
    const uint32_t nan = machine.unwritten.nan();
    std::fill(from, from + HalfBytes(*sums) / 4, integer ? uir_simt::unwritten_bytes(nan) : nan);
  }
}

/*! \brief Check what the lane's warp reads of shared memory, and keep others from writing there. */
void BeginReads(Product* product, uint64_t site) {
  Block& block = *machine.block;
  std::sort(product->chunks.begin(), product->chunks.end());
  for (size_t at : product->chunks) {
    CheckEngineRead(at, kChunk, site);
    ChunkState& state = block.chunks[at / kChunk];
    ++state.readers;
    if (state.writer == 0) continue;
    const uint32_t writer = state.writer - 1;
    if (block.lanes[writer].fences != state.fences) continue;
    Finding finding = FindingAt("proxy",
                                "a product reads byte " + std::to_string(at) + " of the pool, which thread " +
                                    std::to_string(writer) + " wrote without a fence_async since",
                                "shared", site);
    finding.other_thread = writer;
    finding.other_block = block.index;
    Report(finding);
  }
}

void EndReads(const Product& product) {
  Block& block = *machine.block;
  engine::Accessor me = machine.Me(product.site, 1);
  for (size_t at : product.chunks) {
    --block.chunks[at / kChunk].readers;
    block.race.Read(me, at, kChunk);  // whoever writes there must come after this wait
  }
}

}  // namespace

bool MeetInWarpgroup(Block* block) {
  bool met = false;
  for (size_t first = 0; first + kGroup <= block->lanes.size(); first += kGroup) {
    Lane* lanes = &block->lanes[first];
    bool complete = true;
    for (uint32_t n = 0; n < kGroup && complete; ++n) {
      complete = !lanes[n].done && lanes[n].arrival.wait == Wait::kWgmma;
    }
    if (!complete) continue;
    for (uint32_t n = 1; n < kGroup; ++n) {
      if (SameProduct(lanes[0].arrival, lanes[n].arrival)) continue;
      Finding finding;
      finding.kind = "wgmma-operands";
      finding.what = "the threads of four warps ask for different products, or tiles";
      finding.site = lanes[n].arrival.site;
      finding.block = finding.other_block = block->index;
      finding.thread = lanes[n].thread;
      finding.other_thread = lanes[0].thread;
      finding.other_site = lanes[0].arrival.site;
      Report(finding);
      Abort();
      return false;
    }
    Compute(lanes);
    for (uint32_t n = 0; n < kGroup; ++n) lanes[n].arrival.wait = Wait::kNone;
    met = true;
  }
  return met;
}

void CheckRegisters(uintptr_t at, uint32_t bytes, bool write, uint64_t site) {
  Products& products = machine.lane->products;
  if (products.accesses.size() >= kRemembered) {
    products.accesses.erase(products.accesses.begin(), products.accesses.begin() + kRemembered / 2);
  }
  products.accesses.push_back({at, at + bytes});
  for (const Stretch& one : products.loose) {
    if (at >= one.end || one.begin >= at + bytes) continue;
    Report(FindingAt("wgmma-wait",
                     "sums are touched that were no operands of the wgmma_wait: a compiler may move that before it",
                     "register", site));
    return;
  }
  for (const Sums& sums : products.sums) {
    if (!Overlap(at, at + bytes, sums.low, HalfBytes(sums)) && !Overlap(at, at + bytes, sums.high, HalfBytes(sums))) {
      continue;
    }
    Report(FindingAt("wgmma-in-flight", "sums are touched that a product still writes", "register", site));
    return;
  }
  for (const Product& product : products.running) {
    if (!write || product.a == nullptr || !Overlap(at, at + bytes, product.a, 16)) continue;
    Report(FindingAt("wgmma-in-flight", "registers are written that a product still reads", "register", site));
    return;
  }
}

}  // namespace uir::simt

using namespace uir::simt;  // the C functions below are this file's second half

#define UIR_SITE reinterpret_cast<uint64_t>(__builtin_return_address(0))

extern "C" {

uint64_t uir_simt_wgmma_tile(const void* first, int leading, int stride, int chunks) {
  const auto at = static_cast<const unsigned char*>(first) - uir_simt_pool;
  if (at < 0 || static_cast<size_t>(at) >= machine.shared_bytes) {
    Fail(FindingAt("out-of-bounds", "a tile of a product begins in no shared memory of the block", "shared", UIR_SITE));
  }
  for (int64_t value : {static_cast<int64_t>(at), static_cast<int64_t>(leading), static_cast<int64_t>(stride)}) {
    if (value >= 0 && value % kChunk == 0 && value < 1 << 18) continue;
    Fail(FindingAt("misaligned",
                   "the descriptor of a tile holds multiples of 16 bytes below 256 Ki, not " + std::to_string(value),
                   "shared", UIR_SITE));
  }
  const uint64_t layout = chunks == 8 ? 1 : chunks == 4 ? 2 : chunks == 2 ? 3 : 0;
  return static_cast<uint64_t>(at) >> 4 | static_cast<uint64_t>(leading) >> 4 << 16 |
         static_cast<uint64_t>(stride) >> 4 << 32 | layout << 62;
}

void uir_simt_wgmma(int kind, int columns, int across, void* low, void* high, const uint32_t* a, uint64_t a_tile,
                    uint64_t b_tile) {
  const uint64_t site = UIR_SITE;
  CheckPendingWrite();
  machine.has_products = true;
  Products& products = machine.lane->products;
  const size_t half = static_cast<size_t>(columns);  // bytes: a quarter of the columns, 4 bytes each
  auto* sums = static_cast<uint32_t*>(low);
  CheckOrder(products, low, high, a, half, site);
  OpenSums(&products, sums, static_cast<uint32_t*>(high), half, site);
  Product product{sums, a, {}, site};
  if (machine.LaneOf() == 0) {
    const auto warp = static_cast<int>(machine.lane->thread % kGroup / kWarp);
    product.chunks = ChunksOf(Decode(b_tile), (across & 2) != 0, kind, 0, columns);
    if (a == nullptr) {
      auto own = ChunksOf(Decode(a_tile), (across & 1) != 0, kind, 16 * warp, 16);
      product.chunks.insert(product.chunks.end(), own.begin(), own.end());
    }
    BeginReads(&product, site);
  }
  products.running.push_back(std::move(product));
  ++products.open;
  Arrival arrival;
  arrival.wait = Wait::kWgmma;
  arrival.kind = kind;
  arrival.width = columns;
  arrival.argument = across;
  arrival.site = site;
  arrival.value = b_tile;
  arrival.value_a = a_tile;
  arrival.d = low;
  arrival.a = a;
  WaitFor(arrival);
  for (Sums& one : products.sums) {
    if (one.low == sums) Hide(&one, kind == kUirMmaM16N8K32S8 || kind == kUirMmaM16N8K32U8);
  }
}

void uir_simt_wgmma_fence(void) {
  CheckPendingWrite();
  machine.has_products = true;
  Products& products = machine.lane->products;
  products.fenced = true;
  if (!products.accesses.empty() || !products.running.empty()) products.operands.clear();
  products.accesses.clear();
}

void uir_simt_wgmma_operand(const void* first, size_t bytes) {
  Products& products = machine.lane->products;
  const Stretch held = StretchOf(first, bytes);
  products.operands.push_back(held);
  products.loose.erase(
      std::remove_if(products.loose.begin(), products.loose.end(),
                     [&](const Stretch& one) { return held.begin <= one.begin && one.end <= held.end; }),
      products.loose.end());
}

void uir_simt_wgmma_commit(void) {
  CheckPendingWrite();
  Products& products = machine.lane->products;
  products.groups.push_back(products.open);
  products.open = 0;
}

void uir_simt_wgmma_wait(int groups) {
  CheckPendingWrite();
  Products& products = machine.lane->products;
  while (products.groups.size() > static_cast<size_t>(groups)) {
    for (size_t left = products.groups.front(); left > 0; --left) {
      const Product product = std::move(products.running.front());
      products.running.erase(products.running.begin());
      EndReads(product);
      auto sums = std::find_if(products.sums.begin(), products.sums.end(),
                               [&](const Sums& one) { return one.low == product.low; });
      if (--sums->products > 0) continue;
      std::memcpy(sums->low, sums->values.data(), HalfBytes(*sums));
      std::memcpy(sums->high, sums->values.data() + sums->values.size() / 2, HalfBytes(*sums));
      for (const void* half : {sums->low, sums->high}) products.loose.push_back(StretchOf(half, HalfBytes(*sums)));
      products.sums.erase(sums);
    }
    products.groups.erase(products.groups.begin());
  }
}

}  // extern "C"
