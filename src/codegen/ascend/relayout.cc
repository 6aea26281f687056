// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "codegen/ascend/api.h"
#include "codegen/ascend/gather_rows.h"
#include "codegen/ascend/tile_ops.h"

namespace uir::codegen::ascend {

namespace {

bool RowsAtBlocks(const Tile& tile) { return tile.RowsDense() && RowsAligned(tile); }

/*! \brief Blocks `[begin, end)` of every row, both tiles at the same phase; rows of the box. */
void CopyBlocks(Emitter& e, const Tile& to, const Tile& from, const Box& box, int64_t phase, int64_t begin,
                int64_t end) {
  int64_t block = kBlockBytes / to.bytes, length = end - begin;
  Bound rows = box.row_end - box.row_begin;
  int64_t first = begin * block - phase;
  auto at = [&](const Tile& tile) { return e.At(tile, box.row_begin * tile.row_stride + Bound::Of(first)); };
  auto part = [&](const Tile& tile) { return tile.Part(0, first, tile.rows, length * block); };
  auto gap = [&](const Tile& tile) { return tile.rows == 1 ? 0 : tile.row_stride / block - length; };
  // rows without gaps are one: there may be more of them than a copy counts
  bool one = rows.Constant() && gap(to) == 0 && gap(from) == 0;
  std::vector<std::string> shape = {one ? "1" : rows.text, std::to_string(one ? rows.range.low * length : length),
                                    std::to_string(one ? 0 : gap(from)), std::to_string(one ? 0 : gap(to))};
  std::string params = e.Call("DataCopyParams", "struct", {}, shape);
  std::string call = e.Call("DataCopy", "local.rows", {TypeOf(to.dtype).stored}, {at(to), at(from), params});
  e.Do("V", WhereSome({call + ";"}, {rows}), {Reads(part(from)), Writes(part(to))});
}

/*! \brief Elements `[begin, end)` of one block of every row. */
void CopyBits(Emitter& e, const Tile& to, const Tile& from, const Box& box, int64_t phase, int64_t number,
              int64_t begin, int64_t end) {
  int64_t block = kBlockBytes / to.bytes;
  uint64_t bits = ((uint64_t{1} << (end - begin)) - 1) << begin;
  std::string mask = e.Fresh("mask");
  e.Plain("uint64_t " + mask + "[2] = {" + std::to_string(bits) + "u, 0};");
  auto pitch = [&](const Tile& tile) { return std::to_string(tile.rows == 1 ? 0 : tile.row_stride / block); };
  std::string params = e.Call("CopyRepeatParams", "struct", {}, {"1", "1", pitch(to), pitch(from)});
  Bound rows = box.row_end - box.row_begin;
  std::vector<std::string> lines;
  for (int64_t first = 0; first < rows.range.high; first += kMostRepeats) {
    auto at = [&](const Tile& tile) {
      return e.At(tile, box.row_begin * tile.row_stride + Bound::Of(first * tile.row_stride + number * block - phase));
    };
    std::string repeats = rows.Constant() ? std::to_string(std::min(kMostRepeats, rows.range.high - first)) : rows.text;
    TVM_FFI_CHECK(rows.Constant() || rows.range.high <= kMostRepeats, InternalError) << "too many rows";
    std::string call =
        e.Call("Copy", "bits", {TypeOf(to.dtype).stored}, {at(to), at(from), mask, repeats, params}) + ";";
    for (const std::string& line : WhereSome({call}, {rows})) lines.push_back(line);
  }
  auto part = [&](const Tile& tile) { return tile.Part(0, number * block - phase + begin, tile.rows, end - begin); };
  e.Do("V", lines, {Reads(part(from)), Writes(part(to))});
}

/*! \brief A tile of 8-byte or pairs of 1-byte elements as one of words that Copy knows. */
Tile Words(Emitter& e, const Tile& tile) {
  if (tile.bytes == 2 || tile.bytes == 4) return tile;
  return e.As(tile, tile.bytes == 8 ? "int32" : "int16");
}

/*! \brief Columns of the box, both tiles at the same phase: blocks as they are, the rest under masks. */
void CopyMasked(Emitter& e, const Tile& to, const Tile& from, const Box& box, int64_t phase) {
  Tile a = Words(e, to), b = Words(e, from);
  int64_t block = kBlockBytes / a.bytes;
  auto words = [&](int64_t elements) { return elements * to.bytes / a.bytes; };
  phase = words(phase);
  int64_t begin = phase + words(box.col_begin.range.low), end = phase + words(box.col_end.range.low);
  if (begin >= end || (box.row_end - box.row_begin).range.high <= 0) return;
  int64_t first = begin / block, last = end / block;
  if (first == last) {
    CopyBits(e, a, b, box, phase, first, begin % block, end % block);
    return;
  }
  if (begin % block != 0) CopyBits(e, a, b, box, phase, first++, begin % block, block);
  if (first < last) CopyBlocks(e, a, b, box, phase, first, last);
  if (end % block != 0) CopyBits(e, a, b, box, phase, last, 0, end % block);
}

/*! \brief Whether `CopyMasked` can do it. */
bool Maskable(const Tile& to, const Box& box) {
  Bound rows = box.row_end - box.row_begin;
  bool known = box.col_begin.Constant() && box.col_end.Constant();
  return known && (rows.Constant() || (rows.range.low >= 0 && rows.range.high <= kMostRepeats)) && to.RowsDense();
}

bool Even(int64_t phase, const Tile& tile, const Box& box) {
  bool rows = tile.rows == 1 || tile.row_stride % 2 == 0;
  return phase % 2 == 0 && tile.cols % 2 == 0 && rows && box.col_begin.range.low % 2 == 0 &&
         box.col_end.range.low % 2 == 0;
}

void OneByOne(Emitter& e, const Tile& to, const Tile& from, const Box& box) {
  std::string type = TypeOf(to.dtype).stored, row = e.Fresh("row"), col = e.Fresh("col");
  auto index = [&](const Tile& tile) {
    std::string text = e.Text(tile.offset);
    return (text == "0" ? "" : text + " + ") + row + " * " + std::to_string(tile.row_stride) + " + " + col + " * " +
           std::to_string(tile.col_stride);
  };
  std::string value = e.Call("LocalTensor.GetValue", "member", {type}, {from.tensor, index(from)});
  std::string set = e.Call("LocalTensor.SetValue", "member", {type}, {to.tensor, index(to), value});
  e.Do("S",
       {ForText(row, box.row_begin.text, box.row_end.text), "  " + ForText(col, box.col_begin.text, box.col_end.text),
        "    " + set + ";"},
       {Reads(from.Around(box)), Writes(to.Around(box))});
  Bound count = (box.row_end - box.row_begin) * to.cols;
  if (count.range.high > kBlockBytes) {
    e.Note("up to " + std::to_string(count.range.high) + " elements are moved one by one by the scalar unit");
  }
}

}  // namespace

std::optional<int64_t> PhaseOf(const Emitter& e, const Tile& tile) {
  int64_t constant = tile.offset->constant;
  Affine rest = tile.offset - Affine::Constant(constant);
  if (e.scope().PowerOfTwo(rest.Scale(tile.bytes), kBlockBytes) < kBlockBytes) return std::nullopt;
  if (tile.rows > 1 && tile.row_stride * tile.bytes % kBlockBytes != 0) return std::nullopt;
  int64_t block = kBlockBytes / tile.bytes;
  return ((constant % block) + block) % block;
}

void Relayout(Emitter& e, const Tile& to, const Tile& from, const Box& box) {
  std::optional<int64_t> phase = PhaseOf(e, to), other = PhaseOf(e, from);
  bool maskable = phase && Maskable(to, box) && (to.bytes > 1 || Even(*phase, to, box));
  // to gather one element costs more than to move it
  if (to.rows * to.cols == 1 && !(maskable && phase == other)) {
    OneByOne(e, to, from, box);
    return;
  }
  // bytes are widened before they are gathered, from the start of a block
  bool gathered = to.bytes > 1 || PhaseOf(e, from.Flat());
  bool apart = from.rows == 1 || from.row_stride >= from.cols;
  if (maskable && from.RowsDense() && apart && phase == other) {
    CopyMasked(e, to, from, box, *phase);
  } else if (gathered && RowsAtBlocks(to) && box.col_begin.range.high == 0) {
    GatherRows(e, to, from, box);
  } else if (gathered && maskable && box.col_begin.Constant()) {
    Tile beside = e.Work(to.dtype, to.rows, *phase + to.cols);
    Box all = box;
    all.col_begin = Bound::Of(0);
    // columns behind the box may lie behind all memory
    all.col_end = box.col_end + Bound::Of(*phase);
    // columns before the box may lie before all memory: they get the first one that cannot
    int64_t first = std::clamp<int64_t>(box.col_begin.range.low, 0, from.cols - 1);
    GatherRows(e, beside, from.Part(0, first, from.rows, from.cols - first), all, *phase + first);
    CopyMasked(e, to, beside.Part(0, *phase, to.rows, to.cols), box, *phase);
  } else {
    OneByOne(e, to, from, box);
  }
}

}  // namespace uir::codegen::ascend
