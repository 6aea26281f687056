// SPDX-License-Identifier: Apache-2.0
// Writing one value to many elements.
#include <algorithm>

#include "device/bang/call.h"
#include "device/bang/lanes.h"

namespace uir::bang {

namespace {

void RunFill(const Given& given) {
  const UirBangOperand& value = given.of(1);
  int64_t n = given.number(0), size = TypeBytes(value.type);
  if (!given.Positive(n, "the count")) return;
  int64_t stride[2] = {0, 0}, times[2] = {1, 1};
  if (given.call.numbers > 1) {
    for (int i = 0; i < 2; ++i) {
      stride[i] = given.number(1 + 2 * i);
      times[i] = given.number(2 + 2 * i) + 1;
      given.instruction.Need(times[i] >= 1, "segments", "a negative number of further blocks");
    }
    given.instruction.Need(times[0] == 1 || stride[0] >= n * size, "stride", "blocks of the first dimension overlap");
    given.instruction.Need(times[1] == 1 || stride[1] >= stride[0] * times[0], "stride",
                           "blocks of the second dimension overlap");
    if (given.instruction.faulty()) return;
  }
  Operand& target = given.instruction.Writes(given.of(0).address, kBangNram, "target");
  for (int64_t i = 0; i < times[0] * times[1]; ++i) {
    target.ranges.Add(i % times[0] * stride[0] + i / times[0] * stride[1], n * size);
  }
  if (!given.instruction.Begin()) return;
  given.End(times[0] * times[1] * n * size);
  if (!machine.values) return;
  uint8_t bytes[4] = {0, 0, 0, 0};
  if (IsFloating(value.type)) {
    auto real = static_cast<float>(value.real);
    StoreReal(value.type, bytes, &real, 1);
  } else {
    StoreInteger(size, bytes, value.integer);
  }
  for (const Range& range : target.ranges.list()) {
    for (int64_t at = range.begin; at < range.begin + range.bytes; at += size) {
      std::copy(bytes, bytes + size, target.data + at);
    }
    target.Learn(range.begin, range.bytes);
  }
}

}  // namespace

Handler FillOf(const std::string& name) { return name == "write_value" || name == "write_zero" ? RunFill : nullptr; }

}  // namespace uir::bang
