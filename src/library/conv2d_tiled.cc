// SPDX-License-Identifier: Apache-2.0
// Convolutions in tiles of our own, of activations with the channels last: some pixels by some output channels, whose
// sums stay in registers from the first product to the epilogue. Threads share pixels, not rows of images, or panels of
// the weight.

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "base/rounding.h"
#include "library/conv2d.h"
#include "library/conv2d_panel.h"
#include "library/conv2d_tile_kernels.h"
#include "library/parallel.h"

namespace uir::library {
namespace {

/*! Bytes of the input that serve all panels before the next ones: they stay in a core's second cache. */
constexpr int64_t kBandBytes = 256 << 10;
/*! Pixels of such a band, at least and at most. */
constexpr int64_t kLeastBand = 32, kMostBand = 1024;
/*! Weights of so many bytes stay in a core's first cache: then a few pixels serve all panels. */
constexpr int64_t kNearBytes = 24 << 10, kNearPixels = 24;
/*! Taps of a window, at most: each is a bit of a number. */
constexpr int64_t kMostTaps = 64;

/*! Pixels of the result, and what of the images their windows are. */
struct Band {
  Range pixels;
  int64_t windows[kMostBand];
  uint64_t inside[kMostBand];
};

class TiledConv2d final : public Conv2dPlan {
 public:
  TiledConv2d(const Conv2dAttrs& attrs, const TileKernels& kernels, int threads)
      : attrs_(attrs),
        kernels_(kernels),
        finish_(kernels.finish(attrs.epilogue.activation)),
        zeros_(attrs.i),
        format_(TilePanels(kernels, Conv2dWeightDims(attrs))) {
    for (int64_t y = 0; y < attrs_.kh; ++y) {
      for (int64_t x = 0; x < attrs_.kw; ++x) {
        taps_.push_back((y * attrs_.dilation[0] * attrs_.w + x * attrs_.dilation[1]) * attrs_.c);
      }
    }
    inside_rows_ = Inside(attrs_.oh, attrs_.h, 0);
    inside_columns_ = Inside(attrs_.ow, attrs_.w, 1);
    Cut(threads);
  }

  void Run(const Conv2dData& data) const final {
    ParallelRun(split_.count(), [&](int task) {
      const std::array<int, 3> part = split_[task];
      RunPart(data, Part(Pixels(), 1, split_.parts[0], part[0]),
              Part(static_cast<int64_t>(format_.panels.size()), 1, split_.parts[1], part[1]));
    });
  }

  const WeightFormat* weight_format() const final { return &format_; }
  std::string Describe() const final {
    std::ostringstream text;
    text << "{\"plan\": \"tiles\", \"implementation\": \"" << kernels_.name << "\", \"parts\": [" << split_.parts[0]
         << ", " << split_.parts[1] << "], \"panels\": " << format_.panels.size() << ", \"reorders\": 0}";
    return text.str();
  }

 private:
  int64_t Pixels() const { return attrs_.n * attrs_.oh * attrs_.ow; }
  int64_t Taps() const { return attrs_.kh * attrs_.kw; }

  /*! For each row or column of the result, the taps whose row or column lies in the image. */
  std::vector<uint64_t> Inside(int64_t results, int64_t size, int d) const {
    std::vector<uint64_t> made(results, 0);
    for (int64_t at = 0; at < results; ++at) {
      for (int64_t tap = 0; tap < Taps(); ++tap) {
        const int64_t step = d == 0 ? tap / attrs_.kw : tap % attrs_.kw;
        const int64_t place = at * attrs_.stride[d] - attrs_.padding[d] + step * attrs_.dilation[d];
        if (place >= 0 && place < size) made[at] |= uint64_t{1} << tap;
      }
    }
    return made;
  }

  /*! Threads share pixels, or panels where that leaves them less to read. */
  void Cut(int threads) {
    const double depth = static_cast<double>(attrs_.i * Taps()), channels = static_cast<double>(attrs_.i);
    auto cost = [&](const std::array<int64_t, 3>& size) {
      const double pixels = static_cast<double>(size[0]);
      const double wide = static_cast<double>(std::min(attrs_.o, size[1] * kernels_.panel));
      return depth * (pixels * wide + 12 * wide) + 8 * channels * pixels + 16 * pixels * wide;
    };
    const int64_t panels = static_cast<int64_t>(format_.panels.size());
    split_ = ChooseSplit({SplitDim{Pixels(), 1}, SplitDim{panels, 1}, SplitDim{}}, threads, cost);
  }

  Tile TileOf(const Conv2dData& data, const Panel& panel) const {
    Tile tile = PanelTile(attrs_.epilogue, panel, data.w, reinterpret_cast<const float*>(data.bias));
    tile.x = reinterpret_cast<const float*>(data.x);
    tile.zeros = zeros_.data();
    tile.taps = taps_.data(), tile.tap_count = Taps();
    tile.depth = attrs_.i, tile.row = attrs_.o;
    return tile;
  }

  void RunPart(const Conv2dData& data, const Range& pixels, const Range& columns) const {
    const int64_t bytes = attrs_.c * attrs_.stride[0] * attrs_.stride[1] * static_cast<int64_t>(sizeof(float));
    const int64_t size =
        format_.bytes <= kNearBytes ? kNearPixels : std::clamp(kBandBytes / bytes, kLeastBand, kMostBand);
    Band band;
    for (int64_t begin = 0; begin < pixels.size; begin += size) {
      band.pixels = {pixels.begin + begin, std::min(size, pixels.size - begin)};
      FindWindows(&band);
      const int64_t end = columns.begin + columns.size;
      for (int64_t number = columns.begin; number < end;) {
        const int beside = Beside(band, number, end);
        if (beside > 1) {
          RunBeside(data, band, number, beside);
        } else {
          RunPanel(data, band, format_.panels[number], number + 1 == end ? nullptr : &format_.panels[number + 1]);
        }
        number += beside;
      }
    }
  }

