// SPDX-License-Identifier: Apache-2.0
// What `kernel<<<dim, type, queue>>>(arguments)` is rewritten to.
#pragma once

#include "types.h"

namespace uir_bang {

/*! \brief A launch that waits for its arguments. */
template <typename... Parameters>
class Launched {
 public:
  UIR_BANG_UNSEEN Launched(const char* name, void (*kernel)(Parameters...), cnrtDim3_t dim, int type, void* queue,
                           Site at)
      : name_(name), kernel_(kernel), dim_(dim), type_(type), queue_(queue), at_(at) {}

  /*! \brief With as many arguments as the kernel has parameters, converted to them. */
  UIR_BANG_UNSEEN void operator()(Parameters... arguments) const {
    const uint64_t values[] = {Word(arguments)..., 0};
    const uint32_t dim[] = {dim_.x, dim_.y, dim_.z};
    uir_bang_enqueue(name_, reinterpret_cast<void*>(kernel_), dim, type_, queue_, values, sizeof...(Parameters),
                     at_.line());
  }

 private:
  template <typename T>
  UIR_BANG_UNSEEN static uint64_t Word(T value) {
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
UIR_BANG_UNSEEN Launched<Parameters...> Launch(const char* name, void (*kernel)(Parameters...), cnrtDim3_t dim,
                                               int type, cnrtQueue_t queue, Site at = Site::Here()) {
  return {name, kernel, dim, type, queue, at};
}

}  // namespace uir_bang
