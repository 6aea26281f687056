// SPDX-License-Identifier: Apache-2.0
// What `kernel<<<dim, type, queue>>>(arguments)` is rewritten to, and what is seen of scalar code.
#pragma once

#include "types.h"

namespace uir_bang {

/*! \brief A launch that waits for its arguments. */
template <typename... Parameters>
class Launched {
 public:
  Launched(const char* name, void (*kernel)(Parameters...), cnrtDim3_t dim, int type, void* queue, Site at)
      : name_(name), kernel_(kernel), dim_(dim), type_(type), queue_(queue), at_(at) {}

  /*! \brief With as many arguments as the kernel has parameters, converted to them. */
  void operator()(Parameters... arguments) const {
    const uint64_t values[] = {Word(arguments)..., 0};
    const uint32_t dim[] = {dim_.x, dim_.y, dim_.z};
    uir_bang_enqueue(name_, reinterpret_cast<void*>(kernel_), dim, type_, queue_, values, sizeof...(Parameters),
                     at_.line());
  }

 private:
  template <typename T>
  static uint64_t Word(T value) {
    static_assert(std::is_integral<T>::value || std::is_pointer<T>::value, "parameters are pointers and integers");
    if constexpr (std::is_pointer<T>::value) {
      return reinterpret_cast<uint64_t>(value);
    } else {
      return static_cast<uint64_t>(static_cast<int64_t>(value));
    }
  }

  const char* name_;
  void (*kernel_)(Parameters...);
  cnrtDim3_t dim_;
  int type_;
  void* queue_;
  Site at_;
};

template <typename... Parameters>
Launched<Parameters...> Launch(const char* name, void (*kernel)(Parameters...), cnrtDim3_t dim, int type,
                               cnrtQueue_t queue, Site at = Site::Here()) {
  return {name, kernel, dim, type, queue, at};
}

}  // namespace uir_bang

// What the compiler calls before each load and store of a kernel built with -fsanitize=thread. Kept within the kernel's
// library, since the model of CUDA devices has functions of these names.
#define UIR_BANG_HOOK(BYTES, NAME, WRITE)                                                                    \
  extern "C" __attribute__((visibility("hidden"), used, no_sanitize("thread"))) void NAME##BYTES(void* at) { \
    uir_bang_access(at, BYTES, WRITE, __builtin_return_address(0));                                          \
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
#define UIR_BANG_RANGE(NAME, WRITE)                                                                             \
  extern "C" __attribute__((visibility("hidden"), used, no_sanitize("thread"))) void NAME(void* at, size_t n) { \
    uir_bang_access(at, n, WRITE, __builtin_return_address(0));                                                 \
  }
UIR_BANG_RANGE(__tsan_read_range, 0)
UIR_BANG_RANGE(__tsan_write_range, 1)
#undef UIR_BANG_RANGE
extern "C" __attribute__((visibility("hidden"), used)) inline void __tsan_init() {}
extern "C" __attribute__((visibility("hidden"), used)) inline void __tsan_func_entry(void*) {}
extern "C" __attribute__((visibility("hidden"), used)) inline void __tsan_func_exit() {}
