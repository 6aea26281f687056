// SPDX-License-Identifier: Apache-2.0
// Kernels whose blocks take one group after the other: the loop over them, and the syncs of all its turns.
#pragma once

#include <string>
#include <vector>

#include "codegen/pipes/plan.h"
#include "codegen/sizes.h"
#include "codegen/tiles/emitter.h"

namespace uir::codegen::tiles {

/*! \brief How a device's blocks take groups. */
struct Dealing {
  DealtGroups groups;
  /*! \brief Texts of the loop: its variable, what it begins with, and by what it grows. */
  std::string variable, begin, step;
  /*! \brief What stands at the head of every turn. */
  std::vector<std::string> opening;
  //! \brief Whether the work of a turn may begin while that of the one before still runs; else all is done at the end
  //! of a turn, by `drain`.
  bool overlaps = true;
  pipes::Node drain;
};

//! \brief The kernel with its syncs, in the loop over groups where they are dealt.
//!
//! Groups are units that nothing orders, so what they touch in dram is apart.  On chip every turn uses the same bytes:
//! to the planner it is a loop like others, if no place depends on which group it is.
//! \param body What the kernel does for one group.
pipes::Plan PlanGroups(const Emitter& e, std::vector<pipes::Node> body, const pipes::Vocabulary& vocabulary,
                       const std::string& where, const Dealing& dealing);

}  // namespace uir::codegen::tiles
