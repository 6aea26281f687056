// SPDX-License-Identifier: Apache-2.0
// Register arrays and the unrolled loops over them.
#include <algorithm>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/index.h"

namespace uir::codegen::cuda {

std::string Regs::At(const std::string& block_r, const std::string& block_c, const std::string& r,
                     const std::string& c) const {
  const Layout& l = fragment.layout;
  int64_t block = int64_t{l.vec_r} * l.vec_c;
  Index index;
  index.Add(base, 1);
  index.Add(fragment.replicated_r() ? "0" : block_r, array_blocks_c * block);
  index.Add(fragment.replicated_c() ? "0" : block_c, block);
  index.Add(fragment.replicated_r() ? "0" : r, l.vec_c);
  index.Add(fragment.replicated_c() ? "0" : c, 1);
  return name + "[" + index.Text() + "]";
}

std::string Regs::operator[](const Cell& at) const {
  if (!at.flat.empty()) return name + "[" + at.flat + "]";
  return At(at.block_r, at.block_c, at.r, at.c);
}

std::string Emitter::LaneRow(const Layout& layout) {
  if (layout.lanes_r == 1) return "0";
  if (layout.lanes_r == kLanes) return "lane";
  std::string divisor = std::to_string(layout.lanes_col_major ? layout.lanes_r : layout.lanes_c);
  std::string name = (layout.lanes_col_major ? "lane_mod" : "lane_div") + divisor;
  Prologue("const int " + name + " = lane " + (layout.lanes_col_major ? "% " : "/ ") + divisor + ";");
  return name;
}

std::string Emitter::LaneCol(const Layout& layout) {
  Layout turned = layout;
  std::swap(turned.lanes_r, turned.lanes_c);
  turned.lanes_col_major = !layout.lanes_col_major;
  return LaneRow(turned);
}

void Emitter::Each(const Regs& whole, const std::vector<const Regs*>& operands,
                   const std::function<void(const Cell&)>& body, Coordinates coordinates) {
  const Fragment& f = whole.fragment;
  const Layout& l = f.layout;
  if (whole.spare) {
    Coordinates needed = InsideNeeds(f, *whole.spare);
    coordinates = {coordinates.row || needed.row, coordinates.col || needed.col};
  }
  bool flat = whole.dense() && !coordinates.row && !coordinates.col;
  for (const Regs* operand : operands) flat = flat && operand->dense() && SameHolding(operand->fragment, f);
  auto open = [this](const char* name, int64_t count) {
    if (count == 1) return std::string("0");
    out.Line("#pragma unroll");
    out.Open(std::string("for (int ") + name + " = 0; " + name + " < " + std::to_string(count) + "; ++" + name + ")");
    return std::string(name);
  };
  Cell at;
  int opened = 0;
  if (flat) {
    at.flat = open("r", f.size());
    body(at);
    if (f.size() > 1) out.Close();
    return;
  }
  auto loop = [&](const char* name, int64_t count) {
    opened += count > 1;
    return open(name, count);
  };
  auto coordinate = [&](const char* name, bool replicated, const std::string& lane, int vec, int step,
                        const std::string& block, const std::string& within) {
    if (replicated) return std::string("0");
    Index index;
    index.Add(lane, vec);
    index.Add(block, step);
    index.Add(within, 1);
    out.Line(std::string("const int ") + name + " = " + index.Text() + ";");
    return std::string(name);
  };
  bool bare = coordinates.row || coordinates.col;
  at.block_r = loop("rb", f.blocks_r());
  at.block_c = loop("cb", f.blocks_c());
  at.r = loop("vr", l.vec_r);
  at.c = loop("vc", l.vec_c);
  // names of coordinates need a block of their own where no loop opens one
  if (opened == 0 && bare) {
    out.Open("");
    ++opened;
  }
  if (coordinates.row) at.row = coordinate("row", f.replicated_r(), LaneRow(l), l.vec_r, l.step_r(), at.block_r, at.r);
  if (coordinates.col) at.col = coordinate("col", f.replicated_c(), LaneCol(l), l.vec_c, l.step_c(), at.block_c, at.c);
  body(at);
  for (; opened > 0; --opened) out.Close();
}

void Emitter::Assign(const Regs& target, const Cell& at, const std::string& value) {
  std::string condition = target.spare ? Inside(target.fragment, *target.spare, at) : "";
  out.Line((condition.empty() ? "" : "if (" + condition + ") ") + target[at] + " = " + value + ";");
}

Coordinates Emitter::InsideNeeds(const Fragment& fragment, const Box& box) const {
  return {box.rows() || !fragment.exact_r(), box.cols() || !fragment.exact_c()};
}

std::string Emitter::Inside(const Fragment& fragment, const Box& box, const Cell& at) {
  std::vector<std::string> conditions;
  if (box.row_begin) conditions.push_back(at.row + " >= " + *box.row_begin);
  if (box.row_end || !fragment.exact_r()) {
    conditions.push_back(at.row + " < " + (box.row_end ? *box.row_end : std::to_string(fragment.rows)));
  }
  if (box.col_begin) conditions.push_back(at.col + " >= " + *box.col_begin);
  if (box.col_end || !fragment.exact_c()) {
    conditions.push_back(at.col + " < " + (box.col_end ? *box.col_end : std::to_string(fragment.cols)));
  }
  return Join(conditions, " && ");
}

std::string Emitter::OneOfCopies(const Fragment& fragment) {
  const Layout& l = fragment.layout;
  bool rows = fragment.replicated_r() && l.lanes_r > 1, cols = fragment.replicated_c() && l.lanes_c > 1;
  if (rows && cols) return "lane == 0";
  if (rows) return LaneRow(l) + " == 0";
  return cols ? LaneCol(l) + " == 0" : "";
}

}  // namespace uir::codegen::cuda
