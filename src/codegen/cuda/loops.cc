// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/loops.h"

#include "codegen/cuda/index.h"

namespace uir::codegen::cuda {

std::string Loops::Open(const std::string& name, int64_t count) {
  if (count == 1) return "0";
  e_.out.Line("#pragma unroll");
  e_.out.Open("for (int " + name + " = 0; " + name + " < " + std::to_string(count) + "; ++" + name + ")");
  ++opened_;
  return name;
}

void Loops::OpenBlock(const std::string& head) {
  if (head.empty() && opened_ > 0) return;
  e_.out.Open(head);
  ++opened_;
}

Place Loops::Side(const Fragment& fragment, bool rows, bool coordinate, int width) {
  const Layout& l = fragment.layout;
  Place at;
  at.block = Open(rows ? "rb" : "cb", rows ? fragment.blocks_r() : fragment.blocks_c());
  at.within = Open(rows ? "vr" : "vc", (rows ? l.vec_r : l.vec_c) / width);
  if (!coordinate) return at;
  bool replicated = rows ? fragment.replicated_r() : fragment.replicated_c();
  Index index;
  if (!replicated) {
    index.Add(rows ? e_.LaneRow(l) : e_.LaneCol(l), rows ? l.vec_r : l.vec_c);
    index.Add(at.block, rows ? l.step_r() : l.step_c());
    index.Add(at.within, width);
  }
  const std::string sum = index.Text();
  if (sum == "0") {
    at.coordinate = "0";
    return at;
  }
  OpenBlock();
  at.coordinate = rows ? "row" : "col";
  e_.out.Line("const int " + at.coordinate + " = " + sum + ";");
  return at;
}

void Loops::Close() {
  for (; opened_ > 0; --opened_) e_.out.Close();
}

Cell CellOf(const Place& row, const Place& col) {
  Cell at;
  at.block_r = row.block;
  at.r = row.within;
  at.row = row.coordinate;
  at.block_c = col.block;
  at.c = col.within;
  at.col = col.coordinate;
  return at;
}

}  // namespace uir::codegen::cuda
