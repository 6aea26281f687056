// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3x3 windows by Winograd's F(2x2, 3x3), of activations with the channels last: 2x2 pixels of the
// result take 16 products for each pair of channels instead of 36. Patches of 4x4 pixels become 16 numbers for each
// channel, 16 products of matrices follow, and their results become pixels. What lies between stays in a core's second
// cache.

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "base/rounding.h"
#include "library/conv2d.h"
#include "library/conv2d_tile_kernels.h"
#include "library/kernel.h"
#include "library/parallel.h"

namespace uir::library {
namespace {

/*! Numbers of a patch for each channel. */
constexpr int kPositions = 16;
/*! Bytes of the patches that serve all panels before the next ones: half of a core's second cache. */
constexpr int64_t kBandBytes = 256 << 10;
/*! Patches of such a band, at least and at most. */
constexpr int64_t kLeastBand = 12, kMostBand = 24;
/*! Floats between positions beyond their own, so that the 16 do not share the places of a cache. */
constexpr int64_t kApart = kLine / static_cast<int64_t>(sizeof(float));

enum Slot { kPatches, kSums };

class WinogradConv2d final : public Conv2dPlan {
 public:
  WinogradConv2d(const Conv2dAttrs& attrs, const TileKernels& kernels, int threads)
      : attrs_(attrs),
        kernels_(kernels),
        gather_(kernels.gather(attrs.epilogue.activation)),
        patch_rows_(CeilDiv<int64_t>(attrs.oh, 2)),
        patch_columns_(CeilDiv<int64_t>(attrs.ow, 2)),
        depth_(RoundUp<int64_t>(attrs.i, kernels.lanes)),
        zeros_(attrs.i),
        format_(TilePanels(kernels, {attrs.o, attrs.i, 4, 4})) {
    format_.transform = WeightTransform::kWinograd;
    format_.dims = Conv2dWeightDims(attrs_);
    band_ = std::clamp(kBandBytes / (kPositions * depth_ * static_cast<int64_t>(sizeof(float))), kLeastBand, kMostBand);
    Cut(threads);
  }

  void Run(const Conv2dData& data) const final {
    ParallelRun(split_.count(), [&](int task) {
      const std::array<int, 3> part = split_[task];
      RunPart(data, Part(Patches(), 1, split_.parts[0], part[0]),
              Part(static_cast<int64_t>(format_.panels.size()), 1, split_.parts[1], part[1]));
    });
  }

  const WeightFormat* weight_format() const final { return &format_; }
  std::string Describe() const final {
    std::ostringstream text;
    text << "{\"plan\": \"winograd\", \"implementation\": \"" << kernels_.name << "\", \"parts\": [" << split_.parts[0]
         << ", " << split_.parts[1] << "], \"panels\": " << format_.panels.size() << ", \"reorders\": 0}";
    return text.str();
  }

 private:
  int64_t Patches() const { return attrs_.n * patch_rows_ * patch_columns_; }

  /*! Threads share patches, or panels where that leaves them less to read. */
  void Cut(int threads) {
    const double depth = static_cast<double>(attrs_.i);
    auto cost = [&](const std::array<int64_t, 3>& size) {
      const double patches = static_cast<double>(size[0]);
      const double wide = static_cast<double>(std::min(attrs_.o, size[1] * kernels_.panel));
      return kPositions * (depth * (patches * wide + 12 * wide) + 32 * (depth + wide) * patches);
    };
    const int64_t panels = static_cast<int64_t>(format_.panels.size());
    split_ = ChooseSplit({SplitDim{Patches(), 1}, SplitDim{panels, 1}, SplitDim{}}, threads, cost);
  }

  void RunPart(const Conv2dData& data, const Range& patches, const Range& columns) const {
    const int64_t position = band_ * depth_ + kApart;
    float* spread = reinterpret_cast<float*>(ThreadScratch(kPatches, kPositions * position * sizeof(float)));
    // equal bands, so that the last is no smaller than the others
    const int64_t bands = CeilDiv(patches.size, band_);
    for (int64_t number = 0; number < bands; ++number) {
      const int64_t first = patches.size * number / bands, end = patches.size * (number + 1) / bands;
      const Range band = {patches.begin + first, end - first};
      SpreadBand(data, band, spread, position);
      for (int64_t at = columns.begin; at < columns.begin + columns.size; ++at) {
        RunPanel(data, band, spread, position, format_.panels[at]);
      }
    }
  }

