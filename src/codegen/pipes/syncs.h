// SPDX-License-Identifier: Apache-2.0
// Syncs as the planner places them, and the order of what stands between two items of a body.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/pipes/program.h"

namespace uir::codegen::pipes {

//! \brief A flag with all its sets and waits, or a barrier, at fixed places of the tree.
//!
//! Gap g of a body is before its item g (and behind item g - 1).  A flag of distance 0 is set and waited for once
//! in each iteration of its body.  One of distance d > 0 is carried by the loop of its body: each iteration waits for
//! what the d-th earlier one has set.  So that every wait has its set for any number of iterations, the flag is
//! set d times before the `home` loop (the loop itself or one around it), and waited for d times behind it.
struct Placed {
  enum class Kind { kFlag, kBarrier, kDrain, kDrainAll };
  Kind kind = Kind::kFlag;
  int from = 0;
  int to = 0;
  int body = 0;
  int set_gap = 0;
  /*! \brief Of a flag: where it is waited for; else where it stands. */
  int wait_gap = 0;
  int64_t distance = 0;
  int home = -1;
  /*! \brief It is there so that two flags can share an id: one is set when the other is over. */
  bool for_sharing = false;
  /*! \brief Its ids: first, first + 1, ..., first + ids - 1, in turn. */
  int64_t first_id = 0;
  int64_t ids = 1;
};

/*! \brief What one sync does at a gap. */
struct Action {
  enum class Kind { kSet, kPrologue, kBarrier, kWait, kEpilogue };
  Kind kind = Kind::kSet;
  /*! \brief Its number in the list of syncs. */
  int sync = 0;
};

/*! \brief Actions by body and gap, in the order in which they are printed: sets, barriers, waits. */
using Actions = std::vector<std::vector<std::vector<Action>>>;

/*! \brief Where everything stands. */
Actions Arrange(const Program& program, const std::vector<Placed>& syncs);

}  // namespace uir::codegen::pipes
