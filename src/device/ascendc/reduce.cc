// SPDX-License-Identifier: Apache-2.0
// Reductions.
//
// Within a repeat, and within a block, neighbours are combined first, as a binary tree whose leaves are the lanes;
// lanes without their bit in the mask stand aside. `ReduceSum` of a number of elements adds the sums of its repeats
// one after the other, that of repeats as a tree again (documentation of ReduceDataBlock, ReduceRepeat and ReduceSum
// for Atlas A2).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/rounding.h"
#include "device/ascendc/engine.h"
#include "device/ascendc/lanes.h"

namespace uir::ascendc {

namespace {

enum class Kind { kSum, kMax, kMin };

struct Reduction {
  Kind kind;
  enum { kWhole, kBlock, kPair, kAll } of;
};

void SetReduction(const std::string& name, Reduction* shape) {
  shape->kind = name.find("Max") != std::string::npos   ? Kind::kMax
                : name.find("Min") != std::string::npos ? Kind::kMin
                                                        : Kind::kSum;
  shape->of = name.rfind("Whole", 0) == 0   ? Reduction::kWhole
              : name.rfind("Block", 0) == 0 ? Reduction::kBlock
              : name.rfind("Pair", 0) == 0  ? Reduction::kPair
                                            : Reduction::kAll;
}

/*! \brief One element on its way to a result: its value, its lane, and whether there is one. */
struct Part {
  float value{0};
  int64_t lane{0};
  bool there{false};
};

class Reducer {
 public:
  Reducer(Kind kind, uint32_t type) : kind_(kind), type_(type) {}

  Part Combine(const Part& a, const Part& b) const {
    if (!a.there) return b;
    if (!b.there) return a;
    // sums of half are half
    if (kind_ == Kind::kSum) return {RoundedTo(type_, a.value + b.value), a.lane, true};
    // The first of equals; a NaN stays.
    bool take = kind_ == Kind::kMax ? b.value > a.value : b.value < a.value;
    if (std::isnan(b.value) && !std::isnan(a.value)) take = true;
    if (std::isnan(a.value)) take = false;
    return take ? b : a;
  }

  /*! \brief Neighbours first; the parts are used up. */
  Part Tree(Part* parts, int64_t count) const {
    while (count > 1) {
      int64_t half = (count + 1) / 2;
      for (int64_t i = 0; i < half; ++i) {
        parts[i] = 2 * i + 1 < count ? Combine(parts[2 * i], parts[2 * i + 1]) : parts[2 * i];
      }
      count = half;
    }
    return count ? parts[0] : Part();
  }

  float Load(const uint8_t* at) const { return LoadFloat(at, type_); }
  void Store(uint8_t* at, float value) const { StoreFloat(at, type_, value); }

 private:
  Kind kind_;
  uint32_t type_;
};

// In the order of ReduceOrder.
enum Order { kValueIndex, kIndexValue, kOnlyValue, kOnlyIndex };

/*! \brief Bytes of one result. */
int64_t ResultBytes(int order, int64_t size) {
  if (order == kValueIndex || order == kIndexValue) return 2 * size;
  return order == kOnlyIndex ? 4 : size;
}

void StoreResult(const Reducer& reducer, uint8_t* at, const Part& part, int order, int64_t size) {
  auto index = static_cast<uint32_t>(part.lane);
  switch (order) {
    case kValueIndex:
      reducer.Store(at, part.value);
      std::memcpy(at + size, &index, static_cast<size_t>(size));
      break;
    case kIndexValue:
      std::memcpy(at, &index, static_cast<size_t>(size));
      reducer.Store(at + size, part.value);
      break;
    case kOnlyIndex:
      std::memcpy(at, &index, 4);
      break;
    default:
      reducer.Store(at, part.value);
  }
}

/*! \brief The elements of all repeats, by lane. */
class Source {
 public:
  Source(const Lanes& lanes, const Operand& operand, const Reducer& reducer, int64_t size)
      : per_repeat_(lanes.per_repeat), parts_(static_cast<size_t>(lanes.repeats * lanes.per_repeat)) {
    for (const Run& run : lanes.runs) {
      for (int64_t e = 0; e < run.count; ++e) {
        int64_t place = run.repeat * per_repeat_ + run.lane + e;
        parts_[static_cast<size_t>(place)] = {reducer.Load(operand.data + run.at[0] + e * size), place % per_repeat_,
                                              true};
      }
      known_ = known_ && AllKnown(operand.known + run.at[0], run.count * size);
    }
  }
  Part* At(int64_t repeat, int64_t lane) { return parts_.data() + repeat * per_repeat_ + lane; }
  bool known() const { return known_; }

