// SPDX-License-Identifier: Apache-2.0
// The steps of an elementwise program made ready to be printed, and the buffers of what they make.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/tiles/steps.h"

namespace uir::codegen::ascend {

using tiles::Computes;
using tiles::Program;
using tiles::Step;
using tiles::Value;

/*! \brief A program made ready for a layout: dead steps gone, copies where a step needs consecutive operands. */
class Ready {
 public:
  /*! \brief `apart`: rows lie apart; `whole`: every count is a multiple of a repeat's elements. */
  Ready(const Program& program, Value result, bool apart, bool whole);

  const std::vector<Step>& steps() const { return steps_; }
  int result() const { return result_; }
  /*! \brief Whether a step's values do not depend on the operands. */
  bool IsConstant(int id) const { return tiles::IsConstant(steps_, steps_[id]); }
  /*! \brief Whether a step is computed once, before the chunks: a constant in a buffer of its own. */
  bool IsPrepared(int id) const { return Computes(steps_[id]) && IsConstant(id) && id != RootOf(result_); }
  /*! \brief The step whose bytes a step shows. */
  int RootOf(int id) const { return tiles::RootOf(steps_, id); }

 private:
  /*! \brief A step's bytes as another step of the same root shows them. */
  int ViewOf(int id, const Step& like);

  std::vector<Step> steps_;
  int result_;
};

/*! \brief Which buffer holds what a step makes; buffers are shared by what does not live at once. */
struct Buffers {
  /*! \brief Of every step: its buffer, or -1 (inputs, views, the result). */
  std::vector<int> of;
  /*! \brief Bits per element, and the dtype that it is declared with. */
  std::vector<int64_t> bits;
  std::vector<std::string> dtypes;

  int64_t Bits() const {
    int64_t sum = 0;
    for (int64_t each : bits) sum += each;
    return sum;
  }
};

/*! \brief Gives steps their buffers, in the order in which they are computed. */
Buffers PlaceSteps(const Ready& ready);

}  // namespace uir::codegen::ascend
