// SPDX-License-Identifier: Apache-2.0
// Convolutions in plain C++: for float64, for types without fast library code,
// and where there is no library.

#include <algorithm>
#include <array>

#include "library/conv2d.h"
#include "library/parallel.h"

namespace uir::library {
namespace {

template <typename T>
class PlainConv2d final : public Conv2dPlan {
 public:
  PlainConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads)
      : attrs_(attrs),
        types_(types),
        x_(StridesOf(attrs.input_layout, attrs.c, attrs.h, attrs.w)),
        out_(StridesOf(attrs.output_layout, attrs.o, attrs.oh, attrs.ow)) {
    if (attrs_.packed) format_ = WeightFormat::Plain(types_.w, Conv2dWeightDims(attrs_), 0);
    const double work = 4.0 * static_cast<double>(attrs_.oh * attrs_.ow * attrs_.i * attrs_.kh * attrs_.kw);
    auto cost = [work](const std::array<int64_t, 3>& size) { return work * static_cast<double>(size[0] * size[1]); };
    split_ = ChooseSplit({SplitDim{attrs_.n, 1}, SplitDim{attrs_.o, 1}, SplitDim{}}, threads, cost);
  }

  void Run(const Conv2dData& data) const final {
    ParallelRun(split_.count(), [&](int task) {
      const std::array<int, 3> part = split_[task];
      const Range images = Part(attrs_.n, 1, split_.parts[0], part[0]);
      const Range channels = Part(attrs_.o, 1, split_.parts[1], part[1]);
      for (int64_t n = images.begin; n < images.begin + images.size; ++n) {
        for (int64_t o = channels.begin; o < channels.begin + channels.size; ++o) {
          for (int64_t y = 0; y < attrs_.oh; ++y) RunRow(data, n, o, y);
        }
      }
    });
  }

  const WeightFormat* weight_format() const final { return attrs_.packed ? &format_ : nullptr; }
  std::string Describe() const final { return "{\"plan\": \"plain\", \"implementation\": \"C++\"}"; }

 private:
  void RunRow(const Conv2dData& data, int64_t n, int64_t o, int64_t y) const {
    const Conv2dAttrs& s = attrs_;
    T* sums = reinterpret_cast<T*>(ThreadScratch(0, s.ow * sizeof(T)));
    std::fill(sums, sums + s.ow, T(0));
    const int64_t first_channel = o / (s.o / s.groups) * s.i;
    for (int64_t c = 0; c < s.i; ++c) {
      for (int64_t ky = 0; ky < s.kh; ++ky) {
        const int64_t row = y * s.stride[0] - s.padding[0] + ky * s.dilation[0];
        if (row < 0 || row >= s.h) continue;
        const int64_t x_at = x_.at(n, first_channel + c, row, 0);
        for (int64_t kx = 0; kx < s.kw; ++kx) {
          const T weight = Load<T>(data.w, types_.w, ((o * s.i + c) * s.kh + ky) * s.kw + kx);
          for (int64_t x = 0; x < s.ow; ++x) {
            const int64_t column = x * s.stride[1] - s.padding[1] + kx * s.dilation[1];
            if (column >= 0 && column < s.w) sums[x] += weight * Load<T>(data.x, types_.x, x_at + column * x_.column);
          }
        }
      }
    }
    const T bias = s.epilogue.bias ? Load<T>(data.bias, types_.out, o) : T(0);
    for (int64_t x = 0; x < s.ow; ++x) {
      const int64_t at = out_.at(n, o, y, x);
      const T residual = s.epilogue.residual != Residual::kNone ? Load<T>(data.residual, types_.out, at) : T(0);
      Store<T>(data.out, types_.out, at, Finish<T>(s.epilogue, sums[x], bias, residual));
    }
  }

  Conv2dAttrs attrs_;
  Conv2dTypes types_;
  ImageStrides x_, out_;
  WeightFormat format_;
  Split split_;
};

}  // namespace

std::vector<int64_t> Conv2dWeightDims(const Conv2dAttrs& attrs) {
  if (attrs.groups == 1) return {attrs.o, attrs.i, attrs.kh, attrs.kw};
  return {attrs.groups, attrs.o / attrs.groups, attrs.i, attrs.kh, attrs.kw};
}

ImageStrides StridesOf(ImageLayout layout, int64_t c, int64_t h, int64_t w) {
  if (layout == ImageLayout::kChannelsLast) return {h * w * c, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

std::unique_ptr<Conv2dPlan> MakePlainConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads) {
  if (types.x == DType::kF64 || types.w == DType::kF64 || types.out == DType::kF64) {
    return std::make_unique<PlainConv2d<double>>(attrs, types, threads);
  }
  return std::make_unique<PlainConv2d<float>>(attrs, types, threads);
}

std::unique_ptr<Conv2dPlan> MakeConv2dPlan(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads) {
  if (attrs.execution.way == Way::kTiles) {
    if (auto plan = MakeAnyTiledConv2d(attrs, types, threads)) return plan;
  }
  if (attrs.execution.way != Way::kPlain) {
    if (auto plan = MakeWinogradConv2d(attrs, types, threads)) return plan;
    if (auto plan = MakeTiledConv2d(attrs, types, threads)) return plan;
    const auto make = attrs.channels_last() ? MakeChannelsLastConv2d : MakeBlockedConv2d;
    if (auto plan = make(attrs, types, threads)) return plan;
  }
  return MakePlainConv2d(attrs, types, threads);
}

}  // namespace uir::library
