// SPDX-License-Identifier: Apache-2.0
// One kernel as text: signature, pointers, loop tree.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "igraph/nodes.h"

namespace uir::codegen::bang {

/*! \brief A printed kernel and what its file and a launch of it need. */
struct Kernel {
  std::string name;
  std::string text;
  /*! \brief Groups of the launch (where sizes decide their number, the most), and units of each: 1 (a Block launch) or
   * a cluster's cores (Union1). */
  int64_t groups = 1;
  int64_t units = 1;
  /*! \brief "block" or "union1". */
  std::string launch = "block";
  /*! \brief Bytes that it uses of NRAM, WRAM and SRAM. */
  int64_t nram = 0;
  int64_t wram = 0;
  int64_t sram = 0;
  /*! \brief Names of the graph's dram pointers, in the order of the kernel's parameters, and these as text. */
  std::vector<std::string> params;
  std::vector<std::string> declared;
  /*! \brief Names of the parameters: tensors, then sizes. */
  std::vector<std::string> passed;
  /*! \brief Where sizes decide the number of groups: lines that define it, and its name. */
  std::vector<std::string> definitions;
  std::string counted;
  /*! \brief Lines for people: places in the memories, costs of moves, what the syncs are for. */
  std::vector<std::string> notes;
};

/*! \brief Words that no identifier of the text may be. */
std::set<std::string> Reserved();

//! \brief Prints a graph of one phase.
//! \note CodegenError for groups that are no core and no cluster, and for sram in groups of one core.
Kernel PrintKernel(const IGraph& graph, const std::string& name);

/*! \brief The function of the host that launches a kernel. */
std::string PrintLauncher(const Kernel& kernel);

}  // namespace uir::codegen::bang
