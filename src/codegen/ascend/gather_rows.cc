// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/gather_rows.h"

#include <optional>

#include "codegen/ascend/api.h"
#include "codegen/ascend/index_row.h"
#include "codegen/ascend/tile_ops.h"

namespace uir::codegen::ascend {

namespace {

std::string Int32(int64_t value) { return IntLiteral(value, "int32_t"); }

//! \brief A table of byte offsets: element k of a row is at `max(k - lead, 0) * step`; of `halves` words each.
//! \param bytes Of a word.
Tile RowOffsets(Emitter& e, int64_t count, int64_t lead, int64_t step, int64_t halves, int64_t bytes) {
  Tile table = e.Work("int32", 1, count * halves);
  std::string all = std::to_string(count * halves);
  auto make = [&](const Tile& tile) { IndexRow(e, tile, count * halves); };
  auto apply = [&](const std::string& name, const Tile& tile, int64_t value) {
    e.Do("V", e.Call(name, "count", {"int32_t"}, {e.At(tile), e.At(tile), Int32(value), all}) + ";",
         {Reads(tile), Writes(tile)});
  };
  auto add = [&](const Tile& more) {
    e.Do("V", e.Call("Add", "count", {"int32_t"}, {e.At(table), e.At(table), e.At(more), all}) + ";",
         {Reads(table), Reads(more), Writes(table)});
  };
  if (halves == 1) {
    if (lead == 0) {
      IndexRow(e, table, count, Int32(step < 0 ? -step * (count - 1) : 0), step);
      return table;
    }
    IndexRow(e, table, count, Int32(-lead));
    apply("Maxs", table, 0);
    apply("Muls", table, step);
    if (step < 0) apply("Adds", table, -step * (count - 1 - lead));
    return table;
  }
  // word k: (k % 2) * bytes + max(k / 2 - lead, 0) * step
  Tile element = e.Work("int32", 1, count * halves);
  IndexRow(e, table, count * halves, "0", bytes);
  make(element);
  apply("ShiftRight", element, 1);
  apply("Muls", element, -halves * bytes);
  add(element);
  make(element);
  apply("ShiftRight", element, 1);
  if (lead > 0) {
    apply("Adds", element, -lead);
    apply("Maxs", element, 0);
  }
  apply("Muls", element, step);
  if (step < 0) apply("Adds", element, -step * (count - 1 - lead));
  add(element);
  return table;
}

/*! \brief The tile that a table of `RowOffsets` counts from: offsets have no sign, so a reversed one's last element. */
Tile LeastTile(Tile from, int64_t count, int64_t lead) {
  if (from.col_stride < 0) from.offset = from.offset + Affine::Constant((count - 1 - lead) * from.col_stride);
  return from;
}

/*! \brief The part that the instructions of a gather have in common. */
struct Job {
  /*! \brief Tiles of elements of 2 or 4 bytes; of `from` only start and distance of rows (in bytes) count. */
  Tile to, from;
  int64_t row_bytes;
  Bound row_begin, row_end, words;
  std::vector<pipes::Region> regions;
};

void Gather(Emitter& e, Job job, const Tile& table) {
  std::string type = TypeOf(job.to.dtype).stored;
  // offsets count from the tensor's own start, which is a block
  std::string start = e.Text(job.from.offset.Scale(job.from.bytes));
  job.from.offset = Affine::Constant(0);
  Tile indices = e.As(table, "uint32");
  auto call = [&](const std::string& row) {
    std::string to_more, base = start == "0" ? "" : start;
    if (!row.empty()) {
      to_more = row + " * " + std::to_string(job.to.row_stride);
      base += (base.empty() ? "" : " + ") + row + " * " + std::to_string(job.row_bytes);
    }
    return e.Call("Gather", "count", {type},
                  {e.At(job.to, to_more), e.At(job.from), e.At(indices), base.empty() ? "0" : base, job.words.text}) +
           ";";
  };
  std::vector<std::string> lines{call("")};
  if (job.row_begin.text != "0" || job.row_end.text != "1") {
    std::string row = e.Fresh("row");
    lines = {ForText(row, job.row_begin.text, job.row_end.text), "  " + call(row)};
  }
  job.regions.push_back(Reads(table));
  e.Do("V", lines, job.regions);
}

/*! \brief All bytes from the first element of a tile to the last, widened to half; strides stay. */
Tile InHalves(Emitter& e, const Tile& tile) {
  std::optional<int64_t> phase = PhaseOf(e, tile.Flat());
  TVM_FFI_CHECK(phase, InternalError) << "the place of a tile within its block is not known";
  Tile flat = tile.Flat();
  flat.offset = flat.offset - Affine::Constant(*phase);
  flat.cols += *phase;
  Tile wide = e.Work("fp16", 1, flat.cols);
  std::string from = TypeOf(tile.dtype).stored;
  e.Do("V",
       e.Call("Cast", "count", {"half", from},
              {e.At(wide), e.At(flat), EnumValue("RoundMode", "CAST_NONE"), std::to_string(flat.cols)}) +
           ";",
       {Reads(flat), Writes(wide)});
  Tile out = wide.Part(0, *phase, 1, 1);
  out.rows = tile.rows;
  out.cols = tile.cols;
  out.row_stride = tile.row_stride;
  out.col_stride = tile.col_stride;
  return out;
}

void Narrow(Emitter& e, const Tile& to, const Tile& wide, const Box& box) {
  std::string type = TypeOf(to.dtype).stored, row = e.Fresh("row");
  std::string call = e.Call(
      "Cast", "count", {type, "half"},
      {e.At(to, row + " * " + std::to_string(to.row_stride)), e.At(wide, row + " * " + std::to_string(wide.row_stride)),
       EnumValue("RoundMode", "CAST_RINT"), box.col_end.text});
  e.Do("V", {ForText(row, box.row_begin.text, box.row_end.text), "  " + call + ";"},
       {Reads(wide.Around(box)), Writes(to.Around(box))});
}

}  // namespace

void GatherRows(Emitter& e, const Tile& to, const Tile& from, const Box& box, int64_t lead) {
  Job job{to,          LeastTile(from, to.cols, lead),       from.row_stride * from.bytes, box.row_begin, box.row_end,
          box.col_end, {Reads(from), Writes(to.Around(box))}};
  if (to.bytes == 1) {
    Tile wide = InHalves(e, from), gathered = e.Work("fp16", to.rows, to.cols);
    Tile table = RowOffsets(e, to.cols, lead, wide.col_stride * wide.bytes, 1, wide.bytes);
    job.to = gathered;
    job.from = LeastTile(wide, to.cols, lead);
    job.row_bytes = wide.row_stride * wide.bytes;
    job.regions = {Reads(wide), Writes(gathered.Around(box))};
    Gather(e, job, table);
    Narrow(e, to, gathered, box);
    return;
  }
  int64_t halves = to.bytes == 8 ? 2 : 1;
  Tile table = RowOffsets(e, to.cols, lead, from.col_stride * from.bytes, halves, to.bytes / halves);
  if (halves == 2) {
    for (Tile* tile : {&job.to, &job.from}) {
      tile->tensor = e.Call("LocalTensor.ReinterpretCast", "member", {"int32_t"}, {tile->tensor});
      tile->dtype = "int32";
      tile->bytes = 4;
      tile->offset = tile->offset.Scale(2);
      tile->row_stride *= 2;
    }
    job.words = job.words * 2;
  }
  Gather(e, job, table);
}

}  // namespace uir::codegen::ascend
