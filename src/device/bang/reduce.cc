// SPDX-License-Identifier: Apache-2.0
// Functions that make one number of several: pools, sums, the largest with its place.
//
// Sums are kept in double and rounded once: the device's order is not documented. Comparisons pass over NaN.
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "device/bang/call.h"
#include "device/bang/lanes.h"

namespace uir::bang {

namespace {

constexpr int64_t kGroup = 128;  // bytes that reduce_sum adds up

struct Fold {
  double start;
  void (*step)(double* sum, double value);
};

const std::map<std::string, Fold>& Folds() {
  static const double infinity = std::numeric_limits<double>::infinity();
  auto add = [](double* sum, double value) { *sum += value; };
  static const auto* table = new std::map<std::string, Fold>{
      {"sumpool", {0, add}},
      {"avgpool", {0, add}},
      {"maxpool", {-infinity, [](double* sum, double value) { *sum = value > *sum ? value : *sum; }}},
      {"minpool", {infinity, [](double* sum, double value) { *sum = value < *sum ? value : *sum; }}},
  };
  return *table;
}

/*! \brief Windows of [height][width][channel]; steps are given as width, height. */
void RunPool(const Given& given) {
  const Fold& fold = Folds().at(given.name());
  int64_t channel = given.number(0), height = given.number(1), width = given.number(2);
  int64_t kernel_height = given.number(3), kernel_width = given.number(4);
  bool steps = given.call.numbers > 5;
  int64_t step_width = steps ? given.number(5) : kernel_width, step_height = steps ? given.number(6) : kernel_height;
  const int64_t all[] = {channel, height, width, kernel_height, kernel_width, step_width, step_height};
  for (int64_t one : all) {
    if (!given.Positive(one, "an extent")) return;
  }
  int64_t size = given.size(0);
  uint32_t type = given.of(0).type;
  given.instruction.Need(channel * size % 128 == 0, "size",
                         "channels take " + std::to_string(channel * size) + " bytes, no multiple of 128");
  given.instruction.Need(kernel_height <= height && kernel_width <= width, "size",
                         "the window is larger than the source");
  if (given.instruction.faulty()) return;
  int64_t rows = (height - kernel_height) / step_height + 1, columns = (width - kernel_width) / step_width + 1;
  Operand& source = given.Source(1, "source", height * width * channel * size);
  Operand& target = given.Target(rows * columns * channel * size);
  given.NeedApart(target, source, false);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(rows * columns * kernel_height * kernel_width * channel * size);
  if (!machine.values) return;
  bool known = source.Knows(0, height * width * channel * size);
  std::vector<float> values(static_cast<size_t>(height * width * channel));
  LoadReal(type, source.data, values.data(), height * width * channel);
  double divide = given.name() == "avgpool" ? static_cast<double>(kernel_height * kernel_width) : 1;
  for (int64_t at = 0; at < rows * columns * channel; ++at) {
    int64_t c = at % channel, column = at / channel % columns, row = at / channel / columns;
    double sum = fold.start;
    bool all_known = true;
    for (int64_t i = 0; i < kernel_height; ++i) {
      for (int64_t j = 0; j < kernel_width; ++j) {
        int64_t from = ((row * step_height + i) * width + column * step_width + j) * channel + c;
        fold.step(&sum, values[static_cast<size_t>(from)]);
        all_known = all_known && (known || source.Knows(from * size, size));
      }
    }
    auto result = static_cast<float>(sum / divide);
    StoreReal(type, target.data + at * size, &result, 1);
    target.Learn(at * size, size, all_known);
  }
}

/*! \brief The sum of each 128 bytes, at their beginning; other elements stay as they are. */
void RunReduceSum(const Given& given) {
  int64_t n = given.number(0), size = given.size(0), group = kGroup / size;
  if (!given.Positive(n, "the count")) return;
  Operand& source = given.Source(1, "source", n * size);
  Operand& target = given.instruction.Writes(given.of(0).address, kBangNram, "target");
  for (int64_t at = 0; at < n; at += group) target.ranges.Add(at * size, size);
  if (target.data != source.data) given.NeedApart(target, source, false);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(n * size);
  if (!machine.values) return;
  for (int64_t at = 0; at < n; at += group) {
    int64_t count = std::min(group, n - at);
    float values[64];
    LoadReal(given.of(0).type, source.data + at * size, values, count);
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += values[i];
    bool known = source.Knows(at * size, count * size);
    auto result = static_cast<float>(sum);
    StoreReal(given.of(0).type, target.data + at * size, &result, 1);
    target.Learn(at * size, size, known);
  }
}

bool NeedKnownBytes(const Given& given, const Operand& source, int64_t bytes) {
  if (source.Knows(0, bytes)) return true;
  given.instruction.Fault("unwritten", "the source has elements that hold no value that somebody wrote", kBangNram);
  return false;
}

void RunSum(const Given& given) {
  int64_t n = given.number(0), size = given.size(0);
  if (!given.Positive(n, "the count")) return;
  Operand& source = given.Source(0, "source", n * size);
  if (!given.instruction.Begin()) return;
  given.End(n * size);
  if (!machine.values || !NeedKnownBytes(given, source, n * size)) return;
  std::vector<float> values(static_cast<size_t>(n));
  LoadReal(given.of(0).type, source.data, values.data(), n);
  for (float value : values) *given.value += value;
}

/*! \brief The largest or smallest value and, behind it, the place of its first. */
void RunArg(const Given& given) {
  bool largest = given.name() == "argmax" || given.name() == "max";
  int64_t n = given.number(0), size = given.size(0);
  if (!given.Positive(n, "the count")) return;
  Operand& source = given.Source(1, "source", n * size);
  Operand& target = given.Target(size + 4);
  if (target.data != source.data) given.NeedApart(target, source, false);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(n * size);
  if (!machine.values || !NeedKnownBytes(given, source, n * size)) return;
  std::vector<float> values(static_cast<size_t>(n));
  LoadReal(given.of(0).type, source.data, values.data(), n);
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    bool better = largest ? values[i] > values[best] : values[i] < values[best];
    if (better || (values[best] != values[best] && values[i] == values[i])) best = i;
  }
  float value = values[best];
  StoreReal(given.of(0).type, target.data, &value, 1);
  StoreInteger(4, target.data + size, static_cast<int64_t>(best));
  target.Learn(0, size + 4);
}

}  // namespace

Handler ReduceOf(const std::string& name) {
  if (Folds().count(name)) return RunPool;
  if (name == "reduce_sum") return RunReduceSum;
  if (name == "sum") return RunSum;
  bool arg = name == "argmax" || name == "argmin" || name == "max" || name == "min";
  return arg ? RunArg : nullptr;
}

}  // namespace uir::bang
