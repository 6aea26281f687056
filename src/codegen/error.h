// SPDX-License-Identifier: Apache-2.0
/*!
 * \file error.h
 * \brief How a printer refuses: one typed error, whose fields Python turns into uir_tvm.errors.CodegenError.
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

}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ERROR_H_
