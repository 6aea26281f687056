// SPDX-License-Identifier: Apache-2.0
// What is seen of scalar code: its loads and stores.
#pragma once

#include "abi.h"

// What the compiler calls before each load and store of a kernel built with -fsanitize=thread. Each kernel's library
// holds them, since the model of CUDA devices has functions of these names; they are compiled once, apart from the
// texts.
#define UIR_BANG_HOOK(BYTES, NAME, WRITE)                                                              \
  extern "C" __attribute__((visibility("hidden"), no_sanitize("thread"))) void NAME##BYTES(void* at) { \
    uir_bang_access(at, BYTES, WRITE, __builtin_return_address(0));                                    \
  }
#define UIR_BANG_HOOKS(BYTES)                     \
  UIR_BANG_HOOK(BYTES, __tsan_read, 0)            \
  UIR_BANG_HOOK(BYTES, __tsan_write, 1)           \
  UIR_BANG_HOOK(BYTES, __tsan_unaligned_read, 0)  \
  UIR_BANG_HOOK(BYTES, __tsan_unaligned_write, 1) \
  UIR_BANG_HOOK(BYTES, __tsan_volatile_read, 0)   \
  UIR_BANG_HOOK(BYTES, __tsan_volatile_write, 1)
UIR_BANG_HOOKS(1)
UIR_BANG_HOOKS(2)
UIR_BANG_HOOKS(4)
UIR_BANG_HOOKS(8)
UIR_BANG_HOOKS(16)
#undef UIR_BANG_HOOKS
#undef UIR_BANG_HOOK
#define UIR_BANG_RANGE(NAME, WRITE)                                                                       \
  extern "C" __attribute__((visibility("hidden"), no_sanitize("thread"))) void NAME(void* at, size_t n) { \
    uir_bang_access(at, n, WRITE, __builtin_return_address(0));                                           \
  }
UIR_BANG_RANGE(__tsan_read_range, 0)
UIR_BANG_RANGE(__tsan_write_range, 1)
#undef UIR_BANG_RANGE
extern "C" __attribute__((visibility("hidden"))) void __tsan_init() {}
extern "C" __attribute__((visibility("hidden"))) void __tsan_func_entry(void*) {}
extern "C" __attribute__((visibility("hidden"))) void __tsan_func_exit() {}
