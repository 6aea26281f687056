// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/transpose.h"

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/ascend/api.h"
#include "codegen/ascend/ops.h"
#include "codegen/ascend/tile_ops.h"
#include "codegen/ascend/vector_run.h"

namespace uir::codegen::ascend {
namespace {

/*! \brief Blocks of either side of a repeat of TransDataTo5HD. */
constexpr int64_t kListed = kSquare;

bool InSquares(const Tile& to, const Tile& turned) {
  if ((to.bytes != 2 && to.bytes != 4) || !to.RowsDense() || !RowsAligned(to) || turned.row_stride != 1) return false;
  bool source = turned.align >= kBlockBytes && turned.col_stride * turned.bytes % kBlockBytes == 0;
  return source && to.cols % kListed == 0 && to.rows % (kBlockBytes / to.bytes) == 0;
}

/*! \brief All of a tile from all of its source, whatever of it is valid. */
void TransposeBlocks(Emitter& e, const Tile& to, const Tile& turned) {
  // any type of the size will do: the bits are moved
  std::string stored = to.bytes == 2 ? "int16" : "int32";
  bool known = to.dtype == "fp16" || to.dtype == "fp32" || to.dtype == stored;
  Tile target = known ? to : e.As(to, stored), source = known ? turned : e.As(turned, stored);
  std::string type = ElementType(target.dtype);
  int64_t block = kBlockBytes / to.bytes, blocks = to.rows / block;
  std::vector<std::string> lines;
  std::string first = e.Fresh("col"), k = e.Fresh("k"), into = e.Fresh("into"), from = e.Fresh("from");
  auto address = [&](const Tile& tile, const std::string& more) {
    return "(uint64_t)" + e.Call("LocalTensor.GetPhyAddr", "member", {type}, {e.At(tile, more)});
  };
  // a row of the source gives a column of the target: 16 of them to a call, repeated along the row
  lines.push_back("for (int32_t " + first + " = 0; " + first + " < " + std::to_string(to.cols) + "; " + first +
                  " += " + std::to_string(kListed) + ") {");
  lines.push_back("  uint64_t " + into + "[" + std::to_string(kListed) + "], " + from + "[" + std::to_string(kListed) +
                  "];");
  for (int64_t done = 0; done < blocks; done += kMostRepeats) {
    int64_t repeats = std::min(kMostRepeats, blocks - done);
    Tile part = target.Part(done * block, 0, 1, 1), rows = source.Part(done * block, 0, 1, 1);
    // of four bytes a target row's 16 elements are two blocks, named one after the other
    std::string place = to.bytes == 2 ? TimesText(k, target.row_stride) + " + " + first
                                      : "(" + k + " >> 1) * " + std::to_string(target.row_stride) + " + (" + k +
                                            " & 1) * " + std::to_string(block) + " + " + first;
    lines.push_back("  for (int32_t " + k + " = 0; " + k + " < " + std::to_string(kListed) + "; ++" + k + ") {");
    lines.push_back("    " + into + "[" + k + "] = " + address(part, place) + ";");
    lines.push_back("    " + from + "[" + k +
                    "] = " + address(rows, "(" + first + " + " + k + ") * " + std::to_string(source.col_stride)) + ";");
    lines.emplace_back("  }");
    int64_t step = repeats == 1 ? 0 : block * RowBlocks(target);
    std::string params =
        e.Call("TransDataTo5HDParams", "struct", {},
               {"false", "false", std::to_string(repeats), std::to_string(step), repeats == 1 ? "0" : "1"});
    lines.push_back("  " + e.Call("TransDataTo5HD", "plain", {type}, {into, from, params}) + ";");
  }
  lines.emplace_back("}");
  e.Do("V", lines, {Reads(turned.Turned()), Writes(to)});
}

}  // namespace

void Turn(Emitter& e, const Tile& to, const Tile& turned, const Box& box, bool free) {
  if (InSquares(to, turned) && (free || box.Whole(to.rows, to.cols))) {
    TransposeBlocks(e, to, turned);
  } else {
    Relayout(e, to, turned, box);
  }
}

void EmitTranspose(Emitter& e, const IOp& iop) {
  Tile to = e.TileOf(iop->targets[0]), turned = e.TileOf(iop->sources[0]).Turned();
  Turn(e, to, turned, to.box, !e.SparesOutside(iop->targets[0]));
}

}  // namespace uir::codegen::ascend
