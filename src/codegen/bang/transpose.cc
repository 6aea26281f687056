// SPDX-License-Identifier: Apache-2.0
// Transpositions of dense tiles by the vector function, of others by copies of elements.
#include "codegen/bang/api.h"
#include "codegen/bang/ops.h"
#include "codegen/bang/run.h"
#include "codegen/bang/tile_ops.h"

namespace uir::codegen::bang {

void TurnRows(Emitter& e, const Tile& to, const Tile& from, const std::string& rows, const std::string& cols,
              const std::string& condition) {
  const std::string type = to.bytes == 4 ? "int32_t" : to.bytes == 2 ? "int16_t" : "int8_t";
  const std::string own = ElementType(to.dtype);
  const std::string call =
      Table().Call(e.where(), "__bang_transpose", "count", {type},
                   {Typed(e.At(to), own, type), Typed(e.At(from), own, type), rows, cols}, e.platform()) +
      ";";
  e.Do("COMPUTE", Under(condition.empty() ? "" : "if (" + condition + ")", {call}), {Writes(to), Reads(from)});
}

void TransposeTile(Emitter& e, const Tile& to, const Tile& from) {
  bool whole = to.box.Whole(to.rows, to.cols) && to.Dense() && from.Dense();
  if (!whole || to.bytes == 8 || to.memory != kNram || from.memory != kNram) {
    Copy(e, to, from.Turned(), to.box);
    return;
  }
  TurnRows(e, to, from, std::to_string(from.rows), std::to_string(from.cols));
}

void EmitTranspose(Emitter& e, const IOp& iop) {
  Tile to = e.TileOf(iop->targets[0]), from = e.TileOf(iop->sources[0]);
  // what nobody reads outside of the box may be turned with the rest
  if (!e.SparesOutside(iop->targets[0])) to.box = Box::Of(to.rows, to.cols);
  TransposeTile(e, to, from);
}

}  // namespace uir::codegen::bang
