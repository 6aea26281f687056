// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/bang/api.h"
#include "codegen/bang/tile_ops.h"

namespace uir::codegen::bang {

namespace {

/*! \brief Segments of one dimension of a copy: the field counts from 0 to 65535. */
constexpr int64_t kMostSegments = 65536;
/*! \brief "GDRAM", "NRAM", "WRAM" or "SRAM". */
std::string SpaceOf(const Tile& tile) {
  if (tile.memory == kNram) return "NRAM";
  if (tile.memory == kWram) return "WRAM";
  return tile.memory == kSram ? "SRAM" : "GDRAM";
}

bool InNram(const Tile& to, const Tile& from) { return to.memory == kNram && from.memory == kNram; }

/*! \brief The vector function that copies one run within NRAM. */
constexpr const char* kMove = "__bang_move";

/*! \brief Segments along one dimension, strides in elements. */
struct Dimension {
  Bound count;
  int64_t to = 0;
  int64_t from = 0;
  /*! \brief Strides that sizes decide. */
  std::optional<Affine> to_pitch, from_pitch;
};

/*! \brief Runs of elements and the dimensions over them, innermost first. */
struct Shape {
  Bound run = Bound::Of(1);
  std::vector<Dimension> dims;
};

/*! \brief A product of two counts. */
Bound Times(const Bound& a, const Bound& b) {
  if (a.Constant()) return b * a.range.low;
  return {a.Text(Precedence::kProduct) + " * " + b.Text(Precedence::kAtom), a.range * b.range, Precedence::kProduct};
}

/*! \brief Whether on both sides a row of a box begins where the one before ends, which sizes decide. */
bool FullRows(const Tile& to, const Tile& from, const Box& box) {
  if (!to.full_rows || !from.full_rows || box.col_begin.range.high > 0) return false;
  const Affine distance = *to.row_pitch - *from.row_pitch;
  return distance->terms.empty() && distance->constant == 0 && to.box.col_end.text == box.col_end.text &&
         from.box.col_end.text == box.col_end.text;
}

Shape ShapeOf(const Tile& to, const Tile& from, const Box& box, const Bound& rows, const Bound& cols) {
  Shape shape;
  Dimension row{rows, to.row_stride, from.row_stride, to.row_pitch, from.row_pitch},
      col{cols, to.col_stride, from.col_stride, to.col_pitch, from.col_pitch};
  auto single = [](const Dimension& dim) { return dim.count.range.high <= 1; };
  auto run = [&](const Dimension& dim) { return single(dim) || (dim.to == 1 && dim.from == 1); };
  // the side along which both step by one element is the inner one
  if (!run(col) && run(row)) std::swap(row, col);
  if (!single(col)) {
    if (run(col)) {
      shape.run = col.count;
    } else {
      shape.dims.push_back(col);
    }
  }
  if (single(row)) return shape;
  bool dense = shape.dims.empty() && shape.run.Constant() && row.to == shape.run.range.low && row.from == row.to;
  if (dense) {
    shape.run = row.count * shape.run.range.low;
  } else if (shape.dims.empty() && FullRows(to, from, box)) {
    shape.run = Times(row.count, shape.run);
  } else {
    shape.dims.push_back(row);
  }
  return shape;
}

/*! \brief C++ text that guards a copy of what may be empty, or nothing. */
std::string Guard(const Bound& rows, const Bound& cols) {
  std::vector<std::string> parts;
  for (const Bound* count : {&rows, &cols}) {
    if (count->range.low <= 0) parts.push_back(count->Text(Precedence::kProduct) + " > 0");
  }
  return Join(parts, " && ");
}

/*! \brief Whether a box is one run of elements on both sides. */
bool IsRun(const Tile& to, const Tile& from, const Box& box) {
  return ShapeOf(to, from, box, box.row_end - box.row_begin, box.col_end - box.col_begin).dims.empty();
}

/*! \brief A dense tile whose columns are runs, as one whose rows are. */
bool IsDenseTurned(const Tile& tile) {
  return tile.rows > 1 && tile.cols > 1 && tile.row_stride == 1 && tile.col_stride == tile.rows;
}

//! \brief A whole tile within NRAM whose sides lie the other way round: turned by the vector function.
//! \return Whether it was done.
bool CopyByTurning(Emitter& e, const Tile& to, const Tile& from, const Box& box) {
  const bool near = InNram(to, from) && to.bytes != 8 && !to.row_pitch && !from.row_pitch;
  if (!near || !box.Whole(to.rows, to.cols) || to.rows != from.rows || to.cols != from.cols) return false;
  if (tiles::ShareBytes(to, from)) return false;
  Tile source = from.Turned(), target = to;
  if (IsDenseTurned(to) && from.Dense()) {
    source = from;
    target = to.Turned();
  } else if (!IsDenseTurned(from) || !to.Dense()) {
    return false;
  }
  TurnRows(e, target, source, std::to_string(source.rows), std::to_string(source.cols));
  return true;
}

class Copier {
 public:
  Copier(Emitter* e, const Tile& to, const Tile& from, std::string name)
      : e_(*e), to_(to), from_(from), name_(std::move(name)) {}

