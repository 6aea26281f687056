// SPDX-License-Identifier: Apache-2.0
// The rows of the table of BANG C, by what they are for.
#pragma once

#include <vector>

#include "codegen/api.h"

namespace uir::codegen::bang {

// where functions were looked up: where they are declared, and in kernels that call them too
constexpr char kDecls[] = "bang_device_functions_decls.h";
constexpr char kUsedDecls[] = "bang_device_functions_decls.h | kernels/*/*.mlu";

/*! \brief Every row. */
std::vector<Api> ApiRows();

/*! \brief Vector functions (api_table_vector.cc). */
std::vector<Api> VectorRows();
/*! \brief Conversions (api_table_vector.cc). */
std::vector<Api> CastRows();

}  // namespace uir::codegen::bang
