// SPDX-License-Identifier: Apache-2.0
// Functions of integers and bools as scalar code.
#pragma once

#include <string>
#include <vector>

#include "codegen/bang/emitter.h"

namespace uir::codegen::bang {

/*! \brief Statements that give `to` a unary function of `x`; none where there is no such function. */
std::vector<std::string> IntUnary(const std::string& dtype, const std::string& name, const std::string& to,
                                  const std::string& x, int64_t param);
/*! \brief Statements that give `to` a binary function of `x` and `y`; none where there is no such function. */
std::vector<std::string> IntBinary(const std::string& dtype, const std::string& name, const std::string& to,
                                   const std::string& x, const std::string& y);
/*! \brief Whether a dtype is an integer or bool of up to 64 bits. */
bool IsWhole(const std::string& dtype);

}  // namespace uir::codegen::bang
