// SPDX-License-Identifier: Apache-2.0
// Convolutions of few pixels with windows of one, which are products of pixels and channels, in tiles of our own: the
// library shares out whole rows of images, and its call costs as much as one pixel does. A tile is some pixels by up
// to 64 output channels, whose sums stay in registers.

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>
#include <utility>

#include "base/rounding.h"
#include "library/conv2d.h"
#include "library/parallel.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_TILES 1
#include <immintrin.h>
#endif
#define UIR_INLINE inline __attribute__((always_inline))

namespace uir::library {

#ifdef UIR_TILES
namespace {

/*! Output channels of a panel of the weight, at most. */
constexpr int kPanel = 64;
/*! Pixels of a tile, at most, by its vectors of channels. */
constexpr int kMostPixels[4] = {8, 8, 8, 6};
/*! Sums of a tile, at most. */
constexpr int kMostSums = 6 * kPanel;
/*! Numbers of the input that serve all panels before the next ones: they stay in a core's second cache. */
constexpr int64_t kBandBytes = 256 << 10;
/*! Weights of so many bytes stay in a core's first cache: then a few pixels serve all panels. */
constexpr int64_t kNearBytes = 24 << 10, kNearPixels = 24;
/*! Fewer pixels are ours, and some more where sums are of many products. */
constexpr int64_t kFewPixels = 128, kMorePixels = 256, kManyProducts = 512;

/*! What one tile reads and writes. */
struct Tile {
  const float* const* x = nullptr;                   // the pixels
  const float* weight = nullptr;                     // [depth, vectors * lanes]
  const float *bias = nullptr, *residual = nullptr;  // null: none
  float* out = nullptr;
  int64_t depth = 0;              // products of a sum
  int64_t row = 0, channels = 0;  // from pixel to pixel of the result; how many channels of it these are
  const Epilogue* epilogue = nullptr;
  bool bounded = false;  // nothing but bounds comes after the sum, of product, bias and residual
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma")
namespace avx512 {
constexpr int kLanes = 16;
#include "library/conv2d_tile.h"
}  // namespace avx512
#pragma GCC pop_options

constexpr int kLanes = avx512::kLanes;

bool HasInstructions() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

class TiledConv2d final : public Conv2dPlan {
 public:
  TiledConv2d(const Conv2dAttrs& attrs, int threads)
      : attrs_(attrs), finish_(avx512::FinishFor(attrs.epilogue.activation)) {
    format_.dims = Conv2dWeightDims(attrs_);
    for (int64_t begin = 0; begin < attrs_.o; begin += kPanel) {
      const int64_t size = std::min<int64_t>(kPanel, attrs_.o - begin);
      format_.Add(begin, size, PanelLayout(size));
    }
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
    text << "{\"plan\": \"tiles\", \"implementation\": \"avx512\", \"parts\": [" << split_.parts[0] << ", "
         << split_.parts[1] << "], \"panels\": " << format_.panels.size() << ", \"reorders\": 0}";
    return text.str();
  }

 private:
  int64_t Pixels() const { return attrs_.n * attrs_.oh * attrs_.ow; }

  /*! Of [o, i, 1, 1]: the output channels of a panel side by side, for each channel of the input. */
  BlockedLayout PanelLayout(int64_t size) const {
    const int64_t wide = RoundUp(size, kLanes);
    BlockedLayout layout = BlockedLayout::Contiguous({size, attrs_.i, 1, 1}, sizeof(float));
    for (int d = 1; d < 4; ++d) layout.strides[d] = wide;
    layout.strides[0] = attrs_.i * wide;
    layout.blocks = 1;
    layout.block_size[0] = wide;
    layout.bytes = attrs_.i * wide * static_cast<int64_t>(sizeof(float));
    return layout;
  }

  /*! Threads share pixels, or panels where that leaves them less to read. */
  void Cut(int threads) {
    const double depth = static_cast<double>(attrs_.i);
    auto cost = [&](const std::array<int64_t, 3>& size) {
      const double pixels = static_cast<double>(size[0]);
      const double wide = static_cast<double>(std::min(attrs_.o, size[1] * kPanel));
      return depth * (pixels * wide + 12 * wide + 8 * pixels) + 16 * pixels * wide;
    };
    const int64_t panels = static_cast<int64_t>(format_.panels.size());
    split_ = ChooseSplit({SplitDim{Pixels(), 1}, SplitDim{panels, 1}, SplitDim{}}, threads, cost);
  }

