// SPDX-License-Identifier: Apache-2.0
// The sizes of a graph in a printed kernel: arguments that follow its tensors.
#pragma once

#include <string>
#include <vector>

#include "codegen/printer.h"
#include "codegen/scope.h"
#include "igraph/nodes.h"

namespace uir::codegen {

/*! \brief The greatest number that a unit may have: a launch has at most as many groups as a number of 32 bits says. */
int64_t LastUnit(const IGraph& graph);

/*! \brief Makes pid known, and what the sizes say of it. */
void BindUnits(const IGraph& graph, const std::string& text, Scope* scope);

/*! \brief Makes the sizes known; their texts are their names. */
void BindSizes(const IGraph& graph, Scope* scope);

//! \brief The sizes of a kernel as its text has them.
//!
//! An argument has 64 bits; where the range of the size fits into 32, the kernel works with a variable of that type.
struct SizeArguments {
  /*! \brief `int64_t size_n`, in the graph's order. */
  std::vector<std::string> declared;
  /*! \brief `size_n`, in the graph's order. */
  std::vector<std::string> passed;
  /*! \brief `const int n = int(size_n);` for those that fit. */
  std::vector<std::string> definitions;

  SizeArguments() = default;
  //! \brief Names the sizes, and makes them known by these names.
  //! \param type The language's type of 32 bits.
  SizeArguments(const IGraph& graph, const std::string& type, Names* names, Scope* scope);
};

//! \brief The groups of a kernel whose blocks are fewer: every block takes the next one that none has taken.
//!
//!     const int32_t groups = (n + 3) / 4;
//!     for (int32_t pid = GetBlockIdx(); pid < groups; pid += GetBlockNum()) {
struct DealtGroups {
  /*! \brief Blocks that a device runs at once. */
  int64_t blocks = 1;
  /*! \brief Whether there may be more groups: else every block has one, and there is no loop. */
  bool dealt = false;
  /*! \brief Whether the kernel's text asks how many there are. */
  bool counted = false;
  /*! \brief The name of the number of groups; of its type, which is that of the loop's variable. */
  std::string name, type;
  /*! \brief `const int32_t groups = (n + 3) / 4;` */
  std::string definition;

  DealtGroups(const IGraph& graph, int64_t blocks, const std::string& name, const Scope& scope);

  //! \brief The head of the loop over a block's groups.
  //! \param begin, step Its first group, and how far the next one is.
  //! \param counter A name for the number of groups that it has had, if it is wanted.
  //! \param declared Whether that stands before the loop, as 0.
  std::string Head(const std::string& variable, const std::string& begin, const std::string& step,
                   const std::string& counter, bool declared) const;
  /*! \brief Blocks of a launch; where sizes decide how many groups there are, the most. */
  int64_t MostBlocks(const IGraph& graph) const { return dealt ? blocks : graph->num_groups; }
};

/*! \brief The number of elements of a dram pointer as text: a product where sizes decide several dimensions. */
std::string ElementsText(const IPointer& pointer, const Scope& scope);

}  // namespace uir::codegen
