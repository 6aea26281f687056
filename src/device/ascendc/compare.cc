// SPDX-License-Identifier: Apache-2.0
// Comparisons, whose results are bits, and selections by such bits.
//
// Bits are known one by one: of a byte of a mask some may belong to elements that nobody wrote.
#include <cstring>
#include <string>

#include "device/ascendc/engine.h"
#include "device/ascendc/lanes.h"

namespace uir::ascendc {

namespace {

// In the order of CMPMODE.
enum Mode { kLess, kGreater, kEqual, kLessEqual, kGreaterEqual, kNotEqual };

template <typename T>
bool Holds(int mode, T a, T b) {
  switch (mode) {
    case kLess:
      return a < b;
    case kGreater:
      return a > b;
    case kEqual:
      return a == b;
    case kLessEqual:
      return a <= b;
    case kGreaterEqual:
      return a >= b;
    default:
      return a != b;
  }
}

/*! \brief An element as a number that compares as it does. */
double Number(const uint8_t* at, uint32_t type) {
  if (type != kUirInt32) return LoadFloat(at, type);
  int32_t value;
  std::memcpy(&value, at, 4);
  return value;
}

/*! \brief A scalar operand as the tensors' type holds it. */
double Rounded(const UirScalar& scalar, uint32_t type) {
  if (type == kUirInt32) return static_cast<double>(scalar.integer);
  return RoundedTo(type, static_cast<float>(scalar.real));
}

void SetBit(uint8_t* bytes, int64_t bit, bool value) {
  auto mask = static_cast<uint8_t>(1u << (bit % 8));
  if (value) {
    bytes[bit / 8] |= mask;
  } else {
    bytes[bit / 8] &= static_cast<uint8_t>(~mask);
  }
}
bool GetBit(const uint8_t* bytes, int64_t bit) { return bytes[bit / 8] >> (bit % 8) & 1; }

bool Comparable(uint32_t type, int mode) {
  return type == kUirFloat || type == kUirHalf || (type == kUirInt32 && mode == kEqual);
}

}  // namespace

void RunCompare(const UirVector& vector, int line) {
  Instruction instruction(vector.name, kUirV, line);
  uint32_t type = vector.src[0].type;
  auto size = static_cast<int64_t>(TypeBytes(type));
  instruction.Need(Comparable(type, vector.mode), "dtype",
                   std::string("the vector core does not compare ") + TypeName(type) + " so");
  instruction.Need(vector.dst.type == kUirUint8 || vector.dst.type == kUirInt8, "dtype", "the target holds bytes");
  if (vector.lanes.form == kUirCount) {
    instruction.Need(vector.lanes.count * size % kRepeatBytes == 0, "limit",
                     std::to_string(vector.lanes.count) + " elements are no multiple of 256 bytes");
  }
  if (instruction.faulty()) return;
  Side sides[2] = {{size, vector.src_stride[0]}, {size, vector.src_stride[1]}};
  // The strided forms take whole repeats: their mask has no effect on this chip.
  UirLanes whole = vector.lanes;
  if (whole.form != kUirCount) {
    whole.form = kUirMasked;
    whole.mask[0] = static_cast<uint64_t>(kRepeatBytes / size);
  }
  Lanes lanes = LanesOf(whole, sides, vector.sources, &instruction);
  if (instruction.faulty() || lanes.runs.empty()) return;
  Operand* sources[2] = {nullptr, nullptr};
  for (int i = 0; i < vector.sources; ++i) sources[i] = &instruction.Reads(vector.src[i], "source");
  Operand& dst = instruction.Writes(vector.dst, "target");
  dst.ranges.Add(0, lanes.repeats * lanes.per_repeat / 8);
  for (const Run& run : lanes.runs) {
    for (int i = 0; i < vector.sources; ++i) sources[i]->ranges.Add(run.at[i], run.count * size);
  }
  if (!instruction.Begin(kBlockBytes)) return;
  Cost cost = machine.device.Of(vector.sources > 1 ? "Compare" : "CompareScalar", static_cast<uint64_t>(size));
  instruction.End(cost.slope * static_cast<double>(lanes.counted), cost.start);
  if (!machine.values) return;
  double scalar = vector.has_scalar ? Rounded(vector.scalar, type) : 0;
  for (const Run& run : lanes.runs) {
    int64_t first = run.repeat * lanes.per_repeat + run.lane;
    bool all = true;
    for (int i = 0; i < vector.sources; ++i) all = all && AllKnown(sources[i]->known + run.at[i], run.count * size);
    for (int64_t e = 0; e < run.count; ++e) {
      double a = Number(sources[0]->data + run.at[0] + e * size, type);
      double b = vector.sources > 1 ? Number(sources[1]->data + run.at[1] + e * size, type) : scalar;
      bool known = all;
      for (int i = 0; i < vector.sources && !all; ++i) {
        known = AllKnown(sources[i]->known + run.at[i] + e * size, size);
        if (!known) break;
      }
      SetBit(dst.data, first + e, Holds(vector.mode, a, b));
      SetBit(dst.known, first + e, known);
    }
  }
}

void RunSelect(const UirVector& vector, const UirTensor& select, int line) {
  Instruction instruction("Select", kUirV, line);
  uint32_t type = vector.dst.type;
  auto size = static_cast<int64_t>(TypeBytes(type));
  enum { kRegister, kScalar, kTensor };  // in the order of SELMODE
  instruction.Need(type == kUirFloat || type == kUirHalf, "dtype",
                   std::string("the vector core does not select ") + TypeName(type));
  instruction.Need((vector.mode == kScalar) == (vector.sources == 1), "mode",
                   "the mode of the selection does not fit its operands");
  Side sides[3] = {{size, vector.dst_stride}, {size, vector.src_stride[0]}, {size, vector.src_stride[1]}};
  Lanes lanes = LanesOf(vector.lanes, sides, vector.sources + 1, &instruction);
  if (instruction.faulty() || lanes.runs.empty()) return;
  Operand& bits = instruction.Reads(select, "mask");
  Operand* sources[2] = {nullptr, nullptr};
  for (int i = 0; i < vector.sources; ++i) sources[i] = &instruction.Reads(vector.src[i], "source");
  Operand& dst = instruction.Writes(vector.dst, "target");
  int64_t used = vector.mode == kRegister         ? lanes.per_repeat
                 : vector.lanes.form == kUirCount ? vector.lanes.count
                                                  : lanes.repeats * lanes.per_repeat;
  bits.ranges.Add(0, (used + 7) / 8);
  for (const Run& run : lanes.runs) {
    dst.ranges.Add(run.at[0], run.count * size);
    for (int i = 0; i < vector.sources; ++i) sources[i]->ranges.Add(run.at[i + 1], run.count * size);
  }
  if (!instruction.Begin(kBlockBytes)) return;
  Cost cost = machine.device.Of("Select", static_cast<uint64_t>(size));
  instruction.End(cost.slope * static_cast<double>(lanes.counted), cost.start);
  if (!machine.values) return;
  uint8_t scalar[4];
  auto value = static_cast<float>(vector.scalar.real);
  uint16_t narrow;
  HalfOfFloat(&narrow, &value, 1);
  std::memcpy(scalar, size == 4 ? static_cast<const void*>(&value) : &narrow, static_cast<size_t>(size));
  for (const Run& run : lanes.runs) {
    for (int64_t e = 0; e < run.count; ++e) {
      int64_t bit = run.repeat * lanes.per_repeat + run.lane + e;
      if (vector.mode == kRegister) bit %= lanes.per_repeat;
      bool first = GetBit(bits.data, bit);
      const Operand* from = first ? sources[0] : sources[1];
      int64_t at = run.at[first ? 1 : 2] + e * size, to = run.at[0] + e * size;
      const uint8_t* chosen = from ? from->data + at : scalar;
      bool known = GetBit(bits.known, bit) && (!from || AllKnown(from->known + at, size));
      std::memmove(dst.data + to, chosen, static_cast<size_t>(size));
      SetKnown(dst.known + to, size, known);
    }
  }
}

}  // namespace uir::ascendc

extern "C" {

void uir_ascendc_compare(const UirVector* vector, int line) { uir::ascendc::RunCompare(*vector, line); }

void uir_ascendc_select(const UirVector* vector, const UirTensor* select, int line) {
  uir::ascendc::RunSelect(*vector, *select, line);
}

}  // extern "C"
