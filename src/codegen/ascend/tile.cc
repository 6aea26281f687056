// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/tile.h"

#include "base/rounding.h"

namespace uir::codegen::ascend {

pipes::Region BlocksOf(const Tile& tile, bool write) {
  pipes::Region region = tile.Region(write);
  // of a run that starts at a block the rest of its last block; else that of the first as well
  int64_t phase = tile.align >= kBlockBytes ? 0 : kBlockBytes - tile.align;
  if (phase > 0) region.begin = region.begin - Affine::Constant(phase);
  region.bytes = RoundUp(region.bytes + phase, kBlockBytes);
  return region;
}

std::vector<std::string> WhereSome(const std::vector<std::string>& lines, const std::vector<Bound>& counts) {
  std::string condition;
  for (const Bound& count : counts) {
    if (count.range.low > 0) continue;
    condition += (condition.empty() ? "" : " && ") + count.Text(Precedence::kSum) + " > 0";
  }
  if (condition.empty()) return lines;
  std::vector<std::string> guarded = {"if (" + condition + ")"};
  for (const std::string& line : lines) guarded.push_back("  " + line);
  return guarded;
}

}  // namespace uir::codegen::ascend
