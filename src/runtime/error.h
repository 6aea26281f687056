// SPDX-License-Identifier: Apache-2.0
// Errors of devices that the user can solve; Python turns their fields into uir_tvm.errors.DeviceError.
#pragma once

#include <string>

namespace uir::runtime {

/*! \brief Fields of an error as a person reads them; each but the first may be empty. */
struct Problem {
  std::string what;
  std::string where;
  std::string need;
  std::string limit;
  std::string remedy;
};

/*! \brief Throws tvm::ffi::Error of kind "DeviceError"; the message holds the fields separated by '\x1f'. */
[[noreturn]] void DeviceError(const Problem& problem);

/*! \brief The same of kind "SizeError": sizes that a function is not made for. */
[[noreturn]] void SizeError(const Problem& problem);

/*! \brief Throws tvm::ffi::Error of kind "DeviceModelError"; `findings` is a JSON list, the sixth field. */
[[noreturn]] void DeviceModelError(const Problem& problem, const std::string& findings);

}  // namespace uir::runtime
