// SPDX-License-Identifier: Apache-2.0
// What the runtime of compiled models asks of CNNL (src/library/bang/cnnl_glue.h declares the same), on the calls that
// exported projects make. It is compiled against the toolkit's own headers, on the machine with the device.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <vector>

#include "cnnl_calls.h"

namespace {

struct GlueView {
  void* data;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;
  int64_t offset;
};

/*! The library on a queue of the calling thread, kept to the end of the process: the runtime may be gone by then. */
project::Library& LibraryOn(void* queue) {
  static thread_local auto* libraries = new std::map<void*, std::unique_ptr<project::Library>>();
  std::unique_ptr<project::Library>& library = (*libraries)[queue];
  if (!library) library = std::make_unique<project::Library>(static_cast<cnrtQueue_t>(queue));
  return *library;
}

project::View ViewOf(const GlueView* view, cnnlDataType_t type) {
  return {view->data, type, std::vector<int>(view->shape, view->shape + view->rank),
          std::vector<int>(view->strides, view->strides + view->rank), view->offset};
}

cnnlDataType_t TypeOf(int half) { return half != 0 ? CNNL_DTYPE_HALF : CNNL_DTYPE_FLOAT; }

template <typename Call>
int Told(Call call, char* message, size_t most) {
  try {
    call();
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(message, most, "%s", error.what());
    return 1;
  }
}

project::Image ImageOf(void* data, const int64_t* shape) {
  return {data, static_cast<int>(shape[0]), static_cast<int>(shape[1]), static_cast<int>(shape[2]),
          static_cast<int>(shape[3])};
}

}  // namespace

extern "C" int uir_cnnl_product(void* queue, int half, float alpha, const GlueView* a, const GlueView* b,
                                const GlueView* out, char* message, size_t most) {
  const auto call = [&] {
    const cnnlDataType_t type = TypeOf(half);
    const project::View left = ViewOf(a, type);
    const project::View right = ViewOf(b, type);
    const project::View result = ViewOf(out, type);
    LibraryOn(queue).Product(alpha, left, right, result);
  };
  return Told(call, message, most);
}

extern "C" int uir_cnnl_integer_product(void* queue, void* a, void* b, void* out, const int64_t* sizes, char* message,
                                        size_t most) {
  const auto number = [&](int i) { return static_cast<int>(sizes[i]); };
  const auto call = [&] {
    LibraryOn(queue).IntegerProduct(a, b, out, project::Matrices{number(0), number(1), number(2), number(3)});
  };
  return Told(call, message, most);
}

extern "C" int uir_cnnl_convolution(void* queue, int half, void* x, void* weight, void* out, const int64_t* shapes,
                                    const int64_t* window, char* message, size_t most) {
  const auto number = [&](int i) { return static_cast<int>(window[i]); };
  const auto call = [&] {
    const project::Window of{{number(0), number(1)}, {number(2), number(3)}, {number(4), number(5)}, number(6)};
    LibraryOn(queue).Convolution(TypeOf(half), ImageOf(x, shapes), ImageOf(weight, shapes + 4), of,
                                 ImageOf(out, shapes + 8));
  };
  return Told(call, message, most);
}
