// SPDX-License-Identifier: Apache-2.0
// What the compiler calls before each load and store of a kernel built with -fsanitize=thread.
//
// The names are those of the thread sanitizer's run-time interface, whose library is not linked: these take its place.
#include "device/simt/include/uir_simt/abi.h"
#include "device/simt/machine.h"

using uir::simt::CheckAccess;
using uir::simt::machine;

namespace {

inline void Hook(const void* address, size_t bytes, bool write, void* site) {
  if (!machine.lane) return;  // constructors of the library
  CheckAccess(address, static_cast<uint32_t>(bytes), write, false, reinterpret_cast<uint64_t>(site));
}

}  // namespace

#define UIR_HOOK(bytes)                                                                                                \
  UIR_SIMT_EXPORT void __tsan_read##bytes(void* at) { Hook(at, bytes, false, __builtin_return_address(0)); }           \
  UIR_SIMT_EXPORT void __tsan_write##bytes(void* at) { Hook(at, bytes, true, __builtin_return_address(0)); }           \
  UIR_SIMT_EXPORT void __tsan_unaligned_read##bytes(void* at) { Hook(at, bytes, false, __builtin_return_address(0)); } \
  UIR_SIMT_EXPORT void __tsan_unaligned_write##bytes(void* at) { Hook(at, bytes, true, __builtin_return_address(0)); } \
  UIR_SIMT_EXPORT void __tsan_volatile_read##bytes(void* at) { Hook(at, bytes, false, __builtin_return_address(0)); }  \
  UIR_SIMT_EXPORT void __tsan_volatile_write##bytes(void* at) { Hook(at, bytes, true, __builtin_return_address(0)); }

extern "C" {

UIR_HOOK(1)
UIR_HOOK(2)
UIR_HOOK(4)
UIR_HOOK(8)
UIR_HOOK(16)

UIR_SIMT_EXPORT void __tsan_read_range(void* at, size_t bytes) { Hook(at, bytes, false, __builtin_return_address(0)); }
UIR_SIMT_EXPORT void __tsan_write_range(void* at, size_t bytes) { Hook(at, bytes, true, __builtin_return_address(0)); }
UIR_SIMT_EXPORT void __tsan_vptr_update(void**, void*) {}
UIR_SIMT_EXPORT void __tsan_vptr_read(void**) {}
UIR_SIMT_EXPORT void __tsan_func_entry(void*) {}
UIR_SIMT_EXPORT void __tsan_func_exit(void) {}
UIR_SIMT_EXPORT void __tsan_init(void) {}

}  // extern "C"
