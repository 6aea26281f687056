// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/choose.h"

#include <algorithm>
#include <set>

#include "codegen/cuda/scalar.h"

namespace uir::codegen::cuda {

namespace {

constexpr int kSectorBytes = 32, kLineBytes = 128;
/*! \brief Slots of a shuffle and the operation on what it brings. */
constexpr double kMeeting = 3.0;
/*! \brief Slots of one register of one iOp. */
constexpr double kOperation = 0.5;
/*! \brief Slots of bringing one register to another layout through scratch: a store, a load, their addresses. */
constexpr double kConversion = 2.5;

int64_t PowerOfTwoIn(int64_t value) { return value == 0 ? kWidestBytes : value & -value; }

int Log2(int value) { return __builtin_ctz(static_cast<unsigned>(value)); }

std::vector<Layout> CandidateLayouts() {
  std::vector<Layout> layouts;
  for (int lanes_c = kLanes; lanes_c >= 1; lanes_c /= 2) {
    for (int vec = 16; vec >= 1; vec /= 2) {
      layouts.push_back({kLanes / lanes_c, lanes_c, 1, vec, false});
      layouts.push_back({kLanes / lanes_c, lanes_c, vec, 1, true});
    }
  }
  return layouts;
}

const std::vector<Layout>& AllCandidates() {
  static const std::vector<Layout> layouts = CandidateLayouts();
  return layouts;
}

double WorkCost(const Work& work, const Layout& layout) {
  Fragment whole(layout, work.rows, work.cols);
  double cost = kOperation * static_cast<double>(whole.size());
  if (work.meets == Work::Meets::kRow) {
    cost += kMeeting * Log2(layout.lanes_c) * static_cast<double>(Fragment(layout, work.rows, 1).size());
  } else if (work.meets == Work::Meets::kCol) {
    cost += kMeeting * Log2(layout.lanes_r) * static_cast<double>(Fragment(layout, 1, work.cols).size());
  }
  return cost * work.times;
}

double BestDirect(const Access& access) {
  double best = CostOf(access, AllCandidates().front());
  for (const Layout& layout : AllCandidates()) best = std::min(best, CostOf(access, layout));
  return best;
}

}  // namespace

Access AccessOf(const ISlice& slice, const Scope& scope, int64_t stated) {
  Access access;
  access.rows = slice->rows;
  access.cols = slice->cols;
  // of a stride that sizes decide this much is known: it is long, and what divides it
  access.row_stride = slice->row_stride;
  access.col_stride = slice->col_stride;
  if (slice->row_pitch) access.row_stride *= scope.PowerOfTwo(slice->row_pitch.value(), kWidestBytes);
  if (slice->col_pitch) access.col_stride *= scope.PowerOfTwo(slice->col_pitch.value(), kWidestBytes);
  access.bytes = TypeOf(std::string(slice->pointer->dtype)).bytes;
  access.align = std::min<int64_t>(kWidestBytes, scope.PowerOfTwo(slice->offset, kWidestBytes) * access.bytes);
  access.align = std::max(access.align, std::min<int64_t>(kWidestBytes, PowerOfTwoIn(stated)));
  auto bounds = [&scope](const ffi::Optional<Affine>& begin, const ffi::Optional<Affine>& end) {
    int64_t multiple = kWidestBytes;
    for (const ffi::Optional<Affine>& bound : {begin, end}) {
      if (bound) multiple = std::min(multiple, scope.PowerOfTwo(bound.value(), kWidestBytes));
    }
    return multiple;
  };
  access.row_bounds = bounds(slice->row_begin, slice->row_end);
  access.col_bounds = bounds(slice->col_begin, slice->col_end);
  return access;
}

Width WidthOf(const Access& access, const Layout& layout) {
  Fragment fragment(layout, access.rows, access.cols);
  auto along = [&access](int vec, int64_t length, int64_t stride, int64_t across, int64_t bounds, int64_t count) {
    if (vec == 1 || stride != 1) return int64_t{1};
    int64_t width = std::min<int64_t>({vec, access.widest / access.bytes, access.align / access.bytes});
    // the last vector of a row must not reach over its end
    width = std::min({width, PowerOfTwoIn(length), bounds});
    // neither may the next row begin in the middle of a vector
    if (count > 1) width = std::min(width, PowerOfTwoIn(across));
    return std::max<int64_t>(width, 1);
  };
  const Layout& l = fragment.layout;
  int64_t cols = along(l.vec_c, access.cols, access.col_stride, access.row_stride, access.col_bounds, access.rows);
  int64_t rows = along(l.vec_r, access.rows, access.row_stride, access.col_stride, access.row_bounds, access.cols);
  return rows > cols ? Width{static_cast<int>(rows), true} : Width{static_cast<int>(cols), false};
}

double CostOf(const Access& access, const Layout& layout) {
  Fragment fragment(layout, access.rows, access.cols);
  Width width = WidthOf(access, layout);
  const Layout& l = fragment.layout;
  std::set<int64_t> sectors, lines;
  int64_t used = 0;
  for (int r = 0; r < l.lanes_r; ++r) {
    for (int c = 0; c < l.lanes_c; ++c) {
      if ((fragment.replicated_r() && r > 0) || (fragment.replicated_c() && c > 0)) continue;
      if (int64_t{r} * l.vec_r >= access.rows || int64_t{c} * l.vec_c >= access.cols) continue;
      int64_t first = (r * l.vec_r * access.row_stride + c * l.vec_c * access.col_stride) * access.bytes;
      for (int64_t byte = first; byte < first + width.elements * access.bytes; byte += access.bytes) {
        sectors.insert(byte / kSectorBytes);
        lines.insert(byte / kLineBytes);
      }
      used += width.elements * access.bytes;
    }
  }
  double instructions = static_cast<double>(fragment.size()) / width.elements;
  double wasted = static_cast<double>(static_cast<int64_t>(sectors.size()) * kSectorBytes - used) / kSectorBytes;
  double each = 1 + sectors.size() / 4.0 + lines.size() + std::max(wasted, 0.0) / 4.0;
  return instructions * each * access.times;
}

double ConversionCost(const Fragment& fragment) { return kConversion * static_cast<double>(fragment.size()); }

Layout ChooseLayout(const std::vector<Access>& accesses, const std::vector<Work>& works) {
  std::vector<double> converted;
  for (const Access& access : accesses) converted.push_back(BestDirect(access));
  Layout best;
  double least = -1;
  for (const Layout& layout : AllCandidates()) {
    double cost = 0;
    for (size_t i = 0; i < accesses.size(); ++i) {
      const Access& access = accesses[i];
      double moved = ConversionCost(Fragment(layout, access.rows, access.cols));
      cost += std::min(CostOf(access, layout), converted[i] + moved * access.times);
    }
    for (const Work& work : works) cost += WorkCost(work, layout);
    if (least < 0 || cost < least) {
      least = cost;
      best = layout;
    }
  }
  return best;
}

}  // namespace uir::codegen::cuda
