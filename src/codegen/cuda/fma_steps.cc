// SPDX-License-Identifier: Apache-2.0
// Steps of a product by fused multiply-adds; see fma_steps.h.
#include "codegen/cuda/fma_steps.h"

#include <algorithm>
#include <string>

#include "codegen/cuda/contract.h"

namespace uir::codegen::cuda {

namespace {

//! \brief Registers of a lane for both factors, where its sums are few; else they have half as many as the sums.
//!
//! A lane of a 64 x 32 tile has 64 sums.  With 32 more, 128 registers hold addresses and what is on its way as well,
//! and two blocks of 256 lanes share a processor.
constexpr int64_t kFactorRegisters = 32;

/*! \brief The steps of `length` that hold the fewest elements. */
Steps StepsOf(Reach a, Reach b, int64_t length, int64_t rows, int64_t cols) {
  Steps out;
  out.a = a.deep ? Reach{length, length > 1} : a;
  out.b = b.deep ? Reach{length, length > 1} : b;
  out.length = length;
  out.held = rows * out.a.depth() + cols * out.b.depth();
  auto take = [&out](Streamed streamed, int64_t held) {
    if (held >= out.held) return;
    out.streamed = streamed;
    out.held = held;
  };
  if (out.a.deep) take(Streamed::kA, length + cols * length);
  if (out.b.deep) take(Streamed::kB, length + rows * length);
  return out;
}

}  // namespace

Reach WidestOf(const ISlice& slice, bool is_a, Neighbours are, int64_t align, const Fragment& sums) {
  const int bytes = TypeOf(std::string(slice->pointer->dtype)).bytes;
  const int64_t widest = std::max<int64_t>(1, kLaneBytes / bytes), depth = is_a ? slice->cols : slice->rows;
  if (are.deep) {
    int64_t n = widest;
    while (n > 1 && (depth % n != 0 || align < n * bytes)) n /= 2;
    return n > 1 ? Reach{n, true} : Reach{};
  }
  const int64_t n = std::min<int64_t>(widest, sums.layout.vec_c);
  return !is_a && are.along && n > 1 && sums.exact_c() && align >= n * bytes ? Reach{n, false} : Reach{};
}

Reach WidestOf(const Plan& plan, const ISlice& slice, bool is_a, const Fragment& sums) {
  const bool by_rows = slice->col_stride == 1, by_cols = !by_rows && slice->row_stride == 1;
  const Access access = AccessOf(slice, plan.scope());
  int64_t align = access.align;
  const int64_t pitch = (by_rows ? slice->row_stride : slice->col_stride) * access.bytes;
  while (align > 1 && pitch % align != 0) align /= 2;
  return WidestOf(slice, is_a, is_a ? Neighbours{by_rows, by_cols} : Neighbours{by_cols, by_rows}, align, sums);
}

Steps StepsOf(Reach a, Reach b, const Fragment& sums, int bytes, int wide) {
  const int64_t rows = sums.blocks_r() * sums.layout.vec_r, cols = sums.blocks_c() * sums.layout.vec_c;
  const int64_t words = std::max(1, wide / 4), room = std::max(kFactorRegisters, words * sums.size() / 2);
  int64_t length = std::max(a.depth(), b.depth());
  for (const Reach& one : {a, b}) {
    if (one.deep) length = std::min(length, one.elements);
  }
  for (;; length /= 2) {
    const Steps out = StepsOf(a, b, length, rows, cols);
    if (out.held * words <= room || length == 1 || length * bytes <= 4) return out;
  }
}

Layout FmaSums(const Plan& plan, const IOp& iop) {
  const Home& home = plan.HomeOf(iop->targets[0]);
  return home.registers() ? home.class_layout : plan.WorkLayout(iop);
}

std::vector<TileAccess> FmaReads(const Plan& plan, const IOp& iop, int source) {
  const ISlice slice = iop->sources[source], target = iop->targets[0];
  const bool is_a = source == 0;
  const Fragment sums(FmaSums(plan, iop), target->rows, target->cols);
  const Steps steps = StepsOf(WidestOf(plan, iop->sources[0], true, sums), WidestOf(plan, iop->sources[1], false, sums),
                              sums, TypeOf(std::string(iop->sources[0]->pointer->dtype)).bytes,
                              TypeOf(std::string(target->pointer->dtype)).bytes);
  const Reach reach = is_a ? steps.a : steps.b;
  // the lanes' places along the side that the factor shares with the result; the other side is the step
  const Fragment own = is_a ? Fragment(sums.layout, sums.rows, 1) : Fragment(sums.layout, 1, sums.cols);
  std::vector<TileAccess> out;
  for (const TileAccess& one : AccessesOf(own, reach.deep ? 1 : reach.elements, is_a)) {
    for (int64_t k = 0; k < (is_a ? slice->cols : slice->rows); k += reach.deep ? reach.elements : 1) {
      out.push_back(one);
      out.back().elements = reach.elements;
      for (auto& [row, col] : out.back().at) (is_a ? col : row) = k;
    }
  }
  return out;
}

}  // namespace uir::codegen::cuda
