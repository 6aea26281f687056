// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "library/attrs.h"
#include "library/dtype.h"
#include "library/packed_weight.h"

namespace uir::library {

struct Conv2dTypes {
  DType x = DType::kF32, w = DType::kF32, out = DType::kF32;
};

/*! First bytes of the operands; `w` is the body of a packed weight where the
 * plan has a format. */
struct Conv2dData {
  const char* x = nullptr;
  const char* w = nullptr;
  const char* bias = nullptr;
  const char* residual = nullptr;
  char* out = nullptr;
};

/*! Everything about one convolution that does not depend on the data: made
 * once, run often, from any thread. */
class Conv2dPlan {
 public:
  virtual ~Conv2dPlan() = default;
  virtual void Run(const Conv2dData& data) const = 0;
  virtual const WeightFormat* weight_format() const = 0;
  virtual std::string Describe() const = 0;
};

std::unique_ptr<Conv2dPlan> MakeConv2dPlan(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads);

/*! On oneDNN, activations with channels first, brought into its own layout and
 * back; null where only its reference code would serve. */
std::unique_ptr<Conv2dPlan> MakeBlockedConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads);

/*! On oneDNN, for activations of which some have the channels last, as its fast
 * code reads and writes them: only what has channels first is brought into that
 * layout. Null where only its reference code would serve. */
std::unique_ptr<Conv2dPlan> MakeChannelsLastConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads);

/*! Tiles of our own, with the channels last; null where measurements left it to the library, and where the CPU has no
 * AVX2. */
std::unique_ptr<Conv2dPlan> MakeTiledConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads);

/*! The same, whatever measurements left to the library; null where tiles cannot compute it. */
std::unique_ptr<Conv2dPlan> MakeAnyTiledConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads);

/*! Winograd's F(2x2, 3x3); null where others take less time, where direct sums are asked for, and where the CPU has no
 * AVX2. */
std::unique_ptr<Conv2dPlan> MakeWinogradConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads);

/*! Whether its weight can be panels of our own: float32, a packed weight, no groups. */
bool FitsPanels(const Conv2dAttrs& attrs, const Conv2dTypes& types);

/*! Loops in C++: any type, no library. */
std::unique_ptr<Conv2dPlan> MakePlainConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads);

/*! Dims of the weight as it is packed: [o, i, kh, kw], or [groups, o / groups,
 * i, kh, kw]. */
std::vector<int64_t> Conv2dWeightDims(const Conv2dAttrs& attrs);

/*! Distances in elements between neighbours of contiguous images of c x h x w. */
struct ImageStrides {
  int64_t image, channel, row, column;
  int64_t at(int64_t n, int64_t ch, int64_t y, int64_t x) const {
    return n * image + ch * channel + y * row + x * column;
  }
};
ImageStrides StridesOf(ImageLayout layout, int64_t c, int64_t h, int64_t w);

}  // namespace uir::library
