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

/*! On oneDNN, activations brought into its blocked layout and back; null where
 * only its reference code would serve. */
std::unique_ptr<Conv2dPlan> MakeBlockedConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads);

/*! Loops in C++: any type, no library. */
std::unique_ptr<Conv2dPlan> MakePlainConv2d(const Conv2dAttrs& attrs, const Conv2dTypes& types, int threads);

/*! Dims of the weight as it is packed: [o, i, kh, kw], or [groups, o / groups,
 * i, kh, kw]. */
std::vector<int64_t> Conv2dWeightDims(const Conv2dAttrs& attrs);

}  // namespace uir::library
