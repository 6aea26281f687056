// SPDX-License-Identifier: Apache-2.0
/*!
 * \file copy.h
 * \brief One rectangle from a memory to another by `__memcpy_async`, whatever the strides of both sides.
 */
#ifndef UIR_CODEGEN_BANG_COPY_H_
#define UIR_CODEGEN_BANG_COPY_H_

#include <string>
#include <vector>

#include "emitter.h"

namespace uir {
namespace codegen {
namespace bang {

/*!
 * \brief Copies the elements of a box of `from` to `to`; nothing else of `to` changes.
 *
 * One copy where the box is one run on both sides; segments where rows are runs; where columns lie apart, segments of
 * one element in the 3-D form (slow: the report says so).
 * \note `to` and `from` share no bytes.  Between SRAM and GDRAM the memory core copies (memory_core.h).
 */
void Copy(Emitter& e, const Tile& to, const Tile& from, const Box& box);

/*! \brief The lines of such a copy by one of the forms of a function; none for an empty box. */
std::vector<std::string> CopyLines(Emitter& e, const Tile& to, const Tile& from, const Box& box,
                                   const std::string& name);

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_COPY_H_
