// SPDX-License-Identifier: Apache-2.0
// What the runtime asks of CNNL: functions of a shared object that is compiled against the toolkit's headers.
//
// CNNL's structures and numbers are its headers' own, so that calls cannot be made without them. The functions' text
// is python/uir_tvm/target/bang/templates/glue/glue.cpp, which declares the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uir::library::bang {

/*! \brief A view of a tensor; offset and strides in elements. */
struct GlueView {
  void* data;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;
  int64_t offset;
};

//! \brief Queues out = alpha a @ b.
//! \param half Whether elements are half; else float.
//! \param message Receives what went wrong.
//! \return 0 where it is queued.
using GlueProduct = int (*)(void* queue, int half, float alpha, const GlueView* a, const GlueView* b,
                            const GlueView* out, char* message, size_t most);

//! \brief Queues a convolution of contiguous tensors in NCHW.
//! \param shapes n, c, h, w of input, weight and output, one after the other.
//! \param window Stride, padding, dilation of rows and columns each; groups.
using GlueConvolution = int (*)(void* queue, int half, void* x, void* weight, void* out, const int64_t* shapes,
                                const int64_t* window, char* message, size_t most);

//! \brief Queues out = a @ b with b turned, of int8 into float, all contiguous: [parts, m, k] by [parts, n, k].
//! \param sizes parts, m, n, k.
using GlueIntegerProduct = int (*)(void* queue, void* a, void* b, void* out, const int64_t* sizes, char* message,
                                   size_t most);

}  // namespace uir::library::bang
