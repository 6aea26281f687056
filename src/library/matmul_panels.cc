// SPDX-License-Identifier: Apache-2.0
// Products of many rows with a constant matrix, in tiles of our own: a piece of k at a time, so that the second cache
// holds the rows, which all panels of the weight read, this panel, which all tiles of rows read, and the next one,
// which is on its way. Of most products one piece is all.

#include <algorithm>
#include <memory>
#include <sstream>

#include "base/rounding.h"
#include "library/conv2d_tile_kernels.h"
#include "library/kernel.h"
#include "library/matmul.h"
#include "library/panel_kernels.h"
#include "library/panel_rows.h"
#include "library/parallel.h"

namespace uir::library {
namespace {

/*! Panels that take turns at a piece. */
constexpr int64_t kGroup = 12;
/*! What an element of the rows costs, in multiply-adds, to come from another core and to be laid out; one of the
 * weight, which is asked for ahead, costs about one. */
constexpr double kPacking = 16;
/*! Scratch of a thread. */
enum Slot { kRows, kSums };

class PanelMatmul final : public MatmulPlan {
 public:
  PanelMatmul(const MatmulAttrs& attrs, const PanelKernels& kernels, int threads)
      : attrs_(attrs),
        kernels_(kernels),
        format_(MatrixPanels(*TileKernelsHere(), attrs.k, attrs.n)),
        panel_(TileKernelsHere()->panel),
        widest_(TileKernelsHere()->widest) {
    auto cost = [&](const std::array<int64_t, 3>& size) {
      const double rows = static_cast<double>(size[0]), depth = static_cast<double>(attrs_.k);
      const double wide = static_cast<double>(std::min(attrs_.n, size[1] * panel_));
      return depth * (rows * wide + wide + kPacking * rows) + 16 * rows * wide;
    };
    split_ = ChooseSplit({SplitDim{attrs_.m, 1}, SplitDim{Panels(), 1}, SplitDim{}}, threads, cost);
    rows_ =
        std::make_unique<PanelRows>(attrs_.epilogue, CeilDiv<int64_t>(attrs_.m, split_.parts[0]), attrs_.k, kernels);
  }

  void Run(const MatmulData& data) const final {
    ParallelRun(split_.count(), [&](int task) {
      const std::array<int, 3> part = split_[task];
      RunPart(data, Part(attrs_.m, 1, split_.parts[0], part[0]), Part(Panels(), 1, split_.parts[1], part[1]));
    });
  }

  const WeightFormat* weight_format() const final { return &format_; }

  std::string Describe() const final {
    std::ostringstream text;
    text << "{\"plan\": \"panels\", \"implementation\": \"" << kernels_.name << "\", \"parts\": [1, " << split_.parts[0]
         << ", " << split_.parts[1] << "], \"panels\": " << Panels() << ", \"pieces\": " << rows_->pieces() << "}";
    return text.str();
  }

 private:
  int64_t Panels() const { return static_cast<int64_t>(format_.panels.size()); }
  int64_t Width(const Panel& panel) const { return RoundUp<int64_t>(panel.size, kernels_.lanes); }
  const float* Weight(const MatmulData& data, int64_t panel, int64_t piece) const {
    const Panel& found = format_.panels[panel];
    return reinterpret_cast<const float*>(data.b + found.offset) + rows_->Begin(piece) * Width(found);
  }

  void RunPart(const MatmulData& data, const Range& rows, const Range& panels) const {
    const int64_t high = rows_->HighOf(rows.size);
    auto* x = reinterpret_cast<float*>(ThreadScratch(kRows, attrs_.k * high * sizeof(float)));
    const int64_t wide = (kGroup - 1) * panel_ + widest_;
    auto* sums = reinterpret_cast<float*>(ThreadScratch(kSums, high * wide * sizeof(float)));
    const PlainRows from{reinterpret_cast<const float*>(data.a) + attrs_.a.offset, attrs_.a.strides[0],
                         attrs_.a.strides[1]};
    for (int64_t begin = 0; begin < rows.size; begin += high) {
      const RowBlock block = rows_->BlockOf({rows.begin + begin, std::min(high, rows.size - begin)}, x);
      rows_->Pack(from, block, {0, block.tiles}, x);
      for (int64_t group = 0; group < panels.size; group += kGroup) {
        RunGroup(data, block, {panels.begin + group, std::min(kGroup, panels.size - group)}, panels.begin + panels.size,
                 sums);
      }
    }
  }

  /*! Panels that take turns; those up to `end` follow. */
  void RunGroup(const MatmulData& data, const RowBlock& block, const Range& panels, int64_t end, float* sums) const {
    const int64_t last = panels.begin + panels.size;
    const PanelEnd ends = EndOf(data);
    for (int64_t piece = 0; piece < rows_->pieces(); ++piece) {
      float* to = sums;
      for (int64_t panel = panels.begin; panel < last; ++panel) {
        const float* ahead = nullptr;
        if (panel + 1 < last) {
          ahead = Weight(data, panel + 1, piece);
        } else if (piece + 1 < rows_->pieces()) {
          ahead = Weight(data, panels.begin, piece + 1);
        } else if (last < end) {
          ahead = Weight(data, last, 0);
        }
        const Panel& columns = format_.panels[panel];
        rows_->Run(ends, block, {columns.begin, columns.size, Width(columns), Weight(data, panel, piece), ahead}, piece,
                   to);
        to += block.rows.size * panel_;
      }
    }
  }

  PanelEnd EndOf(const MatmulData& data) const {
    PanelEnd end;
    end.epilogue = &attrs_.epilogue;
    end.columns = attrs_.n;
    end.at.bias = attrs_.epilogue.bias ? reinterpret_cast<const float*>(data.bias) : nullptr;
    const bool adds = attrs_.epilogue.residual != Residual::kNone;
    end.at.residual = adds ? reinterpret_cast<const float*>(data.residual) + attrs_.out.offset : nullptr;
    end.at.out = reinterpret_cast<float*>(data.out) + attrs_.out.offset;
    end.at.out_row = attrs_.out.strides[0], end.at.out_column = 1;
    return end;
  }

  MatmulAttrs attrs_;  // without batch
  const PanelKernels& kernels_;
  std::unique_ptr<PanelRows> rows_;
  WeightFormat format_;
  int64_t panel_, widest_;  // columns of a panel; of the last one, at most
  Split split_;
};

}  // namespace

MatmulAttrs RowsOf(const MatmulAttrs& attrs, const MatmulTypes& types) {
  return Collapse(WithPackedWeight(attrs, types.b));
}

bool HasPanels(const MatmulAttrs& attrs, const MatmulTypes& types) {
  if (!PanelKernelsHere() || !attrs.packed || attrs.n == 1) return false;
  if (types.a != DType::kF32 || types.b != DType::kF32 || types.out != DType::kF32) return false;
  const MatmulAttrs rows = RowsOf(attrs, types);
  return rows.batch.empty() && rows.out.strides[1] == 1;
}

std::unique_ptr<MatmulPlan> MakePanelMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads) {
  if (!HasPanels(attrs, types)) return nullptr;
  return std::make_unique<PanelMatmul>(RowsOf(attrs, types), *PanelKernelsHere(), threads);
}

}  // namespace uir::library
