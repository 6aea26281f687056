// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/index_row.h"

#include <algorithm>

#include "codegen/ascend/api.h"
#include "codegen/ascend/vector_run.h"

namespace uir::codegen::ascend {

namespace {

constexpr int64_t kBlock = kBlockBytes / 4;

/*! \brief A difference of int32, which wraps. */
std::string StepText(int64_t value) {
  return IntLiteral(static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(value))), "int32_t");
}

VectorCall Scalar(const std::string& api, const Tile& to, const Tile& from, const std::string& value) {
  return {api, {"int32_t"}, {to, from}, {value}};
}

/*! \brief The part of a row from an element on. */
Tile From(const Tile& row, int64_t begin, int64_t count) {
  Tile part = row.Part(0, begin, 1, count);
  part.rows = 1;
  part.row_stride = count;
  return part;
}

/*! \brief Adds a step to every element of a block whose number has bit `bit`. */
void AddUnderMask(Emitter& e, const Tile& row, int64_t count, int bit, int64_t step) {
  uint64_t bits = 0;
  for (int64_t k = 0; k < count; ++k) bits |= static_cast<uint64_t>(k >> bit & 1) << k;
  std::string mask = e.Fresh("mask");
  e.Plain("uint64_t " + mask + "[2] = {" + std::to_string(bits) + "u, 0};");
  std::string params = e.Call("UnaryRepeatParams", "struct", {}, {"1", "1", "8", "8"});
  Tile block = From(row, 0, count);
  e.Do("V",
       e.Call("Adds", "bits", {"int32_t"},
              {e.At(block), e.At(block), StepText(step * (int64_t{1} << bit)), mask, "1", params}) +
           ";",
       {Reads(block), Writes(block)});
}

}  // namespace

void IndexRow(Emitter& e, const Tile& row, int64_t count, const std::string& first, int64_t step) {
  if (const Tile* kept = e.KeptIndex(count)) {
    Tile to = From(row, 0, count), index = From(*kept, 0, count);
    Bound all = Bound::Of(count);
    if (step != 1) CallCount(e, Scalar("Muls", to, index, StepText(step)), all);
    if (step == 1 || first != "0") CallCount(e, Scalar("Adds", to, step == 1 ? index : to, first), all);
    return;
  }
  int64_t made = std::min(count, kBlock);
  CallCount(e, {"Duplicate", {"int32_t"}, {From(row, 0, made)}, {first}}, Bound::Of(made));
  for (int bit = 0; int64_t{1} << bit < made; ++bit) AddUnderMask(e, row, made, bit, step);
  for (; made < count; made *= 2) {
    int64_t more = std::min(made, count - made);
    CallCount(e, Scalar("Adds", From(row, made, more), From(row, 0, more), StepText(step * made)), Bound::Of(more));
  }
}

}  // namespace uir::codegen::ascend
