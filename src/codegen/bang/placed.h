// SPDX-License-Identifier: Apache-2.0
// Where in work buffers the steps of an elementwise program leave what they make.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "codegen/bang/program.h"
#include "codegen/tiles/steps.h"

namespace uir::codegen::bang {

using tiles::Computes;

/*! \brief Elements of a constant that functions repeat. */
constexpr int64_t kSegment = 64;

//! \brief A program's steps that are needed, and the slot of each: a part of the work buffer, -1 for the target.
//!
//! A slot is free again after the last step that reads it, for the step itself where the function works in place.
class Placed {
 public:
  /*! \param cycles Whether all counts are multiples of `kSegment`: constants may be that short and repeat. */
  Placed(const tiles::Program& program, Value result, bool cycles = false);

  const std::vector<Step>& steps() const { return steps_; }
  bool used(int id) const { return used_[id]; }
  int slot(int id) const { return slot_[id]; }
  int slots() const { return slots_; }
  /*! \brief Whether a constant is a segment that functions repeat, and how many there are. */
  bool IsShort(int id) const { return short_[id]; }
  int segments() const { return segments_; }
  /*! \brief Columns that are computed. */
  int columns() const { return columns_; }
  /*! \brief The operand that the result is itself. */
  std::optional<int> Operand() const {
    const Step& step = steps_[result_];
    return step.form == Step::Form::kInput ? std::optional<int>(step.operand) : std::nullopt;
  }
  /*! \brief The step whose bytes a view shows. */
  int Root(int id) const { return tiles::RootOf(steps_, id); }

 private:
  /*! \brief Constants of floats that are second operands of functions that repeat them, and nothing else. */
  void FindShort();
  /*! \brief A slot: one that an operand leaves, where the function may work in its place (in_place.h). */
  void PlaceStep(int id);
  int Own();
  void Free(const std::set<int>& slots) { free_.insert(free_.end(), slots.begin(), slots.end()); }
  bool IsConstant(int id) const { return steps_[id].form == Step::Form::kFill; }

  std::vector<Step> steps_;
  int result_;
  std::vector<bool> used_, short_;
  std::vector<int> last_, slot_, free_;
  int segments_ = 0, slots_ = 0, columns_ = 0;
};

}  // namespace uir::codegen::bang
