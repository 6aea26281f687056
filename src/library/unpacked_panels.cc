// SPDX-License-Identifier: Apache-2.0
#include "library/unpacked_panels.h"

#include <algorithm>
#include <vector>

#include "library/kernel.h"

namespace uir::library {
namespace {

/*! Blocks that are unpacked at a time, and their bytes, where several blocks of rows read them. */
constexpr int64_t kGroup = 12, kGroupBytes = 1 << 20;
/*! Scratch: of the caller, and of every thread. */
enum Slot { kRows, kSums, kUnpacked };

}  // namespace

bool RunUnpackedPanels(const QuantizedKernels& kernels, const Panels& panels, const PlainRows& x, const Operands& at,
                       int64_t rows, int tasks) {
  const PanelKernels* tiles = BlockKernelsHere();
  const int64_t k = panels.attrs.k;
  if (!tiles || at.out_column != 1 || k == 0) return false;
  const PanelRows product(panels.attrs.epilogue, rows, k, *tiles);
  const int64_t high = product.HighOf(rows), panel_floats = k * kBlock;
  auto* laid_out = reinterpret_cast<float*>(ThreadScratch(kRows, rows * k * sizeof(float)));
  std::vector<RowBlock> blocks;
  for (int64_t begin = 0; begin < rows; begin += high) {
    blocks.push_back(product.BlockOf({begin, std::min(high, rows - begin)}, laid_out + begin * k));
  }
  ParallelRun(tasks, [&](int task) {
    for (const RowBlock& block : blocks) {
      product.Pack(x, block, Part(block.tiles, 1, tasks, task), laid_out + block.rows.begin * k);
    }
  });
  // of one block of rows a panel is done before the next is unpacked
  const int64_t fitting = kGroupBytes / (panel_floats * static_cast<int64_t>(sizeof(float)));
  const int64_t group = blocks.size() == 1 ? 1 : std::clamp<int64_t>(fitting, 1, kGroup);
  const PanelEnd end{&panels.attrs.epilogue, panels.attrs.n, at};
  ParallelRun(tasks, [&](int task) {
    auto* unpacked = reinterpret_cast<float*>(ThreadScratch(kUnpacked, group * panel_floats * sizeof(float)));
    auto* sums = reinterpret_cast<float*>(ThreadScratch(kSums, group * high * kBlock * sizeof(float)));
    const Range part = Part(panels.blocks(), 1, tasks, task);
    for (int64_t first = 0; first < part.size; first += group) {
      const int64_t some = std::min(group, part.size - first);
      for (int64_t i = 0; i < some; ++i) kernels.unpack(panels, part.begin + first + i, unpacked + i * panel_floats);
      for (const RowBlock& block : blocks) {
        for (int64_t piece = 0; piece < product.pieces(); ++piece) {
          const float* weight = unpacked + product.Begin(piece) * kBlock;
          for (int64_t i = 0; i < some; ++i, weight += panel_floats) {
            const int64_t begin = (part.begin + first + i) * kBlock;
            const float* ahead = i + 1 < some ? weight + panel_floats : nullptr;
            product.Run(end, block, {begin, std::min<int64_t>(kBlock, panels.attrs.n - begin), kBlock, weight, ahead},
                        piece, sums + i * block.rows.size * kBlock);
          }
        }
      }
    }
  });
  return true;
}

}  // namespace uir::library
