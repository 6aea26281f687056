// SPDX-License-Identifier: Apache-2.0
/*!
 * \file vector.h
 * \brief Printing elementwise programs (tiles/program.h) with vector functions.
 *
 * `RunProgram` (vector_run.cc) prints one over whole tiles: in count form where all operands lie alike, by repeats
 * over the rows where they do not, and in chunks where steps need work buffers.
 */
#ifndef UIR_CODEGEN_ASCEND_VECTOR_H_
#define UIR_CODEGEN_ASCEND_VECTOR_H_

#include <string>
#include <vector>

#include "../tiles/program.h"
#include "api.h"
#include "emitter.h"
#include "vector_run.h"

namespace uir {
namespace codegen {
namespace ascend {

using tiles::Program;
using tiles::Step;
using tiles::Value;

/*!
 * \brief Prints a program over the target's valid box.
 * \param result What goes to the target, of its dtype.
 * \param sources The operands that inputs name; of the target's shape.
 */
void RunProgram(Emitter& e, const Program& program, Value result, const ISlice& target,
                const std::vector<ISlice>& sources);

/*!
 * \brief Prints a program over windows that lie as they are: the target's first, then the operands'.
 *
 * Rows of windows start at 32-byte blocks; a window's row stride may be 0, which repeats its row.
 */
void RunOnWindows(Emitter& e, const Program& program, Value result, const std::vector<Tile>& windows,
                  const Extent& rows, const Extent& cols);

/*! \brief Bytes that work buffers of an iOp may take: what is free, but no more than helps. */
int64_t WorkBytes(const Emitter& e);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_VECTOR_H_
