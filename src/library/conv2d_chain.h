// SPDX-License-Identifier: Apache-2.0
// Convolutions one after another, of which each reads what the one before writes (`Conv2dChainAttrs`), in float32.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "library/attrs.h"
#include "library/packed_weight.h"

namespace uir::library {

/*! Operands of one of them: the body of a packed weight, or of windows for each channel [kh, kw, c]. */
struct ChainPart {
  const char* weight = nullptr;
  const float* bias = nullptr;  // null: none
};

struct Conv2dChainData {
  const float* x = nullptr;
  std::vector<ChainPart> parts;
  const float* residual = nullptr;  // null: none
  float* out = nullptr;
};

/*! Made once, run often, from any thread. */
class Conv2dChainPlan {
 public:
  virtual ~Conv2dChainPlan() = default;
  virtual void Run(const Conv2dChainData& data) const = 0;
  /*! How part number `number` wants its weight; null where it has a window for each channel. */
  virtual const WeightFormat* weight_format(int number) const = 0;
  virtual std::string Describe() const = 0;
};

//! Rows of what lies between stay in a core's second cache where the CPU has tiles for all of it; else one convolution
//! after the other, each through memory.
std::unique_ptr<Conv2dChainPlan> MakeConv2dChain(const Conv2dChainAttrs& attrs, int threads);

}  // namespace uir::library
