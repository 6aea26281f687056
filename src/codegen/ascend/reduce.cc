// SPDX-License-Identifier: Apache-2.0
// Reductions: their functions and dtypes, and over columns.
//
// Order of a sum over rows (columns of the tile): halves are added onto each other until one row is left, so that the
// depth is the logarithm of the length, as in a pairwise sum.
#include "codegen/ascend/reduce.h"

#include <limits>
#include <map>
#include <utility>

#include "base/rounding.h"
#include "codegen/ascend/api.h"
#include "codegen/ascend/elementwise.h"
#include "codegen/ascend/functions.h"
#include "codegen/ascend/ops.h"
#include "codegen/ascend/scalar_unit.h"
#include "codegen/ascend/spans.h"
#include "codegen/ascend/tile_ops.h"
#include "codegen/ascend/vector.h"
#include "codegen/attributes.h"
#include "codegen/number.h"

namespace uir::codegen::ascend {
namespace {

struct Row {
  const char* name;
  const char* pair;
  const char* across;
};
const Row kRows[] = {{"add", "Add", "Sum"}, {"max", "Max", "Max"}, {"min", "Min", "Min"}, {"mul", "Mul", ""}};

/*! \brief The dtype in which sums and products, and greatest and least values, are computed; empty: none. */
std::string ComputedIn(const std::string& dtype, bool picks) {
  static const std::map<std::string, std::pair<std::string, std::string>> table = {
      {"fp32", {"fp32", "fp32"}},    {"fp16", {"fp32", "fp16"}},   {"bf16", {"fp32", "fp32"}},
      {"int8", {"int16", "fp16"}},   {"uint8", {"int16", "fp16"}}, {"bool", {"", "fp16"}},
      {"int16", {"int16", "int16"}}, {"int32", {"int32", "int32"}}};
  auto row = table.find(dtype);
  if (row == table.end()) return "";
  return picks ? row->second.second : row->second.first;
}

std::string IdentityOf(const std::string& name, const std::string& stored, const std::string& dtype) {
  std::string type = ElementType(dtype);
  if (name == "add" || name == "mul") return Literal(name == "mul", type);
  double infinity = std::numeric_limits<double>::infinity();
  bool most = name == "min";
  if (dtype == "fp32" || dtype == "fp16") {
    double value = most ? infinity : -infinity;
    if (stored == "bool") value = most;
    if (stored == "int8") value = most ? 127 : -128;
    if (stored == "uint8") value = most ? 255 : 0;
    return Literal(value, type);
  }
  int64_t low = LowestInt(Kind::kInt, static_cast<int>(BytesOf(dtype)));
  return IntLiteral(most ? -(low + 1) : low, type);
}

/*! \brief The largest power of two that fits twice into a number. */
int64_t HalfPower(int64_t number) {
  int64_t power = 1;
  while (power * 4 <= number) power *= 2;
  return power;
}

}  // namespace

Folding FoldingOf(Emitter& e, const IOp& iop) {
  std::string name(iop->name), dtype(iop->dtype);
  for (const Row& row : kRows) {
    if (name != row.name) continue;
    bool picks = name == "max" || name == "min";
    Folding folding;
    folding.stored = dtype;
    folding.dtype = ComputedIn(dtype, picks);
    if (folding.dtype.empty()) break;
    folding.pair = row.pair;
    bool across = folding.dtype == "fp32" || folding.dtype == "fp16";
    folding.across = across ? row.across : "";
    folding.identity = IdentityOf(name, dtype, folding.dtype);
    return folding;
  }
  e.Refuse("The vector core cannot reduce " + dtype + " by " + name + ": there is no vector function for it.", "", "",
           "run this operator on the host");
}

void Fold(Emitter& e, const Folding& folding, const Tile& target, const Tile& a, const Tile& b, const Bound& rows,
          const Bound& cols) {
  CallRows(e, {folding.pair, {ElementType(folding.dtype)}, {target, a, b}, {}}, rows, cols);
}

void FillIdentity(Emitter& e, const Folding& folding, const Tile& target, const Bound& rows, const Bound& cols) {
  CallRows(e, {"Duplicate", {ElementType(folding.dtype)}, {target}, {folding.identity}}, rows, cols);
}

void Convert(Emitter& e, const Tile& target, const Tile& source, const Bound& rows, const Bound& cols) {
  Program p;
  Value x = p.Input(0, source.dtype), made;
  if (target.dtype == "int16" && source.bytes == 1) {
    made = Widen8(p, x);
  } else if (target.bytes == 1 && source.dtype == "int16") {
    made = Narrow8(p, x, target.dtype, false);
  } else if (target.bytes == 1 && source.dtype == "fp16") {
    made = p.Cast(x, target.dtype == "int8" ? "int8" : "uint8", "RINT");
  } else {
    made = CastValue(p, x, target.dtype, "", e.where());
  }
  RunOnWindows(e, p, made, {target, source}, rows, cols);
}

Tile FromRow(Tile tile, const Bound& row) {
  if (row.text == "0") return tile;
  // the tensor starts later, the offset stays: regions are those of the whole tile
  Bound first = row;
  if (row.most() >= tile.rows) {
    // behind the last row no row is valid, and there is no tensor
    first.text = "(" + row.text + " < " + std::to_string(tile.rows) + " ? " + row.text + " : 0)";
    first.precedence = Precedence::kAtom;
  }
  tile.tensor += "[" + (first * tile.row_stride).text + "]";
  return tile;
}

void ReduceCol(Emitter& e, const Folding& folding, const Tile& t, const Tile& s) {
  if (!RowsAligned(s) || !s.RowsDense() || !t.RowsDense() || t.align < kBlockBytes) {
    e.Refuse("A reduction over columns needs rows that start at blocks of the unified buffer.",
             "offsets and row pitches that are multiples of 32 bytes", "", "the pass align_rows");
  }
  int64_t cols = s.cols;
  bool converts = folding.dtype != folding.stored;
  Bound rows = s.box.row_end;
  const Bound& begin = s.box.row_begin;
  bool whole = rows.Constant() && begin.Constant();
  int64_t first = begin.Constant() ? begin.range.low : 0;
  int64_t count = whole ? rows.most() - first : s.rows;
  Tile result = converts ? e.Work(folding.dtype, 1, cols) : t;
  if (count <= 0) {
    FillIdentity(e, folding, result, Bound::Of(1), Bound::Of(cols));
    if (converts) Convert(e, t, result, Bound::Of(1), Bound::Of(cols));
    return;
  }
  // the rows in the dtype of the computation, next to each other where they are folded
  int64_t pitch = RoundUp(cols * BytesOf(folding.dtype), kBlockBytes) / BytesOf(folding.dtype);
  Tile wide = s.Part(first, 0, s.rows - first, cols);
  if (whole && converts) {
    Tile made = e.Work(folding.dtype, count, cols, pitch);
    Convert(e, made, wide, Bound::Of(count), Bound::Of(cols));
    wide = made;
  }
  auto rows_of = [&](const Tile& tile, int64_t row, int64_t n) { return tile.Part(row, 0, n, cols); };
  // rows that follow each other in all operands are one run
  auto fold = [&](const Tile& to, const Tile& a, const Tile& b, int64_t n) {
    bool alike = a.row_stride == to.row_stride && b.row_stride == to.row_stride;
    if (alike && n > 1) {
      auto flat = [](Tile tile) {
        tile.cols = tile.Span();
        tile.rows = 1;
        return tile;
      };
      Tile x = flat(to), y = flat(a), z = flat(b);
      CallCount(e, {folding.pair, {ElementType(folding.dtype)}, {x, y, z}, {}}, Bound::Of(x.cols));
    } else {
      Fold(e, folding, to, a, b, Bound::Of(n), Bound::Of(cols));
    }
  };
  if (whole) {
    if (count == 1) {
      Convert(e, t, rows_of(wide, 0, 1), Bound::Of(1), Bound::Of(cols));
      return;
    }
    int64_t half = HalfPower(count), row_bytes = wide.row_stride * wide.bytes;
    while (half > 1 && half * row_bytes > WorkBytes(e)) half /= 2;
    Tile work = half == 1 ? result : e.Work(folding.dtype, half, cols, wide.row_stride);
    fold(rows_of(work, 0, half), rows_of(wide, 0, half), rows_of(wide, half, half), half);
    for (int64_t row = 2 * half; row < count; row += half) {
      int64_t n = std::min(half, count - row);
      fold(rows_of(work, 0, n), rows_of(work, 0, n), rows_of(wide, row, n), n);
    }
    for (int64_t n = half / 2; n >= 1; n /= 2) {
      Tile to = n == 1 ? result : rows_of(work, 0, n);
      fold(n == 1 ? rows_of(to, 0, 1) : to, rows_of(work, 0, n), rows_of(work, n, n), n);
    }
  } else {
    // an unknown number of rows: onto the identity, as many at a time as fit
    int64_t half = HalfPower(s.rows), row_bytes = (pitch + (converts ? pitch : 0)) * BytesOf(folding.dtype);
    while (half > 1 && half * row_bytes > WorkBytes(e)) half /= 2;
    Tile work = e.Work(folding.dtype, half, cols, pitch);
    FillIdentity(e, folding, work, Bound::Of(half), Bound::Of(cols));
    Tile from = FromRow(s, begin);
    Bound all = rows - begin;
    all.range = {0, s.rows};
    Tile made = converts ? e.Work(folding.dtype, half, cols, pitch) : from;
    for (int64_t row = 0; row < s.rows; row += half) {
      Bound n = PartOf(e, all, std::to_string(row), std::min(half, s.rows - row));
      Tile part = rows_of(from, row, std::min(half, s.rows - row));
      if (converts) {
        Tile own = rows_of(made, 0, std::min(half, s.rows - row));
        Convert(e, own, part, n, Bound::Of(cols));
        part = own;
      }
      Fold(e, folding, work, work, part, n, Bound::Of(cols));
    }
    for (int64_t n = half / 2; n >= 1; n /= 2) {
      fold(rows_of(work, 0, n), rows_of(work, 0, n), rows_of(work, n, n), n);
    }
    Tile last = rows_of(work, 0, 1);
    Convert(e, t, last, Bound::Of(1), Bound::Of(cols));
    return;
  }
  if (converts) Convert(e, t, result, Bound::Of(1), Bound::Of(cols));
}

namespace {

/*! \brief Whether a reduction over rows writes the target's box and nothing else. */
bool InPlace(const Tile& target, const Tile& source) {
  const Box &to = target.box, &from = source.box;
  return to.row_begin.Constant() && to.row_begin.range.low == 0 && from.row_begin.text == to.row_begin.text &&
         from.row_end.text == to.row_end.text && from.col_end.range.high > 0;
}

}  // namespace

void EmitReduce(Emitter& e, const IOp& iop) {
  if (TextAttr(iop->attrs, "scope") != "unit") {
    e.Refuse("A vector core shares nothing with others that it could reduce with.", "scope unit");
  }
  if (std::string(iop->dtype) == "int64") {
    EmitScalarReduce(e, iop);
    return;
  }
  Folding folding = FoldingOf(e, iop);
  bool row = IsByRow(iop);
  const ISlice &target = iop->targets[0], &source = iop->sources[0];
  Tile tile = e.TileOf(source), result = e.TileOf(target);
  if (row && tile.rows > 1 && tile.cols == 1 && tile.row_stride == 1 && tile.box.AllCols(1)) {
    // single columns: each row is its own result
    if (result.box.row_begin.text == tile.box.row_begin.text && result.box.row_end.text == tile.box.row_end.text) {
      EmitCopy(e, target, source);
      return;
    }
  }
  if (!row && tile.rows > 1 && tile.row_stride == 1 && (tile.cols == 1 || tile.col_stride > 1)) {
    // what follows each other in memory is a column: its sum is that of a row
    tile = tile.Turned();
    result = result.Turned();
    row = true;
  }
  if (row && (!RowsAligned(tile) || !tile.RowsDense())) {
    // rows that start anywhere: beside, each from a block on
    Tile apart = e.Work(tile.dtype, tile.rows, tile.cols, RoundUp(tile.cols * tile.bytes, kBlockBytes) / tile.bytes);
    apart.box = tile.box;
    Relayout(e, apart, tile, tile.box);
    tile = apart;
  }
  auto reduce = row ? ReduceRow : ReduceCol;
  // folds of pairs write from blocks on: rows before the box come along
  const Bound& begin = tile.box.row_begin;
  bool late = row && folding.across.empty() && begin.range.high > 0 && begin.text == result.box.row_begin.text;
  if (!late && (!e.SparesOutside(target) || (row && InPlace(result, tile)))) {
    reduce(e, folding, result, tile);
    return;
  }
  // beside, as one row either way; then the box goes where it belongs
  Tile place = row ? result.Turned() : result, line = e.Work(result.dtype, 1, place.cols);
  line.box = place.box;
  if (late) tile.box.row_begin = line.box.col_begin = Bound::Of(0);
  reduce(e, folding, row ? line.Turned() : line, tile);
  Relayout(e, place, line, place.box);
}

}  // namespace uir::codegen::ascend
