// SPDX-License-Identifier: Apache-2.0
// Printing an elementwise program over tiles: how they lie, chunks, one call after the other.
#include "codegen/ascend/vector_run.h"

#include <algorithm>

#include "base/rounding.h"
#include "codegen/ascend/api.h"
#include "codegen/ascend/far_turns.h"
#include "codegen/ascend/index_row.h"
#include "codegen/ascend/spans.h"
#include "codegen/ascend/tile_ops.h"
#include "codegen/ascend/vector.h"
#include "codegen/ascend/vector_steps.h"

namespace uir::codegen::ascend {
namespace {

/*! \brief Work buffers of one iOp take at most this much where more is free: longer chunks gain little. */
constexpr int64_t kMostWork = 64 * 1024;
/*! \brief What a chunk is a multiple of: then every buffer, bit masks too, is whole blocks. */
constexpr int64_t kChunkUnit = 256;
/*! \brief Rows as long as this are worked on one by one: a repeat per row would not be full. */
constexpr int64_t kLongRow = 512;

/*! \brief Prints a ready program over windows of the operands. */
class Runner {
 public:
  Runner(Emitter& e, const Ready& ready, const Buffers& buffers) : e_(e), ready_(ready), buffers_(buffers) {}

  /*! \brief Takes work buffers of this many elements (a multiple of the unit). */
  void Reserve(int64_t elements) {
    capacity_ = elements;
    for (size_t k = 0; k < buffers_.bits.size(); ++k) {
      int64_t bytes = elements * buffers_.bits[k] / 8;
      work_.push_back(e_.Work(buffers_.dtypes[k], 1, bytes / BytesOf(buffers_.dtypes[k])));
    }
  }

  /*! \brief The constants, over all that a chunk may need. */
  void Constants(int64_t elements) {
    for (size_t k = 0; k < ready_.steps().size(); ++k) {
      if (ready_.IsPrepared(static_cast<int>(k))) {
        Print(static_cast<int>(k), {}, Bound::Of(1), Bound::Of(elements), 0);
      }
    }
  }

  //! \brief All steps but the constants; the target is the first window, then the sources.
  //! \param pitch Elements from row to row in work buffers; 0: consecutive elements, one row.
  void Steps(const std::vector<Tile>& windows, const Bound& rows, const Bound& cols, int64_t pitch) {
    for (size_t k = 0; k < ready_.steps().size(); ++k) {
      if (!Computes(ready_.steps()[k]) || ready_.IsPrepared(static_cast<int>(k))) continue;
      Print(static_cast<int>(k), windows, rows, cols, pitch);
    }
  }

 private:
  /*! \brief A step's bytes as a tile of its own dtype; a buffer's rows are `pitch` elements apart. */
  Tile PlaceOf(int id, const std::vector<Tile>& windows, int64_t pitch) const {
    const Step& step = ready_.steps()[id];
    int root = ready_.RootOf(id);
    const Step& origin = ready_.steps()[root];
    if (origin.form == Step::Form::kInput) return Seen(windows[origin.operand + 1], step);
    if (buffers_.of[root] < 0) return Seen(windows[0], step);
    Tile tile = work_[buffers_.of[root]];
    if (step.dtype == "bits") return tile;
    tile = Seen(tile, step);
    if (pitch > 0) tile.row_stride = pitch * step.per / step.pack;
    return tile;
  }

  /*! \brief A tile as the step's dtype; a last half word counts as whole. */
  Tile Seen(Tile tile, const Step& step) const {
    int64_t bytes = BytesOf(step.dtype);
    if (bytes > tile.bytes) tile.cols = RoundUp(tile.cols, bytes / tile.bytes);
    if (tile.rows == 1) tile.row_stride = tile.cols;
    return e_.As(tile, step.dtype);
  }

  /*! \brief Stored elements of a step for elements of the iOp; a last one that is half used counts. */
  static Bound Stored(const Bound& elements, const Step& step) { return CeilDiv(elements * step.per, step.pack); }

