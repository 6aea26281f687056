// SPDX-License-Identifier: Apache-2.0
// What the group forms of reduce and broadcast share: the sets of warps, their barrier, their buffer.
#pragma once

#include <optional>
#include <string>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

/*! \brief The set of warps of one block that a group form joins, and the shared buffer between them. */
struct GroupPlan {
  int64_t size = 1, units = 1;
  ISlice buffer;
  /*! \brief Whether the buffer's elements follow each other without a gap. */
  bool contiguous = false;
  /*! \brief Whether the set has a barrier of its own; else all warps of the block meet. */
  bool named = false;
  /*! \brief Before the buffer is written, and before it is read. */
  MeetingPlace written = kNowhere, read = kNowhere;

  /*! \brief The set of an iOp of scope group; none of scope unit, nor of a set of one warp. */
  static std::optional<GroupPlan> Of(const StepPlanner& p, const IOp& iop);
};

/*! \brief Prints what a set does. */
class Group {
 public:
  /*! \brief Names the buffer. */
  Group(Emitter* e, const GroupPlan& plan);

  const GroupPlan& plan() const { return plan_; }
  /*! \brief The warp's number within its set. */
  std::string Member() const;
  /*! \brief The buffer's k-th element in the order of its rows, as an lvalue; `k` binds as a sum. */
  std::string Slot(const std::string& k) const;
  /*! \brief The set meets: all warps of the block, or the named barrier of the set. */
  void Barrier() const;

 private:
  Emitter* e_;
  const GroupPlan& plan_;
  std::string base_;
};

}  // namespace uir::codegen::cuda
