// SPDX-License-Identifier: Apache-2.0
// Everything of Ascend C that the printer may print, and the one way to print it.
//
// The table (api_table.cc) holds facts that were looked up in the vendor's public headers and documentation for
// dav-2201 (Ascend 910B).  What has no row there cannot be printed.  Of parameters, tensors are `LT<T>`
// (LocalTensor) and `GT<T>` (GlobalTensor).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/api.h"

namespace uir::codegen::ascend {

/*! \brief Most repeats of one call, and most blocks from a row to the next. */
constexpr int64_t kMostRepeats = 255;

/*! \brief Every row. */
std::vector<Api> ApiRows();

/*! \brief The table over them. */
const ApiTable& Table();

/*! \brief Whether there is a row of a name and form. */
inline bool HasForm(const std::string& name, const std::string& form) { return Table().Has(name, form); }

/*! \brief The text of a call that all versions of CANN spell alike; others are `Emitter::Call`'s. */
inline std::string Call(const std::string& where, const std::string& name, const std::string& form,
                        const std::vector<std::string>& types, const std::vector<std::string>& args) {
  return Table().Call(where, name, form, types, args);
}

/*! \brief A macro of the table that takes no arguments; throws an InternalError where there is none. */
inline std::string Macro(const std::string& name) { return Table().Macro(name); }

/*! \brief A value of an enumeration of the table: `CMPMODE::LT`; throws an InternalError where it has none. */
inline std::string EnumValue(const std::string& name, const std::string& value) {
  return Table().EnumValue(name, value);
}

/*! \brief A type of the table, `TBuf<TPosition::VECCALC>`; throws an InternalError where it is none. */
inline std::string TypeName(const std::string& name, const std::vector<std::string>& types = {}) {
  return Table().TypeName(name, types);
}

/*! \brief The element type that stands for a dtype of the iGraph ("fp32" -> "float"); empty where there is none. */
std::string ElementType(const std::string& dtype);

/*! \brief A number as a literal of an element type but bfloat16_t: `1.5f`, `half(1.5f)`, `static_cast<int16_t>(3)`. */
inline std::string Literal(double value, const std::string& type) { return ElementLiteral(value, type); }
/*! \brief An integer as a literal of an element type. */
inline std::string IntLiteral(int64_t value, const std::string& type) { return ElementIntLiteral(value, type); }

}  // namespace uir::codegen::ascend