  void SpreadBand(const Conv2dData& data, const Range& band, float* spread, int64_t position) const {
    const Conv2dAttrs& s = attrs_;
    const float* x = reinterpret_cast<const float*>(data.x);
    int64_t column = band.begin % patch_columns_, row = band.begin / patch_columns_ % patch_rows_;
    int64_t image = band.begin / patch_columns_ / patch_rows_;
    for (int64_t p = 0; p < band.size; ++p) {
      const int64_t y = 2 * row - s.padding[0], left = 2 * column - s.padding[1];
      const float* first = x + ((image * s.h + y) * s.w + left) * s.c;
      const float* pixels[kPositions];
      if (y >= 0 && y + 4 <= s.h && left >= 0 && left + 4 <= s.w) {
        for (int64_t at = 0; at < kPositions; ++at) pixels[at] = first + (at / 4 * s.w + at % 4) * s.c;
      } else {
        for (int64_t at = 0; at < kPositions; ++at) {
          const int64_t here = y + at / 4, there = left + at % 4;
          const bool inside = here >= 0 && here < s.h && there >= 0 && there < s.w;
          pixels[at] = inside ? first + (at / 4 * s.w + at % 4) * s.c : zeros_.data();
        }
      }
      kernels_.spread(pixels, s.i, spread + p * depth_, position);
      if (++column < patch_columns_) continue;
      column = 0;
      if (++row < patch_rows_) continue;
      row = 0, ++image;
    }
  }

  void RunPanel(const Conv2dData& data, const Range& band, const float* spread, int64_t position,
                const Panel& panel) const {
    const int vectors = static_cast<int>(CeilDiv<int64_t>(panel.size, kernels_.lanes));
    const int64_t wide = vectors * kernels_.lanes, most = kernels_.most_pixels[vectors - 1];
    const int64_t tiles = CeilDiv(band.size, most), products = band_ * wide + kApart;
    float* sums = reinterpret_cast<float*>(ThreadScratch(kSums, kPositions * products * sizeof(float)));
    for (int64_t at = 0; at < kPositions; ++at) {
      const float* weight = reinterpret_cast<const float*>(data.w + panel.offset) + at * attrs_.i * wide;
      for (int64_t number = 0; number < tiles; ++number) {
        const int64_t begin = band.size * number / tiles, end = band.size * (number + 1) / tiles;
        kernels_.patch_sums(vectors, static_cast<int>(end - begin))(
            spread + at * position + begin * depth_, depth_, weight, attrs_.i, sums + at * products + begin * wide);
      }
    }
    GatherBand(data, band, sums, products, wide, panel);
  }

  void GatherBand(const Conv2dData& data, const Range& band, const float* sums, int64_t products, int64_t wide,
                  const Panel& panel) const {
    const Conv2dAttrs& s = attrs_;
    Patch patch;
    patch.position = products, patch.epilogue = &s.epilogue;
    patch.line = s.ow * s.o, patch.pixel = s.o, patch.channels = panel.size;
    if (s.epilogue.bias) patch.bias = reinterpret_cast<const float*>(data.bias) + panel.begin;
    for (int64_t p = 0; p < band.size; ++p) {
      const int64_t number = band.begin + p, line = number / patch_columns_;
      const int64_t row = 2 * (line % patch_rows_), column = 2 * (number % patch_columns_);
      const int64_t at = ((line / patch_rows_ * s.oh + row) * s.ow + column) * s.o + panel.begin;
      patch.sums = sums + p * wide;
      patch.out = reinterpret_cast<float*>(data.out) + at;
      if (s.epilogue.residual != Residual::kNone) patch.residual = reinterpret_cast<const float*>(data.residual) + at;
      patch.rows = row + 1 < s.oh ? 2 : 1, patch.columns = column + 1 < s.ow ? 2 : 1;
      gather_(patch);
    }
  }

  Conv2dAttrs attrs_;
  const TileKernels& kernels_;
  GatherOf gather_;
  int64_t patch_rows_, patch_columns_, depth_;  // floats of a patch's row: channels, up to whole vectors
  int64_t band_ = kLeastBand;
  std::vector<float> zeros_;
  WeightFormat format_;
  Split split_;
};

/*! Whether it is a convolution of 3x3 windows that this computes, and sooner than sums of products. */
bool IsWinograd(const Conv2dAttrs& s, const Conv2dTypes& types, const TileKernels& kernels) {
  const bool windows = s.kh == 3 && s.kw == 3 && s.stride[0] == 1 && s.stride[1] == 1;
  if (!windows || s.dilation[0] != 1 || s.dilation[1] != 1 || s.execution.way == Way::kDirect) return false;
  if (!FitsTiles(s, types) || !kernels.gather(s.epilogue.activation)) return false;
  return s.execution.way == Way::kWinograd || kernels.winograd.Holds(s);
}

}  // namespace

std::unique_ptr<Conv2dPlan> MakeWinogradConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads) {
  const TileKernels* kernels = TileKernelsHere();
  if (!kernels || !IsWinograd(attrs, types, *kernels)) return nullptr;
  return std::make_unique<WinogradConv2d>(attrs, *kernels, threads);
}

}  // namespace uir::library
