// SPDX-License-Identifier: Apache-2.0
// One vector function over consecutive elements, or over rows that lie apart.
#include <algorithm>
#include <cstdlib>

#include "base/rounding.h"
#include "codegen/ascend/api.h"
#include "codegen/ascend/vector_run.h"

namespace uir::codegen::ascend {
namespace {

std::vector<pipes::Region> RegionsOf(const VectorCall& call, int64_t rows, int64_t cols) {
  std::vector<pipes::Region> regions;
  for (size_t k = 0; k < call.tensors.size(); ++k) {
    Tile tile = call.tensors[k];
    tile.rows = rows;
    tile.cols = cols;
    tile.col_stride = 1;
    regions.push_back(tile.Region(k == 0));
  }
  return regions;
}

std::string Repeated(Emitter& e, const VectorCall& call, const std::vector<std::string>& tensors,
                     const std::string& mask, const std::string& repeats) {
  std::vector<std::string> args = tensors, strides;
  args.insert(args.end(), call.arguments.begin(), call.arguments.end());
  args.insert(args.end(), {mask, repeats});
  for (const Tile& tile : call.tensors) strides.push_back(std::to_string(RowBlocks(tile)));
  if (call.tensors.size() == 1) {
    args.insert(args.end(), {"1", strides[0]});
  } else {
    std::vector<std::string> params(call.tensors.size(), "1");
    params.insert(params.end(), strides.begin(), strides.end());
    const char* of = call.api == "Copy"         ? "CopyRepeatParams"
                     : call.tensors.size() == 2 ? "UnaryRepeatParams"
                                                : "BinaryRepeatParams";
    args.push_back(e.Call(of, "struct", {}, params));
  }
  return e.Call(call.api, "repeat", call.types, args) + ";";
}

}  // namespace

std::string RestText(const Bound& total, int64_t done, int64_t most) {
  if (total.Constant()) return std::to_string(std::clamp<int64_t>(total.most() - done, 0, most));
  std::string rest = done == 0 ? total.text : total.text + " - " + std::to_string(done);
  std::string text = done == 0 ? rest : "(" + rest + ")";
  if (total.least() - done < 0) text = "(" + text + " < 0 ? 0 : " + text + ")";
  return total.most() - done > most ? MinText(text, std::to_string(most)) : text;
}

bool RowsReachable(const std::vector<Tile>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const Tile& tile) {
    return RowsAligned(tile) && tile.RowsDense() && RowBlocks(tile) <= kMostRepeats;
  });
}

void CallCount(Emitter& e, const VectorCall& call, const Bound& count, const std::string& form) {
  std::vector<std::string> args;
  for (const Tile& tile : call.tensors) args.push_back(e.At(tile));
  args.insert(args.end(), call.arguments.begin(), call.arguments.end());
  args.push_back(count.text);
  e.Do("V", e.Call(call.api, form, call.types, args) + ";", RegionsOf(call, 1, count.most()));
}

void CallRows(Emitter& e, const VectorCall& call, const Bound& rows, const Bound& cols) {
  if (rows.Constant() && rows.most() == 1) {
    CallCount(e, call, cols);
    return;
  }
  int64_t widest = 1;
  for (const Tile& tile : call.tensors) widest = std::max(widest, tile.bytes);
  int64_t step = kRepeatBytes / widest;
  std::vector<std::string> lines;
  int64_t pieces = CeilDiv(cols.most(), step) * CeilDiv(rows.most(), kMostRepeats);
  if (HasForm(call.api, "repeat") && RowsReachable(call.tensors) && pieces <= rows.most()) {
    for (int64_t row = 0; row < rows.most(); row += kMostRepeats) {
      for (int64_t col = 0; col < cols.most(); col += step) {
        std::vector<std::string> tensors;
        for (const Tile& tile : call.tensors) {
          tensors.push_back(e.At(tile.Part(row, col, 1, 1)));
        }
        std::vector<std::string> one = {
            Repeated(e, call, tensors, RestText(cols, col, step), RestText(rows, row, kMostRepeats))};
        // a mask of no elements is none
        if (cols.least() <= col) one = tiles::Under("if (" + cols.text + " > " + std::to_string(col) + ")", one);
        lines.insert(lines.end(), one.begin(), one.end());
      }
    }
  } else {
    std::string row = e.Fresh("r");
    std::vector<std::string> args;
    for (const Tile& tile : call.tensors) args.push_back(e.At(tile, TimesText(row, tile.row_stride)));
    args.insert(args.end(), call.arguments.begin(), call.arguments.end());
    args.push_back(cols.text);
    lines = Looped(row, "0", rows.text, {e.Call(call.api, "count", call.types, args) + ";"});
  }
  e.Do("V", lines, RegionsOf(call, rows.most(), cols.most()));
}

OwnLoop::OwnLoop(Emitter& e, const std::string& hint, int64_t extent) : e_(e) {
  auto node = ffi::make_object<LoopNode>();
  // the name serves in the graph's namespace too, so it must be one that no loop there has
  node->var = e.Fresh(hint);
  node->extent = extent;
  loop_ = Loop(node);
  e_.Enter(loop_);
}

void OwnLoop::Close() { e_.Leave(loop_); }

}  // namespace uir::codegen::ascend
