// SPDX-License-Identifier: Apache-2.0
// Every slice of a graph with the iOp that has it and the loops around it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/scope.h"
#include "igraph/nodes.h"

namespace uir::codegen {

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

/*! \brief The uses of every pointer, in program order. */
std::map<std::string, std::vector<const Use*>> ByPointer(const std::vector<Use>& uses);
/*! \brief The pointers that iOps name. */
std::set<std::string> PointersOf(const std::vector<Use>& uses);
/*! \brief The dram pointers that iOps name, in the graph's order: the parameters of a kernel. */
std::vector<IPointer> ParametersOf(const IGraph& graph, const std::vector<Use>& uses);

//! \brief Whether every stretch of the graph (a loop, or what stands between two) that uses a pointer writes it first
//! and uses it in one box throughout: then no stretch sees what another left, and may spoil what it does not use.
bool StretchesAreApart(const std::vector<const Use*>& uses);

//! \brief Whether what lies outside of a pointer's valid boxes may hold values that are read: then writes spare it.
//! \param uses All of the pointer's.
bool HoldsBesideBoxes(const std::vector<const Use*>& uses);

//! \brief The boxes (`BoxText`) whose writes need not spare what lies outside of them, whatever the pointer holds:
//! all reads come after such a write, in its loops or in loops inside, and keep to its box.
//! \param uses All of the pointer's.
std::set<std::string> BoxesOfAllReads(const std::vector<const Use*>& uses);

/*! \brief The variables of a graph (pid, sizes and every loop) with their ranges; texts are their names. */
Scope ScopeOf(const IGraph& graph);

/*! \brief A slice's valid box as text, empty for a whole one. */
std::string BoxText(const ISlice& slice);

/*! \brief Whether two slices are the same elements, counted from their pointers, and have the same valid ones. */
bool SamePlace(const ISlice& a, const ISlice& b);

/*! \brief An iOp in one line, slices by their pointers' names: for comments and refusals. */
std::string Describe(const IOp& iop);

}  // namespace uir::codegen
