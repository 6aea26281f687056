// SPDX-License-Identifier: Apache-2.0
/*!
 * \file insert.h
 * \brief Placed syncs as nodes of the tree.
 */
#ifndef UIR_CODEGEN_PIPES_INSERT_H_
#define UIR_CODEGEN_PIPES_INSERT_H_

#include <string>
#include <vector>

#include "codegen/pipes/program.h"
#include "codegen/pipes/syncs.h"

namespace uir {
namespace codegen {
namespace pipes {

/*!
 * \brief The tree with its syncs: sets right behind an instruction, barriers and waits right before one.
 * \param comments By sync: what it orders.
 */
std::vector<Node> Insert(const std::vector<Node>& nodes, const Program& program, const std::vector<Placed>& syncs,
                         const std::vector<std::string>& comments);

}  // namespace pipes
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_PIPES_INSERT_H_
