// SPDX-License-Identifier: Apache-2.0
// Where a section of a loaded library lies.
#pragma once

#include <cstdint>
#include <string>

namespace uir::engine {

/*! \brief Bytes of a section; none where the library has no such section. */
struct Section {
  uint8_t* begin{nullptr};
  uint64_t bytes{0};

  bool Holds(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(begin) < bytes;
  }
};

/*! \brief The section of that name in a library's file that is loaded at `base`. */
Section FindSection(const std::string& path, uintptr_t base, const std::string& name);

}  // namespace uir::engine
