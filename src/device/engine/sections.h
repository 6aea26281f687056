// SPDX-License-Identifier: Apache-2.0
/*!
 * \file sections.h
 * \brief Where a section of a loaded library lies.
 */
#ifndef UIR_DEVICE_ENGINE_SECTIONS_H_
#define UIR_DEVICE_ENGINE_SECTIONS_H_

#include <cstdint>
#include <string>

namespace uir {
namespace engine {

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

}  // namespace engine
}  // namespace uir

#endif  // UIR_DEVICE_ENGINE_SECTIONS_H_