  void Print(int id, const std::vector<Tile>& windows, const Bound& rows, const Bound& cols, int64_t pitch) {
    const Step& step = ready_.steps()[id];
    VectorCall call;
    call.api = step.api;
    bool buffers_only = buffers_.of[id] >= 0;
    call.tensors.push_back(PlaceOf(id, windows, pitch));
    for (int arg : step.args) {
      call.tensors.push_back(PlaceOf(arg, windows, pitch));
      buffers_only = buffers_only && buffers_.of[ready_.RootOf(arg)] >= 0;
    }
    // what dtype is counted: of a comparison, that of the numbers compared
    const Step& counted = step.form == Step::Form::kCompare ? ready_.steps()[step.args[0]] : step;
    std::string type = ElementType(counted.dtype), form = "count";
    call.types = {type};
    switch (step.form) {
      case Step::Form::kCast:
        call.types = {type, ElementType(ready_.steps()[step.args[0]].dtype)};
        call.arguments = {EnumValue("RoundMode", "CAST_" + step.mode)};
        break;
      case Step::Form::kCompare:
        call.types = {type, "uint8_t"};
        if (step.args.size() == 1) call.arguments.push_back(step.literal);
        call.arguments.push_back(EnumValue("CMPMODE", step.mode));
        break;
      case Step::Form::kSelect:
        call.types = {type, "uint8_t"};
        if (step.args.size() == 2) {
          call.arguments.push_back(step.literal);
          form = "scalar";
        }
        call.arguments.push_back(EnumValue("SELMODE", step.mode));
        break;
      case Step::Form::kFill:
      case Step::Form::kScalar:
        call.arguments = {step.literal};
        break;
      default:
        break;
    }
    if (step.form == Step::Form::kIndex) {
      // a constant: over all that a chunk may need
      IndexRow(e_, call.tensors[0], Stored(cols, step).most());
      return;
    }
    if (step.form == Step::Form::kPeak) {
      PrintPeak(id, call.tensors, rows, cols, pitch);
      return;
    }
    if (step.form == Step::Form::kFarRest) {
      PrintFarRest(e_, step.mode, {call.tensors[1], call.tensors[0], work_[buffers_.of[ready_.RootOf(step.args[2])]]},
                   pitch > 0 ? rows : Bound::Of(1), cols);
      return;
    }
    if (step.form == Step::Form::kGather) {
      PrintGather(step, call, pitch > 0 ? rows * pitch : cols);
      return;
    }
    if (pitch > 0 && !buffers_only) {
      CallRows(e_, call, rows, Stored(cols, counted));
      return;
    }
    Bound count = Stored(pitch > 0 ? rows * pitch : cols, counted);
    if (step.form == Step::Form::kCompare) {
      const int64_t repeat = kRepeatBytes / BytesOf(counted.dtype);
      count = CeilDiv(count, repeat) * repeat;
    }
    // a mask has a byte for eight elements
    for (Tile& tile : call.tensors) tile.rows = 1;
    CallCount(e_, call, count, form);
  }

  //! \brief The largest of the numbers, at `kPeakPlace` of the result's buffer: what no element of the chunk has stays
  //! zero, then halves are put onto each other.
  void PrintPeak(int id, const std::vector<Tile>& tensors, const Bound& rows, const Bound& cols, int64_t pitch) {
    Tile all = work_[buffers_.of[id]];
    all.cols = all.row_stride = capacity_;
    CallCount(e_, {"Duplicate", {"float"}, {all}, {Literal(0, "float")}}, Bound::Of(capacity_), "count");
    VectorCall cast{"Cast", {"float", "int32_t"}, tensors, {EnumValue("RoundMode", "CAST_RINT")}};
    if (pitch > 0) {
      CallRows(e_, cast, rows, cols);
    } else {
      CallCount(e_, cast, cols, "count");
    }
    int64_t size = capacity_, half = 1;
    while (half * 2 < size) half *= 2;
    for (; half >= kPeakPlace; size = half, half /= 2) {
      Tile low = all.Part(0, 0, 1, size - half), high = all.Part(0, half, 1, size - half);
      CallCount(e_, {"Max", {"float"}, {low, low, high}, {}}, Bound::Of(size - half), "count");
    }
    Tile most = all.Part(0, kPeakPlace, 1, 1), held = all.Part(0, 0, 1, kPeakPlace);
    e_.Do("V",
          e_.Call("WholeReduceMax", "repeat", {"float"},
                  {e_.At(most), e_.At(held), std::to_string(kPeakPlace), "1", "1", "1", "8",
                   EnumValue("ReduceOrder", "ORDER_ONLY_VALUE")}) +
              ";",
          {Reads(held), Writes(most)});
  }

  /*! \brief Words by their offsets: source and target are of different lengths. */
  void PrintGather(const Step& step, const VectorCall& call, const Bound& elements) {
    Bound count = Stored(elements, step);
    std::vector<std::string> args;
    std::vector<pipes::Region> regions;
    for (size_t k = 0; k < call.tensors.size(); ++k) {
      Tile tile = call.tensors[k];
      const Step& own = k == 0 ? step : ready_.steps()[step.args[k - 1]];
      tile.rows = 1;
      tile.cols = Stored(elements, own).most();
      args.push_back(e_.At(tile));
      regions.push_back(tile.Region(k == 0));
    }
    args.insert(args.end(), {step.literal, count.text});
    e_.Do("V", e_.Call(call.api, "count", call.types, args) + ";", regions);
  }

