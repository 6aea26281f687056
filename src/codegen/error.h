// SPDX-License-Identifier: Apache-2.0
// How a printer refuses: typed errors, whose fields Python turns into the class of uir_tvm.errors that has
// the kind's name.
#pragma once

#include <cstdint>
#include <string>

namespace uir::codegen {

//! \brief Throws tvm::ffi::Error of kind "CodegenError".
//! \param what What cannot be done, a sentence.
//! \param where The graph and the iOp.
//! \param need, limit, remedy As in UirError; each may be empty.
//! \note The message holds the five fields in this order, separated by '\x1f'.
[[noreturn]] void CodegenError(const std::string& what, const std::string& where, const std::string& need = "",
                               const std::string& limit = "", const std::string& remedy = "");

/*! \brief Which memory on chip lacks room, the bytes that a kernel takes of it, and the bytes that there are. */
struct Lack {
  std::string memory;
  int64_t needed, available;
};

//! \brief Throws tvm::ffi::Error of kind "CodegenCapacityError": a memory on chip lacks room, and the same kernel
//! with smaller tiles would need less of it.
//! \param need, limit How much it takes, and how much there is, in words; `lack` says so in figures.
//! \param remedy What a user may do who schedules by hand; a recipe's kernel is compiled with smaller tiles anyway.
//! \note The message holds the five fields of `CodegenError`, then those of `lack`.
[[noreturn]] void CapacityError(const std::string& what, const std::string& where, const Lack& lack,
                                const std::string& need, const std::string& limit,
                                const std::string& remedy = "smaller tiles");

}  // namespace uir::codegen
