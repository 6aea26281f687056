// SPDX-License-Identifier: Apache-2.0
// Looking up what maps by name hold: attributes of iOps, loops and graphs, figures of hardware, fields of JSON.
#pragma once

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/string.h>

#include <string>
#include <type_traits>

namespace uir {

using Attrs = tvm::ffi::Map<tvm::ffi::String, tvm::ffi::Any>;

/*! \brief An attribute as it is; None where it is absent. */
template <typename Map>
tvm::ffi::Any AttrOf(const Map& attrs, const std::string& name) {
  auto found = attrs.find(tvm::ffi::String(name));
  return found == attrs.end() ? tvm::ffi::Any(nullptr) : tvm::ffi::Any((*found).second);
}

/*! \brief An attribute, or what stands for one that is absent or None. */
template <typename T, typename Map>
T AttrOr(const Map& attrs, const std::string& name, T otherwise) {
  const tvm::ffi::Any value = AttrOf(attrs, name);
  if (value == nullptr) return otherwise;
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(value.template cast<tvm::ffi::String>());
  } else {
    return value.template cast<T>();
  }
}

/*! \brief A text that must be there: "axis", "scope". */
inline std::string TextAttr(const Attrs& attrs, const char* name) {
  return std::string(attrs.at(name).cast<tvm::ffi::String>());
}

}  // namespace uir
