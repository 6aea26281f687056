// SPDX-License-Identifier: Apache-2.0
// All that is decided of a kernel's body before it is printed: a tree of loops and steps, what stands around each, and
// where lanes meet.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/cuda/async.h"
#include "codegen/cuda/plan.h"
#include "codegen/cuda/step.h"
#include "codegen/uses.h"

namespace uir::codegen::cuda {

/*! \brief A loop with its body, or a step. */
struct Node {
  /*! \brief Pointers whose register arrays are declared before it. */
  std::vector<std::string> declared;
  /*! \brief What loads that run ahead ask for before and after it; nullptr where they ask for nothing. */
  const AsyncStep* around = nullptr;
  std::optional<Loop> loop;
  std::vector<Node> body;
  std::unique_ptr<Step> step;
};

/*! \brief The plan of a kernel's body. */
class BodyPlan {
 public:
  /*! \brief Both must outlive this. */
  BodyPlan(const Plan& plan, const std::vector<Use>& uses);

  const std::vector<Node>& nodes() const { return nodes_; }
  const AsyncPlan& async() const { return async_; }
  /*! \brief All slices of the graph, and the pointers that they are of. */
  const std::vector<Use>& uses() const { return uses_; }
  const std::set<std::string>& used() const { return used_; }
  /*! \brief Whether the lanes of the warp meet at a place. */
  bool Meets(MeetingPlace place) const { return place != kNowhere && meets_[place]; }
  /*! \brief Whether they meet before the body. */
  bool meets_at_start() const { return meets_at_start_; }
  /*! \brief Bytes that the block's warps share, and of one warp's scratch. */
  int64_t shared_bytes() const { return shared_bytes_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  const std::vector<Use>& uses_;
  std::set<std::string> used_;
  AsyncPlan async_;
  std::vector<Node> nodes_;
  std::vector<bool> meets_;
  bool meets_at_start_ = false;
  int64_t shared_bytes_ = 0, scratch_bytes_ = 0;
};

}  // namespace uir::codegen::cuda
