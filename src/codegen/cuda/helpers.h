// SPDX-License-Identifier: Apache-2.0
// Small device functions that expressions call; the printer puts those that are needed before the kernels.
//
// A key is "NAME" or "NAME:DTYPE" (an overload for that dtype's compute type).
#pragma once

#include <set>
#include <string>
#include <vector>

namespace uir::codegen::cuda {

/*! \brief The definitions of all keys and of what these call, each once, callees first. */
std::string HelperText(const std::set<std::string>& keys);

/*! \brief The names of all of them, which no variable of a kernel may hide. */
std::set<std::string> HelperNames();

/*! \brief The headers that the definitions include, such as "cuda_fp8.h". */
std::set<std::string> HelperHeaders(const std::set<std::string>& keys);

}  // namespace uir::codegen::cuda