  Emitter& e_;
  const Ready& ready_;
  const Buffers& buffers_;
  std::vector<Tile> work_;
  int64_t capacity_ = 0;
};

Tile Moved(Tile tile, const Affine& by, int64_t rows, int64_t cols, int64_t align_bytes) {
  tile = tile.Part(0, 0, rows, cols);
  tile.offset = tile.offset + by;
  tile.align = std::min(tile.align, align_bytes);
  return tile;
}

/*! \brief Consecutive elements of all windows (one row each), in chunks where there are work buffers. */
void RunFlat(Emitter& e, const Program& program, Value result, const std::vector<Tile>& windows, const Bound& count) {
  bool whole = count.Constant() && count.most() % 128 == 0;
  Ready ready(program, result, false, whole);
  Buffers buffers = PlaceSteps(ready);
  Runner runner(e, ready, buffers);
  if (buffers.Bits() == 0) {
    runner.Steps(windows, Bound::Of(1), NotNegative(count), 0);
    return;
  }
  int64_t all = RoundUp(count.most(), kChunkUnit);
  int64_t fits = std::max(kChunkUnit, WorkBytes(e) * 8 / buffers.Bits() / kChunkUnit * kChunkUnit);
  int64_t chunks = CeilDiv(all, fits);
  int64_t chunk = RoundUp(CeilDiv(count.most(), chunks), kChunkUnit);
  runner.Reserve(chunk);
  runner.Constants(std::min(chunk, RoundUp(count.most(), 128)));
  if (count.most() <= chunk) {
    runner.Steps(windows, Bound::Of(1), NotNegative(count), 0);
    return;
  }
  auto parts = [&](const Affine& from, int64_t cols) {
    std::vector<Tile> out;
    for (const Tile& tile : windows)
      out.push_back(Moved(tile, from, 1, cols, chunk * tile.bytes & -(chunk * tile.bytes)));
    return out;
  };
  int64_t full = count.most() / chunk, rest = count.most() % chunk;
  OwnLoop loop(e, "chunk", full);
  Bound each = Bound::Of(chunk);
  if (!count.Constant()) each = PartOf(e, count, TimesText(loop.Text(), chunk), chunk);
  runner.Steps(parts(loop.var().Scale(chunk), chunk), Bound::Of(1), each, 0);
  loop.Close();
  if (rest == 0) return;
  Bound last = count.Constant() ? Bound::Of(rest) : PartOf(e, count, std::to_string(full * chunk), rest);
  runner.Steps(parts(Affine::Constant(full * chunk), rest), Bound::Of(1), last, 0);
}

/*! \brief Rows that lie apart, each short: repeats over the rows. */
void RunRows(Emitter& e, const Program& program, Value result, const std::vector<Tile>& windows, const Bound& rows,
             const Bound& cols) {
  Ready ready(program, result, true, false);
  Buffers buffers = PlaceSteps(ready);
  Runner runner(e, ready, buffers);
  int64_t pitch = RoundUp(cols.most(), 32);
  if (buffers.Bits() == 0) {
    runner.Steps(windows, rows, cols, pitch);
    return;
  }
  int64_t fits = std::max<int64_t>(1, WorkBytes(e) * 8 / buffers.Bits() / kChunkUnit * kChunkUnit / pitch);
  int64_t chunks = CeilDiv(rows.most(), fits), chunk = CeilDiv(rows.most(), chunks);
  runner.Reserve(RoundUp(chunk * pitch, kChunkUnit));
  runner.Constants(chunk * pitch);
  auto parts = [&](const Affine& from, int64_t count) {
    std::vector<Tile> out;
    for (const Tile& tile : windows)
      out.push_back(Moved(tile, from.Scale(tile.row_stride), count, tile.cols, kBlockBytes));
    return out;
  };
  int64_t full = rows.most() / chunk, rest = rows.most() % chunk;
  if (full == 1 && rest == 0) {
    runner.Steps(windows, rows, cols, pitch);
    return;
  }
  OwnLoop loop(e, "chunk", full);
  Bound each = rows.Constant() ? Bound::Of(chunk) : PartOf(e, rows, TimesText(loop.Text(), chunk), chunk);
  runner.Steps(parts(loop.var().Scale(chunk), chunk), each, cols, pitch);
  loop.Close();
  if (rest == 0) return;
  Bound last = rows.Constant() ? Bound::Of(rest) : PartOf(e, rows, std::to_string(full * chunk), rest);
  runner.Steps(parts(Affine::Constant(full * chunk), rest), last, cols, pitch);
}

/*! \brief Every row by itself. */
void RunEachRow(Emitter& e, const Program& program, Value result, const std::vector<Tile>& windows, const Bound& rows,
                const Bound& cols) {
  OwnLoop loop(e, "row", rows.most());
  std::vector<Tile> row;
  for (const Tile& tile : windows)
    row.push_back(Moved(tile, loop.var().Scale(tile.row_stride), 1, tile.cols, kBlockBytes));
  Bound count = cols;
  if (!rows.Constant()) {
    std::string name = e.Fresh("count");
    e.Plain("const int32_t " + name + " = " + loop.Text() + " < " + rows.text + " ? " + cols.text + " : 0;");
    count = {name, {0, cols.most()}};
  }
  RunFlat(e, program, result, row, count);
  loop.Close();
}

/*! \brief Whether vector functions do not reach some slice of the UB where it lies. */
bool LieApart(Emitter& e, const ISlice& target, const std::vector<Tile>& tiles, bool exact) {
  if (!std::all_of(tiles.begin(), tiles.end(), [](const Tile& tile) { return tile.memory == "ub"; })) return false;
  return RowsBeginLate(e, target, tiles, exact) || std::any_of(tiles.begin(), tiles.end(), [](const Tile& tile) {
           return !tile.RowsDense() || tile.align < kBlockBytes;
         });
}

/*! \brief Whether elements before the valid box must keep their values, and no vector function can begin behind them.
 */
bool BeginsLate(Emitter& e, const ISlice& target, const std::vector<Tile>& tiles, bool exact) {
  return (exact || e.SparesOutside(target)) && !BeginsAtBlocks(tiles) &&
         std::all_of(tiles.begin(), tiles.end(), [](const Tile& tile) { return tile.memory == "ub"; });
}

/*! \brief Whether a tile may reach beyond its tensor outside of its valid box. */
bool MayLeaveTensor(const Emitter& e, const Tile& tile) {
  Range at = e.scope().Of(tile.offset);
  return at.low < 0 || at.high + tile.Span() > tile.size;
}

//! \brief Whole tiles, over copies at blocks of the operands that do not lie so; of a result that must not be written
//! whole the valid box goes back to where it belongs.  Where all elements are looked at, those outside of it are zero.
void RunBeside(Emitter& e, const Program& program, Value result, const ISlice& slice, const std::vector<Tile>& tiles) {
  std::vector<Tile> windows = tiles;
  const Tile& target = tiles[0];
  bool zeros = program.Looks() && !target.box.Whole(target.rows, target.cols);
  for (size_t k = 0; k < tiles.size(); ++k) {
    bool in_place = k == 0 ? !e.SparesOutside(slice) : !zeros && !MayLeaveTensor(e, tiles[k]);
    if (in_place && RowsAligned(tiles[k]) && tiles[k].RowsDense()) continue;
    windows[k] = e.Work(tiles[k].dtype, target.rows, target.cols);
    if (k > 0 && zeros) FillTile(e, windows[k], ffi::Any(int64_t{0}));
    if (k > 0) Relayout(e, windows[k], tiles[k], target.box);
  }
  RunOnWindows(e, program, result, windows, Bound::Of(target.rows), Bound::Of(target.cols));
  if (windows[0].tensor != target.tensor) Relayout(e, target, windows[0], target.box);
}

}  // namespace

int64_t WorkBytes(const Emitter& e) {
  return std::clamp<int64_t>(e.plan().limit() - e.plan().total(), 8 * 1024, kMostWork);
}

void RunOnWindows(Emitter& e, const Program& program, Value result, const std::vector<Tile>& windows, const Bound& rows,
                  const Bound& cols) {
  if (rows.most() == 0 || cols.most() == 0) return;
  if (rows.Constant() && rows.most() == 1) {
    RunFlat(e, program, result, windows, cols);
  } else if (cols.most() >= kLongRow || !RowsReachable(windows)) {
    RunEachRow(e, program, result, windows, rows, cols);
  } else {
    RunRows(e, program, result, windows, rows, cols);
  }
}

void RunProgram(Emitter& e, const Program& program, Value result, const ISlice& target,
                const std::vector<ISlice>& sources) {
  RunOnTiles(e, program, result, target, e.TilesOf(target, sources));
}

void RunOnTiles(Emitter& e, const Program& program, Value result, const ISlice& target,
                const std::vector<Tile>& given) {
  std::vector<Tile> tiles = tiles::AsRows(given);
  bool exact = program.Looks();
  if (LieApart(e, target, tiles, exact) || BeginsLate(e, target, tiles, exact)) {
    RunBeside(e, program, result, target, tiles);
    return;
  }
  Span span = SpanOf(e, target, tiles, exact);
  RunOnWindows(e, program, result, span.windows, span.rows, span.cols);
}

}  // namespace uir::codegen::ascend
