// SPDX-License-Identifier: Apache-2.0
// From an address of compiled code to the line of the text that it was compiled from.
#pragma once

#include <cstdint>
#include <string>

namespace uir::engine {

/*! \brief Line of an address in the text: of the kernel itself, and of the innermost function. */
struct Line {
  int kernel{-1};
  int inner{-1};
  std::string function;
};
Line LineOf(uint64_t site);
/*! \brief Addresses are of this library from here on, whose text lies in a file that ends so (".cu"). */
void SetLineSource(const std::string& library, uintptr_t base, const std::string& suffix);

}  // namespace uir::engine
