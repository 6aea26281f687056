// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3x3 windows by Winograd's F(2x2, 3x3): 2x2 pixels of the result take 16 products for each pair of
// channels instead of 36. Patches of 4x4 pixels become 16 numbers for each channel, 16 products of matrices follow, and
// their results become pixels. What lies between stays in a core's second cache. A side with the channels first is
// turned in the first cache, a stretch of patches and a vector of channels at a time.

#include <algorithm>
#include <array>
#include <cstring>
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
/*! Floats between positions beyond their own, so that the 16 do not share the places of a cache. */
constexpr int64_t kApart = kLine / static_cast<int64_t>(sizeof(float));

enum Slot { kPatches, kSums, kPixels };

/*! Patches side by side in an image. */
struct Stretch {
  int64_t image, row, column;  // of patches
  int64_t first, count;        // among those of a band
};

class WinogradConv2d final : public Conv2dPlan {
 public:
  WinogradConv2d(const Conv2dAttrs& attrs, const TileKernels& kernels, int threads)
      : attrs_(attrs),
        kernels_(kernels),
        gather_(kernels.gather(attrs.epilogue.activation)),
        patch_rows_(CeilDiv<int64_t>(attrs.oh, 2)),
        patch_columns_(CeilDiv<int64_t>(attrs.ow, 2)),
        depth_(RoundUp<int64_t>(attrs.i, kernels.lanes)),
        band_(WinogradBand(attrs.i, kernels.core)),
        zeros_(attrs.i),
        format_(TilePanels(kernels, {attrs.o, attrs.i, 4, 4})) {
    format_.transform = WeightTransform::kWinograd;
    format_.dims = Conv2dWeightDims(attrs_);
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

  /*! `body` for each row of patches of a band. */
  template <typename Body>
  void ForStretches(const Range& band, Body body) const {
    for (int64_t first = 0; first < band.size;) {
      const int64_t number = band.begin + first, line = number / patch_columns_, column = number % patch_columns_;
      const int64_t count = std::min(patch_columns_ - column, band.size - first);
      body(Stretch{line / patch_rows_, line % patch_rows_, column, first, count});
      first += count;
    }
  }

  void SpreadBand(const Conv2dData& data, const Range& band, float* spread, int64_t position) const {
    const float* x = reinterpret_cast<const float*>(data.x);
    const bool last = attrs_.input_layout == ImageLayout::kChannelsLast;
    ForStretches(band, [&](const Stretch& stretch) {
      float* to = spread + stretch.first * depth_;
      last ? SpreadPixels(x, stretch, to, position) : SpreadPlanes(x, stretch, to, position);
    });
  }

  /*! Of images with the channels last. */
  void SpreadPixels(const float* x, const Stretch& stretch, float* to, int64_t position) const {
    const Conv2dAttrs& s = attrs_;
    const int64_t y = 2 * stretch.row - s.padding[0];
    for (int64_t p = 0; p < stretch.count; ++p) {
      const int64_t left = 2 * (stretch.column + p) - s.padding[1];
      const float* first = x + ((stretch.image * s.h + y) * s.w + left) * s.c;
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
      kernels_.spread(pixels, s.i, to + p * depth_, position);
    }
  }

  /*! Of images with the channels first: the pixels of the stretch, a vector of channels at a time, as with the channels
   * last, with zeros beside the image. */
  void SpreadPlanes(const float* x, const Stretch& stretch, float* to, int64_t position) const {
    const Conv2dAttrs& s = attrs_;
    const int64_t y = 2 * stretch.row - s.padding[0], left = 2 * stretch.column - s.padding[1];
    const int64_t lanes = kernels_.lanes, columns = 2 * stretch.count + 2;
    const int64_t begin = std::clamp<int64_t>(-left, 0, columns), end = std::clamp(s.w - left, begin, columns);
    const size_t bytes = 4 * columns * lanes * sizeof(float);
    float* turned = reinterpret_cast<float*>(ThreadScratch(kPixels, bytes));
    std::memset(turned, 0, bytes);
    for (int64_t channel = 0; channel < s.i; channel += lanes) {
      const int64_t count = std::min(lanes, s.i - channel);
      const float* planes = x + (stretch.image * s.c + channel) * s.h * s.w;
      for (int64_t row = std::max<int64_t>(0, -y); row < std::min<int64_t>(4, s.h - y); ++row) {
        kernels_.transpose(planes + (y + row) * s.w + left + begin, s.h * s.w, count, end - begin,
                           turned + (row * columns + begin) * lanes, lanes);
      }
      for (int64_t p = 0; p < stretch.count; ++p) {
        const float* pixels[kPositions];
        for (int64_t at = 0; at < kPositions; ++at) pixels[at] = turned + (at / 4 * columns + 2 * p + at % 4) * lanes;
        kernels_.spread(pixels, count, to + p * depth_ + channel, position);
      }
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
    Patch patch;
    patch.position = products, patch.epilogue = &attrs_.epilogue, patch.channels = panel.size;
    if (attrs_.epilogue.bias) patch.bias = reinterpret_cast<const float*>(data.bias) + panel.begin;
    float* out = reinterpret_cast<float*>(data.out);
    const bool adds = attrs_.epilogue.residual != Residual::kNone;
    const float* residual = adds ? reinterpret_cast<const float*>(data.residual) : nullptr;
    const bool last = attrs_.output_layout == ImageLayout::kChannelsLast;
    ForStretches(band, [&](const Stretch& stretch) {
      const float* from = sums + stretch.first * wide;
      last ? GatherPixels(patch, from, wide, stretch, panel, residual, out)
           : GatherPlanes(patch, from, wide, stretch, panel, residual, out);
    });
  }

  /*! The patches of a stretch, whose results begin at `out` and have rows of `patch.line` floats. */
  void GatherStretch(Patch patch, const float* sums, int64_t wide, const Stretch& stretch, const float* residual,
                     float* out) const {
    patch.rows = 2 * stretch.row + 1 < attrs_.oh ? 2 : 1;
    for (int64_t p = 0; p < stretch.count; ++p) {
      patch.sums = sums + p * wide;
      patch.out = out + 2 * p * patch.pixel;
      patch.residual = residual ? residual + 2 * p * patch.pixel : nullptr;
      patch.columns = 2 * (stretch.column + p) + 1 < attrs_.ow ? 2 : 1;
      gather_(patch);
    }
  }

  /*! To images with the channels last. */
  void GatherPixels(Patch patch, const float* sums, int64_t wide, const Stretch& stretch, const Panel& panel,
                    const float* residual, float* out) const {
    const Conv2dAttrs& s = attrs_;
    const int64_t row = stretch.image * s.oh + 2 * stretch.row;
    const int64_t at = (row * s.ow + 2 * stretch.column) * s.o + panel.begin;
    patch.line = s.ow * s.o, patch.pixel = s.o;
    GatherStretch(patch, sums, wide, stretch, residual ? residual + at : nullptr, out + at);
  }

  /*! To images with the channels first, through pixels that lie as with the channels last. */
  void GatherPlanes(Patch patch, const float* sums, int64_t wide, const Stretch& stretch, const Panel& panel,
                    const float* residual, float* out) const {
    const Conv2dAttrs& s = attrs_;
    const int64_t plane = s.oh * s.ow, row = 2 * stretch.row, column = 2 * stretch.column;
    const int64_t at = (stretch.image * s.o + panel.begin) * plane + row * s.ow + column;
    const int64_t rows = std::min<int64_t>(2, s.oh - row), width = std::min(2 * stretch.count, s.ow - column);
    patch.line = width * wide, patch.pixel = wide;
    float* turned = reinterpret_cast<float*>(ThreadScratch(kPixels, 4 * patch.line * sizeof(float)));
    float* beside = residual ? turned + 2 * patch.line : nullptr;
    for (int64_t y = 0; residual && y < rows; ++y) {
      kernels_.transpose(residual + at + y * s.ow, plane, panel.size, width, beside + y * patch.line, wide);
    }
    GatherStretch(patch, sums, wide, stretch, beside, turned);
    for (int64_t y = 0; y < rows; ++y) {
      kernels_.transpose(turned + y * patch.line, wide, width, panel.size, out + at + y * s.ow, plane);
    }
  }

  Conv2dAttrs attrs_;
  const TileKernels& kernels_;
  GatherOf gather_;
  int64_t patch_rows_, patch_columns_, depth_;  // floats of a patch's row: channels, up to whole vectors
  int64_t band_;                                // patches that serve all panels before the next ones
  std::vector<float> zeros_;
  WeightFormat format_;
  Split split_;
};

/*! Whether it is a convolution of 3x3 windows that this computes, and sooner than sums of products. */
bool IsWinograd(const Conv2dAttrs& s, const Conv2dTypes& types, const TileKernels& kernels) {
  const bool windows = s.kh == 3 && s.kw == 3 && s.stride[0] == 1 && s.stride[1] == 1;
  if (!windows || s.dilation[0] != 1 || s.dilation[1] != 1 || s.execution.way == Way::kDirect) return false;
  if (!FitsPanels(s, types) || !kernels.gather(s.epilogue.activation)) return false;
  return s.execution.way == Way::kWinograd || WinogradGain(s, kernels.core) >= kernels.core.margin;
}

}  // namespace

std::unique_ptr<Conv2dPlan> MakeWinogradConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads) {
  const TileKernels* kernels = TileKernelsHere();
  if (!kernels || !IsWinograd(attrs, types, *kernels)) return nullptr;
  return std::make_unique<WinogradConv2d>(attrs, *kernels, threads);
}

}  // namespace uir::library
