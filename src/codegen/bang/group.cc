// SPDX-License-Identifier: Apache-2.0
#include "codegen/bang/group.h"

#include <tvm/ffi/any.h>

#include "base/attrs.h"
#include "codegen/bang/elementwise.h"
#include "codegen/bang/tile_ops.h"

namespace uir::codegen::bang {

namespace {

/*! \brief The set that a group form joins, and its buffer in SRAM. */
struct Set {
  int64_t units = 1;
  /*! \brief C++ text that holds of the set's first unit. */
  std::string first;
  Tile buffer;
  Affine own;

  Set(Emitter* e, const IOp& iop) {
    units = iop->attrs.at("group_size").cast<int64_t>();
    own = Affine::Var("pid").Mod(units);
    first = e->Text(own) + " == 0";
    buffer = e->TileOf(iop->attrs.at("buffer").cast<ISlice>());
    if (buffer.memory != kSram || !buffer.Dense()) {
      e->Refuse("The buffer of units of a cluster is not a run of SRAM.", "a slice of sram without gaps", "", "");
    }
  }

  /*! \brief A dense piece of the buffer. */
  Tile Place(const Affine& offset, int64_t rows, int64_t cols) const {
    Tile place = buffer;
    place.offset = buffer.offset + offset;
    place.rows = rows;
    place.cols = cols;
    place.row_stride = cols;
    place.col_stride = 1;
    place.align = buffer.bytes;
    place.box = Box::Of(rows, cols);
    return place;
  }
};

}  // namespace

bool IsGroupForm(const IOp& iop) { return iop->op != "sync" && AttrOr(iop->attrs, "scope", std::string()) == "group"; }

void EmitGroupReduce(Emitter& e, const IOp& iop) {
  Set set(&e, iop);
  Tile to = e.TileOf(iop->targets[0]), from = e.TileOf(iop->sources[0]);
  int64_t elements = to.rows * to.cols;
  Tile part = e.Work(to.dtype, to.rows, to.cols);
  ReduceTile(e, part, from, std::string(iop->name), TextAttr(iop->attrs, "axis"));
  Copy(e, set.Place(set.own.Scale(elements), to.rows, to.cols), part, part.box);
  e.MeetCluster();
  auto only = e.When(set.first);
  Tile parts = e.Work(to.dtype, set.units, elements);
  Tile stored = set.Place(Affine::Constant(0), set.units, elements);
  Copy(e, parts, stored, stored.box);
  auto one = [&](int64_t unit) {
    Tile tile = parts.Part(unit, 0, 1, elements);
    tile.rows = to.rows;
    tile.cols = to.cols;
    tile.row_stride = to.cols;
    tile.box = Box::Of(to.rows, to.cols);
    return tile;
  };
  bool straight = to.Dense() && to.box.Whole(to.rows, to.cols);
  for (int64_t unit = 1; unit < set.units; ++unit) {
    bool last = unit + 1 == set.units;
    BinaryTile(e, std::string(iop->name), last && straight ? to : one(0), one(0), one(unit));
  }
  if (!straight) Copy(e, to, one(0), to.box);
}

void EmitGroupBroadcast(Emitter& e, const IOp& iop) {
  Set set(&e, iop);
  Tile to = e.TileOf(iop->targets[0]), from = e.TileOf(iop->sources[0]);
  Tile place = set.Place(Affine::Constant(0), from.rows, from.cols);
  {
    auto only = e.When(set.first);
    Copy(e, place, from, from.box);
  }
  e.MeetCluster();
  if (to.rows == from.rows && to.cols == from.cols) return Copy(e, to, place, to.box);
  Tile work = e.Work(to.dtype, from.rows, from.cols);
  Copy(e, work, place, place.box);
  BroadcastTile(e, to, work, TextAttr(iop->attrs, "axis"));
}

}  // namespace uir::codegen::bang
