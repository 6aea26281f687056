// SPDX-License-Identifier: Apache-2.0
// Functions that give elements other places: copies, transposes, and the layout of right operands.
#include <cstring>

#include "device/bang/call.h"

namespace uir::bang {

namespace {

/*! \brief Filters of one part of WRAM lie behind each other; there are as many parts. */
constexpr int64_t kParts = 64;

void Place(const Operand& source, const Operand& target, int64_t from, int64_t to, int64_t bytes) {
  std::memcpy(target.data + to, source.data + from, static_cast<size_t>(bytes));
  std::memcpy(target.known + to, source.known + from, static_cast<size_t>(bytes));
}

/*! \brief Bytes as they are. */
void RunMove(const Given& given) {
  int64_t bytes = given.number(0);
  if (!given.Positive(bytes, "the size")) return;
  Operand& source = given.Source(1, "source", bytes);
  Operand& target = given.Target(bytes);
  given.NeedApart(target, source, false);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(bytes);
  if (!machine.values) return;
  Place(source, target, 0, 0, bytes);
}

void RunTranspose(const Given& given) {
  int64_t height = given.number(0), width = given.number(1), size = given.size(0);
  if (!given.Positive(height, "the height") || !given.Positive(width, "the width")) return;
  Operand& source = given.Source(1, "source", height * width * size);
  Operand& target = given.Target(height * width * size);
  given.NeedApart(target, source, false);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(height * width * size);
  if (!machine.values) return;
  for (int64_t i = 0; i < height; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      Place(source, target, (i * width + j) * size, (j * height + i) * size, size);
    }
  }
}

/*! \brief [n][h][w][c] to [64][n / 64][h][w][c]: filter i of part p is filter i * 64 + p. */
void RunReshapeFilter(const Given& given) {
  int64_t n = given.number(0), size = given.size(0);
  int64_t filter = given.number(1) * given.number(2) * given.number(3) * size;
  if (!given.Positive(n, "n") || !given.Positive(filter, "the size of a filter")) return;
  given.instruction.Need(n % kParts == 0, "size", "n is " + std::to_string(n) + ", no multiple of 64");
  // The header asks for 128 bytes; kernels of the vendor pad to 64, as products need.
  given.instruction.Need(filter % 64 == 0, "size",
                         "a filter has " + std::to_string(filter) + " bytes, no multiple of 64");
  Operand& source = given.Source(1, "source", n * filter);
  Operand& target = given.Target(n * filter);
  given.NeedApart(target, source, false);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(n * filter);
  if (!machine.values) return;
  int64_t each = n / kParts;
  for (int64_t i = 0; i < n; ++i) Place(source, target, i * filter, (i % kParts * each + i / kParts) * filter, filter);
}

}  // namespace

Handler LayoutOf(const std::string& name) {
  if (name == "move") return RunMove;
  if (name == "transpose") return RunTranspose;
  return name == "reshape_filter" ? RunReshapeFilter : nullptr;
}

}  // namespace uir::bang
