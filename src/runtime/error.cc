// SPDX-License-Identifier: Apache-2.0
#include "runtime/error.h"

#include <tvm/ffi/error.h>

namespace uir::runtime {

namespace {

constexpr char kSeparator = '\x1f';

std::string Joined(const Problem& p) {
  return p.what + kSeparator + p.where + kSeparator + p.need + kSeparator + p.limit + kSeparator + p.remedy;
}

}  // namespace

void DeviceError(const Problem& problem) { TVM_FFI_THROW(DeviceError) << Joined(problem); }

void SizeError(const Problem& problem) { TVM_FFI_THROW(SizeError) << Joined(problem); }

void DeviceModelError(const Problem& problem, const std::string& findings) {
  TVM_FFI_THROW(DeviceModelError) << Joined(problem) << kSeparator << findings;
}

}  // namespace uir::runtime
