// SPDX-License-Identifier: Apache-2.0
// Choosing elements by masks: elements that are not zero, or bits.
#include <cstring>
#include <string>

#include "device/bang/call.h"
#include "device/bang/lanes.h"

namespace uir::bang {

namespace {

float At(uint32_t type, const Operand& operand, int64_t i) {
  float value;
  LoadReal(type, operand.data + i * TypeBytes(type), &value, 1);
  return value;
}

bool Bit(const Operand& operand, int64_t i) { return operand.data[i / 8] >> (i % 8) & 1; }

bool NeedKnown(const Given& given, const Operand& mask) {
  if (mask.Knows(0, mask.ranges.Bytes())) return true;
  given.instruction.Fault("unwritten", "the mask has elements that hold no value that somebody wrote", kBangNram);
  return false;
}

void Take(const Operand& source, const Operand& target, int64_t from, int64_t to, int64_t bytes) {
  std::memmove(target.data + to, source.data + from, static_cast<size_t>(bytes));
  std::memmove(target.known + to, source.known + from, static_cast<size_t>(bytes));
}

/*! \brief `maskmove`: a bit for each byte; `maskmove_bitindex`: a bit for each element. Others stay as they are. */
void RunMaskMove(const Given& given) {
  bool elements = given.name() == "maskmove_bitindex";
  int64_t n = given.number(0), size = given.size(0);
  if (!given.Positive(n, "the count")) return;
  int64_t unit = elements ? size : 1, count = elements ? n : n * size;
  Operand& source = given.Source(1, "source", n * size);
  Operand& mask = given.Source(2, "mask", (count + 7) / 8);
  Operand& target = given.Target(n * size);
  given.NeedApart(target, source, true);
  given.NeedApart(target, mask, false);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(n * size);
  if (!machine.values || !NeedKnown(given, mask)) return;
  for (int64_t i = 0; i < count; ++i) {
    if (Bit(mask, i)) Take(source, target, i * unit, i * unit, unit);
  }
}

/*! \brief `collect` and `filter`: the elements whose mask is not zero, side by side; `filter` answers their number. */
void RunCollect(const Given& given) {
  int64_t n = given.number(0), size = given.size(0);
  if (!given.Positive(n, "the count")) return;
  Operand& source = given.Source(1, "source", n * size);
  Operand& mask = given.Source(2, "mask", n * size);
  Operand& target = given.Target(n * size);
  given.NeedApart(target, source, true);
  given.NeedApart(target, mask, false);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(n * size);
  if (!machine.values || !NeedKnown(given, mask)) return;
  int64_t taken = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (At(given.of(2).type, mask, i) == 0) continue;
    Take(source, target, i * size, taken * size, size);
    ++taken;
  }
  // What lies behind them holds nothing to rely on.
  target.Learn(taken * size, (n - taken) * size, false);
  *given.value = static_cast<double>(taken);
}

void RunCount(const Given& given) {
  int64_t n = given.number(0), size = given.size(1);
  if (!given.Positive(n, "the count")) return;
  Operand& source = given.Source(1, "source", n * size);
  Operand& target = given.Target(4);
  if (!given.instruction.Begin()) return;
  given.End(n * size);
  if (!machine.values || !NeedKnown(given, source)) return;
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += At(given.of(1).type, source, i) != 0;
  StoreInteger(4, target.data, count);
  target.Learn(0, 4);
}

bool Compare(const std::string& how, float a, float b) {
  if (how == "lt") return a < b;
  if (how == "le") return a <= b;
  if (how == "gt") return a > b;
  if (how == "ge") return a >= b;
  return how == "eq" ? a == b : a != b;
}

/*! \brief Comparisons with a bit for each element. */
void RunBitCompare(const Given& given) {
  std::string how = given.name().substr(0, 2);
  int64_t n = given.number(0), size = given.size(0);
  if (!given.Positive(n, "the count")) return;
  given.instruction.Need(n % 8 == 0, "size", std::to_string(n) + " elements are no multiple of 8");
  Operand& a = given.Source(1, "first source", n * size);
  Operand& b = given.Source(2, "second source", n * size);
  Operand& target = given.Target(n / 8);
  if (target.data != a.data) given.NeedApart(target, a, false);
  given.NeedApart(target, b, false);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(n * size);
  if (!machine.values) return;
  for (int64_t i = 0; i < n; i += 8) {
    uint8_t bits = 0;
    bool known = a.Knows(i * size, 8 * size) && b.Knows(i * size, 8 * size);
    for (int64_t j = 0; j < 8; ++j) {
      bool holds = Compare(how, At(given.of(1).type, a, i + j), At(given.of(2).type, b, i + j));
      bits = static_cast<uint8_t>(bits | (holds ? 1 << j : 0));
    }
    target.data[i / 8] = bits;
    target.Learn(i / 8, 1, known);
  }
}

}  // namespace

Handler SelectOf(const std::string& name) {
  if (name == "maskmove" || name == "maskmove_bitindex") return RunMaskMove;
  if (name == "collect" || name == "filter") return RunCollect;
  if (name == "count") return RunCount;
  static const std::string kEnd = "_bitindex";
  bool compare = name.size() == kEnd.size() + 2 && name.compare(2, kEnd.size(), kEnd) == 0;
  return compare ? RunBitCompare : nullptr;
}

}  // namespace uir::bang
