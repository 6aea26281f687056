// SPDX-License-Identifier: Apache-2.0
// Read a JSON text: the figures of a modelled device.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace uir::engine {

/*! \brief A value. Truth values are the numbers 1 and 0. */
struct JsonValue {
  enum Kind { kNull, kNumber, kText, kList, kObject };
  Kind kind{kNull};
  double number{0};
  std::string text;
  std::vector<JsonValue> list;
  std::map<std::string, JsonValue> object;

  /*! \brief A member of an object; null where there is none. */
  const JsonValue& At(const std::string& name) const;
  double NumberOr(double otherwise) const { return kind == kNumber ? number : otherwise; }
  double NumberAt(const std::string& name, double otherwise) const { return At(name).NumberOr(otherwise); }
};

/*! \brief Read a text; false where it is no JSON. */
bool ParseJson(const std::string& text, JsonValue* value);

}  // namespace uir::engine