 private:
  int64_t per_repeat_;
  std::vector<Part> parts_;
  bool known_{true};
};

/*! \brief Elements that the function's own tensor must have. */
int64_t WorkElements(const Reduction& shape, const UirReduce& reduce, int64_t repeats, int64_t size) {
  bool counted = reduce.lanes.form == kUirCount;
  if (shape.kind == Kind::kSum && counted) return 0;
  int64_t block = kBlockBytes / size, repeat = kRepeatBytes / size;
  if (counted) repeats = std::max<int64_t>(reduce.lanes.count / repeat, 1);
  if (shape.kind == Kind::kSum) return RoundUp(repeats, block);
  int64_t first = RoundUp(repeats * 2, block);
  if (!reduce.index) return first;
  int64_t second = CeilDiv(repeats * 2, repeat) * 2, total = first + RoundUp(second, block);
  if (second > 2) total += RoundUp(CeilDiv(second, repeat) * 2, block);
  return total;
}

}  // namespace

void RunReduce(const UirReduce& reduce, int line) {
  Instruction instruction(reduce.name, kUirV, line);
  Reduction shape;
  SetReduction(reduce.name, &shape);
  uint32_t type = reduce.src.type;
  auto size = static_cast<int64_t>(TypeBytes(type));
  instruction.Need((type == kUirFloat || type == kUirHalf) && reduce.dst.type == type, "dtype",
                   std::string("the vector core does not reduce ") + TypeName(type));
  Side side{size, reduce.src_stride};
  if (reduce.lanes.form != kUirCount) CheckStride(side.stride, 65535, 65535, &instruction);
  if (reduce.lanes.form == kUirMasked && (reduce.lanes.mask[0] == 0 || reduce.lanes.repeat == 0)) return;
  UirLanes given = reduce.lanes;
  bool many = shape.of == Reduction::kAll && given.form != kUirCount;  // these may have more repeats than others
  int64_t repeats = given.repeat;
  if (many) given.repeat = std::min<int64_t>(repeats, kMostRepeats);
  Lanes lanes = LanesOf(given, &side, 1, &instruction);
  if (instruction.faulty() || lanes.runs.empty()) return;
  if (many && repeats > kMostRepeats) {
    instruction.Fault("repeat", "the model runs this function with at most 255 repeats");
    return;
  }

  bool parts = shape.of == Reduction::kBlock || shape.of == Reduction::kPair;
  int64_t per_result = shape.of == Reduction::kBlock  ? kBlockBytes / size
                       : shape.of == Reduction::kPair ? 2
                                                      : lanes.per_repeat;
  int64_t results = lanes.per_repeat / per_result;
  int order = shape.of == Reduction::kAll         ? (reduce.index ? kValueIndex : kOnlyValue)
              : shape.kind == Kind::kSum || parts ? kOnlyValue
                                                  : reduce.order;
  int64_t bytes = ResultBytes(order, size), step = parts ? results * size : bytes;

  Operand& src = instruction.Reads(reduce.src, "source");
  for (const Run& run : lanes.runs) src.ranges.Add(run.at[0], run.count * size);
  int64_t work = shape.of == Reduction::kAll ? WorkElements(shape, reduce, lanes.repeats, size) * size : 0;
  Reducer reducer(shape.kind, type);
  Operand* scratch = nullptr;
  if (work) {
    scratch = &instruction.Writes(reduce.work, "work buffer");
    scratch->ranges.Add(0, work);
  }
  Operand& dst = instruction.Writes(reduce.dst, "target");
  // A block without an element under the mask leaves its place in the target as it is.
  std::vector<bool> there(static_cast<size_t>(lanes.repeats * results), false);
  for (const Run& run : lanes.runs) {
    for (int64_t e = 0; e < run.count; ++e) {
      int64_t place = run.repeat * lanes.per_repeat + run.lane + e;
      there[static_cast<size_t>(place / per_result)] = true;
    }
  }
  auto at = [&](int64_t repeat, int64_t result) {
    if (shape.of == Reduction::kAll) return int64_t{0};
    return repeat * reduce.dst_repeat_stride * step + result * size;
  };
  for (int64_t i = 0; i < lanes.repeats * results; ++i) {
    if (there[static_cast<size_t>(i)]) dst.ranges.Add(at(i / results, i % results), parts ? size : bytes);
  }
  int64_t alignment = parts ? results * size : bytes;
  instruction.Need(reduce.dst.address % static_cast<uint64_t>(alignment) == 0, "misaligned",
                   "the target needs an alignment of " + std::to_string(alignment) + " bytes");
  instruction.Need(reduce.src.address % kBlockBytes == 0, "misaligned",
                   "the source begins at byte " + std::to_string(reduce.src.address) +
                       " of the UB; 32 bytes of alignment are needed");
  if (instruction.faulty() || !instruction.Begin(1)) return;
  std::string function = shape.of == Reduction::kAll ? "Whole" + std::string(reduce.name) : std::string(reduce.name);
  Cost cost = machine.device.Of(function, static_cast<uint64_t>(size));
  instruction.End(cost.slope * static_cast<double>(lanes.counted), cost.start);
  if (!machine.values) return;

  Source source(lanes, src, reducer, size);
  if (!source.known()) instruction.Fault("unwritten", "reduces elements that nobody wrote", kUirUb);
  if (scratch) SetKnown(scratch->known, work, false);
  if (shape.of == Reduction::kAll) {
    std::vector<Part> of_repeats;
    for (int64_t r = 0; r < lanes.repeats; ++r) {
      Part part = reducer.Tree(source.At(r, 0), lanes.per_repeat);
      part.lane += r * lanes.per_repeat;
      of_repeats.push_back(part);
    }
    Part total;
    if (shape.kind == Kind::kSum && reduce.lanes.form == kUirCount) {
      for (const Part& part : of_repeats) total = reducer.Combine(total, part);
    } else {
      total = reducer.Tree(of_repeats.data(), static_cast<int64_t>(of_repeats.size()));
    }
    StoreResult(reducer, dst.data, total, order, size);
    SetKnown(dst.known, bytes);
  } else {
    for (int64_t r = 0; r < lanes.repeats; ++r) {
      for (int64_t i = 0; i < results; ++i) {
        if (!there[static_cast<size_t>(r * results + i)]) continue;
        Part part = reducer.Tree(source.At(r, i * per_result), per_result);
        StoreResult(reducer, dst.data + at(r, i), part, parts ? int{kOnlyValue} : order, size);
        SetKnown(dst.known + at(r, i), parts ? size : bytes);
      }
    }
  }
}

}  // namespace uir::ascendc

extern "C" void uir_ascendc_reduce(const UirReduce* reduce, int line) { uir::ascendc::RunReduce(*reduce, line); }
