// SPDX-License-Identifier: Apache-2.0
// One kernel as text: signature, tensors, loop tree.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "igraph/nodes.h"

namespace uir::codegen::ascend {

/*! \brief A printed kernel and what a launch of it needs. */
struct Kernel {
  std::string name;
  std::string text;
  /*! \brief Cores that run it. */
  int64_t blocks = 1;
  /*! \brief "aiv", or "mix_1_1" (one vector core and one cube core to a block). */
  std::string core = "aiv";
  /*! \brief Names of the graph's dram pointers, in the order of the kernel's parameters. */
  std::vector<std::string> params;
  /*! \brief Lines for people: places in the UB, costs of moves, what the syncs are for. */
  std::vector<std::string> notes;
};

/*! \brief Words that no identifier of the text may be. */
std::set<std::string> Reserved();

//! \brief Prints a graph of one phase.
//! \param first Number in the file of the text's first line, for notes.
Kernel PrintKernel(const IGraph& graph, const std::string& name, int64_t first);

}  // namespace uir::codegen::ascend
