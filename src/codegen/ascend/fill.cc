// SPDX-License-Identifier: Apache-2.0
#include "base/rounding.h"
#include "codegen/ascend/api.h"
#include "codegen/ascend/tile_ops.h"

namespace uir::codegen::ascend {

namespace {

/*! \brief The bits of a number of an integer or bool dtype. */
uint64_t PatternOf(const ScalarType& type, const ffi::Any& value) {
  auto whole = value.as<int64_t>();
  if (whole && type.kind != Kind::kBool) return static_cast<uint64_t>(*whole);
  return WholeBits(type.kind, type.bytes, whole ? static_cast<double>(*whole) : value.cast<double>());
}

/*! \brief The words that Duplicate can write, and the literal of one; the tile as words. */
struct Pattern {
  Tile tile;
  std::string literal;
};

std::optional<Pattern> PatternOf(Emitter& e, const Tile& tile, const ffi::Any& value) {
  const ScalarType& type = TypeOf(tile.dtype);
  if (type.bytes == 2 || type.bytes == 4) return Pattern{tile, e.Literal(tile.dtype, value)};
  uint64_t bits = PatternOf(type, value);
  Tile whole = tile;
  int64_t block = kBlockBytes / tile.bytes;
  whole.cols = RoundUp(tile.cols, block);
  if (type.bytes == 1) {
    uint64_t twice = (bits & 0xff) * 0x0101;
    return Pattern{e.As(whole, "int16"), IntLiteral(static_cast<int16_t>(twice), "int16_t")};
  }
  if ((bits >> 32) != (bits & 0xffffffffu)) return std::nullopt;
  return Pattern{e.As(whole, "int32"), IntLiteral(static_cast<int32_t>(bits), "int32_t")};
}

}  // namespace

void FillTile(Emitter& e, const Tile& tile, const ffi::Any& value, const std::string& condition) {
  std::vector<std::string> lines;
  std::string row = tile.rows == 1 ? "" : e.Fresh("row");
  std::optional<Pattern> pattern = PatternOf(e, tile, value);
  std::string loop = ForText(row, "0", std::to_string(tile.rows));
  std::string pipe = pattern ? "V" : "S";
  if (pattern) {
    const Tile& words = pattern->tile;
    std::string type = TypeOf(words.dtype).stored;
    int64_t block = kBlockBytes / words.bytes, cols = RoundUp(words.cols, block);
    auto call = [&](const std::string& more, int64_t count) {
      return e.Call("Duplicate", "count", {type}, {e.At(words, more), pattern->literal, std::to_string(count)}) + ";";
    };
    if (tile.rows == 1 || words.row_stride == cols) {
      lines = {call("", tile.rows * cols)};
    } else {
      lines = {loop, "  " + call(row + " * " + std::to_string(words.row_stride), cols)};
    }
  } else {
    // halves of 8-byte elements that differ: no vector function writes them
    std::string type = TypeOf(tile.dtype).stored, col = e.Fresh("col"), start = e.Text(tile.offset);
    std::string index = (start == "0" ? "" : start + " + ") +
                        (tile.rows == 1 ? "" : row + " * " + std::to_string(tile.row_stride) + " + ") + col;
    std::string set =
        e.Call("LocalTensor.SetValue", "member", {type}, {tile.tensor, index, e.Literal(tile.dtype, value)});
    if (tile.rows > 1) lines.push_back(loop);
    lines.push_back("  " + ForText(col, "0", std::to_string(tile.cols)));
    lines.push_back("    " + set + ";");
  }
  if (!condition.empty()) {
    for (std::string& line : lines) line = "  " + line;
    lines.insert(lines.begin(), "if (" + condition + ")");
  }
  e.Do(pipe, lines, {BlocksOf(tile, true)});
}

}  // namespace uir::codegen::ascend
