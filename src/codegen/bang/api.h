// SPDX-License-Identifier: Apache-2.0
// Everything of BANG C that the printer may print, and the one way to print it.
//
// The table (api_table.cc) holds facts that were looked up in the vendor's public header and in its public kernels,
// with the architectures that have each function.  What has no row there cannot be printed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/api.h"
#include "igraph/nodes.h"

namespace uir::codegen::bang {

/*! \brief The table over all rows; architectures are "372", "592", toolkits the major versions of cncc, "3" and "4". */
const ApiTable& Table();

/*! \brief A wait, as a statement: `__sync_io();`; versions of cncc that know no wait for one queue wait for all. */
std::string Wait(const std::string& name, const Platform& platform);

/*! \brief The element type that stands for a dtype of the iGraph ("fp32" -> "float"); empty where there is none. */
inline std::string ElementType(const std::string& dtype) { return ElementTypeOf(dtype); }

/*! \brief A number as a literal of an element type: `1.5f`, `half(1.5f)`, `static_cast<int16_t>(3)`. */
inline std::string Literal(double value, const std::string& type) { return ElementLiteral(value, type); }
/*! \brief An integer as a literal of an element type. */
inline std::string IntLiteral(int64_t value, const std::string& type) { return ElementIntLiteral(value, type); }

}  // namespace uir::codegen::bang