  void FindWindows(Band* band) const {
    const Conv2dAttrs& s = attrs_;
    int64_t column = band->pixels.begin % s.ow, row = band->pixels.begin / s.ow % s.oh;
    int64_t image = band->pixels.begin / s.ow / s.oh;
    for (int64_t p = 0; p < band->pixels.size; ++p) {
      const int64_t y = row * s.stride[0] - s.padding[0], x = column * s.stride[1] - s.padding[1];
      band->windows[p] = ((image * s.h + y) * s.w + x) * s.c;
      band->inside[p] = inside_rows_[row] & inside_columns_[column];
      if (++column < s.ow) continue;
      column = 0;
      if (++row < s.oh) continue;
      row = 0, ++image;
    }
  }

  /*! How many panels from this one on a tile of all pixels of a band takes at once. */
  int Beside(const Band& band, int64_t number, int64_t end) const {
    if (band.pixels.size > kMostBesidePixels) return 1;
    const int most = kernels_.most_beside[band.pixels.size - 1];
    int count = 0;
    while (count < most && number + count < end && format_.panels[number + count].size == kernels_.panel) ++count;
    return std::max(count, 1);
  }

  void RunBeside(const Conv2dData& data, const Band& band, int64_t number, int panels) const {
    const Panel& first = format_.panels[number];
    const int pixels = static_cast<int>(band.pixels.size);
    alignas(64) float sums[kMostSums];
    Tile tile = TileOf(data, first);
    tile.channels = panels * first.size;
    tile.apart = (format_.panels[number + 1].offset - first.offset) / static_cast<int64_t>(sizeof(float));
    Place(data, band, first, 0, &tile);
    kernels_.beside(panels, pixels)(tile, sums);
    if (!tile.bounded) finish_(tile, sums, static_cast<int>(tile.channels / kernels_.lanes), pixels);
  }

  /*! What a tile from pixel number `begin` of a band on reads and writes. */
  void Place(const Conv2dData& data, const Band& band, const Panel& panel, int64_t begin, Tile* tile) const {
    const int64_t at = (band.pixels.begin + begin) * attrs_.o + panel.begin;
    tile->windows = band.windows + begin, tile->inside = band.inside + begin;
    tile->out = reinterpret_cast<float*>(data.out) + at;
    const bool adds = attrs_.epilogue.residual != Residual::kNone;
    tile->residual = adds ? reinterpret_cast<const float*>(data.residual) + at : nullptr;
  }

  void RunPanel(const Conv2dData& data, const Band& band, const Panel& panel, const Panel* next) const {
    const char* ahead = next && kernels_.fetches ? data.w + next->offset : nullptr;
    RunTiles(kernels_, finish_, TileOf(data, panel), band.pixels.size, ahead, next ? next->layout.bytes : 0,
             [&](int64_t begin, Tile* tile) { Place(data, band, panel, begin, tile); });
  }

  Conv2dAttrs attrs_;
  const TileKernels& kernels_;
  FinishOf finish_;
  std::vector<float> zeros_;
  std::vector<int64_t> taps_;
  std::vector<uint64_t> inside_rows_, inside_columns_;
  WeightFormat format_;
  Split split_;
};

/*! Whether tiles can compute it. */
bool CanTile(const Conv2dAttrs& s, const Conv2dTypes& types, const TileKernels& kernels) {
  const bool last = s.input_layout == ImageLayout::kChannelsLast && s.output_layout == ImageLayout::kChannelsLast;
  return last && FitsPanels(s, types) && s.kh * s.kw <= kMostTaps && kernels.finish(s.epilogue.activation);
}

}  // namespace

WeightFormat TilePanels(const TileKernels& kernels, const std::vector<int64_t>& dims) {
  const int64_t outputs = dims[0], inputs = dims[1], taps = dims[2] * dims[3];
  WeightFormat format;
  format.dims = dims;
  for (int64_t begin = 0; begin < outputs;) {
    const int64_t left = outputs - begin, size = left <= kernels.widest ? left : kernels.panel;
    const int64_t wide = RoundUp<int64_t>(size, kernels.lanes), tap = inputs * wide;
    BlockedLayout layout = BlockedLayout::Contiguous({size, inputs, dims[2], dims[3]}, sizeof(float));
    layout.strides[0] = taps * tap;
    layout.strides[1] = wide;
    layout.strides[2] = dims[3] * tap;
    layout.strides[3] = tap;
    layout.blocks = 1;
    layout.block_size[0] = wide;
    layout.bytes = taps * tap * static_cast<int64_t>(sizeof(float));
    format.Add(begin, size, layout);
    begin += size;
  }
  return format;
}

bool FitsPanels(const Conv2dAttrs& s, const Conv2dTypes& types) {
  const bool single = types.x == DType::kF32 && types.w == DType::kF32 && types.out == DType::kF32;
  return single && s.packed && s.groups == 1 && s.epilogue.alpha == 1.0;
}

std::unique_ptr<Conv2dPlan> MakeTiledConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads) {
  const TileKernels* kernels = TileKernelsHere();
  return kernels && kernels->rule.Holds(attrs) ? MakeAnyTiledConv2d(attrs, types, threads) : nullptr;
}

std::unique_ptr<Conv2dPlan> MakeAnyTiledConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads) {
  const TileKernels* kernels = TileKernelsHere();
  if (!kernels || !CanTile(attrs, types, *kernels)) return nullptr;
  return std::make_unique<TiledConv2d>(attrs, *kernels, threads);
}

}  // namespace uir::library
