// SPDX-License-Identifier: Apache-2.0
/*!
 * \file api_table.h
 * \brief The rows of the table of BANG C, by what they are for.
 */
#ifndef UIR_CODEGEN_BANG_API_TABLE_H_
#define UIR_CODEGEN_BANG_API_TABLE_H_

#include <vector>

#include "../api.h"

namespace uir {
namespace codegen {
namespace bang {

/*! \brief Every row. */
std::vector<Api> ApiRows();

/*! \brief Vector functions (api_table_vector.cc). */
std::vector<Api> VectorRows();
/*! \brief Conversions (api_table_vector.cc). */
std::vector<Api> CastRows();

}  // namespace bang
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_BANG_API_TABLE_H_