  Tile TileOf(const Conv2dData& data, const Panel& panel) const {
    Tile tile;
    tile.weight = reinterpret_cast<const float*>(data.w + panel.offset);
    tile.bias = attrs_.epilogue.bias ? reinterpret_cast<const float*>(data.bias) + panel.begin : nullptr;
    tile.depth = attrs_.i, tile.row = attrs_.o, tile.channels = panel.size;
    const Epilogue& epilogue = attrs_.epilogue;
    tile.epilogue = &epilogue;
    const bool clips = epilogue.activation == Activation::kClip, starts = epilogue.activation == Activation::kRelu;
    tile.bounded = (clips || starts || epilogue.activation == Activation::kNone) &&
                   epilogue.residual != Residual::kAfterActivation;
    if (clips) tile.low = epilogue.parameters[0], tile.high = epilogue.parameters[1];
    if (starts) tile.low = 0.0f;
    return tile;
  }

  void RunPart(const Conv2dData& data, const Range& pixels, const Range& columns) const {
    const int64_t bytes = attrs_.c * static_cast<int64_t>(sizeof(float));
    const int64_t band = format_.bytes <= kNearBytes ? kNearPixels : std::max<int64_t>(32, kBandBytes / bytes);
    for (int64_t begin = 0; begin < pixels.size; begin += band) {
      const Range some{pixels.begin + begin, std::min(band, pixels.size - begin)};
      for (int64_t number = columns.begin; number < columns.begin + columns.size; ++number) {
        RunPanel(data, some, format_.panels[number]);
      }
    }
  }

  void RunPanel(const Conv2dData& data, const Range& pixels, const Panel& panel) const {
    const int vectors = static_cast<int>(CeilDiv<int64_t>(panel.size, kLanes));
    const int tiles = static_cast<int>(CeilDiv<int64_t>(pixels.size, kMostPixels[vectors - 1]));
    const bool adds = attrs_.epilogue.residual != Residual::kNone;
    alignas(64) float sums[kMostSums];
    const float* x[kMostPixels[0]];
    Tile tile = TileOf(data, panel);
    tile.x = x;
    for (int number = 0; number < tiles; ++number) {
      const Range mine = Part(pixels.size, 1, tiles, number);
      const int count = static_cast<int>(mine.size);
      const int64_t first = pixels.begin + mine.begin, at = first * attrs_.o + panel.begin;
      for (int p = 0; p < count; ++p) x[p] = Pixel(data, first + p);
      tile.out = reinterpret_cast<float*>(data.out) + at;
      tile.residual = adds ? reinterpret_cast<const float*>(data.residual) + at : nullptr;
      avx512::SumsFor(vectors, count)(tile, sums);
      if (!tile.bounded || tile.channels % kLanes) finish_(tile, sums, vectors, count);
    }
  }

  /*! The input's pixel of one of the result. */
  const float* Pixel(const Conv2dData& data, int64_t pixel) const {
    const Conv2dAttrs& s = attrs_;
    const float* x = reinterpret_cast<const float*>(data.x);
    if (s.stride[0] == 1 && s.stride[1] == 1) return x + pixel * s.c;
    const int64_t column = pixel % s.ow, row = pixel / s.ow % s.oh, image = pixel / s.ow / s.oh;
    return x + ((image * s.h + row * s.stride[0]) * s.w + column * s.stride[1]) * s.c;
  }

  Conv2dAttrs attrs_;
  avx512::FinishOf finish_;
  WeightFormat format_;
  Split split_;
};

/*! Whether tiles compute it, and sooner than the library. */
bool IsTiled(const Conv2dAttrs& s, const Conv2dTypes& types) {
  const bool single = types.x == DType::kF32 && types.w == DType::kF32 && types.out == DType::kF32;
  const bool last = s.input_layout == ImageLayout::kChannelsLast && s.output_layout == ImageLayout::kChannelsLast;
  const bool pads = s.padding[0] || s.padding[1] || s.padding[2] || s.padding[3];
  if (!single || !last || pads || !s.packed || s.groups != 1 || s.kh != 1 || s.kw != 1) return false;
  if (s.epilogue.alpha != 1.0 || !avx512::FinishFor(s.epilogue.activation)) return false;
  return s.n * s.oh * s.ow < (s.i < kManyProducts ? kFewPixels : kMorePixels);
}

}  // namespace
#endif

std::unique_ptr<Conv2dPlan> MakeTiledConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads) {
#ifdef UIR_TILES
  if (HasInstructions() && IsTiled(attrs, types)) return std::make_unique<TiledConv2d>(attrs, threads);
#endif
  return nullptr;
}

}  // namespace uir::library