  /*! \brief The call for a shape at (`to_at`, `from_at`) elements from the tiles' first ones. */
  std::string Text(const Shape& shape, const Bound& to_at, const Bound& from_at, const std::string& to_more = "",
                   const std::string& from_more = "") const {
    std::vector<std::string> args = {e_.At(to_, to_at, to_more), e_.At(from_, from_at, from_more),
                                     Bytes(shape.run).text};
    if (name_ == kMove) return Table().Call(e_.where(), name_, "count", {}, args, e_.platform());
    args.push_back(Table().EnumValue("mluMemcpyDirection_t", SpaceOf(from_) + "2" + SpaceOf(to_), false));
    auto stride = [this](const Dimension& dim, bool target) { return StrideOf(dim, target).text; };
    auto last = [](const Bound& count) { return (count - Bound::Of(1)).text; };
    std::string form = "plain";
    if (shape.dims.size() == 2) {
      const Dimension &inner = shape.dims[0], &outer = shape.dims[1];
      form = "3d";
      for (bool target : {true, false}) {
        args.push_back(stride(inner, target));
        args.push_back(last(inner.count));
        args.push_back(stride(outer, target));
        args.push_back(last(outer.count));
      }
    } else if (shape.dims.size() == 1) {
      const Dimension& dim = shape.dims[0];
      form = "strided";
      args.insert(args.end(), {stride(dim, true), stride(dim, false), last(dim.count)});
    } else if (InNram(to_, from_)) {
      // one segment: the strided form has no alignment
      form = "strided";
      args.insert(args.end(), {"0", "0", "0"});
    }
    return Table().Call(e_.where(), name_, form, {}, args, e_.platform());
  }

  /*! \brief Bytes from segment to segment on a side. */
  Bound StrideOf(const Dimension& dim, bool target) const {
    return e_.Along(Bound::Of(1), target ? dim.to : dim.from, target ? dim.to_pitch : dim.from_pitch) * to_.bytes;
  }

 private:
  Bound Bytes(const Bound& run) const { return run * to_.bytes; }
  Emitter& e_;
  const Tile& to_;
  const Tile& from_;
  std::string name_;
};

}  // namespace

std::vector<std::string> CopyLines(Emitter& e, const Tile& to, const Tile& from, const Box& box,
                                   const std::string& name) {
  Bound rows = AtLeastZero(e, box.row_end - box.row_begin, "row_count");
  Bound cols = AtLeastZero(e, box.col_end - box.col_begin, "col_count");
  if (rows.range.high == 0 || cols.range.high == 0) return {};
  Shape shape = ShapeOf(to, from, box, rows, cols);
  Copier copier(&e, to, from, name);
  Bound to_at = e.RowsOf(to, box.row_begin) + e.ColsOf(to, box.col_begin);
  Bound from_at = e.RowsOf(from, box.row_begin) + e.ColsOf(from, box.col_begin);
  std::string guard = Guard(rows, cols);
  std::vector<std::string> lines;
  std::string indent = guard.empty() ? "" : "  ";
  if (!guard.empty()) lines.push_back("if (" + guard + ") {");
  bool negative = std::any_of(shape.dims.begin(), shape.dims.end(),
                              [](const Dimension& dim) { return dim.to < 0 || dim.from < 0; });
  bool overlong = std::any_of(shape.dims.begin(), shape.dims.end(), [&](const Dimension& dim) {
    const bool wide = !copier.StrideOf(dim, true).range.FitsInt() || !copier.StrideOf(dim, false).range.FitsInt();
    return dim.count.range.high > kMostSegments || ((dim.to_pitch || dim.from_pitch) && wide);
  });
  if (negative || overlong) {
    // segments one by one: the fields of a copy do not hold their strides or their number
    std::string to_more, from_more;
    for (const Dimension& dim : shape.dims) {
      std::string i = e.Fresh("i");
      lines.push_back(indent + tiles::ForText(i, "0", dim.count.text));
      indent += "  ";
      auto add = [&](std::string* text, int64_t stride, const std::optional<Affine>& pitch) {
        if (stride == 0) return;
        *text += (text->empty() ? "" : " + ") + i + " * " + e.Along(Bound::Of(1), stride, pitch).text;
      };
      add(&to_more, dim.to, dim.to_pitch);
      add(&from_more, dim.from, dim.from_pitch);
    }
    e.Note("copies segments one by one");
    shape.dims.clear();
    lines.push_back(indent + copier.Text(shape, to_at, from_at, to_more, from_more) + ";");
  } else {
    lines.push_back(indent + copier.Text(shape, to_at, from_at) + ";");
    if (shape.run.range.high == 1 && shape.dims.size() == 2) e.Note("copies elements one by one");
  }
  if (!guard.empty()) lines.push_back("}");
  return lines;
}

void Copy(Emitter& e, const Tile& to, const Tile& from, const Box& box) {
  if (CopyByTurning(e, to, from, box)) return;
  bool within = InNram(to, from), moves = within && IsRun(to, from, box) && Table().Has(kMove, "count", e.platform());
  std::vector<std::string> lines = CopyLines(e, to, from, box, moves ? kMove : within ? "__memcpy" : "__memcpy_async");
  if (lines.empty()) return;
  const std::vector<pipes::Region> regions = {from.Around(box).Region(false), to.Around(box).Region(true)};
  // the header has asynchronous copies within NRAM in the order of the vector functions, public kernels wait for them
  // as for other copies: what all agree on is the vector function, and the copy that waits
  if (within && !moves) return e.DoBlocking(lines, regions);
  auto off_chip = [](const Tile& tile) { return SpaceOf(tile) == "GDRAM"; };
  e.Do(moves ? "COMPUTE" : off_chip(to) || off_chip(from) ? "IO" : "MOVE", lines, regions);
}

}  // namespace uir::codegen::bang
