// SPDX-License-Identifier: Apache-2.0
// Loops over elements, printed.
#include "codegen/bang/scalar_loop.h"

#include "codegen/bang/run.h"

namespace uir::codegen::bang {

void ScalarLoop(Emitter& e, const std::vector<Tile>& tiles, const Box& box, const ElementBody& body) {
  std::string row = e.Fresh("i"), col = e.Fresh("j");
  bool one_row = tiles[0].rows == 1 && box.AllRows(1), one_col = tiles[0].cols == 1 && box.AllCols(1);
  std::vector<std::string> at;
  std::vector<pipes::Region> regions;
  for (size_t k = 0; k < tiles.size(); ++k) {
    at.push_back(e.Element(tiles[k], one_row ? "0" : row, one_col ? "0" : col));
    regions.push_back(k == 0 ? Writes(tiles[k]) : Reads(tiles[k]));
  }
  std::vector<std::string> lines = body(at);
  if (!one_col) lines = OverCols(col, box, lines);
  if (!one_row) lines = OverRows(row, box, lines);
  if (one_row && one_col) {
    lines.insert(lines.begin(), "{");
    lines.emplace_back("}");
  }
  e.Note("scalar code, some tens of cycles for an element");
  e.Do("S", lines, regions);
}

}  // namespace uir::codegen::bang
