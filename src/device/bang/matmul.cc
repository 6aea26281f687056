// SPDX-License-Identifier: Apache-2.0
// Products of the matrix unit: rows in NRAM by rows of the other operand in WRAM.
//
// The operand in WRAM is what `__bang_reshape_filter` made of [N][K]: row j lies in range j % 64 (wram.h). Sums are
// kept in double and rounded once, which says nothing about how exact the device's are.
#include <vector>

#include "device/bang/call.h"
#include "device/bang/lanes.h"
#include "device/bang/wram.h"

namespace uir::bang {

namespace {

std::vector<float> Load(uint32_t type, const uint8_t* from, int64_t n) {
  std::vector<float> out(static_cast<size_t>(n));
  if (IsFloating(type)) {
    LoadReal(type, from, out.data(), n);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      out[static_cast<size_t>(i)] = static_cast<float>(LoadInteger(type, from + i * TypeBytes(type)));
    }
  }
  return out;
}

void RunMatmul(const Given& given) {
  int64_t m = given.number(0), k = given.number(1), n = given.number(2);
  int64_t left_size = given.size(1), right_size = given.size(2), size = given.size(0);
  if (!given.Positive(m, "M") || !given.Positive(k, "K") || !given.Positive(n, "N")) return;
  given.instruction.Need(k * left_size % 64 == 0 && k * right_size % 64 == 0, "size",
                         "K is " + std::to_string(k) + ": rows must be multiples of 64 bytes");
  given.instruction.Need(n % kWramRanges == 0, "size", "N is " + std::to_string(n) + ", no multiple of 64");
  Operand& left = given.Source(1, "left operand", m * k * left_size);
  Operand& right = given.instruction.Reads(given.of(2).address, kBangWram, "right operand");
  AddRanges(&right, n * k * right_size, &given.instruction);
  Operand& target = given.Target(m * n * size);
  given.NeedApart(target, left, false);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  const Device& device = machine.device;
  double rate = given.of(1).type == kBangFloat ? device.matmul_float : device.matmul_half;
  double cycles = rate > 0 ? 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / rate : 0;
  machine.counters["matmul_operations"] += 2 * m * n * k;
  given.instruction.End(cycles + (device.timed ? device.start : 0), 0, m * n * size);
  if (!machine.values) return;
  int64_t part = WramPart(), each = n / kWramRanges;
  bool known = left.Knows(0, m * k * left_size);
  for (const Range& range : right.ranges.list()) known = known && right.Knows(range.begin, range.bytes);
  if (!known) {
    return given.instruction.Fault("unwritten", "an operand has elements that hold no value that somebody wrote");
  }
  std::vector<float> a = Load(given.of(1).type, left.data, m * k), b;
  for (int64_t i = 0; i < kWramRanges; ++i) {
    std::vector<float> rows = Load(given.of(2).type, right.data + i * part, each * k);
    b.insert(b.end(), rows.begin(), rows.end());
  }
  std::vector<float> row(static_cast<size_t>(n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const float* x = a.data() + i * k;
      const float* y = b.data() + (j % kWramRanges * each + j / kWramRanges) * k;
      double sum = 0;
      for (int64_t c = 0; c < k; ++c) sum += static_cast<double>(x[c]) * y[c];
      row[static_cast<size_t>(j)] = static_cast<float>(sum);
    }
    StoreReal(given.of(0).type, target.data + i * n * size, row.data(), n);
  }
  target.Learn(0, m * n * size);
}

}  // namespace

Handler MatmulOf(const std::string& name) { return name == "matmul" ? RunMatmul : nullptr; }

}  // namespace uir::bang
