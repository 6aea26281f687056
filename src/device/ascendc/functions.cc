// SPDX-License-Identifier: Apache-2.0
// Functions that the vendor's library makes of several instructions: as one instruction that uses a tensor.
//
// The device's functions work in steps as large as their tensor allows; the least is one repeat for each of the values
// that they keep (documentation of the functions' temporary space).
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "device/ascendc/engine.h"
#include "device/ascendc/lanes.h"

namespace uir::ascendc {

namespace {

struct Kept {
  float (*compute)(float);
  int64_t half, floats;  // values of the operand's size that are kept for each element
  bool apart;            // source and target may not share bytes
};

const std::map<std::string, Kept>& KeptFunctions() {
  static const auto* table = new std::map<std::string, Kept>{
      {"Tanh", {std::tanh, 4, 1, true}},
      {"Erf", {std::erf, 8, 3, true}},
      {"Sin", {std::sin, 8, 3, false}},
      {"Cos", {std::cos, 8, 3, false}},
  };
  return *table;
}

void NeedApart(const Operand& a, const Operand& b, Instruction* instruction) {
  auto begin = [](const Operand& o) { return static_cast<int64_t>(o.tensor.address) + o.ranges.Begin(); };
  auto end = [](const Operand& o) { return static_cast<int64_t>(o.tensor.address) + o.ranges.End(); };
  instruction->Need(end(a) <= begin(b) || end(b) <= begin(a), "overlap",
                    std::string("the ") + a.role + " and the " + b.role + " share bytes");
}

}  // namespace

void RunFunction(const UirVector& vector, int line) {
  Instruction instruction(vector.name, kUirV, line);
  const Kept& kept = KeptFunctions().at(vector.name);
  uint32_t type = vector.dst.type;
  auto size = static_cast<int64_t>(TypeBytes(type));
  instruction.Need(type == kUirFloat || type == kUirHalf, "dtype", std::string("not of ") + TypeName(type));
  if (instruction.faulty() || vector.lanes.count <= 0) return;
  int64_t least = (type == kUirHalf ? kept.half : kept.floats) * kRepeatBytes;
  instruction.Need(
      static_cast<int64_t>(vector.work.bytes) >= least, "limit",
      "its tensor has " + std::to_string(vector.work.bytes) + " bytes; it needs at least " + std::to_string(least));
  Operand& src = instruction.Reads(vector.src[0], "source");
  Operand& work = instruction.Writes(vector.work, "work tensor");
  Operand& dst = instruction.Writes(vector.dst, "target");
  src.ranges.Add(0, vector.lanes.count * size);
  dst.ranges.Add(0, vector.lanes.count * size);
  work.ranges.Add(0, static_cast<int64_t>(vector.work.bytes));
  NeedApart(work, src, &instruction);
  NeedApart(work, dst, &instruction);
  if (kept.apart) NeedApart(dst, src, &instruction);
  if (instruction.faulty() || !instruction.Begin(kBlockBytes)) return;
  Cost cost = machine.device.Of(vector.name, static_cast<uint64_t>(size));
  instruction.End(cost.slope * static_cast<double>(vector.lanes.count), cost.start);
  if (!machine.values) return;
  for (int64_t i = 0; i < vector.lanes.count; ++i) {
    bool known = AllKnown(src.known + i * size, size);
    StoreFloat(dst.data + i * size, type, kept.compute(LoadFloat(src.data + i * size, type)));
    SetKnown(dst.known + i * size, size, known);
  }
  SetKnown(work.known, static_cast<int64_t>(vector.work.bytes), false);
}

void RunBroadcast(const UirBroadcast& broadcast, int line) {
  Instruction instruction("BroadCast", kUirV, line);
  uint32_t type = broadcast.dst.type;
  auto size = static_cast<int64_t>(TypeBytes(type));
  bool has = type == kUirFloat || type == kUirHalf || type == kUirInt8 || type == kUirUint8;
  instruction.Need(has, "dtype", std::string("not of ") + TypeName(type));
  const uint32_t *to = broadcast.dst_shape, *from = broadcast.src_shape;
  int axis = broadcast.axis + 2 - broadcast.dim;
  instruction.Need(from[axis] == 1 && from[1 - axis] == to[1 - axis], "mode",
                   "the shapes differ by more than the extent 1 of the axis");
  instruction.Need(axis == 1 || from[1] * size % kBlockBytes == 0, "misaligned",
                   "rows that are repeated take whole blocks of 32 bytes");
  if (instruction.faulty()) return;
  int64_t rows = to[0], columns = to[1];
  Operand& src = instruction.Reads(broadcast.src, "source");
  Operand& work = instruction.Writes(broadcast.work, "work tensor");
  Operand& dst = instruction.Writes(broadcast.dst, "target");
  src.ranges.Add(0, int64_t{from[0]} * from[1] * size);
  dst.ranges.Add(0, rows * columns * size);
  work.ranges.Add(0, static_cast<int64_t>(broadcast.work.bytes));
  NeedApart(dst, src, &instruction);
  NeedApart(work, src, &instruction);
  NeedApart(work, dst, &instruction);
  if (instruction.faulty() || !instruction.Begin(kBlockBytes)) return;
  Cost cost = machine.device.Of("Brcb", static_cast<uint64_t>(size));
  instruction.End(cost.slope * static_cast<double>(rows * columns), cost.start);
  if (!machine.values) return;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      int64_t at = (axis == 0 ? j : i) * size, place = (i * columns + j) * size;
      std::memcpy(dst.data + place, src.data + at, static_cast<size_t>(size));
      std::memcpy(dst.known + place, src.known + at, static_cast<size_t>(size));
    }
  }
  SetKnown(work.known, static_cast<int64_t>(broadcast.work.bytes), false);
}

}  // namespace uir::ascendc

extern "C" {

void uir_ascendc_function(const UirVector* vector, int line) { uir::ascendc::RunFunction(*vector, line); }
void uir_ascendc_broadcast(const UirBroadcast* broadcast, int line) { uir::ascendc::RunBroadcast(*broadcast, line); }

}  // extern "C"
