// SPDX-License-Identifier: Apache-2.0
// The syncs that a kernel's pipes need: no race remains, and none could be left out.
#pragma once

#include <string>
#include <vector>

#include "codegen/pipes/tree.h"
#include "codegen/pipes/vocabulary.h"

namespace uir::codegen::pipes {

/*! \brief One flag or barrier of a plan and what it is there for. */
struct SyncReport {
  int number = 0;
  /*! \brief "MTE2_V" or "barrier V". */
  std::string what;
  /*! \brief The dependences that need it, e.g. "load x -> exp t1 (raw, distance 2 of k)". */
  std::vector<std::string> serves;
};

/*! \brief A kernel with its syncs. */
struct Plan {
  std::vector<Node> body;
  std::vector<SyncReport> report;
};

//! \brief Add the syncs that the kernel needs.
//! \param body The kernel in program order, without Sync nodes.
//! \param vocabulary The syncs of the device.
//! \param where The graph's name, for errors.
//! \note Throws CodegenError where the device's flags do not suffice.
Plan PlanSyncs(const std::vector<Node>& body, const Vocabulary& vocabulary, const std::string& where);

}  // namespace uir::codegen::pipes
