// SPDX-License-Identifier: Apache-2.0
/*!
 * \file api.h
 * \brief Everything of Ascend C that the printer may print, and the one way to print it.
 *
 * The table (api_table.cc) holds facts that were looked up in the vendor's public headers and documentation for
 * dav-2201 (Ascend 910B).  What has no row there cannot be printed.
 */
#ifndef UIR_CODEGEN_ASCEND_API_H_
#define UIR_CODEGEN_ASCEND_API_H_

#include <cstdint>
#include <string>
#include <vector>

namespace uir {
namespace codegen {
namespace ascend {

/*!
 * \brief One overload of a vendor function, or one type, enumeration, macro or member.
 *
 * `params` is a list of `name:type`, separated by blanks; `T`, `U` stand for the element types of a row, tensors are
 * `LT<T>` (LocalTensor) and `GT<T>` (GlobalTensor); `[low,high]` after a type is the range that an integer literal is
 * held to.  `types` is a list of element types, separated by `;`: one combination each, `T` or `T,U`, and behind
 * `:` the values that a parameter `mode` may have with it.  Empty `types`: the row has no element types.
 */
struct Api {
  /*! \brief `Add`, `TBuf.GetWithOffset` (a member), `DataCopyExtParams`. */
  std::string name;
  /*! \brief `count`, `repeat`, `plain`, `member`, `struct`, `enum`, `type`, `macro`: overloads have one each. */
  std::string form;
  /*! \brief For `enum`: its values instead. */
  std::string params;
  std::string types;
  /*! \brief Template arguments as they are printed, `{T}` and `{U}` being the element types; `""` where they are
   * deduced. */
  std::string templates;
  /*! \brief The pipe that runs it: V, MTE2, MTE3, S, ... or empty. */
  std::string pipe;
  /*! \brief Further rules, a sentence. */
  std::string limits;
  /*! \brief Where it was checked: header (under include/) and page of the documentation. */
  std::string source;
};

/*! \brief Every row. */
const std::vector<Api>& ApiTable();

/*! \brief The row of a name and form; throws an InternalError where there is none. */
const Api& FindApi(const std::string& name, const std::string& form);

/*! \brief Whether there is a row of a name and form. */
bool HasForm(const std::string& name, const std::string& form);

/*! \brief Whether a row has these element types, with this mode where one is given. */
bool HasTypes(const Api& api, const std::vector<std::string>& types, const std::string& mode = "");

/*!
 * \brief The text of a call, without a semicolon: `Add(d, a, b, 64)`, `buffer.GetWithOffset<float>(64, 0)`.
 * \param where The graph and the iOp, for the message.
 * \param types The element types in the order of the row, e.g. {"float"}, {"half", "float"}.
 * \param args The arguments as text; the object comes first for a member.
 * \note A combination of types that the row lacks is a CodegenError; an unknown row, a wrong number of arguments or a
 * literal out of its range is an InternalError (a mistake of the printer).
 */
std::string Call(const std::string& where, const std::string& name, const std::string& form,
                 const std::vector<std::string>& types, const std::vector<std::string>& args);

/*! \brief A macro of the table that takes no arguments; throws an InternalError where there is none. */
std::string Macro(const std::string& name);

/*! \brief A value of an enumeration of the table: `CMPMODE::LT`; throws an InternalError where it has none. */
std::string EnumValue(const std::string& name, const std::string& value);

/*! \brief A type of the table, `TBuf<TPosition::VECCALC>`; throws an InternalError where it is none. */
std::string TypeName(const std::string& name, const std::vector<std::string>& types = {});

/*! \brief The element type that stands for a dtype of the iGraph ("fp32" -> "float"); empty where there is none. */
std::string ElementType(const std::string& dtype);

/*! \brief A number as a literal of an element type: `1.5f`, `half(1.5f)`, `static_cast<int16_t>(3)`. */
std::string Literal(double value, const std::string& type);
/*! \brief An integer as a literal of an element type. */
std::string IntLiteral(int64_t value, const std::string& type);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_API_H_
