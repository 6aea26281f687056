// SPDX-License-Identifier: Apache-2.0
// Vector functions element by element.
#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "device/ascendc/engine.h"
#include "device/ascendc/lanes.h"
#include "device/ascendc/loops.h"

namespace uir::ascendc {

namespace {

/*! \brief Known bits of a target whose elements depend on elements of the sources. */
void PropagateKnown(const Run& run, Operand* dst, Operand* const* sources, const Side* sides, int count) {
  bool all = true;
  for (int i = 0; i < count; ++i) {
    all = all && AllKnown(sources[i]->known + run.at[i + 1], run.count * sides[i + 1].size);
  }
  uint8_t* into = dst->known + run.at[0];
  int64_t size = sides[0].size;
  if (all) return SetKnown(into, run.count * size);
  for (int64_t e = 0; e < run.count; ++e) {
    bool known = true;
    for (int i = 0; i < count; ++i) {
      known = known && AllKnown(sources[i]->known + run.at[i + 1] + e * sides[i + 1].size, sides[i + 1].size);
    }
    SetKnown(into + e * size, size, known);
  }
}

/*! \brief Source and target are the same elements or share no byte, and no repeat reads what another writes. */
void CheckOverlap(const UirVector& vector, int source, const Operand& dst, const Operand& src, const Side& to,
                  const Side& from, Instruction* instruction) {
  if (src.tensor.memory != dst.tensor.memory) return;
  auto begin = [](const Operand& o) { return static_cast<int64_t>(o.tensor.address) + o.ranges.Begin(); };
  auto end = [](const Operand& o) { return static_cast<int64_t>(o.tensor.address) + o.ranges.End(); };
  if (end(src) <= begin(dst) || end(dst) <= begin(src)) return;
  bool same =
      src.tensor.address == dst.tensor.address && to.size == from.size &&
      (vector.lanes.form == kUirCount ||
       (to.stride.block == from.stride.block && (to.stride.repeat == from.stride.repeat || vector.lanes.repeat <= 1)));
  if (same && vector.lanes.form != kUirCount && vector.lanes.repeat > 1 && to.stride.repeat == 0) {
    // Every repeat reads what the one before wrote; these functions do so when it is their second source.
    static const std::set<std::string> kAccumulate = {"Add", "Sub", "Mul", "Max", "Min"};
    instruction->Need(source == 1 && kAccumulate.count(vector.name) && vector.dst.type != kUirInt16, "overlap",
                      "a repeat reads what the one before it wrote");
    return;
  }
  if (same) return;
  // The hulls meet; the bytes may still be apart.
  int64_t shift = static_cast<int64_t>(src.tensor.address) - static_cast<int64_t>(dst.tensor.address);
  for (const Range& r : src.ranges.list()) {
    for (const Range& w : dst.ranges.list()) {
      if (r.begin + shift < w.begin + w.bytes && w.begin < r.begin + shift + r.bytes) {
        instruction->Fault("overlap", "source and target share some bytes but are not the same elements",
                           dst.tensor.memory);
        return;
      }
    }
  }
}

}  // namespace

void RunVector(const UirVector& vector, int line) {
  Instruction instruction(vector.name, kUirV, line);
  std::string name = vector.name;
  bool cast = name == "Cast";
  Function function;
  if (cast) {
    function.loop = CastOf(vector.src[0].type, vector.dst.type, vector.mode);
  } else {
    function = FunctionOf(name, vector.dst.type);
    for (int i = 0; i < vector.sources; ++i) {
      if (vector.src[i].type != vector.dst.type) function.loop = nullptr;
    }
  }
  if (!function.loop) {
    std::string types = TypeName(vector.dst.type);
    if (cast) {
      types = std::string(TypeName(vector.src[0].type)) + " to " + types + " with rounding mode " +
              std::to_string(vector.mode);
    }
    instruction.Fault("dtype", "the vector core has no such function of " + types);
    return;
  }
  Side sides[3];
  sides[0] = {static_cast<int64_t>(TypeBytes(vector.dst.type)), vector.dst_stride};
  for (int i = 0; i < vector.sources; ++i) {
    sides[i + 1] = {static_cast<int64_t>(TypeBytes(vector.src[i].type)), vector.src_stride[i]};
  }
  int count = vector.sources + 1;
  if (vector.lanes.form != kUirCount) {
    for (int i = 0; i < count; ++i) CheckStride(sides[i].stride, vector.sources == 2 ? 255 : 65535, 255, &instruction);
  }
  Lanes lanes = LanesOf(vector.lanes, sides, count, &instruction);
  if (lanes.runs.empty()) {
    instruction.NeedTensor(vector.dst, "target");
    for (int i = 0; i < vector.sources; ++i) instruction.NeedTensor(vector.src[i], "source");
  }
  if (instruction.faulty() || lanes.runs.empty()) return;
  Operand* sources[3] = {nullptr, nullptr, nullptr};
  const char* roles[] = {"source", "second source"};
  for (int i = 0; i < vector.sources; ++i) {
    sources[i] = &instruction.Reads(vector.src[i], vector.sources == 1 ? "source" : i ? roles[1] : "first source");
  }
  int reads = vector.sources;
  if (function.accumulates) {
    sources[reads++] = &instruction.Reads(vector.dst, "target");
  }
  Operand& dst = instruction.Writes(vector.dst, "target");
  Side known_sides[4] = {sides[0], sides[1], sides[2], sides[0]};
  if (function.accumulates) {
    known_sides[reads] = sides[0];
    for (Run& run : lanes.runs) run.at[reads] = run.at[0];
  }
  for (const Run& run : lanes.runs) {
    dst.ranges.Add(run.at[0], run.count * sides[0].size);
    for (int i = 0; i < reads; ++i) sources[i]->ranges.Add(run.at[i + 1], run.count * known_sides[i + 1].size);
  }
  for (int i = 0; i < vector.sources; ++i) {
    CheckOverlap(vector, i, dst, *sources[i], sides[0], sides[i + 1], &instruction);
  }
  if (instruction.faulty() || !instruction.Begin(kBlockBytes)) return;
  int64_t widest = 0;
  for (int i = 0; i < count; ++i) widest = std::max(widest, sides[i].size);
  Cost cost = machine.device.Of(name, static_cast<uint64_t>(widest));
  if (cast) {
    auto own = machine.device.casts.find(std::string(TypeName(vector.src[0].type)) + ">" + TypeName(vector.dst.type));
    if (own != machine.device.casts.end()) cost = own->second;
  }
  instruction.End(cost.slope * static_cast<double>(lanes.counted), cost.start);
  if (!machine.values) return;
  for (const Run& run : lanes.runs) {
    const uint8_t* a = vector.sources > 0 ? sources[0]->data + run.at[1] : nullptr;
    const uint8_t* b = vector.sources > 1 ? sources[1]->data + run.at[2] : nullptr;
    PropagateKnown(run, &dst, sources, known_sides, reads);
    function.loop(dst.data + run.at[0], a, b, vector.scalar, run.count);
  }
}

}  // namespace uir::ascendc

extern "C" {

void uir_ascendc_vector(const UirVector* vector, int line) { uir::ascendc::RunVector(*vector, line); }

void uir_ascendc_set_mask(uint64_t high, uint64_t low, int) {
  uir::ascendc::machine.core->mask[0] = low;
  uir::ascendc::machine.core->mask[1] = high;
}

void uir_ascendc_mask_counts(int counts) { uir::ascendc::machine.core->mask_counts = counts != 0; }

}  // extern "C"
