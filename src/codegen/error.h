// SPDX-License-Identifier: Apache-2.0
/*!
 * \file error.h
 * \brief How a printer refuses: typed errors, whose fields Python turns into the class of uir_tvm.errors that has
 * the kind's name.
 */
#ifndef UIR_CODEGEN_ERROR_H_
#define UIR_CODEGEN_ERROR_H_

#include <string>

namespace uir {
namespace codegen {

/*!
 * \brief Throws tvm::ffi::Error of kind "CodegenError".
 * \param what What cannot be done, a sentence.
 * \param where The graph and the iOp.
 * \param need, limit, remedy As in UirError; each may be empty.
 * \note The message holds the five fields in this order, separated by '\x1f'.
 */
[[noreturn]] void CodegenError(const std::string& what, const std::string& where, const std::string& need = "",
                               const std::string& limit = "", const std::string& remedy = "");

/*!
 * \brief Throws tvm::ffi::Error of kind "CodegenCapacityError": a memory on chip lacks room, and the same kernel
 * with smaller tiles would need less of it.
 * \param need, limit How much it takes, and how much there is.
 * \param remedy What a user may do who schedules by hand; a recipe's kernel is compiled with smaller tiles anyway.
 */
[[noreturn]] void CapacityError(const std::string& what, const std::string& where, const std::string& need,
                                const std::string& limit, const std::string& remedy = "smaller tiles");

}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ERROR_H_
