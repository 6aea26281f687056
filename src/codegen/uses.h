// SPDX-License-Identifier: Apache-2.0
/*!
 * \file uses.h
 * \brief Every slice of a graph with the iOp that has it and the loops around it.
 */
#ifndef UIR_CODEGEN_USES_H_
#define UIR_CODEGEN_USES_H_

#include <string>
#include <vector>

#include "../igraph/nodes.h"
#include "scope.h"

namespace uir {
namespace codegen {

/*! \brief The operand number of a group form's buffer; 0 is the first target, 1.. are the sources. */
constexpr int kBufferOperand = -1;

/*! \brief One slice of one iOp. */
struct Use {
  IOp iop;
  ISlice slice;
  int operand = 0;
  bool write = false;
  /*! \brief Of targets that keep a part of what they held: contract with accumulate, scatter. */
  bool reads_too = false;
  /*! \brief Number of the iOp in program order. */
  int position = 0;
  /*! \brief The loops around it, outermost first. */
  std::vector<Loop> loops;
  /*! \brief Index in the graph's body, then in the body of every loop around it. */
  std::vector<int> path;

  std::string pointer() const { return std::string(slice->pointer->name); }
  /*! \brief How often a unit runs it. */
  double times() const;
};

/*! \brief All slices in program order, sources before targets. */
std::vector<Use> UsesOf(const IGraph& graph);

/*!
 * \brief Whether every stretch of the graph (a loop, or what stands between two) that uses a pointer writes it first
 * and uses it in one box throughout: then no stretch sees what another left, and may spoil what it does not use.
 */
bool StretchesAreApart(const std::vector<const Use*>& uses);

/*! \brief The variables of a graph (pid and every loop) with their ranges; texts are their names. */
Scope ScopeOf(const IGraph& graph);

/*! \brief A slice's valid box as text, empty for a whole one. */
std::string BoxText(const ISlice& slice);

/*! \brief An iOp in one line, slices by their pointers' names: for comments and refusals. */
std::string Describe(const IOp& iop);

}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_USES_H_
