// SPDX-License-Identifier: Apache-2.0
// One kernel as text: signature, prologue, loop tree.
#pragma once

#include <string>
#include <vector>

#include "codegen/cuda/emitter.h"

namespace uir::codegen::cuda {

/*! \brief A printed kernel and what a launch of it needs. */
struct Kernel {
  std::string name;
  std::string text;
  int64_t grid = 1;
  int64_t block = kLanes;
  int64_t shared_bytes = 0;
  bool cooperative = false;
  /*! \brief Names of the graph's dram pointers, in the order of the kernel's parameters. */
  std::vector<std::string> params;
  /*! \brief Lines for people: homes and layouts. */
  std::vector<std::string> notes;
};

/*! \brief Words that no identifier of the text may be. */
std::set<std::string> Reserved();

/*! \brief Prints a graph of one phase. */
Kernel PrintKernel(const IGraph& graph, const std::string& name, Needs* needs);

}  // namespace uir::codegen::cuda
