// SPDX-License-Identifier: Apache-2.0
// Tables of vendor functions: what a printer may print, and the one way to print it.
//
// A table holds facts that were looked up in a vendor's public headers, documents and code.  What has no row cannot
// be printed.
#pragma once

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/string.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "igraph/nodes.h"

namespace uir::codegen {

//! \brief One overload of a vendor function, or one type, enumeration, macro or member.
//!
//! `params` is a list of `name:type`, separated by blanks; `T`, `U` stand for the element types of a row;
//! `[low,high]` after a type is the range that an integer literal is held to.  `types` is a list of element types,
//! separated by `;`: one combination each, `T` or `T,U`, and behind `:` the values that a parameter `mode` may have
//! with it.  Empty `types`: the row has no element types.
struct Api {
  /*! \brief `Add`, `TBuf.GetWithOffset` (a member), `__bang_add`. */
  std::string name;
  /*! \brief `count`, `repeat`, `plain`, `member`, `struct`, `enum`, `type`, `macro`: overloads have one each. */
  std::string form;
  /*! \brief For `enum`: its values instead. */
  std::string params;
  std::string types;
  /*! \brief Template arguments as they are printed, `{T}` and `{U}` being the element types; `""` where they are
   * deduced. */
  std::string templates;
  /*! \brief The pipe that runs it: V, MTE2, COMPUTE, IO, S, ... or empty. */
  std::string pipe;
  /*! \brief Further rules, a sentence. */
  std::string limits;
  /*! \brief Where it was checked. */
  std::string source;
  /*! \brief Architectures that have it, separated by blanks; empty: all that the table is for. */
  std::string archs = {};
  /*! \brief What shows that it exists, separated by ", ": header, public kernel, document; empty: not told. */
  std::string evidence = {};
  /*! \brief Versions of the vendor's toolkit that have it, separated by blanks; empty: all that the table is for. */
  std::string toolkits = {};
  //! \brief Other names that it has in some versions, `version:name`, separated by blanks; where parameters stand in
  //! another order too, their names in that order follow: `9.1:ReduceDataBlock<ReduceType::SUM>(dst,src,mask)`.
  std::string spellings = {};
};

/*! \brief What a text is printed for: an architecture and a version of the toolkit that compiles it; empty: any. */
struct Platform {
  std::string arch = {};
  std::string toolkit = {};
};

/*! \brief The vendor's toolkit by whose versions a language is spelled apart. */
struct Toolkit {
  /*! \brief The attribute of a graph that names the version: "cncc", "cann". */
  std::string attribute = {};
  /*! \brief The version where a graph names none. */
  std::string otherwise = {};
};

/*! \brief The rows of one language, and the page that shows them. */
class ApiTable {
 public:
  ApiTable(std::string language, std::string page, std::vector<Api> rows, Toolkit toolkit = {});

  /*! \brief What a graph is printed for: its hardware's figure `arch`, and the version that it names. */
  Platform PlatformOf(const IGraph& graph) const;

  const std::vector<Api>& rows() const { return rows_; }
  /*! \brief The row of a name and form, or nullptr. */
  const Api* LookUp(const std::string& name, const std::string& form) const;
  /*! \brief The row of a name and form; throws an InternalError where there is none. */
  const Api& Find(const std::string& name, const std::string& form) const;
  /*! \brief Whether there is a row that a platform has. */
  bool Has(const std::string& name, const std::string& form, const Platform& platform = {}) const;

  //! \brief The text of a call, without a semicolon: `Add(d, a, b, 64)`, `buffer.GetWithOffset<float>(64, 0)`.
  //! \param where The graph and the iOp, for the message.
  //! \param types The element types in the order of the row, e.g. {"float"}, {"half", "float"}.
  //! \param args The arguments as text; the object comes first for a member, template arguments before it.
  //! \param platform What is printed for; empty where the table is for one.
  //! \note A combination of types, an architecture or a toolkit that the row lacks is a CodegenError; an unknown row, a
  //! wrong number of arguments, a literal out of its range, or no version where versions spell it apart is an
  //! InternalError (a mistake of the printer).
  std::string Call(const std::string& where, const std::string& name, const std::string& form,
                   const std::vector<std::string>& types, const std::vector<std::string>& args,
                   const Platform& platform = {}) const;
  /*! \brief A macro that takes no arguments; throws an InternalError where there is none. */
  std::string Macro(const std::string& name) const;
  /*! \brief A value of an enumeration; throws an InternalError where it has none. */
  std::string EnumValue(const std::string& name, const std::string& value, bool scoped = true) const;
  /*! \brief A type, `TBuf<TPosition::VECCALC>`; throws an InternalError where it is none. */
  std::string TypeName(const std::string& name, const std::vector<std::string>& types = {}) const;

  /*! \brief Every word that a version may begin a call, a type or a macro with; texts declare no name like it. */
  std::set<std::string> Words() const;

  /*! \brief The rows for Python. */
  tvm::ffi::Array<tvm::ffi::Map<tvm::ffi::String, tvm::ffi::String>> Data() const;

 private:
  std::string language_, page_;
  std::vector<Api> rows_;
  Toolkit toolkit_;
  std::map<std::pair<std::string, std::string>, size_t> index_;
};

/*! \brief Whether a row has these element types, with this mode where one is given. */
bool HasTypes(const Api& api, const std::vector<std::string>& types, const std::string& mode = "");
/*! \brief Whether a row is for a platform. */
bool IsFor(const Api& api, const Platform& platform);
/*! \brief How a version of the toolkit spells a row. */
struct Spelling {
  std::string name;
  /*! \brief The parameters in its order; empty: that of the row. */
  std::vector<std::string> params = {};
};
Spelling SpelledBy(const Api& api, const std::string& toolkit);

/*! \brief The element type that stands for a dtype of the iGraph ("fp32" -> "float"); empty where there is none. */
std::string ElementTypeOf(const std::string& dtype);
/*! \brief Bytes of an element of a dtype that has an element type. */
int64_t ElementBytes(const std::string& dtype);

/*! \brief A number as a literal of an element type: `1.5f`, `half(1.5f)`, `static_cast<int16_t>(3)`. */
std::string ElementLiteral(double value, const std::string& type);
/*! \brief An integer as a literal of an element type. */
std::string ElementIntLiteral(int64_t value, const std::string& type);

}  // namespace uir::codegen
