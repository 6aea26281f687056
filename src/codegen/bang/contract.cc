// SPDX-License-Identifier: Apache-2.0
/*!
 * \file contract.cc
 * \brief Products: fp32 and fp16 by the matrix unit, other dtypes by scalar code.
 */
#include <algorithm>

#include "api.h"
#include "copy.h"
#include "elementwise.h"
#include "fill.h"
#include "functions_int.h"
#include "ops.h"
#include "run.h"
#include "transpose.h"

namespace uir {
namespace codegen {
namespace bang {

namespace {

/*! \brief What the matrix unit takes: columns of the result, and bytes of the contracted side. */
constexpr int64_t kColumns = 64;
constexpr int64_t kInnerBytes = 128;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/*! \brief A tile in the dtype of the factors, zero outside of a box, at the start of a larger dense buffer. */
Tile Padded(Emitter& e, const Tile& from, const std::string& dtype, int64_t rows, int64_t cols, const Box& box) {
  Tile work = e.Work(dtype, rows, cols);
  if (rows > from.rows || cols > from.cols || !box.Whole(from.rows, from.cols)) {
    FillTile(e, work, ffi::Any(0.0));
  }
  Tile part = work.Part(0, 0, from.rows, from.cols);
  if (from.dtype == dtype) {
    Copy(e, part, from, box);
  } else {
    ConvertTile(e, part, from, box, true);
  }
  return work;
}

void Multiply(Emitter& e, const Tile& t, const Tile& a, const Tile& b, bool accumulate) {
  const std::string arch = std::to_string(e.arch());
  const std::string dtype = a.dtype == "fp16" ? "fp16" : "fp32", type = ElementType(dtype);
  int64_t bytes = TypeOf(dtype).bytes;
  int64_t rows = t.rows, inner = RoundUp(a.cols, kInnerBytes / bytes), cols = RoundUp(b.cols, kColumns);
  // what lies outside of the box of the left operand's columns counts as zero, on both sides
  Box left = a.box, right = b.box;
  right.row_begin = a.box.col_begin;
  right.row_end = a.box.col_end;
  Tile x = Padded(e, a, dtype, rows, inner, left);
  Tile y = Padded(e, b, dtype, inner, cols, right);
  Tile turned = e.Work(dtype, cols, inner), shaped = y;
  TransposeTile(e, turned, y);
  shaped.rows = cols;
  shaped.cols = shaped.row_stride = inner;
  std::string n = std::to_string(cols), k = std::to_string(inner);
  e.Do("COMPUTE",
       Table().Call(e.where(), "__bang_reshape_filter", "plain", {type}, {e.At(shaped), e.At(turned), n, "1", "1", k},
                    arch) +
           ";",
       {Reads(turned), Writes(shaped)});
  Tile weights = e.Weights(dtype, cols, inner);
  Copy(e, weights, shaped, Box::Of(cols, inner));
  Tile product = e.Work("fp32", rows, cols);
  e.Do("COMPUTE",
       Table().Call(e.where(), "__bang_matmul", "plain", {type},
                    {e.At(product), e.At(x), e.At(weights), std::to_string(rows), k, n}, arch) +
           ";",
       {Reads(x), Reads(weights), Writes(product)});
  Tile made = product.Part(0, 0, t.rows, t.cols);
  Program p(e.arch());
  Value sum = p.Input(0, "fp32");
  if (accumulate) sum = p.Add(sum, p.Float(p.Input(1, t.dtype)));
  if (t.dtype != "fp32") {
    sum = p.Stored(sum, t.dtype);
  } else if (!accumulate) {
    sum = p.Copy(sum);
  }
  std::vector<Tile> tiles = {t, made};
  if (accumulate) tiles.push_back(t);
  RunOnTiles(e, p, sum, tiles, t.box, true);
}

/*! \brief Whole numbers, one product after the other. */
void MultiplyWhole(Emitter& e, const Tile& t, const Tile& a, const Tile& b, bool accumulate) {
  std::string i = e.Fresh("i"), j = e.Fresh("j"), k = e.Fresh("k"), sum = e.Fresh("sum");
  const ScalarType& type = TypeOf(t.dtype);
  std::string wide = type.bytes == 8 ? "uint64_t" : "uint32_t", to = e.Element(t, i, j);
  std::vector<std::string> lines = {wide + " " + sum + " = " + (accumulate ? "(" + wide + ")" + to : "0") + ";"};
  std::vector<std::string> step = {sum + " += (" + wide + ")" + e.Element(a, i, k) + " * (" + wide + ")" +
                                   e.Element(b, k, j) + ";"};
  for (std::string& line : Looped(k, a.box.col_begin.text, a.box.col_end.text, step)) lines.push_back(std::move(line));
  lines.push_back(to + " = (" + std::string(type.stored) + ")" + sum + ";");
  lines = Looped(j, t.box.col_begin.text, t.box.col_end.text, lines);
  e.Note("scalar code, some tens of cycles for a product");
  std::vector<pipes::Region> regions = {Writes(t), Reads(a), Reads(b)};
  if (accumulate) regions.push_back(Reads(t));
  e.Do("S", Looped(i, t.box.row_begin.text, t.box.row_end.text, lines), regions);
}

}  // namespace

void EmitContract(Emitter& e, const IOp& iop) {
  Tile t = e.TileOf(iop->targets[0]), a = e.TileOf(iop->sources[0]), b = e.TileOf(iop->sources[1]);
  auto attr = iop->attrs.find("accumulate");
  bool accumulate = attr != iop->attrs.end() && (*attr).second.cast<bool>();
  (IsWhole(t.dtype) ? MultiplyWhole : Multiply)(e, t, a, b, accumulate);
}

}  // namespace bang
}  // namespace codegen
}  // namespace uir
